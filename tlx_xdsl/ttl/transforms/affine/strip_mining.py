"""Strip-mining of an affine loop: the bounds of the loop over batches, and of the loop over the iterations left
over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import affine
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr, AffineMap


@dataclass(frozen=True)
class Bound:
    """A bound of an affine loop: a map, the operands of which are all dimensions."""

    map: AffineMap
    operands: tuple[SSAValue, ...]

    @staticmethod
    def constant(number: int) -> Bound:
        """A bound that is a number."""
        return Bound(AffineMap(0, 0, (AffineExpr.constant(number),)), ())


@dataclass(frozen=True)
class Strips:
    """Division of a loop: `batch` iterations in each of the first loop, from `middle` on one by one."""

    batch: int
    middle: Bound
    """The end of the first loop."""
    rest: Bound | None
    """The beginning of the second loop, if there is anything left over."""


def trip_count(loop: affine.ForOp) -> int | None:
    """The number of iterations, when the bounds are numbers."""
    bounds = [_number(each) for each in (loop.lowerBoundMap.data, loop.upperBoundMap.data)]
    if None in bounds:
        return None
    lower, upper = (each for each in bounds if each is not None)
    return len(range(lower, upper, loop.step.value.data))


def strips(loop: affine.ForOp, batch: int) -> Strips | None:
    """Cut a loop into batches of so many iterations, or of all that it has; None if there are less than two."""
    step = loop.step.value.data
    lower_map, upper_map = loop.lowerBoundMap.data, loop.upperBoundMap.data
    count = trip_count(loop)
    lower = _number(lower_map)
    if count is not None and lower is not None:
        batch = min(batch, count)
        if batch < 2:
            return None
        middle = Bound.constant(lower + count // batch * batch * step)
        return Strips(batch, middle, middle if count % batch else None)
    # The smallest of several ends can't be the beginning of the rest.
    if batch < 2 or len(lower_map.results) != 1 or len(upper_map.results) != 1:
        return None
    operands = (*loop.lowerBoundOperands, *loop.upperBoundOperands)
    first = _over_dimensions(lower_map, 0)
    end = _over_dimensions(upper_map, len(loop.lowerBoundOperands))
    cut = first + ((end - first + (step - 1)) // (batch * step)) * (batch * step)

    def bound(*results: AffineExpr) -> Bound:
        return Bound(AffineMap(len(operands), 0, results), operands)

    # A loop without iterations may end before its beginning: the rest must not begin there.
    return Strips(batch, bound(cut), bound(first, cut))


def _number(map_: AffineMap) -> int | None:
    match map_.results:
        case (AffineConstantExpr() as result,):
            return result.value
        case _:
            return None


def _over_dimensions(map_: AffineMap, first: int) -> AffineExpr:
    """The only result of a map, its dimensions and symbols as dimensions from a number on."""
    new: Sequence[AffineExpr] = [AffineExpr.dimension(first + i) for i in range(map_.num_dims + map_.num_symbols)]
    return map_.results[0].replace_dims_and_symbols(new[: map_.num_dims], new[map_.num_dims :])
