"""Approximate functions of f32, bit for bit those of an H200 (PTX ISA, "Floating Point": ex2.approx and the like).

One unit computes them all, by quadratic interpolation in fixed point (S. F. Oberman and M. Y. Siu, "A High-Performance
Area-Efficient Multifunction Interpolator", ARITH 2005). The upper bits of a fraction of 23 bits choose a segment with
its coefficients, the low bits x give

    (C0 * 2**k + rounding + C1 * x + C2 * square(x)) >> shift

where the square is a sum of truncated partial products. The structure is that of older GPUs, which people have found
by testing (envytools, `sfu`); an H200's results over all fractions admit it, with the coefficients in `mufu_tables.py`
and no others. Subnormal arguments and results are zeros of their sign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Array, Dtype, Integers

from . import mufu_tables

_BITS = 23
_ONE = 1 << _BITS
_FRACTION = _ONE - 1
_BIAS = 127
_INFINITE = 255 << _BITS
_NAN = 0x7FFFFFFF
_LOW = 17
"""Bits of x in the square, at most."""


@dataclass(frozen=True)
class Table:
    """The coefficients of a function."""

    text: str
    k: int
    rounding: int
    shift: int
    low: int = _LOW
    """Bits of x."""
    factor: int = 1
    """Of C2."""

    @cached_property
    def _rows(self) -> tuple[Integers, Integers, Integers]:
        rows = [[int(number) for number in row.split()] for row in self.text.split(",")]
        first, second, third = np.array(rows, np.int64).T
        return (first << self.k) + self.rounding, second.copy(), third * self.factor

    def at(self, fraction: Integers) -> Integers:
        """The function at fractions of 23 bits, which those of the argument's parity may stand above."""
        first, second, third = self._rows
        segment, x = fraction >> self.low, fraction & ((1 << self.low) - 1)
        return (first[segment] + second[segment] * x + third[segment] * _squares()[x << _LOW - self.low]) >> self.shift


@cache
def _squares() -> Integers:
    """`square(x)` of all x of 17 bits: x * x / 2**19, each partial product truncated."""
    x = np.arange(1 << _LOW)
    total = np.zeros_like(x)
    for bit in range(_LOW):
        total += np.where(x >> bit & 1, x >> (_LOW + 1 - bit), 0)
    return total >> 1


_EX2 = Table(mufu_tables.EX2, 13, 0x17E2, 15)
_RCP = Table(mufu_tables.RCP, 13, 0x7E7, 15, low=16)
_RSQRT = Table(mufu_tables.RSQRT, 14, 0x3FFF, 16, factor=4)
_SQRT = Table(mufu_tables.SQRT, 15, 0x7FFF, 17, factor=2)
_LG2 = Table(mufu_tables.LG2, 12, 0x345, 2, factor=2)
_SIN = Table(mufu_tables.SIN, 12, 0, 0)
_TANH = Table(mufu_tables.TANH, 16, 0, 0)


def _parts(values: Array) -> tuple[Integers, Integers, Integers]:
    """The sign bit, the exponent's bits and the fraction."""
    bits = values.view(np.int32).astype(np.int64)
    return bits & 0x80000000, bits >> _BITS & 255, bits & _FRACTION


def _float(bits: Integers) -> Array:
    return bits.astype(np.uint32).view(np.float32)


def _scaled(result: Integers, exponent: Integers) -> Integers:
    """The bits of `result` (2**23 to 2**24) with the bits of an exponent; what is subnormal is 0."""
    bits = (exponent << _BITS) + (result - _ONE)
    return np.where(bits < _ONE, 0, bits)


# The unit's functions ------------------------------------------------------------------------------------------------


def exp2(values: Array) -> Array:
    """`ex2.approx.ftz.f32`.

    The argument is truncated to 23 bits after the binary point, and a negative one is complemented, not negated.
    """
    magnitude = np.abs(values)
    is_inside = magnitude < 128
    fixed = (np.where(is_inside, magnitude, np.float32(0)).astype(np.float64) * _ONE).astype(np.int64)
    fixed = np.where(np.signbit(values), np.where(fixed & _FRACTION, ~fixed, -fixed), fixed)
    bits = _scaled(_EX2.at(fixed & _FRACTION), (fixed >> _BITS) + _BIAS)
    if not is_inside.all():
        outside = np.where(np.isnan(values), _NAN, np.where(values > 0, _INFINITE, 0))
        bits = np.where(is_inside, bits, outside)
    return _float(bits)


def reciprocal(values: Array) -> Array:
    """`rcp.approx.ftz.f32`."""
    sign, exponent, fraction = _parts(values)
    bits = sign | _scaled(_RCP.at(fraction), 2 * _BIAS - 1 - exponent)
    bits = np.where(exponent == 0, sign | _INFINITE, bits)
    return _float(np.where(exponent == 255, np.where(fraction, _NAN, sign), bits))


def reciprocal_root(values: Array) -> Array:
    """`rsqrt.approx.ftz.f32`."""
    sign, exponent, fraction = _parts(values)
    power = exponent - _BIAS
    place = (power & 1) << _BITS | fraction
    bits = _scaled(np.where(place == 0, 2 * _ONE, _RSQRT.at(place)), _BIAS - 1 - (power >> 1))
    bits = np.where(exponent == 255, np.where(fraction, _NAN, 0), bits)
    bits = np.where(sign != 0, _NAN, bits)
    return _float(np.where(exponent == 0, sign | _INFINITE, bits))


