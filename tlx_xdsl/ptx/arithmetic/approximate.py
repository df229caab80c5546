"""Approximate instructions: what ptxas makes of them around the functions of `mufu.py`.

The sequences were read from ptxas's code for sm_90a (CUDA 12.8): with `.ftz` there is the unit's instruction alone;
without, subnormal arguments, and those whose result would be one, are scaled by a power of 2 before and after.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlx_xdsl.numerics.arrays import Array

from . import mufu
from .floats import flush

Function = Callable[[Array], Array]

_TINY, _LARGE = np.float32(2.0**-126), np.float32(2.0**126)
_UP, _DOWN = np.float32(2.0**24), np.float32(0.25)


def _scaled(function: Function, after: Function) -> Function:
    """A function that takes subnormal numbers times 2**24, and what makes their results good."""

    def run(values: Array) -> Array:
        is_tiny = np.abs(values) < _TINY
        if not np.count_nonzero(is_tiny):
            return function(values)
        found = function(np.where(is_tiny, values * _UP, values))
        return np.where(is_tiny, after(found), found)

    return run


def _exp2(values: Array) -> Array:
    """The square of the root where the result would be subnormal."""
    is_low = values < -126
    if not np.count_nonzero(is_low):
        return mufu.exp2(values)
    found = mufu.exp2(np.where(is_low, values * np.float32(0.5), values))
    return np.where(is_low, found * found, found)


def _reciprocal(values: Array) -> Array:
    scale = _divisor_scale(values, is_full=True, is_flushed=False)
    return mufu.reciprocal(values * scale) * scale


def _divisor_scale(divisor: Array, *, is_full: bool, is_flushed: bool) -> Array:
    magnitude = np.abs(divisor)
    scale = np.where(magnitude < (0 if is_flushed else _TINY), _UP, np.float32(1))
    return np.where(magnitude > _LARGE, _DOWN, scale) if is_full else scale


FUNCTIONS: dict[str, tuple[Function, Function]] = {
    "ex2": (_exp2, mufu.exp2),
    "lg2": (_scaled(mufu.log2, lambda found: found - np.float32(24)), mufu.log2),
    "rcp": (_reciprocal, mufu.reciprocal),
    "rsqrt": (_scaled(mufu.reciprocal_root, lambda found: found * np.float32(2.0**12)), mufu.reciprocal_root),
    "sin": (mufu.sine, mufu.sine),
    "cos": (mufu.cosine, mufu.cosine),
    "sqrt": (_scaled(mufu.root, lambda found: found * np.float32(2.0**-12)), mufu.root),
    "tanh": (mufu.tangent, mufu.tangent),
}
"""The approximate functions of f32 without and with `.ftz`, by the name of their instruction."""


def quotient_factors(dividend: Array, divisor: Array, *, is_full: bool, is_flushed: bool) -> tuple[Array, Array]:
    """Return what `div.full.f32` or `div.approx.f32` multiplies: a multiple of the dividend, and a reciprocal."""
    if is_flushed:
        dividend, divisor = flush(dividend), flush(divisor)
    if is_full or not is_flushed:
        scale = _divisor_scale(divisor, is_full=is_full, is_flushed=is_flushed)
        dividend, divisor = dividend * scale, divisor * scale
    if is_flushed:
        dividend = flush(dividend)
    return dividend, mufu.reciprocal(divisor)


def division(*, is_full: bool, is_flushed: bool) -> Callable[[Array, Array], Array]:
    """`div.full.f32` or `div.approx.f32`."""

    def divide(dividend: Array, divisor: Array) -> Array:
        first, second = quotient_factors(dividend, divisor, is_full=is_full, is_flushed=is_flushed)
        return flush(first * second) if is_flushed else first * second

    return divide
