"""Ranges of the symbols of polynomials, by what is known of the launch and by the kernel's assumptions."""

from __future__ import annotations

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
from tlx_xdsl.analysis.integers.transfer import bits_of

from .intervals import Interval, range_of
from .model import DescriptorFacts, Guard, LaunchFacts

MOST_PROGRAMS = ((1 << 31) - 1, 65535, 65535)
"""The largest grid along each axis (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""


class Bounds:
    """The ranges of symbols."""

    def __init__(self, facts: LaunchFacts):
        self.facts = facts
        self.known: dict[Symbol, Interval] = {}
        """Ranges that are known beyond those that follow from the kind of symbol."""
        self._calls: dict[Symbol, Interval] = {}

    def tighten(self, symbol: Symbol, interval: Interval) -> None:
        """Narrow the range of `symbol` to what is in `interval`."""
        self.known[symbol] = self.of(symbol).meet(interval)
        self._calls.clear()

    def of(self, symbol: Symbol) -> Interval:
        """The range of a symbol."""
        if (known := self.known.get(symbol)) is None:
            if isinstance(symbol, Call):
                return self.of_call(symbol)
            known = self.known[symbol] = self._initial(symbol)
        return known

    def of_form(self, form: Polynomial) -> Interval:
        """The range of a polynomial."""
        return range_of(form, self.of)

    def _initial(self, symbol: Symbol) -> Interval:
        grid = self.facts.grid
        match symbol:
            case Pid(axis):
                return Interval(0, max(0, (MOST_PROGRAMS if grid is None else grid)[axis] - 1))
            case NumPrograms(axis):
                return Interval(1, MOST_PROGRAMS[axis]) if grid is None else Interval.point(grid[axis])
            case Scalar(value):
                return Interval.signed(bits_of(value) or 64)
            case Argument(value, name):
                given = self.facts.arguments.get(name)
                bits = bits_of(value)
                assert bits is not None, "an argument that is a symbol is an integer"
                whole = Interval.signed(bits)
                if isinstance(given, int):
                    # As an unsigned number, it may be given as more than a signed one can be.
                    return Interval.point((given - whole.low) % (1 << bits) + whole.low)
                return whole
            case Extent(_, name, what, dim):
                given = self.facts.arguments.get(name)
                if isinstance(given, DescriptorFacts):
                    return Interval.point((given.shape if what == "shape" else given.strides)[dim])
                # A tensor map holds sizes of 32 bits, and strides of 40 (cuTensorMapEncodeTiled).
                return Interval(0, (1 << 31) - 1 if what == "shape" else (1 << 40) - 1)
            case Lane(_, extent):
                return Interval(0, extent - 1)
            case Unknown():
                return Interval.signed(symbol.bits)
            case Counter() | Call():
                return Interval(0, (1 << 63) - 1)

    def of_call(self, call: Call) -> Interval:
        """The range of a call, by those of its arguments."""
        if (known := self._calls.get(call)) is not None:
            return known
        ranges = [self.of_form(argument) for argument in call.arguments]
        result = self._calls[call] = range_of_call(call.function, ranges)
        return result


def assume(bounds: Bounds, assumption: Guard) -> None:
    """Tighten the ranges of the symbols that an assumption is linear in."""
    difference = assumption.left - assumption.right
    # Each of these is at most 0.
    forms = {
        "<": [difference + 1],
        "<=": [difference],
        "==": [difference, -difference],
        ">=": [-difference],
        ">": [1 - difference],
    }
    for form in forms.get(assumption.predicate, ()):
        for product, number in form:
            if len(product) != 1:
                continue
            ((symbol, power),) = product
            rest = form - Polynomial.of(symbol, number)
            if power != 1 or rest.depends_on(symbol):
                continue
            # number * symbol <= most
            most, known = -bounds.of_form(rest).low, bounds.of(symbol)
            high = most // number if number > 0 else known.high
            low = -(most // -number) if number < 0 else known.low
            if (reach := known.meet(Interval(low, high))).low <= reach.high:
                bounds.tighten(symbol, reach)


def range_of_call(function: str, ranges: list[Interval]) -> Interval:
    """An interval that holds every value of a function, by those of its arguments."""
    left, right = ranges
    match function:
        case "floordiv" | "truncdiv" if right.low > 0:
            down = function == "floordiv"
            pairs = [(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
            corners = [a // b if down or a >= 0 else -(-a // b) for a, b in pairs]
            return Interval(min(corners), max(corners))
        case "mod" if right.low > 0:
            return Interval(0, min(right.high - 1, left.high) if left.low >= 0 else right.high - 1)
        case "truncmod" if right.low > 0:
            low = 0 if left.low >= 0 else max(1 - right.high, left.low)
            return Interval(low, max(0, min(right.high - 1, left.high)))
        case "min":
            return Interval(min(left.low, right.low), min(left.high, right.high))
        case "max":
            return Interval(max(left.low, right.low), max(left.high, right.high))
        case "less" | "equal":
            return Interval(0, 1)
        case "and" if left.low >= 0 or right.low >= 0:
            return Interval(0, min(side.high for side in ranges if side.low >= 0))
        case "and" | "or" | "xor":
            size = max(abs(number) for side in ranges for number in (side.low, side.high)).bit_length()
            return Interval(0 if left.low >= 0 and right.low >= 0 else -(1 << size), (1 << size) - 1)
        case _:
            # Quotients of 64-bit numbers stay in 64 bits, where a divisor is not 0.
            bound = 1 << max(number.bit_length() for side in ranges for number in (side.low, side.high))
            return Interval(-bound, bound)