def root(values: Array) -> Array:
    """`sqrt.approx.ftz.f32`."""
    sign, exponent, fraction = _parts(values)
    power = exponent - _BIAS
    bits = _scaled(_SQRT.at((power & 1) << _BITS | fraction), _BIAS + (power >> 1))
    bits = np.where(exponent == 255, np.where(fraction, _NAN, _INFINITE), bits)
    bits = np.where(sign != 0, _NAN, bits)
    return _float(np.where(exponent == 0, sign, bits))


_LG2_BITS = 36


def log2(values: Array) -> Array:
    """`lg2.approx.ftz.f32`: a sum in fixed point with 36 bits after the binary point, truncated to f32."""
    sign, exponent, fraction = _parts(values)
    total = _LG2.at(fraction) + ((exponent - _BIAS) << _LG2_BITS)
    total = np.where((fraction == 0) & (exponent == _BIAS), 0, total)
    magnitude = np.where(total < 0, ~total, total)
    result = np.where(total < 0, -1.0, 1.0) * _truncated(magnitude * 2.0**-_LG2_BITS)
    bits = result.astype(np.float32).view(np.int32).astype(np.int64)
    bits = np.where(exponent == 255, np.where(fraction, _NAN, _INFINITE), bits)
    bits = np.where(sign != 0, _NAN, bits)
    return _float(np.where(exponent == 0, 0x80000000 | _INFINITE, bits) & 0xFFFFFFFF)


_TURN = np.float64(np.float32(0.15915493667125702))
"""1 / (2 pi) in f32, by which ptxas multiplies the argument."""
_SIN_BITS = 37


def sine(values: Array) -> Array:
    """`sin.approx.f32`."""
    return _wave(values, 0)


def cosine(values: Array) -> Array:
    """`cos.approx.f32`."""
    return _wave(values, 1)


def _wave(values: Array, quarters: int) -> Array:
    """The sine so many quarters of a turn after the argument, which is truncated to f32 turns, then to 25 bits."""
    exact: NDArray[np.float64] = np.multiply(np.abs(values), _TURN, dtype=np.float64)
    turns = _truncated(exact)
    is_finite = np.isfinite(values)
    turns = np.where(is_finite & (turns >= 2.0**-126), turns, 0)
    fixed = (np.fmod(turns, 1.0) * 2.0 ** (_BITS + 2)).astype(np.int64)
    quadrant, fraction = (fixed >> _BITS) + quarters, fixed & _FRACTION
    found = _SIN.at(np.where(quadrant & 1, fraction ^ _FRACTION, fraction))
    is_negative = (quadrant & 2) != 0
    if not quarters:
        is_negative = is_negative ^ np.signbit(values)
    scaled: NDArray[np.float64] = np.multiply(found, 2.0**-_SIN_BITS, dtype=np.float64)
    result = _truncated(scaled).astype(np.float32)
    result = np.where(is_negative, -result, result)
    return np.where(is_finite, result, np.uint32(_NAN).view(np.float32))


_TANH_BITS = 40
_TANH_FIRST = 119
"""The bits of the exponent of 2**-8, below which it gives its argument."""
_TANH_SEGMENTS = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3])
"""How often an exponent's range is halved into segments, for those from 2**-8 to 2**2."""
_TANH_STARTS = np.cumsum(1 << _TANH_SEGMENTS) - (1 << _TANH_SEGMENTS)


def tangent(values: Array) -> Array:
    """`tanh.approx.f32`: a segment has 17 bits of the fraction, and the result is truncated to f32."""
    sign, exponent, fraction = _parts(values)
    place = np.clip(exponent - _TANH_FIRST, 0, len(_TANH_SEGMENTS) - 1)
    at = (_TANH_STARTS[place] << _LOW) + (fraction >> (_BITS - _LOW - _TANH_SEGMENTS[place]))
    found: NDArray[np.float64] = np.multiply(_TANH.at(at), 2.0**-_TANH_BITS, dtype=np.float64)
    bits = _truncated(found).astype(np.float32).view(np.int32).astype(np.int64)
    bits = np.where(exponent < _TANH_FIRST, exponent << _BITS | fraction, bits)
    bits = np.where(exponent >= _TANH_FIRST + len(_TANH_SEGMENTS), _BIAS << _BITS, bits)
    return _float(np.where((exponent == 255) & (fraction != 0), _NAN, sign | bits))


def truncated_to(function: Callable[[Array], Array], dtype: Dtype) -> Callable[[Array], Array]:
    """A function of 16 bits: that of f32, whose result is truncated; from 2**16 on it is infinite in f16."""

    def run(values: Array) -> Array:
        wide = function(values.astype(np.float32))
        near = wide.astype(dtype)
        magnitude = np.abs(wide)
        is_above = (np.abs(near.astype(np.float32)) > magnitude) & ~((dtype == np.float16) & (magnitude >= 2.0**16))
        bits = near.view(np.uint16) - is_above.astype(np.uint16)
        return np.where(np.isnan(wide), np.uint16(0x7FFF), bits).view(dtype)

    return run


def _truncated(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Positive numbers to 24 bits, towards zero."""
    return (values.view(np.int64) >> 29 << 29).view(np.float64)
