"""Integers that are affine in loop indices and coordinates of cores, in one form for each value.

`2 * (i + 1) - i` and `i + 2` are the same `Affine`. That is what makes the length of `t[2 * i : 2 * i + 2]` known, and
equal indices one operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap


@dataclass(frozen=True)
class Quotient:
    """`dividend // divisor`, rounded down, of a positive divisor."""

    dividend: Affine
    divisor: int


@dataclass(frozen=True)
class Remainder:
    """`dividend % divisor`, not negative, of a positive divisor."""

    dividend: Affine
    divisor: int


Atom: TypeAlias = SSAValue | Quotient | Remainder
"""What is multiplied and added up."""


@dataclass(frozen=True)
class Affine:
    """A sum of atoms with integers as factors, and a constant."""

    terms: tuple[tuple[Atom, int], ...]
    """Atoms in the order in which they came, with factors other than 0."""
    constant: int

    @staticmethod
    def of(value: int | SSAValue) -> Affine:
        """The expression that is just this value."""
        return Affine((), value) if isinstance(value, int) else Affine(((value, 1),), 0)

    @property
    def known(self) -> int | None:
        """The number, if it is one at compile time."""
        return None if self.terms else self.constant

    def __hash__(self) -> int:
        """Equal sums have equal hashes in any order."""
        return hash((frozenset(self.terms), self.constant))

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same sum, in any order."""
        if not isinstance(other, Affine):
            return NotImplemented
        return self.constant == other.constant and dict(self.terms) == dict(other.terms)

    def __add__(self, other: Affine) -> Affine:
        """The sum of both."""
        factors = dict(self.terms)
        for atom, factor in other.terms:
            factors[atom] = factors.get(atom, 0) + factor
        kept = tuple((atom, factor) for atom, factor in factors.items() if factor)
        return Affine(kept, self.constant + other.constant)

    def __sub__(self, other: Affine) -> Affine:
        """The difference."""
        return self + other.times(-1)

    def times(self, factor: int) -> Affine:
        """The product with a number."""
        if not factor:
            return Affine((), 0)
        return Affine(tuple((atom, each * factor) for atom, each in self.terms), self.constant * factor)

    def quotient(self, divisor: int) -> Affine:
        """The quotient by a positive number, rounded down."""
        whole, rest = self._split(divisor)
        if not rest.terms:
            return whole + Affine((), rest.constant // divisor)
        return whole + Affine(((Quotient(rest, divisor), 1),), 0)

    def remainder(self, divisor: int) -> Affine:
        """The remainder of the division by a positive number, which is not negative."""
        _, rest = self._split(divisor)
        if not rest.terms:
            return Affine((), rest.constant % divisor)
        return Affine(((Remainder(rest, divisor), 1),), 0)

    def _split(self, divisor: int) -> tuple[Affine, Affine]:
        """The quotient by `divisor` of all that it divides, and what it does not divide."""
        whole = tuple((atom, factor // divisor) for atom, factor in self.terms if factor % divisor == 0)
        rest = tuple((atom, factor) for atom, factor in self.terms if factor % divisor)
        return Affine(whole, self.constant // divisor), Affine(rest, self.constant % divisor)

    def operands(self) -> list[SSAValue]:
        """The values that it depends on, each once."""
        found: dict[SSAValue, None] = {}
        for atom, _ in self.terms:
            inner = [atom] if isinstance(atom, SSAValue) else atom.dividend.operands()
            found |= dict.fromkeys(inner)
        return list(found)

    def expression(self, dims: Sequence[SSAValue]) -> AffineExpr:
        """The expression with `dims` as its dimensions."""
        total: AffineExpr | None = None
        for atom, factor in self.terms:
            match atom:
                case Quotient(dividend, divisor):
                    term = dividend.expression(dims) // divisor
                case Remainder(dividend, divisor):
                    term = dividend.expression(dims) % divisor
                case _:
                    term = AffineExpr.dimension(dims.index(atom))
            term = term if factor == 1 else term * factor
            total = term if total is None else total + term
        if total is None:
            return AffineExpr.constant(self.constant)
        return total + self.constant if self.constant else total

    def map(self) -> tuple[AffineMap, list[SSAValue]]:
        """The map that computes it, and its operands."""
        operands = self.operands()
        return AffineMap(len(operands), 0, (self.expression(operands),)), operands
