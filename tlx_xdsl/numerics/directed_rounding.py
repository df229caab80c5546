"""Arithmetic in the four rounding modes of PTX: `rn` (to nearest even), `rd` (down), `ru` (up) and `rz` (towards zero).

f32 is computed in f64 with rounding to odd: of the two f64 around an inexact result, the one whose last bit is set.
Rounded to f32 in any mode that gives what the exact result gives (Boldo and Melquiond, "Emulation of FMA and Correctly
Rounded Sums", 2008). f64 is computed in fractions, element by element: it is rare.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from .arrays import Array, Dtype
from .rounding import round_to
from .special_functions import two_product, two_sum

MODES = ("rn", "rd", "ru", "rz")
Rounded: TypeAlias = Callable[..., Array]
"""An operation on arrays of f32, or on arrays of f64."""


def to_narrower(dtype: Dtype, value: Array, mode: str) -> Array:
    """An f64 that is exact, or rounded to odd, as a narrower float, or as itself."""
    nearest = value.astype(dtype)
    if mode == "rn":
        return nearest
    back = nearest.astype(np.float64)
    return _directed(nearest, np.sign(np.where(back == value, 0.0, value - back)), mode)


def _directed(nearest: Array, sign: Array, mode: str) -> Array:
    """Round in a direction, from the nearest float and the sign of the exact result minus it."""
    infinity = nearest.dtype.type(np.inf)
    lower, upper = np.nextafter(nearest, -infinity), np.nextafter(nearest, infinity)
    below, above = sign < 0, sign > 0
    match mode:
        case "rd":
            return np.where(below, lower, nearest)
        case "ru":
            return np.where(above, upper, nearest)
        case _:
            return np.where(below & (nearest > 0), lower, np.where(above & (nearest < 0), upper, nearest))


def to_odd(value: Array, rest: Array) -> Array:
    """`value + rest`, where `rest` is what rounding has dropped, rounded to odd."""
    even = (value.view(np.int64) & 1) == 0
    inexact = (rest != 0) & np.isfinite(value) & np.isfinite(rest)
    return np.where(inexact & even, np.nextafter(value, np.where(rest > 0, np.inf, -np.inf)), value)


def _sum(a: Array, b: Array) -> Array:
    return to_odd(*two_sum(a, b))


def _quotient(a: Array, b: Array) -> Array:
    quotient = a / b
    product, low = two_product(quotient, b)
    # The sign of the remainder, seen from the divisor, is that of what rounding has dropped.
    remainder = ((a - product) - low) * np.sign(b)
    return to_odd(quotient, np.where(np.isfinite(quotient) & np.isfinite(b), remainder, 0.0))


def _root(a: Array) -> Array:
    root = np.sqrt(a)
    square, low = two_product(root, root)
    return to_odd(root, (a - square) - low)


def _reciprocal_root(a: Array) -> Array:
    # Not rounded to odd, but for no f32 is it at the wrong side of a tie: all mantissas were tried.
    return 1 / np.sqrt(a)


def _difference(a: Array, b: Array) -> Array:
    return _sum(a, -b)


def _multiply_add(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


def _exact_single_multiply_add(a: Array, b: Array, c: Array) -> Array:
    # The product of two f32 is an f64.
    return _sum(a * b, c)


def _divide(a: Any, b: Any) -> Any:
    return a / b


def _reciprocal(a: Any) -> Any:
    return 1 / a


def _single_reciprocal(a: Array) -> Array:
    return _quotient(np.ones_like(a), a)


_SINGLE: dict[str, Callable[..., Array]] = {
    "add": _sum,
    "sub": _difference,
    "mul": np.multiply,
    "fma": _exact_single_multiply_add,
    "div": _quotient,
    "rcp": _single_reciprocal,
    "sqrt": _root,
    "rsqrt": _reciprocal_root,
}
"""On arrays of f64 that hold f32, with a result that is exact or rounded to odd."""
_PLAIN: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "fma": _multiply_add,
    "div": _divide,
    "rcp": _reciprocal,
    "sqrt": np.sqrt,
}
"""On f64, rounded to nearest but for `fma`, and on fractions, exact but for `sqrt`."""


def rounded(name: str, dtype: Dtype, mode: str) -> Rounded:
    """The operation `name` on f32 or f64, in a rounding mode."""

    def single(*values: Array) -> Array:
        wide = [np.asarray(value, np.float64) for value in values]
        return _signed_zero(name, to_narrower(dtype, np.asarray(_SINGLE[name](*wide)), mode), wide, mode)

    def double(*operands: Array) -> Array:
        wide = [np.asarray(value, np.float64) for value in operands]
        plain = np.asarray(_PLAIN[name](*wide))
        each = zip(*(part.ravel().tolist() for part in wide), strict=True)
        result = np.array([_exactly(name, values, mode) for values in each])
        finite = np.all([np.isfinite(part) for part in wide], axis=0)
        return _signed_zero(name, np.where(finite, result.reshape(plain.shape), plain), wide, mode)

    return single if dtype == np.float32 else double


def _signed_zero(name: str, result: Array, values: list[Array], mode: str) -> Array:
    """An exact zero that is a difference is -0 when rounding down (IEEE 754, 6.3)."""
    if mode != "rd" or name not in ("add", "sub", "fma"):
        return result
    left, right = (values[0], values[1]) if name != "fma" else (values[0] * values[1], values[2])
    right = -right if name == "sub" else right
    both_positive = ~np.signbit(left) & ~np.signbit(right)
    return np.where((result == 0) & (left == -right) & ~((left == 0) & both_positive), -0.0, result).astype(
        result.dtype
    )


def _exactly(name: str, values: tuple[float, ...], mode: str) -> float:
    """The rounded result of finite f64."""
    if not all(math.isfinite(value) for value in values):
        return math.nan
    if name == "sqrt":
        return _exact_root(values[0], mode)
    divisor = values[-1] if name in ("div", "rcp") else 1.0
    if divisor == 0:
        return float(_PLAIN[name](*map(np.float64, values)))
    exact: Fraction = _PLAIN[name](*map(Fraction, values))
    if exact == 0:
        return float(_PLAIN[name](*map(np.float64, values)))
    return _round_fraction(exact, mode)


def _round_fraction(exact: Fraction, mode: str) -> float:
    try:
        nearest = exact.numerator / exact.denominator
    except OverflowError:
        nearest = math.copysign(math.inf, _sign(exact))
    if nearest == 0:
        nearest = math.copysign(0.0, _sign(exact))
    sign = math.copysign(1, -nearest) if math.isinf(nearest) else _sign(exact - Fraction(nearest))
    return nearest if mode == "rn" else float(_directed(np.array(nearest), np.array(float(sign)), mode))


def _sign(number: Fraction) -> int:
    return (number > 0) - (number < 0)


def _exact_root(value: float, mode: str) -> float:
    if value < 0:
        return math.nan
    nearest = math.sqrt(value)
    sign = _sign(Fraction(value) - Fraction(nearest) ** 2)
    return nearest if mode == "rn" else float(_directed(np.array(nearest), np.array(float(sign)), mode))


# Integers ------------------------------------------------------------------------------------------------------------

_TO_WHOLE: dict[str, Callable[..., Any]] = {"rn": np.rint, "rd": np.floor, "ru": np.ceil, "rz": np.trunc}


def to_integer(value: Array, whole: Dtype, mode: str) -> Array:
    """A float as an integer: the nearest one there is when it is out of range.

    NaN is 0, or for f64 and 64-bit integers only the highest bit (PTX ISA, "cvt").
    """
    limits = np.iinfo(whole)
    wide = np.asarray(_TO_WHOLE[mode](np.asarray(value, np.float64)))
    inside = np.where(np.isfinite(wide) & (wide > float(limits.min)) & (wide < float(limits.max)), wide, 0.0)
    result = inside.astype(whole)
    result = np.where(wide >= float(limits.max), whole.type(limits.max), result)
    result = np.where(wide <= float(limits.min), whole.type(limits.min), result)
    highest = np.array(1 << (8 * whole.itemsize - 1), f"u{whole.itemsize}").view(whole)
    wants_bit = np.asarray(value).dtype == np.float64 or whole.itemsize == 8
    return np.where(np.isnan(wide), highest if wants_bit else whole.type(0), result)


def from_integer(value: Array, dtype: Dtype, mode: str) -> Array:
    """An integer, signed or not, as a float."""
    value = np.asarray(value)
    if value.dtype.itemsize < 8:
        return to_narrower(dtype, value.astype(np.float64), mode)
    # By halves, which are exact.
    low = (value & value.dtype.type(0xFFFFFFFF)).astype(np.float64)
    high = (value >> value.dtype.type(32)).astype(np.float64) * 4294967296.0
    total, rest = two_sum(high, low)
    if dtype == np.float32:
        return to_narrower(dtype, to_odd(total, rest), mode)
    return total if mode == "rn" else _directed(total, np.sign(rest), mode)


# Functions that numpy lacks ------------------------------------------------------------------------------------------


def round_half_away(values: Array) -> Array:
    """The nearest integer, ties away from zero (C: round)."""
    whole = np.trunc(values)
    away = whole + np.copysign(1.0, values)
    return np.where(np.abs(values - whole) >= 0.5, away, whole)[()]


def reciprocal_root(values: Array) -> Array:
    """1 / sqrt(x)."""
    return 1 / np.sqrt(values)


def leading_zeros(values: Array) -> Array:
    """Zeros above the highest bit that is set, of unsigned integers."""
    width = values.dtype.itemsize * 8
    spread = values
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < width:
            spread = spread | (spread >> values.dtype.type(shift))
    return width - np.bitwise_count(spread).astype(np.int64)


# Fused multiply-add --------------------------------------------------------------------------------------------------

_LEAST_PRODUCT, _LARGEST_OPERAND = 2.0**-900, 2.0**990
"""Bounds within which the product of two f64 and its error are normal numbers."""


def fused_multiply_add(a: Array, b: Array, c: Array, dtype: Dtype) -> Array:
    """Compute a * b + c with one rounding.

    Below f64, the product is exact in f64, and the sum is rounded to odd there, so that the second rounding is right.
    In f64 it is exact where neither the product nor its error leaves the range of normal numbers; S. Boldo, G.
    Melquiond, "Emulation of FMA and correctly rounded sums" (2008). Beyond it fractions are.
    """
    a, b, c = (value.astype(np.float64) for value in (a, b, c))
    if dtype != np.float64:
        return round_to(to_odd(*two_sum(a * b, c)), dtype)
    a, b, c = np.broadcast_arrays(a, b, c)
    # No product of finite numbers reaches an infinity.
    finite = np.isfinite(a) & np.isfinite(b)
    plain = np.where(finite & ~np.isfinite(c), c, a * b + c)
    product, rest = two_product(a, b)
    low, low_rest = two_sum(c, rest)
    high, high_rest = two_sum(product, low)
    result = high + to_odd(*two_sum(high_rest, low_rest))
    # Of zero factors, and where the sum is exactly zero, the plain sum has the right sign.
    result = np.where(np.isfinite(result) & (result != 0), result, plain)
    least, most = np.abs(a * b), np.maximum(np.maximum(np.abs(a), np.abs(b)), np.abs(c))
    is_usual = (least >= _LEAST_PRODUCT) & np.isfinite(least) & (most <= _LARGEST_OPERAND)
    for place in map(tuple, np.argwhere(finite & np.isfinite(c) & (a != 0) & (b != 0) & ~is_usual)):
        result[place] = _exactly("fma", (float(a[place]), float(b[place]), float(c[place])), "rn")
    return result[()]
