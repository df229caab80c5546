"""The kernels of `attention_backward`, compiled for Hopper with stock Triton: nothing moves between layouts, and next
to nothing is spilled."""

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.gemm.test_compiled import compiled, registers
from tests.unit.kernels.references import DTYPES, heads
from tests.versions import RELEASE
from tlx_xdsl.analysis.layout_costs import conversions
from tlx_xdsl.kernels.attention.backward.call import attention_backward_launch
from tlx_xdsl.layouts.conversion_cost import ConversionKind
from tlx_xdsl.text.parser import parse_module

pytestmark = pytest.mark.backend

QUERIES = 128

SHARED_BYTES = 227 << 10


def allowed(dim):
    """Bytes of a thread that the main kernel may spill."""
    return 52 if RELEASE >= (3, 7) and dim == 64 else 0


def check(launch, spilled):
    result = compiled(launch)
    assert result.resources.registers == 168
    assert registers(result.ptx) == [24, 120, 240, 256]
    assert result.resources.spill_store_bytes <= spilled
    assert result.metadata.shared <= SHARED_BYTES
    assert result.warnings == ()
    moving = [each for each in conversions(parse_module(result.ttgir)) if each.cost.kind != ConversionKind.IN_THREAD]
    assert moving == []


def launches(dim, causal, keys, group, dtype, deterministic):
    q = heads(1, group, QUERIES, dim, DTYPES[dtype], 0)
    k = heads(1, 1, keys, dim, DTYPES[dtype], 0)
    lse = np.empty(q.shape[:3], np.float32)
    return attention_backward_launch(q, k, k, q, lse, q, q, k, k, causal=causal, deterministic=deterministic).parts


CASES = [(128, True, 256, 4, "bf16")]
MORE_CASES = [
    (dim, causal, keys, group, dtype)
    for dim in (64, 128)
    for causal in (False, True)
    for keys, group, dtype in ((256, 1, "bf16"), (256, 4, "fp16"), (100, 1, "fp16"))
]


@pytest.mark.parametrize(("dim", "causal", "keys", "group", "dtype"), MORE_CASES if volume.is_full() else CASES)
def test_free(dim, causal, keys, group, dtype):
    before, main, after = launches(dim, causal, keys, group, dtype, False)
    check(main, allowed(dim))
    for each in (before, after):
        result = compiled(each)
        assert (result.resources.spill_store_bytes, result.resources.stack_bytes) == (0, 0)
        assert "ld.global.v4" in result.ptx or "ld.global.nc.v4" in result.ptx  # 16 bytes at a time


@pytest.mark.parametrize("dim", [64, 128] if volume.is_full() else [64])
@pytest.mark.parametrize("causal", [False, True] if volume.is_full() else [True])
def test_deterministic(causal, dim):
    _, main, _ = launches(dim, causal, 200, 1, "bf16", True)
    check(main, allowed(dim))


@pytest.mark.parametrize(("dim", "v_dim"), [(192, 128), (192, 192), (256, 256)] if volume.is_full() else [(256, 256)])
@pytest.mark.parametrize("causal", [False, True] if volume.is_full() else [True])
def test_long_heads(causal, dim, v_dim):
    q, v = (heads(1, 1, 200, each, DTYPES["bf16"], 0) for each in (dim, v_dim))
    lse = np.empty(q.shape[:3], np.float32)
    _, main, dq = attention_backward_launch(q, q, v, v, lse, v, q, q, v, causal=causal).parts
    check(main, 0)
    check(dq, 0)
