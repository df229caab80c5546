"""Exact integer expressions: polynomials in program ids, arguments, positions in a tensor and loop counters.

A `Polynomial` is a sum of products of *symbols* with integer coefficients, over the whole numbers: nothing wraps
around in it. Two that are equal as polynomials are equal as objects, so `(pid + 1) * 8 - 8` is `8*pid_x`.

What is no polynomial is a symbol of its own: a `Call` of floor division, remainder, minimum and so on, whose arguments
are polynomials again, or an `Unknown`, which only says what its value may depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from .symbols import (
    Argument,
    Counter,
    Extent,
    Lane,
    NumPrograms,
    Pid,
    Scalar,
    Unknown,
)


@dataclass(frozen=True)
class Call:
    """A function of polynomials: one of `functions.FUNCTIONS`, by name."""

    function: str
    arguments: tuple[Polynomial, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.function, self.arguments))

    def __hash__(self) -> int:
        """Compute it once: arguments may be large."""
        return self._hash

    @cached_property
    def depth(self) -> int:
        """The nesting depth of calls."""
        return 1 + max((argument.depth for argument in self.arguments), default=0)

    def __str__(self) -> str:
        """Print the value in Python's spelling."""
        match self.function, self.arguments:
            case ("floordiv", (left, right)):
                return f"({_operand(left)} // {_operand(right)})"
            case ("mod", (left, right)):
                return f"({_operand(left)} % {_operand(right)})"
            case (name, arguments):
                return f"{name}({', '.join(map(str, arguments))})"


Symbol: TypeAlias = Pid | NumPrograms | Argument | Scalar | Extent | Lane | Counter | Unknown | Call

Monomial: TypeAlias = frozenset[tuple[Symbol, int]]
"""A product of symbols with their powers; the empty one is 1."""

ONE: Monomial = frozenset()


