"""The regularity of a block: contiguity, divisibility and constancy along each dimension, from its exact offsets.

`analysis/axis_info.py` has the same three numbers for layouts, from transfer functions that take indices as not
negative. Facts must hold without that, so that the numbers here come from the polynomial of the offset.
"""

from __future__ import annotations

from math import gcd

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from tlx_xdsl.analysis.integers.axis_domain import MOST
from tlx_xdsl.analysis.integers.polynomials import Argument, Call, Lane, Polynomial, Symbol, Unknown
from tlx_xdsl.analysis.integers.symbols import Causes
from tlx_xdsl.dialects import tt
from tlx_xdsl.layouts.encodings import Ints

from .arithmetic import causes_of_form
from .bounds import Bounds
from .evaluate import value
from .intervals import Interval
from .model import Dimension, LaunchFacts

MOST_ELEMENTS = 1 << 16
"""Elements of a block above which offsets that are no polynomial are not counted one by one."""


class Alignments:
    """Assumed divisors of the arguments of a kernel (`tt.divisibility`; of a pointer in bytes)."""

    def __init__(self, function: tt.FuncOp):
        self._known: dict[SSAValue, int] = {}
        attributes = function.arg_attrs.data if function.arg_attrs is not None else ()
        for argument, held in zip(function.body.blocks[0].args, attributes, strict=False):
            if isinstance(divisor := held.data.get("tt.divisibility"), IntegerAttr):
                self._known[argument] = max(1, divisor.value.data & -divisor.value.data)

    def of(self, argument: SSAValue | None) -> int:
        """The power of two that divides an argument."""
        return 1 if argument is None else self._known.get(argument, 1)

    def of_symbol(self, symbol: Symbol) -> int:
        """The power of two that divides a symbol."""
        return self.of(symbol.value) if isinstance(symbol, Argument) else 1

    def of_form(self, form: Polynomial) -> int:
        """A power of two that divides every value of a polynomial."""
        result = MOST
        for product, number in form:
            size = number & -number
            for symbol, power in product:
                size *= self.of_symbol(symbol) ** power
            result = gcd(result, size)
        return result


def dimensions_of(
    offset: Polynomial | None, shape: Ints, element_size: int, base: int, aligned: Alignments
) -> tuple[Dimension, ...]:
    """The dimensions of a block; `base` divides the address of the base."""
    if offset is None:
        return tuple(Dimension(extent, None, 1, 1, 1) for extent in shape)
    return tuple(_dimension(offset, shape, dim, element_size, base, aligned) for dim in range(len(shape)))


def _dimension(
    offset: Polynomial, shape: Ints, dim: int, element_size: int, base: int, aligned: Alignments
) -> Dimension:
    extent = shape[dim]
    lane = Lane(dim, extent)
    stride = None if _moves_unevenly(offset) else offset.coefficient(lane)
    if stride is not None and any(isinstance(symbol, Lane) for symbol in stride.all_symbols):
        stride = None
    each = gcd(base, aligned.of_form(offset))
    if stride is None:
        contiguity, constancy = _counted(offset, shape, dim, element_size)
        return Dimension(extent, None, contiguity, each, constancy)
    power = extent & -extent
    if stride.number == 0:
        return Dimension(extent, stride, 1, each, power)
    if stride.number != element_size:
        return Dimension(extent, stride, 1, each, 1)
    # Only the first element of each group counts.
    rest = offset - stride * Polynomial.of(lane)
    first = gcd(base, aligned.of_form(rest), MOST if power == extent else power * element_size)
    return Dimension(extent, stride, power, first, 1)


def _moves_unevenly(offset: Polynomial) -> bool:
    """True if elements lie at places of which nothing is known."""
    return any(isinstance(symbol, Unknown) and Causes.LANES in symbol.causes for symbol in offset.all_symbols)


def _moves(symbol: Symbol) -> bool:
    """True if a symbol may differ between the elements of a block."""
    return Causes.LANES in causes_of_form(Polynomial.of(symbol))


def _counted(offset: Polynomial, shape: Ints, dim: int, element_size: int) -> tuple[int, int]:
    """Contiguity and constancy of offsets that are no polynomial in the positions, where they are numbers."""
    moving = offset.part(_moves)
    if not all(is_of_lanes(symbol) for symbol in moving.all_symbols) or np.prod(shape) > MOST_ELEMENTS:
        return 1, 1
    numbers = np.moveaxis(value(moving, shape, LaunchFacts(), (0, 0, 0)), dim, -1)
    return _groups(numbers, element_size), _groups(numbers, 0)


def is_of_lanes(symbol: Symbol) -> bool:
    """True if a symbol is computed from positions and numbers alone."""
    return all(isinstance(inner, Lane | Call) for inner in Polynomial.of(symbol).all_symbols)


def _groups(numbers: NDArray[np.int64], step: int) -> int:
    """The largest aligned groups along the last dimension in which each number is `step` more than the one before."""
    size = numbers.shape[-1]
    group = size & -size
    while group > 1:
        parts = numbers.reshape(-1, size // group, group)
        expected = parts[..., :1] + np.arange(0, step * group, step, dtype=np.int64) if step else parts[..., :1]
        if np.array_equal(parts, np.broadcast_to(expected, parts.shape)):
            return group
        group //= 2
    return 1


def lane_range(offset: Polynomial, bounds: Bounds) -> Interval | None:
    """Bytes that the positions add to an offset; None where they do so by symbols."""
    moving = offset.part(_moves)
    return bounds.of_form(moving) if all(is_of_lanes(symbol) for symbol in moving.all_symbols) else None


def run_of_block(dimensions: tuple[Dimension, ...], element_size: int) -> int | None:
    """Elements of a block that lies in one run without gaps; None for another block."""
    strides: list[tuple[int, int]] = []
    for dimension in dimensions:
        if dimension.extent == 1:
            continue
        if dimension.stride is None or (number := dimension.stride.number) is None or number <= 0:
            return None
        strides.append((number, dimension.extent))
    run = 1
    for stride, extent in sorted(strides):
        if stride != run * element_size:
            return None
        run *= extent
    return run
