"""Exact integer expressions: polynomials in program ids, arguments, positions in a tensor and loop counters.

A `Form` is a sum of products of *atoms* with integer coefficients, over the whole numbers: nothing wraps around in it.
Two forms that are equal as polynomials are equal as objects, so `(pid + 1) * 8 - 8` is `8*pid_x`.

What is no polynomial is an atom of its own: a `Call` of floor division, remainder, minimum and so on, whose arguments
are forms again, or an `Unknown`, which only says what its value may depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from tlx_xdsl.addresses.atoms import (
    Argument,
    Counter,
    Extent,
    Lane,
    NumPrograms,
    Pid,
    Unknown,
)


@dataclass(frozen=True)
class Call:
    """A function of forms: one of `functions.FUNCTIONS`, by name."""

    function: str
    arguments: tuple[Form, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.function, self.arguments))

    def __hash__(self) -> int:
        """Compute it once: arguments may be large."""
        return self._hash

    @cached_property
    def depth(self) -> int:
        """How many calls are inside each other."""
        return 1 + max((argument.depth for argument in self.arguments), default=0)

    def __str__(self) -> str:
        """In Python's spelling."""
        match self.function, self.arguments:
            case ("floordiv", (left, right)):
                return f"({_operand(left)} // {_operand(right)})"
            case ("mod", (left, right)):
                return f"({_operand(left)} % {_operand(right)})"
            case (name, arguments):
                return f"{name}({', '.join(map(str, arguments))})"


Atom: TypeAlias = Pid | NumPrograms | Argument | Extent | Lane | Counter | Unknown | Call

Monomial: TypeAlias = frozenset[tuple[Atom, int]]
"""A product of atoms with their powers; the empty one is 1."""

ONE: Monomial = frozenset()


