"""Evaluation of the polynomials of an access: the bytes that a program touches, and the elements that a mask leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.analysis.integers.functions import COMPARISONS, apply
from tlx_xdsl.analysis.integers.polynomials import (
    Argument,
    Call,
    Counter,
    Extent,
    Lane,
    NumPrograms,
    Pid,
    Polynomial,
    Scalar,
    Symbol,
    Unknown,
)
from tlx_xdsl.layouts.encodings import Ints

from .model import Access, DescriptorFacts, LaunchFacts


class NotANumber(Exception):
    """A polynomial that holds something of which the value is not given."""


def value(
    form: Polynomial,
    shape: Ints,
    facts: LaunchFacts,
    program: tuple[int, int, int],
    counters: Mapping[Counter, int] | None = None,
) -> NDArray[np.int64]:
    """The value of a polynomial at every position of a block of this shape, in a program and an iteration of each loop.

    Loops that `counters` does not hold are in their first iteration.
    Raises NotANumber for a polynomial with something that neither `facts` nor the positions give.
    """

    def value_of(symbol: Symbol) -> Any:
        match symbol:
            case Pid(axis):
                return program[axis]
            case Lane(dim, extent):
                return np.arange(extent, dtype=np.int64).reshape((-1,) + (1,) * (len(shape) - 1 - dim))
            case Counter():
                return 0 if counters is None else counters.get(symbol, 0)
            case NumPrograms(axis) if facts.grid is not None:
                return facts.grid[axis]
            case Argument(_, name) if isinstance(given := facts.arguments.get(name), int):
                return given
            case Extent(_, name, what, dim) if isinstance(given := facts.arguments.get(name), DescriptorFacts):
                return (given.shape if what == "shape" else given.strides)[dim]
            case NumPrograms() | Argument() | Extent() | Scalar() | Unknown() | Call():
                raise NotANumber(str(symbol))

    try:
        return np.broadcast_to(np.asarray(form.evaluate(value_of, apply), np.int64), shape)
    except OverflowError as error:
        raise NotANumber(str(form)) from error


def block(
    access: Access,
    facts: LaunchFacts,
    program: tuple[int, int, int],
    counters: Mapping[Counter, int] | None = None,
) -> NDArray[np.int64] | None:
    """Bytes from the base of each element of the unmasked block; None where that is not known."""
    if access.offset is None:
        return None
    try:
        return value(access.offset, access.shape, facts, program, counters)
    except NotANumber:
        return None


def mask(
    access: Access,
    facts: LaunchFacts,
    program: tuple[int, int, int],
    counters: Mapping[Counter, int] | None = None,
) -> NDArray[np.bool_] | None:
    """The elements that the guards let through: all that are touched, and just those where `guards_exact`.

    None where a guard's value is not known.
    """
    result = np.ones(access.shape, np.bool_)
    try:
        for guard in access.guards:
            sides = [value(side, access.shape, facts, program, counters) for side in (guard.left, guard.right)]
            result = result & COMPARISONS[guard.predicate](*sides)
    except NotANumber:
        return None
    return result
