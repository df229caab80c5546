"""Intervals of whole numbers, and how large polynomials can get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tlx_xdsl.analysis.integers.polynomials import Polynomial, Symbol


@dataclass(frozen=True)
class Interval:
    """The whole numbers from `low` to `high`, both included; empty where `low > high`."""

    low: int
    high: int

    @staticmethod
    def point(number: int) -> Interval:
        """One number."""
        return Interval(number, number)

    @staticmethod
    def signed(bits: int) -> Interval:
        """The range of a signed integer; one bit holds 0 or 1."""
        return Interval(0, 1) if bits == 1 else Interval(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)

    @property
    def number(self) -> int | None:
        """The only number in it."""
        return self.low if self.low == self.high else None

    def __add__(self, other: Interval) -> Interval:
        """Hold all sums."""
        return Interval(self.low + other.low, self.high + other.high)

    def __neg__(self) -> Interval:
        """Hold all negatives."""
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval) -> Interval:
        """Hold all differences."""
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        """Hold all products."""
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(corners), max(corners))

    def power(self, exponent: int) -> Interval:
        """Hold all powers."""
        corners = [self.low**exponent, self.high**exponent]
        if exponent % 2 == 0 and self.low < 0 < self.high:
            corners.append(0)
        return Interval(min(corners), max(corners))

    def within(self, other: Interval) -> bool:
        """True if each number is in `other`, too."""
        return other.low <= self.low and self.high <= other.high

    def meet(self, other: Interval) -> Interval:
        """The numbers in both."""
        return Interval(max(self.low, other.low), min(self.high, other.high))

    def join(self, other: Interval) -> Interval:
        """The smallest interval that holds both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def __contains__(self, number: int) -> bool:
        """True if a number is in it."""
        return self.low <= number <= self.high

    def __str__(self) -> str:
        """Print the interval as `[0, 127]`."""
        return f"[{self.low}, {self.high}]"


ZERO = Interval.point(0)


def range_of(form: Polynomial, range_of_symbol: Callable[[Symbol], Interval]) -> Interval:
    """An interval that holds every value of `form`; the symbols are taken to be independent of each other."""
    total = ZERO
    for product, number in form:
        value = Interval.point(number)
        for symbol, power in product:
            value = value * range_of_symbol(symbol).power(power)
        total = total + value
    return total
