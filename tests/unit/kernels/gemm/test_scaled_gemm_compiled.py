"""`scaled_gemm` compiled for Hopper: nothing spills, tensor cores work in parallel with additions, no layout moves."""

import functools

import ml_dtypes
import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.gemm.test_compiled import compiled, registers
from tlx_xdsl.analysis.layout_costs import conversions
from tlx_xdsl.kernels.gemm.scaled.call import scaled_gemm_launch
from tlx_xdsl.kernels.gemm.scaled.config import CONFIGS, TIMES
from tlx_xdsl.layouts.conversion_cost import ConversionKind
from tlx_xdsl.text.parser import parse_module

pytestmark = pytest.mark.backend

SHAPES = {
    "tensors": ((1,), (1,)),
    "rows": ((256, 1), (1, 256)),
    "blocks": ((256, 4), (4, 2)),
    # Columns of B's scales begin at multiples of 8 bytes: TMA can't read them.
    "blocks of two steps": ((256, 2), (2, 2)),
}

KINDS = [("turns", "blocks", False)]
MORE_KINDS = [(name, scaling, False) for name in TIMES["blocks"] for scaling in ("blocks", "blocks of two steps")]
MORE_KINDS += [(name, scaling, False) for name in TIMES["exact"] for scaling in ("tensors", "rows")]
MORE_KINDS += [(name, scaling, True) for name in TIMES["fast"] for scaling in ("tensors", "rows")]


@functools.cache
def compiled_scaled(name, scaling, fast, a_dtype=ml_dtypes.float8_e4m3fn):
    k = 256 if scaling == "blocks of two steps" else 512
    a, b = np.empty((256, k), a_dtype), np.empty((256, k), ml_dtypes.float8_e4m3fn).T
    scale_a, scale_b = (np.empty(shape[::-1], np.float32).T for shape in SHAPES[scaling])
    out = np.empty((256, 256), ml_dtypes.bfloat16)
    sums = "fast" if fast else "blocks" if scaling.startswith("blocks") else "exact"
    config = None if name is None else CONFIGS[name].fitted(2, sums)
    wide = a_dtype == ml_dtypes.bfloat16
    launch = scaled_gemm_launch(a, b, None if wide else scale_a, scale_b, out, fast=fast, config=config)
    assert wide or launch.constexprs["FORM"].staged == (scaling == "blocks")
    return compiled(launch)


@pytest.mark.parametrize(("name", "scaling", "fast"), MORE_KINDS if volume.is_full() else KINDS)
def test_scaled_gemm(name, scaling, fast):
    result = compiled_scaled(name, scaling, fast)
    assert result.resources.registers == 168
    assert (result.resources.spill_store_bytes, result.resources.stack_bytes) == (0, 0)
    assert result.warnings == ()
    assert registers(result.ptx) == [24, 120, 240, 256]
    # Scales of columns are laid out for the sums once for a tile, after the loop over K.
    moving = [each for each in conversions(parse_module(result.ttgir)) if each.cost.kind != ConversionKind.IN_THREAD]
    assert {each.loops for each in moving} <= ({1} if scaling == "rows" else set())


def test_additions_stand_between_the_strips():
    """Each step's sums are added before the products of the next ones overwrite their registers."""
    result = compiled_scaled("turns", "blocks", False)
    order = [
        "product" if "wgmma.mma_async" in line else "addition"
        for line in result.ptx.splitlines()
        if "wgmma.mma_async" in line or "fma.rn.f32" in line
    ]
    groups = [kind for kind, before in zip(order, [None, *order], strict=False) if kind != before]
    # The first step of each consumer's loop has 4 products of each strip, then that strip's 64 additions.
    assert groups[:4] == ["product", "addition", "product", "addition"]
    assert order.count("addition") == 2 * 2 * 2 * 64


def test_mixed():
    result = compiled_scaled(None, "blocks", False, ml_dtypes.bfloat16)
    assert (result.resources.spill_store_bytes, result.resources.stack_bytes) == (0, 0)
    assert result.warnings == ()