@dataclass(frozen=True, eq=False)
class Form:
    """A sum of products of atoms; see the module."""

    terms: Mapping[Monomial, int]
    """The coefficient of each product; none is 0."""

    # Making --------------------------------------------------------------------------------------------------------

    @staticmethod
    def constant(number: int) -> Form:
        """The number itself."""
        return Form({ONE: number} if number else {})

    @staticmethod
    def of(atom: Atom, coefficient: int = 1) -> Form:
        """A multiple of an atom."""
        return Form({frozenset([(atom, 1)]): coefficient} if coefficient else {})

    def __add__(self, other: Form | int) -> Form:
        """The sum."""
        other = _form(other)
        terms = dict(self.terms)
        for product, number in other.terms.items():
            if total := terms.get(product, 0) + number:
                terms[product] = total
            else:
                del terms[product]
        return Form(terms)

    __radd__ = __add__

    def __neg__(self) -> Form:
        """The negative."""
        return Form({product: -number for product, number in self.terms.items()})

    def __sub__(self, other: Form | int) -> Form:
        """The difference."""
        return self + -_form(other)

    def __rsub__(self, other: int) -> Form:
        """The difference."""
        return -self + other

    def __mul__(self, other: Form | int) -> Form:
        """The product."""
        if isinstance(other, int):
            return Form({product: number * other for product, number in self.terms.items()} if other else {})
        total: dict[Monomial, int] = {}
        for left, first in self.terms.items():
            for right, second in other.terms.items():
                product = _times(left, right)
                total[product] = total.get(product, 0) + first * second
        return Form({product: number for product, number in total.items() if number})

    __rmul__ = __mul__

    # Comparing -----------------------------------------------------------------------------------------------------

    @cached_property
    def _hash(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __hash__(self) -> int:
        """By its terms."""
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Compare as polynomials."""
        return isinstance(other, Form) and self._hash == other._hash and self.terms == other.terms

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
        """Whether it is one number or one atom, and needs no parentheses."""
        if not self.terms:
            return True
        if len(self.terms) > 1:
            return False
        ((product, number),) = self.terms.items()
        return not product or (number == 1 and len(product) == 1 and next(iter(product))[1] == 1)

    @cached_property
    def atoms(self) -> frozenset[Atom]:
        """The atoms of its products, not those inside of calls."""
        return frozenset(atom for product in self.terms for atom, _ in product)

    @cached_property
    def all_atoms(self) -> frozenset[Atom]:
        """Its atoms, and those inside of calls."""
        found = set(self.atoms)
        for atom in self.atoms:
            if isinstance(atom, Call):
                for argument in atom.arguments:
                    found |= argument.all_atoms
        return frozenset(found)

    @cached_property
    def depth(self) -> int:
        """How many calls are inside each other."""
        return max((atom.depth for atom in self.atoms if isinstance(atom, Call)), default=0)

    def depends_on(self, atom: Atom) -> bool:
        """Whether it may change with `atom`."""
        return atom in self.all_atoms

    def coefficient(self, atom: Atom) -> Form | None:
        """What is multiplied with `atom`, where the form is `that * atom + rest` and `rest` is free of it.

        None where the atom stands in a call, or is multiplied by itself.
        """
        found: dict[Monomial, int] = {}
        for product, number in self.terms.items():
            powers = dict(product)
            power = powers.pop(atom, 0)
            if power > 1 or any(isinstance(other, Call) and _inside(other, atom) for other in powers):
                return None
            if power:
                found[frozenset(powers.items())] = number
        return Form(found)

    def part(self, holds: Callable[[Atom], bool]) -> Form:
        """The terms in whose product some atom `holds`."""
        return Form(
            {product: number for product, number in self.terms.items() if any(holds(atom) for atom, _ in product)}
        )

    def substitute(self, replace: Callable[[Atom], Form | None], call: Callable[[str, tuple[Form, ...]], Form]) -> Form:
        """Put forms in the place of atoms, also in the arguments of calls, which `call` makes anew."""

        def value_of(atom: Atom) -> Form:
            return Form.of(atom) if (form := replace(atom)) is None else form

        return _form(self.evaluate(value_of, lambda name, arguments: call(name, tuple(map(_form, arguments)))))

    def evaluate(self, value_of: Callable[[Atom], Any], apply: Callable[[str, list[Any]], Any]) -> Any:
        """The value, with those of the atoms; calls are computed by `apply`."""
        total: Any = 0
        for product, number in self.terms.items():
            value: Any = number
            for atom, power in product:
                if isinstance(atom, Call):
                    one = apply(atom.function, [argument.evaluate(value_of, apply) for argument in atom.arguments])
                else:
                    one = value_of(atom)
                for _ in range(power):
                    value = value * one
            total = total + value
        return total

    def __iter__(self) -> Iterator[tuple[Monomial, int]]:
        """The products with their coefficients."""
        return iter(self.terms.items())

    def __str__(self) -> str:
        """For people, program ids first and the constant last: `512*pid_x + 4*i0 + 16`."""
        if not self.terms:
            return "0"
        text = ""
        for product, number in sorted(self.terms.items(), key=_reading_order):
            sign = "-" if number < 0 else "+"
            factors = sorted(f"{atom}" if power == 1 else f"{atom}**{power}" for atom, power in product)
            size = [str(abs(number))] if abs(number) != 1 or not factors else []
            body = "*".join(size + factors)
            text = f"{text} {sign} {body}" if text else (f"-{body}" if number < 0 else body)
        return text


def _operand(form: Form) -> str:
    return str(form) if form.is_simple else f"({form})"


def _form(value: Form | int) -> Form:
    return Form.constant(value) if isinstance(value, int) else value


def _times(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return frozenset(powers.items())


def _inside(call: Call, atom: Atom) -> bool:
    return any(argument.depends_on(atom) for argument in call.arguments)


_ORDER = (Pid, Call, NumPrograms, Argument, Extent, Counter, Unknown, Lane)


def _reading_order(term: tuple[Monomial, int]) -> tuple[Any, ...]:
    product, _ = term
    if not product:
        return (len(_ORDER), "")
    lanes = any(isinstance(atom, Lane) for atom, _ in product)
    kind = min(_ORDER.index(type(atom)) for atom, _ in product)
    return (len(_ORDER) - 1 if lanes else kind, "*".join(sorted(str(atom) for atom, _ in product)))
