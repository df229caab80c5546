"""Linear expressions over named variables, with quotients and remainders by constants, and the numbers they can be."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from math import inf, isinf

Bound = int | float
"""An integer, or an infinity where there is no bound."""
Interval = tuple[Bound, Bound]
"""The smallest and the largest number, both included."""

UNBOUNDED: Interval = (-inf, inf)


@dataclass(frozen=True)
class Linear:
    """`constant` plus each variable times its factor; a variable is any name, or a `Division` of another expression."""

    constant: int
    factors: tuple[tuple[Hashable, int], ...] = ()
    """Without zeros, and each variable once."""

    @staticmethod
    def of(variable: Hashable) -> Linear:
        """A variable itself."""
        return Linear(0, ((variable, 1),))

    @staticmethod
    def sum_of(constant: int, factors: Mapping[Hashable, int]) -> Linear:
        """The expression with these factors, some of which may be zero."""
        return Linear(constant, tuple((each, factor) for each, factor in factors.items() if factor))

    def __add__(self, other: Linear | int) -> Linear:
        """The sum."""
        if isinstance(other, int):
            return Linear(self.constant + other, self.factors)
        factors = dict(self.factors)
        for variable, factor in other.factors:
            factors[variable] = factors.get(variable, 0) + factor
        return Linear.sum_of(self.constant + other.constant, factors)

    def __mul__(self, number: int) -> Linear:
        """The product with a number."""
        return Linear.sum_of(self.constant * number, {each: factor * number for each, factor in self.factors})

    def __sub__(self, other: Linear) -> Linear:
        """The difference."""
        return self + other * -1

    def floordiv(self, divisor: int) -> Linear:
        """The quotient, rounded down."""
        return self._divided(divisor, remainder=False)

    def mod(self, divisor: int) -> Linear:
        """Return what the quotient leaves: at least 0, less than the divisor."""
        return self._divided(divisor, remainder=True)

    def _divided(self, divisor: int, *, remainder: bool) -> Linear:
        if not self.factors:
            return Linear(self.constant % divisor if remainder else self.constant // divisor)
        return Linear.of(Division(self, divisor, remainder))

    def replaced(self, replacement: Callable[[Hashable], Linear]) -> Linear:
        """The expression with another one in the place of each variable, inside of divisions, too."""
        total = Linear(self.constant)
        for variable, factor in self.factors:
            if isinstance(variable, Division):
                inner = variable.dividend.replaced(replacement)
                total += inner._divided(variable.divisor, remainder=variable.is_remainder) * factor
            else:
                total += replacement(variable) * factor
        return total

    def variables(self) -> frozenset[Hashable]:
        """The names in the expression, those in divisions, too."""
        found: set[Hashable] = set()
        for variable, _ in self.factors:
            found |= variable.dividend.variables() if isinstance(variable, Division) else {variable}
        return frozenset(found)

    def value(self, values: Mapping[Hashable, int]) -> int:
        """The number that the expression is."""
        return self.constant + sum(
            factor * (variable.value(values) if isinstance(variable, Division) else values[variable])
            for variable, factor in self.factors
        )

    def interval(self, intervals: Mapping[Hashable, Interval]) -> Interval:
        """Numbers between which the expression is; a variable without an interval can be any number."""
        low: Bound = self.constant
        high: Bound = self.constant
        for variable, factor in self.factors:
            least, most = scaled(interval_of(variable, intervals), factor)
            low += least
            high += most
        return low, high


@dataclass(frozen=True)
class Division:
    """The quotient of an expression by a positive number, rounded down, or what it leaves."""

    dividend: Linear
    divisor: int
    is_remainder: bool

    def value(self, values: Mapping[Hashable, int]) -> int:
        """The number that it is."""
        dividend = self.dividend.value(values)
        return dividend % self.divisor if self.is_remainder else dividend // self.divisor

    def interval(self, intervals: Mapping[Hashable, Interval]) -> Interval:
        """Numbers between which it is."""
        low, high = (quotient(each, self.divisor) for each in self.dividend.interval(intervals))
        if not self.is_remainder:
            return low, high
        if low == high and not isinf(low):
            # All dividends lie between the same two multiples: the remainder grows with them.
            least, most = self.dividend.interval(intervals)
            return least - low * self.divisor, most - low * self.divisor
        return 0, self.divisor - 1


def interval_of(variable: Hashable, intervals: Mapping[Hashable, Interval]) -> Interval:
    """Numbers between which a variable is."""
    if variable in intervals:
        return intervals[variable]
    return variable.interval(intervals) if isinstance(variable, Division) else UNBOUNDED


def quotient(number: Bound, divisor: int) -> Bound:
    """The quotient by a positive number, rounded down."""
    return number if isinf(number) else int(number) // divisor


def scaled(interval: Interval, factor: int) -> Interval:
    """All numbers of an interval times a number that is not 0."""
    low, high = interval[0] * factor, interval[1] * factor
    return (low, high) if factor > 0 else (high, low)
