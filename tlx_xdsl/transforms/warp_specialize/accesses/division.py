"""Division of an address by the strides of a block: a coordinate for each dimension, and outer dimensions for the rest.

`64*k + stride_m*128*pid + stride_b*batch` with the strides `stride_m` and 1 is the coordinate `128*pid` along the
first, `64*k` along the second dimension, and `batch` along a third one, whose stride is `stride_b`. Any such split is
exact: the sum of the products is the address.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tlx_xdsl.analysis.integers.polynomials import Polynomial
from tlx_xdsl.analysis.structure.values import ONE, ZERO

from .facts import Facts
from .quotients import quotient


@dataclass(frozen=True)
class Side:
    """A dimension of a box."""

    size: int
    stride: Polynomial
    dim: int | None = None
    """The dimension of the block, if it has one."""
    coordinate: Polynomial = ZERO
    bound: Polynomial | None = None
    """The first position outside of the tensor; None where nothing bounds it."""
    extent: Polynomial | None = None
    """Elements of the tensor along it; None where nothing bounds it."""
    is_fixed: bool = False
    """True if the coordinate is known, because the tensor is bounded below, too."""
    bends_at: Polynomial | None = None
    """The position from which on the access is another one than this box."""
    is_open: bool = False
    """True if the kernel alone knows where the access ends, so that the tensor goes on to the end of its memory."""
    extent_text: str = ""
    """The extent in Python, where no polynomial says it."""


def divide(sides: list[Side], rest: Polynomial, facts: Facts) -> tuple[list[Side], list[Side], Polynomial]:
    """The outer sides, the sides with their coordinates, and what is left, which follows from the arguments."""
    inner: list[Side] = []
    for side in sides:
        coordinate = side.coordinate
        if side.bound is not None and not side.is_fixed:
            # The extent follows from the arguments: what does not is the coordinate.
            coordinate = -facts.parts(side.bound)[1]
        inner.append(replace(side, coordinate=coordinate))
        rest -= coordinate * side.stride
    constant, varying = facts.parts(rest)
    outer: list[Side] = []
    for product, factor in sorted(facts.by_program(varying).items(), key=lambda group: _weight(group[1])):
        symbols = Polynomial({product: 1})
        if not _absorbed(inner, factor, symbols, bounded=False) and not _absorbed(
            outer, factor, symbols, bounded=False
        ):
            outer.append(Side(1, factor, coordinate=symbols))
    # What is added goes first: a difference that would leave a coordinate negative stays with the tensor's begin.
    for product, number in sorted(constant, key=lambda term: term[1] < 0):
        part, before = Polynomial({product: number}), list(inner)
        if not _absorbed(inner, part, ONE, bounded=True):
            continue
        if number < 0 and any(facts.natural_if(side.coordinate) is None for side in inner if not side.is_fixed):
            inner[:] = before
            continue
        constant -= part
    return outer, inner, constant


def _absorbed(sides: list[Side], factor: Polynomial, symbols: Polynomial, *, bounded: bool) -> bool:
    """Add `factor * symbols` to the coordinate of the side with the widest stride that divides it, if there is one."""
    order = sorted(range(len(sides)), key=lambda number: _weight(sides[number].stride), reverse=True)
    for number in order:
        side = sides[number]
        if side.is_fixed or (side.bound is not None and not bounded):
            continue
        found = quotient(factor, side.stride)
        # A stride that no side has belongs to an outer dimension, not to the columns.
        if found is None or (side.stride == ONE and found.number is None and symbols != ONE):
            continue
        sides[number] = replace(side, coordinate=side.coordinate + found * symbols)
        return True
    return False


def _weight(form: Polynomial) -> tuple[int, int, str]:
    """Return an order in which a divisor comes before what it divides."""
    degree = max((sum(power for _, power in product) for product, _ in form), default=0)
    return degree, abs(form.number or 0), str(form)
