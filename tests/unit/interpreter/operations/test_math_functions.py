"""The accuracy of mathematical functions, in units in the last place, against numbers of 64 bits of mantissa."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tests.unit import volume
from tests.unit.interpreter.functions import apply
from tests.unit.interpreter.oracle.checking import unit
from tlx_xdsl.dialects.tt.enums import InputPrecision
from tlx_xdsl.interpreter.matmul import multiply_split
from tlx_xdsl.numerics.matmul import multiply

COUNT = 100_000 if volume.is_full() else 4_000
TYPES = [(np.float16, "f16"), (ml_dtypes.bfloat16, "bf16"), (np.float32, "f32"), (np.float64, "f64")]

FUNCTIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float, float]] = {
    "math.exp": (np.exp, -80, 80),
    "math.exp2": (np.exp2, -120, 120),
    "math.expm1": (np.expm1, -5, 5),
    "math.log": (np.log, 1e-6, 1e4),
    "math.log2": (np.log2, 1e-6, 1e4),
    "math.log1p": (np.log1p, -0.9, 10),
    "math.log10": (np.log10, 1e-6, 1e4),
    "math.sin": (np.sin, -100, 100),
    "math.cos": (np.cos, -100, 100),
    "math.tan": (np.tan, -1.5, 1.5),
    "math.asin": (np.arcsin, -1, 1),
    "math.acos": (np.arccos, -1, 1),
    "math.atan": (np.arctan, -50, 50),
    "math.sinh": (np.sinh, -10, 10),
    "math.cosh": (np.cosh, -10, 10),
    "math.tanh": (np.tanh, -5, 5),
    "math.sqrt": (np.sqrt, 0, 1e4),
    "math.rsqrt": (lambda x: 1 / np.sqrt(x), 1e-4, 1e4),
    "math.cbrt": (np.cbrt, -1e4, 1e4),
}


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="there is nothing more accurate to compare with")
@pytest.mark.parametrize(("dtype", "element"), TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_within_their_units(name: str, dtype: type, element: str) -> None:
    function, low, high = FUNCTIONS[name]
    kind = np.dtype(dtype)
    x = np.random.default_rng(0).uniform(low, high, COUNT).astype(kind)
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.longdouble))
        # Results beyond the range of f16 say nothing.
        usual = np.abs(exact) < float(ml_dtypes.finfo(kind).max)
    type_ = f"T<{element}>"
    found = apply(f"{name} %0 : {type_}", x, types=type_, result=type_).astype(np.longdouble)
    error = np.abs(found - exact)[usual] / unit(np.abs(exact[usual]).astype(np.float64), kind)
    assert error.max() <= (2 if kind == np.float64 else 0.51)


def test_round_to_even_and_away_from_zero() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 8388609.0, -0.0], np.float32)
    away = apply("math.round %0 : T<f32>", x, types="T<f32>", result="T<f32>")
    even = apply("math.roundeven %0 : T<f32>", x, types="T<f32>", result="T<f32>")
    assert away.tolist() == [1, 2, 3, -1, -2, 0, 8388609, 0]
    assert even.tolist() == [0, 2, 2, 0, -2, 0, 8388609, 0]
    assert np.signbit(away[-1])


# Products ------------------------------------------------------------------------------------------------------------


def error_of(found: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    """Units in the last place of f32, of the sum of the magnitudes."""
    a, b, c = (x.astype(np.float64) for x in (a, b, c))
    size = np.abs(a) @ np.abs(b) + np.abs(c)
    return float((np.abs(found - (a @ b + c)) / unit(size, np.dtype(np.float32))).max())


@pytest.mark.parametrize("depth", [64, 4096])
def test_sums_of_products_are_accurate_to_a_few_units(depth: int) -> None:
    rng = np.random.default_rng(depth)
    a, b = rng.standard_normal((32, depth)).astype(np.float16), rng.standard_normal((depth, 32)).astype(np.float16)
    c = rng.standard_normal((32, 32)).astype(np.float32)
    assert error_of(multiply(a, b, c, np.dtype(np.float32)), a, b, c) < 4


# Units that remain for K = 64; what is left out has 2**-22, 2**-16 and 2**-24 of the magnitudes.
@pytest.mark.parametrize(("precision", "limit"), [("TF32x3", 8), ("BF16x3", 256), ("BF16x6", 8)])
def test_parts_of_operands_make_up_their_accuracy(precision: str, limit: float) -> None:
    rng = np.random.default_rng(1)
    a, b, c = (rng.standard_normal(shape).astype(np.float32) for shape in ((32, 64), (64, 32), (32, 32)))
    split = multiply_split(a, b, c, InputPrecision[precision])
    assert error_of(split, a, b, c) < limit
    # One part alone is coarser by far.
    assert error_of(multiply(a, b, c, np.dtype(np.float32), tf32=True), a, b, c) > 2 * limit


def test_an_infinity_among_split_operands_stays_one() -> None:
    a, b = np.ones((16, 16), np.float32), np.ones((16, 16), np.float32)
    a[3, 4] = np.inf
    with np.errstate(all="ignore"):
        found = multiply_split(a, b, np.zeros((16, 16), np.float32), InputPrecision.TF32x3)
    assert np.isinf(found[3]).all()
    assert (np.delete(found, 3, 0) == 16).all()


@pytest.mark.parametrize("size", [16, 300])
def test_products_of_bytes_wrap_around_in_32_bits(size: int) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-128, 128, (8, size)).astype(np.int8) for _ in range(2))
    c = rng.integers(-(2**31), 2**31, (8, 8)).astype(np.int32)
    found = multiply(a, b.T, c, np.dtype(np.int32))
    exact = a.astype(object) @ b.T.astype(object) + c.astype(object)
    assert found.tolist() == ((exact + 2**31) % 2**32 - 2**31).tolist()
