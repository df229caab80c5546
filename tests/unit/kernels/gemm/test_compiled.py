"""The kernels that people import, compiled for Hopper with stock Triton: nothing spills, and no layout is converted."""

import re

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.gemm.test_gemm_epilogues import everything
from tests.unit.kernels.references import DTYPES, heads, matrix
from tlx_xdsl.analysis.layout_costs import conversions
from tlx_xdsl.kernels.attention.forward import attention_launch
from tlx_xdsl.kernels.gemm.config import CONFIGS, Choice
from tlx_xdsl.kernels.gemm.dense import gemm_launch
from tlx_xdsl.kernels.gemm.tiles import for_split
from tlx_xdsl.kernels.rows.norm import layer_norm_launch
from tlx_xdsl.kernels.rows.softmax import softmax_launch
from tlx_xdsl.layouts.conversion_cost import ConversionKind
from tlx_xdsl.runtime.build import compile_kernel
from tlx_xdsl.runtime.driver.compilation import Specialization
from tlx_xdsl.text.parser import parse_module

pytestmark = pytest.mark.backend


def compiled(launch):
    options = {"cluster": launch.cluster, "maxnreg": launch.maxnreg}
    wanted = Specialization(launch.signature, launch.constexprs, "sm_90a", launch.num_warps, **options)
    return compile_kernel(launch.kernel, wanted)


REGISTERS = {1: (255, [232, 256]), 2: (168, [40, 120, 232, 256]), 3: (128, [32, 80, 160, 256])}
"""For so many warp groups that multiply: the registers at the launch, and what the tasks set theirs to.

Around its tasks a kernel has 256; then come the consumers, what waits, and the producer.
"""


def check_gemm(launch, consumers, spilled=0):
    result = compiled(launch)
    expected, tasks = REGISTERS[consumers]
    assert result.resources.registers == expected
    assert registers(result.ptx) == tasks
    assert max(result.resources.spill_store_bytes, result.resources.stack_bytes) <= spilled
    assert result.warnings == ()
    return result


GEMMS = [("192x192 by 2", "fp16", False, False), ("tiny", "bf16", True, True)]
MORE_GEMMS = [(name, "fp16", False, False) for name in CONFIGS if name not in ("large", "medium", "192x192 by 2")]
MORE_GEMMS += [
    (name, dtype, a, b)
    for name in ("large", "medium", "192x192 by 2")
    for dtype in DTYPES
    for a in (False, True)
    for b in (False, True)
]


@pytest.mark.parametrize(("name", "dtype", "a_columns", "b_columns"), MORE_GEMMS if volume.is_full() else GEMMS)
def test_gemm(name, dtype, a_columns, b_columns):
    a = matrix(64, 64, DTYPES[dtype], by_columns=a_columns)
    b = matrix(64, 64, DTYPES[dtype], by_columns=b_columns)
    config = CONFIGS[name]
    (launch,) = gemm_launch(a, b, np.empty((64, 64), DTYPES[dtype]), config=config, programs=2).parts
    assert "convert_layout" not in check_gemm(launch, config.consumers).ttgir


@pytest.mark.parametrize("name", CONFIGS if volume.is_full() else ["64x16"])
def test_gemm_in_pieces(name):
    """Compile a product of few rows, so C^T = B^T A^T; and the kernel that adds."""
    config = CONFIGS[name]
    if config.schedule == "pingpong":
        return
    a, b, c = (np.empty(size, np.float16) for size in ((64, 512), (512, 64), (64, 64)))
    product, added = gemm_launch(a, b, c, config=Choice(config, 64, swapped=True, share=1)).parts
    check_gemm(product, config.consumers)
    resources = compiled(added).resources
    assert (resources.spill_store_bytes, resources.stack_bytes) == (0, 0)


SPLITS = [(name, split) for name in CONFIGS for split in (2, 3, 8) if for_split(CONFIGS[name], split)]