@dataclass(frozen=True, eq=False)
class Polynomial:
    """A sum of products of symbols; see the module."""

    terms: Mapping[Monomial, int]
    """The coefficient of each product; none is 0."""

    # Making --------------------------------------------------------------------------------------------------------

    @staticmethod
    def constant(number: int) -> Polynomial:
        """The number itself."""
        return Polynomial({ONE: number} if number else {})

    @staticmethod
    def of(symbol: Symbol, coefficient: int = 1) -> Polynomial:
        """A multiple of a symbol."""
        return Polynomial({frozenset([(symbol, 1)]): coefficient} if coefficient else {})

    def __add__(self, other: Polynomial | int) -> Polynomial:
        """The sum."""
        other = _form(other)
        terms = dict(self.terms)
        for product, number in other.terms.items():
            if total := terms.get(product, 0) + number:
                terms[product] = total
            else:
                del terms[product]
        return Polynomial(terms)

    __radd__ = __add__

    def __neg__(self) -> Polynomial:
        """The negative."""
        return Polynomial({product: -number for product, number in self.terms.items()})

    def __sub__(self, other: Polynomial | int) -> Polynomial:
        """The difference."""
        return self + -_form(other)

    def __rsub__(self, other: int) -> Polynomial:
        """The difference."""
        return -self + other

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        """The product."""
        if isinstance(other, int):
            return Polynomial({product: number * other for product, number in self.terms.items()} if other else {})
        total: dict[Monomial, int] = {}
        for left, first in self.terms.items():
            for right, second in other.terms.items():
                product = _times(left, right)
                total[product] = total.get(product, 0) + first * second
        return Polynomial({product: number for product, number in total.items() if number})

    __rmul__ = __mul__

    # Comparing -----------------------------------------------------------------------------------------------------

    @cached_property
    def _hash(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __hash__(self) -> int:
        """Return the hash of the terms."""
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Compare as polynomials."""
        return isinstance(other, Polynomial) and self._hash == other._hash and self.terms == other.terms

    # Asking --------------------------------------------------------------------------------------------------------

    @property
    def offset(self) -> int:
        """The constant term."""
        return self.terms.get(ONE, 0)

    @property
    def number(self) -> int | None:
        """The number that it is, if it is one."""
        if not self.terms:
            return 0
        return self.terms.get(ONE) if len(self.terms) == 1 else None

    @property
    def is_simple(self) -> bool:
        """True if it is one number or one symbol, and needs no parentheses."""
        if not self.terms:
            return True
        if len(self.terms) > 1:
            return False
        ((product, number),) = self.terms.items()
        return not product or (number == 1 and len(product) == 1 and next(iter(product))[1] == 1)

    @cached_property
    def symbols(self) -> frozenset[Symbol]:
        """The symbols of its products, not those inside of calls."""
        return frozenset(symbol for product in self.terms for symbol, _ in product)

    @cached_property
    def all_symbols(self) -> frozenset[Symbol]:
        """Return the symbols of the polynomial, and those inside of its calls."""
        found = set(self.symbols)
        for symbol in self.symbols:
            if isinstance(symbol, Call):
                for argument in symbol.arguments:
                    found |= argument.all_symbols
        return frozenset(found)

    @cached_property
    def depth(self) -> int:
        """The nesting depth of calls."""
        return max((symbol.depth for symbol in self.symbols if isinstance(symbol, Call)), default=0)

    def depends_on(self, symbol: Symbol) -> bool:
        """True if it may change with `symbol`."""
        return symbol in self.all_symbols

    def coefficient(self, symbol: Symbol) -> Polynomial | None:
        """The factor of `symbol`, if the polynomial is `factor * symbol + rest` and both are free of it.

        None where the symbol stands in a call, or is multiplied by itself.
        """
        found: dict[Monomial, int] = {}
        for product, number in self.terms.items():
            powers = dict(product)
            power = powers.pop(symbol, 0)
            if power > 1 or any(isinstance(other, Call) and _inside(other, symbol) for other in powers):
                return None
            if power:
                found[frozenset(powers.items())] = number
        return Polynomial(found)

    def part(self, holds: Callable[[Symbol], bool]) -> Polynomial:
        """The terms in whose product some symbol `holds`."""
        return Polynomial(
            {product: number for product, number in self.terms.items() if any(holds(symbol) for symbol, _ in product)}
        )

    def substitute(
        self, replace: Callable[[Symbol], Polynomial | None], call: Callable[[str, tuple[Polynomial, ...]], Polynomial]
    ) -> Polynomial:
        """Replace symbols by polynomials, also in the arguments of calls, which `call` makes anew."""

        def value_of(symbol: Symbol) -> Polynomial:
            return Polynomial.of(symbol) if (form := replace(symbol)) is None else form

        return _form(self.evaluate(value_of, lambda name, arguments: call(name, tuple(map(_form, arguments)))))

    def evaluate(self, value_of: Callable[[Symbol], Any], apply: Callable[[str, list[Any]], Any]) -> Any:
        """The value, with those of the symbols; calls are computed by `apply`."""
        total: Any = 0
        for product, number in self.terms.items():
            value: Any = number
            for symbol, power in product:
                if isinstance(symbol, Call):
                    one = apply(symbol.function, [argument.evaluate(value_of, apply) for argument in symbol.arguments])
                else:
                    one = value_of(symbol)
                for _ in range(power):
                    value = value * one
            total = total + value
        return total

    def __iter__(self) -> Iterator[tuple[Monomial, int]]:
        """The products with their coefficients."""
        return iter(self.terms.items())

    def __str__(self) -> str:
        """Print for people, program ids first and the constant last: `512*pid_x + 4*i0 + 16`."""
        if not self.terms:
            return "0"
        text = ""
        for product, number in sorted(self.terms.items(), key=_reading_order):
            sign = "-" if number < 0 else "+"
            factors = sorted(f"{symbol}" if power == 1 else f"{symbol}**{power}" for symbol, power in product)
            size = [str(abs(number))] if abs(number) != 1 or not factors else []
            body = "*".join(size + factors)
            text = f"{text} {sign} {body}" if text else (f"-{body}" if number < 0 else body)
        return text


def _operand(form: Polynomial) -> str:
    return str(form) if form.is_simple else f"({form})"


def _form(value: Polynomial | int) -> Polynomial:
    return Polynomial.constant(value) if isinstance(value, int) else value


def _times(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    powers = dict(left)
    for symbol, power in right:
        powers[symbol] = powers.get(symbol, 0) + power
    return frozenset(powers.items())


def _inside(call: Call, symbol: Symbol) -> bool:
    return any(argument.depends_on(symbol) for argument in call.arguments)


_ORDER = (Pid, Call, NumPrograms, Argument, Scalar, Extent, Counter, Unknown, Lane)


def _reading_order(term: tuple[Monomial, int]) -> tuple[Any, ...]:
    product, _ = term
    if not product:
        return (len(_ORDER), "")
    lanes = any(isinstance(symbol, Lane) for symbol, _ in product)
    kind = min(_ORDER.index(Call if isinstance(symbol, Call) else type(symbol)) for symbol, _ in product)
    return (len(_ORDER) - 1 if lanes else kind, "*".join(sorted(str(symbol) for symbol, _ in product)))
