"""Sizes at which offsets wrap around: 32 bits hold 2^31 elements, and kernels compute in them.

The analysis of addresses says under which conditions on a launch it is exact (`Access.conditions`). Here those are
tried out: with all numbers of a launch as they are but one, from which value on does the condition no longer hold?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.analysis.integers.functions import apply
from tlx_xdsl.analysis.integers.polynomials import Argument, Counter, Pid, Scalar, Symbol, Unknown
from tlx_xdsl.errors import Note

from .analysis import analyse_program_addresses
from .bounds import MOST_PROGRAMS, Bounds
from .evaluate import NotANumber
from .intervals import Interval
from .model import Access, Condition, LaunchFacts, ProgramAddresses
from .values import Integer

AXES = "xyz"

WIDEN = Note("tl.cast(..., tl.int64) of the program's id or of the stride makes offsets 64 bits wide", is_remedy=True)
"""The remedy."""


@dataclass(frozen=True)
class Wrap:
    """An access whose offset wraps around in launches that are large enough."""

    access: Access
    condition: Condition
    """Holds as long as it does not."""
    happens: bool
    """True if it does in the launch as it is."""
    limits: tuple[str, ...]
    """From which value of each number on it does, with all others as they are in the launch."""
    factor: Fraction
    """How much larger than in the launch the nearest of them is."""


def wraps(module: ModuleOp, facts: LaunchFacts) -> list[Wrap]:
    """Find the sizes at which offsets wrap around, for each access; accesses that do so first come first.

    `facts` are the numbers of a launch: those of arguments that are left out are not looked at.
    """
    assert facts.grid is not None
    launch = analyse_program_addresses(module, facts)
    bounds = Bounds(facts)

    def at_launch(symbol: Symbol) -> Interval | None:
        if not isinstance(symbol, Counter):
            return bounds.of(symbol)
        # A loop turns as often as in the launch. What it loads to know when to end may be any number.
        return launch.ranges.get(symbol) if _is_counted(symbol.loop, launch) else None

    found: list[Wrap] = []
    for access in analyse_program_addresses(module).accesses:
        # TMA takes coordinates, which no tensor has 2^31 of along a dimension.
        if not access.is_known or access.tensor is not None:
            continue
        wrapping = [wrap for each in access.conditions if (wrap := _wrap(access, each, at_launch)) is not None]
        if wrapping:
            found.append(min(wrapping, key=lambda each: each.factor))
    return sorted(found, key=lambda each: each.factor)


def _is_counted(loop: Operation, launch: ProgramAddresses) -> bool:
    """Return whether it is known how often a loop turns at most in a launch."""
    bound = launch.states.get(loop.ub) if isinstance(loop, scf.ForOp) else None
    return isinstance(bound, Integer) and bound.range.high < Interval.signed(bound.bits).high


def wrap_at(wrapping: Sequence[Wrap], op: Operation) -> Wrap | None:
    """The wrap of the offset of `op` that happens in the launch."""
    return next((each for each in wrapping if each.happens and each.access.op is op), None)


def _wrap(access: Access, condition: Condition, at_launch: Callable[[Symbol], Interval | None]) -> Wrap | None:
    """Return when a condition no longer holds; None where no number alone makes it fail."""
    ranges: dict[Symbol, Interval] = {
        symbol: known for symbol in condition.form.all_symbols if (known := at_launch(symbol)) is not None
    }
    if _fails(condition, ranges):
        return Wrap(access, condition, True, (), Fraction(1))
    limits: dict[str, Fraction] = {}
    for symbol, interval in ranges.items():
        match symbol:
            case Argument(_, name) if interval.low == interval.high and interval.high > 0:
                most, text, size = Interval.signed(32).high, "{0} = {1:,}", interval.high
            case Pid(axis):
                most, size = MOST_PROGRAMS[axis] - 1, interval.high + 1
                name, text = AXES[axis], "{1:,} programs along {0}"
            case _:
                continue
        if (limit := _first_failing(condition, ranges, symbol, most)) is not None:
            limit += isinstance(symbol, Pid)
            limits[text.format(name, limit)] = Fraction(limit, size)
    if not limits:
        return None
    return Wrap(access, condition, False, tuple(sorted(limits, key=limits.__getitem__)), min(limits.values()))


def _first_failing(condition: Condition, ranges: Mapping[Symbol, Interval], symbol: Symbol, most: int) -> int | None:
    """The first value of a number at which a condition fails, by bisection; None where it holds up to `most`."""

    def fails(high: int) -> bool:
        return _fails(condition, {**ranges, symbol: Interval(min(ranges[symbol].low, high), high)})

    if not fails(most):
        return None
    below, above = ranges[symbol].high, most
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if fails(middle) else (middle, above)
    return above


def _fails(condition: Condition, ranges: Mapping[Symbol, Interval]) -> bool:
    """Return whether a number is too large for a condition, for the last program, element and turn of each loop.

    Intervals alone would not do: they take numbers that depend on each other for any in their ranges. What is too small
    is a divisor or a dividend, mostly of programs that no launch has.
    """

    def value_of(symbol: Symbol) -> int:
        if isinstance(symbol, Unknown | Scalar) or symbol not in ranges:
            raise NotANumber(str(symbol))
        return ranges[symbol].high

    try:
        reached = int(condition.form.evaluate(value_of, apply))
    except (NotANumber, OverflowError, ZeroDivisionError):
        return False
    return condition.high is not None and reached > condition.high
