"""Quotients, remainders, minima and comparisons of polynomials, as simple as their ranges allow."""

from __future__ import annotations

from math import gcd

from tlx_xdsl.analysis.integers.functions import DIVISIONS, apply
from tlx_xdsl.analysis.integers.polynomials import ONE, Call, Polynomial

from .bounds import Bounds
from .intervals import Interval


class Simplifier:
    """Makes calls of functions; what comes out equals the call for all values inside of the bounds."""

    def __init__(self, bounds: Bounds):
        self.bounds = bounds

    def call(self, function: str, arguments: tuple[Polynomial, ...]) -> Polynomial:
        """The polynomial of a function of polynomials."""
        numbers = [argument.number for argument in arguments]
        small = all(number is not None and abs(number) < 1 << 62 for number in numbers)
        if small and not (function in DIVISIONS and numbers[1] == 0):
            return Polynomial.constant(int(apply(function, list(numbers))))
        left, right = arguments
        match function:
            case "floordiv":
                return self.quotient(left, right)
            case "mod":
                return self.remainder(left, right)
            case "truncdiv" | "truncmod" if self._are_natural(left, right):
                return self.quotient(left, right) if function == "truncdiv" else self.remainder(left, right)
            case "min" | "max" | "less" | "equal":
                decided = self._decided(function, left, right)
            case _:
                decided = None
        return Polynomial.of(Call(function, arguments)) if decided is None else decided

    def _are_natural(self, left: Polynomial, right: Polynomial) -> bool:
        return self.bounds.of_form(left).low >= 0 and self.bounds.of_form(right).low > 0

    def _decided(self, function: str, left: Polynomial, right: Polynomial) -> Polynomial | None:
        """The result, where the ranges decide which of the two is larger."""
        difference = self.bounds.of_form(left - right)
        match function:
            case "min" | "max" if difference.high <= 0 or difference.low >= 0:
                return left if (difference.high <= 0) == (function == "min") else right
            case "less" if difference.high < 0 or difference.low >= 0:
                return Polynomial.constant(int(difference.high < 0))
            case "equal" if difference == Interval.point(0) or 0 not in difference:
                return Polynomial.constant(int(0 in difference))
            case _:
                return None

    def quotient(self, left: Polynomial, right: Polynomial) -> Polynomial:
        """`left // right`, rounded down; `right` is positive."""
        divisor = right.number
        if divisor is None:
            return self._symbolic_quotient(left, right)
        if divisor == 1:
            return left
        # (d*a + r) // d -> a + r // d; coefficients keep their signs, the constant becomes positive.
        parts = {
            product: number // divisor if product == ONE or number >= 0 else -(-number // divisor)
            for product, number in left
        }
        whole = Polynomial({product: part for product, part in parts.items() if part})
        rest = left - whole * divisor
        if self.bounds.of_form(rest).within(Interval(0, divisor - 1)):
            return whole
        rest, divisor = self._reduced(rest, divisor)
        if divisor == 1:
            return whole + rest
        return whole + Polynomial.of(Call("floordiv", (rest, Polynomial.constant(divisor))))

    def remainder(self, left: Polynomial, right: Polynomial) -> Polynomial:
        """`left % right`, never negative; `right` is positive."""
        divisor = right.number
        if divisor is None:
            return left if self._below(left, right) else Polynomial.of(Call("mod", (left, right)))
        if self.bounds.of_form(left).within(Interval(0, divisor - 1)):
            return left
        rest = Polynomial({product: number % divisor for product, number in left if number % divisor})
        if self.bounds.of_form(rest).within(Interval(0, divisor - 1)):
            return rest
        reduced, smaller = self._reduced(rest, divisor)
        factor = divisor // smaller
        low = rest.offset % factor
        if smaller == 1:
            return Polynomial.constant(low)
        return Polynomial.of(Call("mod", (reduced, Polynomial.constant(smaller))), factor) + low

    def _reduced(self, rest: Polynomial, divisor: int) -> tuple[Polynomial, int]:
        """`(g*a + r) // (g*d) -> a // d`, where r < g; gives a and d."""
        factor = gcd(divisor, *(number for product, number in rest if product != ONE))
        terms = {product: number // factor for product, number in rest if number // factor}
        return Polynomial(terms), divisor // factor

    def _symbolic_quotient(self, left: Polynomial, right: Polynomial) -> Polynomial:
        if self._below(left, right):
            return Polynomial({})
        if left == right and self.bounds.of_form(right).low > 0:
            return Polynomial.constant(1)
        return Polynomial.of(Call("floordiv", (left, right)))

    def _below(self, left: Polynomial, right: Polynomial) -> bool:
        """True if `0 <= left < right` for certain."""
        return self.bounds.of_form(left).low >= 0 and self.bounds.of_form(left - right).high < 0