@pytest.mark.parametrize(("name", "split"), SPLITS if volume.is_full() else [("128", 3)])
def test_gemm_of_clusters_that_share_k(name, split):
    """Sums are handed on from the registers in which they arrive, and the cluster waits once, in the tasks."""
    config = CONFIGS[name]
    a, b, c = (np.empty(size, np.float16) for size in ((64, 2048), (2048, 64), (64, 64)))
    choice = Choice(config, config.tiles(64, 64), share=-(-2048 // config.block_k // split), split=split)
    (launch,) = gemm_launch(a, b, c, config=choice).parts
    result = check_gemm(launch, config.consumers)
    assert "st.shared::cluster.v2.b32" in result.ptx
    assert "st.shared::cluster.b32" not in result.ptx
    assert "barrier.cluster.arrive.aligned" not in result.ptx


@pytest.mark.parametrize("name", CONFIGS if volume.is_full() else ["large"])
def test_gemm_with_every_operand_of_an_epilogue(name):
    a = np.empty((64, 64), np.float16)
    vectors = {"rows": (a[0], a[1]), "columns": (a[2], a[3])}
    config = CONFIGS[name]
    (launch,) = gemm_launch(a, a, a, epilogue=everything, matrix=a, **vectors, config=config, programs=2).parts
    # With sums of 256 columns and more, a cluster, and all operands of a part at once 24 bytes of a thread are spilled.
    check_gemm(launch, config.consumers, spilled=24 if config.cluster > 1 and config.block_n == 256 else 0)


ATTENTIONS = [(128, True, 256), (64, False, 200)]
MORE_ATTENTIONS = [(dim, causal, keys) for dim in (64, 128) for causal in (False, True) for keys in (256, 200)]


@pytest.mark.parametrize(("dim", "causal", "keys"), ATTENTIONS + (MORE_ATTENTIONS if volume.is_full() else []))
def test_attention(dim, causal, keys):
    q, k, v = (heads(1, 1, length, dim, np.float16, 0) for length in (2048, keys, keys))
    result = compiled(attention_launch(q, k, v, q, np.empty((1, 1, 2048), np.float32), causal=causal))
    assert result.resources.registers == (168 if dim == 128 else 128)
    assert (result.resources.spill_store_bytes, result.resources.stack_bytes) == (0, 0)
    assert result.warnings == ()
    assert (240 if dim == 128 else 160) in registers(result.ptx)
    # Nothing moves between threads but the sums of rows, which each consumer lays out for their store once for a tile.
    moving = [each for each in conversions(parse_module(result.ttgir)) if each.cost.kind != ConversionKind.IN_THREAD]
    assert [(each.cost.kind, each.loops) for each in moving] == [(ConversionKind.IN_CTA, 1)] * (2 if dim == 128 else 3)


def test_three_programs_of_attention_are_resident():
    q = heads(1, 1, 512, 64, np.float16, 0)
    result = compiled(attention_launch(q, q, q, q, np.empty((1, 1, 512), np.float32), causal=True))
    assert 3 * 256 * result.resources.registers <= 1 << 16
    assert 3 * (result.metadata.shared + 1024) <= 228 << 10  # a program takes 1 KB more than it asks for
    assert (result.resources.spill_store_bytes, registers(result.ptx)) == (0, [24, 136])


def registers(ptx):
    """List the registers that the tasks of a kernel set."""
    return sorted({int(count) for count in re.findall(r"setmaxnreg\.\S+\s+(\d+)", ptx)})


@pytest.mark.parametrize("columns", [1000, 20000] if volume.is_full() else [1000])
def test_softmax(columns):
    x = np.empty((4, columns), np.float16)
    assert compiled(softmax_launch(x, x)).resources.spill_store_bytes == 0


def test_layer_norm():
    x = np.empty((4, 4096), np.float16)
    result = compiled(layer_norm_launch(x, x[0], None, x))
    assert result.resources.spill_store_bytes == 0
