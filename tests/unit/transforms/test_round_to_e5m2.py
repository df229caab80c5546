"""Results of `tlx-round-to-e5m2`, in the interpreter, and numbers of 8-bit floats in PTX, against `ml_dtypes`."""

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.defects.rounding_to_e5m2 import kernel
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.runtime.simulate.interpret import interpret, interpret_text, source_of_kernel

_COUNT = 1 << 16
_HALVES = np.arange(_COUNT, dtype=np.uint32)


def _singles() -> np.ndarray:
    """Numbers of f32 at and beside each number of fp16."""
    return (_HALVES.astype(np.uint16).view(np.float16).astype(np.float32).view(np.uint32) + _HALVES % 3 - 1).view("f4")


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("fp16", _HALVES.astype(np.uint16).view(np.float16)),
        ("bf16", _HALVES.astype(np.uint16).view(ml_dtypes.bfloat16)),
        ("fp32", _singles()),
    ],
)
def test_every_number_is_rounded_to_nearest_even_and_saturates(name, numbers):
    specialization = Specialization({"x": f"*{name}", "y": "*fp8e5"}, {"N": _COUNT}, "sm_80", 8)
    text = compile_text(source_of_kernel(kernel), specialization, triton_version="3.8", conversion="own").ttgir
    assert "tt.fp_to_fp" not in text
    y = np.zeros(_COUNT, ml_dtypes.float8_e5m2)
    interpret_text(text, 1, (numbers, y), jobs=1)
    with np.errstate(invalid="ignore"):
        wide = numbers.astype(np.float32)
        expected = np.clip(wide, -57344, 57344).astype(y.dtype).view(np.uint8)
    # The payload of a NaN is not defined.
    is_nan = np.isnan(wide)
    np.testing.assert_array_equal(y.view(np.uint8)[~is_nan], expected[~is_nan])
    assert np.isnan(y.astype(np.float32)[is_nan]).all()


@tlx_xdsl.jit
def fill(e5, e4):
    at = tl.arange(0, 16)
    tl.store(e5 + at, tl.full((16,), -3e-5, tl.float8e5))
    tl.store(e5 + 16 + at, tl.full((16,), float("inf"), tl.float8e5))
    tl.store(e4 + at, tl.full((16,), 1.0625, tl.float8e4nv))


@pytest.mark.backend
def test_numbers_are_rounded_before_triton_folds_them():
    e5, e4 = np.zeros(32, ml_dtypes.float8_e5m2), np.zeros(16, ml_dtypes.float8_e4m3fn)
    interpret(fill, (1,), e5, e4, stage="ptx")
    expected = np.repeat(np.array([-3e-5, np.inf], np.float32), 16).astype(e5.dtype)
    np.testing.assert_array_equal(e5.view(np.uint8), expected.view(np.uint8))
    np.testing.assert_array_equal(e4.view(np.uint8), np.float32(1.0625).astype(e4.dtype).view(np.uint8))
