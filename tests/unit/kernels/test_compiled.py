"""The kernels that people import, compiled for Hopper with stock Triton: nothing spills, and no layout is converted."""

import re

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.references import DTYPES, heads, matrix
from tlx_xdsl.analysis.layout_costs import conversions
from tlx_xdsl.kernels.attention import attention_launch
from tlx_xdsl.kernels.gemm import gemm_launch
from tlx_xdsl.kernels.gemm_config import CONFIGS
from tlx_xdsl.kernels.layernorm import layer_norm_launch
from tlx_xdsl.kernels.softmax import softmax_launch
from tlx_xdsl.layouts.conversion_cost import ConversionKind
from tlx_xdsl.runtime.build import compile_kernel
from tlx_xdsl.runtime.compilation import Specialization
from tlx_xdsl.text.parser import parse_module

pytestmark = pytest.mark.backend


def compiled(launch):
    wanted = Specialization(launch.signature, launch.constexprs, "sm_90a", launch.num_warps)
    return compile_kernel(launch.kernel, wanted)


GEMMS = [("large", "fp16", False, False), ("medium", "bf16", True, True)]
MORE_GEMMS = [(name, "fp16", a, b) for name in CONFIGS for a in (False, True) for b in (False, True)]


@pytest.mark.parametrize(("name", "dtype", "a_columns", "b_columns"), GEMMS + (MORE_GEMMS if volume.is_full() else []))
def test_gemm(name, dtype, a_columns, b_columns):
    a = matrix(64, 64, DTYPES[dtype], by_columns=a_columns)
    b = matrix(64, 64, DTYPES[dtype], by_columns=b_columns)
    result = compiled(gemm_launch(a, b, np.empty((64, 64), DTYPES[dtype]), config=CONFIGS[name]))
    assert result.resources.registers == 168
    assert (result.resources.spill_store_bytes, result.resources.stack_bytes) == (0, 0)
    assert result.warnings == ()
    assert "convert_layout" not in result.ttgir
    # Around its tasks the kernel has 256, and what waits has 120.
    assert registers(result.ptx) == [40, 120, 232, 256]


ATTENTIONS = [(128, True, 256), (64, False, 200)]
MORE_ATTENTIONS = [(dim, causal, keys) for dim in (64, 128) for causal in (False, True) for keys in (256, 200)]


@pytest.mark.parametrize(("dim", "causal", "keys"), ATTENTIONS + (MORE_ATTENTIONS if volume.is_full() else []))
def test_attention(dim, causal, keys):
    q, k, v = (heads(1, 1, length, dim, np.float16, 0) for length in (64, keys, keys))
    result = compiled(attention_launch(q, k, v, q, np.empty((1, 1, 64), np.float32), causal=causal))
    assert result.resources.registers == (168 if dim == 128 else 128)
    assert (result.resources.spill_store_bytes, result.resources.stack_bytes) == (0, 0)
    assert result.warnings == ()
    assert (240 if dim == 128 else 160) in registers(result.ptx)
    # Nothing moves between threads but the sums of rows, which each consumer lays out for their store once for a tile.
    moving = [each for each in conversions(parse_module(result.ttgir)) if each.cost.kind != ConversionKind.IN_THREAD]
    assert [(each.cost.kind, each.loops) for each in moving] == [(ConversionKind.IN_CTA, 1)] * (2 if dim == 128 else 3)


def registers(ptx):
    """What the tasks of a kernel set their registers to."""
    return sorted({int(count) for count in re.findall(r"setmaxnreg\.\S+\s+(\d+)", ptx)})


@pytest.mark.parametrize("columns", [1000, 20000] if volume.is_full() else [1000])
def test_softmax(columns):
    x = np.empty((4, columns), np.float16)
    assert compiled(softmax_launch(x, x)).resources.spill_store_bytes == 0


def test_layer_norm():
    x = np.empty((4, 4096), np.float16)
    result = compiled(layer_norm_launch(x, x[0], None, x))
    assert result.resources.spill_store_bytes == 0
