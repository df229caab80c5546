"""At which sizes offsets wrap around: 32 bits hold 2^31 elements, and kernels compute in them.

The analysis of addresses says under which conditions on a launch it is exact (`Access.conditions`). Here those are
tried out: with all numbers of a launch as they are but one, from which value on does the condition no longer hold?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.addresses.analysis import analyse_program_addresses
from tlx_xdsl.addresses.bounds import MOST_PROGRAMS, Bounds
from tlx_xdsl.addresses.intervals import Interval, range_of
from tlx_xdsl.addresses.model import Access, Condition, LaunchFacts
from tlx_xdsl.analysis.integers.polynomials import Argument, Counter, Pid, Symbol

AXES = "xyz"


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
    """For each access whose offset may wrap around, when it does: those that do so first come first.

    `facts` are the numbers of a launch: those of arguments that are left out are not looked at.
    """
    assert facts.grid is not None
    counters = analyse_program_addresses(module, facts).ranges
    bounds = Bounds(facts)

    def at_launch(symbol: Symbol) -> Interval:
        # A loop turns as often as in the launch.
        return counters.get(symbol, bounds.of(symbol)) if isinstance(symbol, Counter) else bounds.of(symbol)

    found: list[Wrap] = []
    for access in analyse_program_addresses(module).accesses:
        if not access.is_known:
            continue
        wrapping = [wrap for each in access.conditions if (wrap := _wrap(access, each, at_launch)) is not None]
        if wrapping:
            found.append(min(wrapping, key=lambda each: each.factor))
    return sorted(found, key=lambda each: each.factor)


def wrap_at(wrapping: Sequence[Wrap], op: Operation) -> Wrap | None:
    """The wrap of the offset of `op` that happens in the launch."""
    return next((each for each in wrapping if each.happens and each.access.op is op), None)


def _wrap(access: Access, condition: Condition, at_launch: Callable[[Symbol], Interval]) -> Wrap | None:
    """When a condition no longer holds; None where no number alone makes it fail."""
    ranges: dict[Symbol, Interval] = {symbol: at_launch(symbol) for symbol in condition.form.all_symbols}
    if not _holds(condition, ranges):
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
        if (limit := _first_failing(condition, ranges, symbol, interval, most)) is not None:
            limit += isinstance(symbol, Pid)
            limits[text.format(name, limit)] = Fraction(limit, size)
    if not limits:
        return None
    return Wrap(access, condition, False, tuple(sorted(limits, key=limits.__getitem__)), min(limits.values()))


def _first_failing(
    condition: Condition, ranges: Mapping[Symbol, Interval], symbol: Symbol, interval: Interval, most: int
) -> int | None:
    """The first value of a number at which a condition fails, by bisection; None where it holds up to `most`."""

    def holds(high: int) -> bool:
        low = high if interval.low == interval.high else interval.low
        return _holds(condition, {**ranges, symbol: Interval(low, high)})

    if holds(most):
        return None
    below, above = interval.high, most
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (middle, above) if holds(middle) else (below, middle)
    return above


def _holds(condition: Condition, ranges: Mapping[Symbol, Interval]) -> bool:
    bounds = Bounds(LaunchFacts())
    bounds.known.update(ranges)
    reach = range_of(condition.form, bounds.of)
    return (condition.low is None or condition.low <= reach.low) and (
        condition.high is None or reach.high <= condition.high
    )
