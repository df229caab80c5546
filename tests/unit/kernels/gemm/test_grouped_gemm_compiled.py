"""The grouped products, compiled for Hopper with stock Triton: nothing spills, and main loops convert no layout."""

import ml_dtypes
import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.gemm.test_compiled import compiled, registers
from tests.unit.kernels.references import DTYPES
from tlx_xdsl.analysis.layout_costs import conversions
from tlx_xdsl.kernels.gemm.grouped.call import grouped_gemm_launch
from tlx_xdsl.kernels.gemm.grouped.config import CONFIGS
from tlx_xdsl.kernels.gemm.grouped.scaled import scaled_grouped_gemm_launch
from tlx_xdsl.text.parser import parse_module

pytestmark = pytest.mark.backend

ENDS = np.zeros(2, np.int32)
NAMES = CONFIGS if volume.is_full() else ["large"]


def check(launch):
    result = compiled(launch)
    assert result.resources.registers == 168
    assert (result.resources.spill_store_bytes, result.resources.stack_bytes) == (0, 0)
    assert result.warnings == ()
    # Around its tasks the kernel has 256, and what waits has 120.
    assert registers(result.ptx) == [40, 120, 232, 256]
    return result


@pytest.mark.parametrize("by_columns", [False, True] if volume.is_full() else [True])
@pytest.mark.parametrize("name", NAMES)
def test_rows(name, by_columns):
    x, out = (np.empty((64, 64), DTYPES["bf16"]) for _ in range(2))
    w = np.empty((2, 64, 64), DTYPES["bf16"])
    w = w.swapaxes(1, 2) if by_columns else w
    result = check(grouped_gemm_launch(x, w, ENDS, out, config=CONFIGS[name]))
    assert "convert_layout" not in result.ttgir


@pytest.mark.skipif(not volume.is_full(), reason="the tasks of the other kernel, which takes as long to compile")
@pytest.mark.parametrize("name", [name for name in NAMES if CONFIGS[name].b_parts == 1])
def test_sums(name):
    x, y, out = np.empty((64, 64), np.float16), np.empty((64, 64), np.float16), np.empty((2, 64, 64), np.float16)
    result = check(grouped_gemm_launch(x.T, y, ENDS, out, config=CONFIGS[name]))
    assert "convert_layout" not in result.ttgir


@pytest.mark.skipif(not volume.is_full(), reason="takes as long to compile as the kernel without scales")
@pytest.mark.parametrize("name", NAMES)
def test_scaled_rows(name):
    x, w = np.empty((64, 64), ml_dtypes.float8_e4m3fn), np.empty((2, 64, 64), ml_dtypes.float8_e4m3fn).swapaxes(1, 2)
    scale_x, scale_w = np.empty(64, np.float32), np.empty((2, 64), np.float32)
    out = np.empty((64, 64), DTYPES["bf16"])
    result = check(scaled_grouped_gemm_launch(x, w, ENDS, scale_x, scale_w, out, config=CONFIGS[name].of_step(2)))
    # Those of the scales stand in the loops over jobs and their tiles, not in that over the steps.
    assert all(each.loops == 2 for each in conversions(parse_module(result.ttgir)))
