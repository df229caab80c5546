"""Integers that may be unknown: linear forms over atoms, of which equal ones are one object.

An atom is what nothing more is known of: an argument, a program id, a function of other values, or the *origin* of a
loop, from which tasks count their turns. Two tasks that compute the same expression of the same atoms have the same
number, whatever it is: that is how loops of several tasks are known to turn equally often.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

Part: TypeAlias = "tuple[Atom, int]"


class Atom:
    """An unknown number, or bit. `arguments` have values, names and numbers."""

    __slots__ = ("arguments", "kind", "number", "origins")

    def __init__(self, kind: str, arguments: tuple[Any, ...], number: int):
        self.kind = kind
        self.arguments = arguments
        self.number = number
        own = frozenset([self]) if kind == "origin" else frozenset[Atom]()
        self.origins: frozenset[Atom] = own | origins_of(arguments)
        """The origins of loops that it depends on."""

    def __repr__(self) -> str:
        return f"{self.kind}{self.arguments}"


class Sum(NamedTuple):
    """A constant, and atoms with their coefficients, which are not zero, in the order of the atoms' numbers."""

    constant: int
    parts: tuple[Part, ...]


Value: TypeAlias = int | Sum


def origins_of(value: Any) -> frozenset[Atom]:
    """The origins that a value depends on, or an argument of an atom."""
    if isinstance(value, Sum):
        return frozenset[Atom]().union(*(atom.origins for atom, _ in value.parts))
    if isinstance(value, tuple):
        found = frozenset[Atom]()
        for each in cast("tuple[Any, ...]", value):
            found |= origins_of(each)
        return found
    return frozenset()


class Values:
    """All atoms of a proof."""

    def __init__(self) -> None:
        self._atoms: dict[tuple[Any, ...], Atom] = {}

    def atom(self, kind: str, *arguments: Any) -> Atom:
        """The atom of that kind and those arguments."""
        key = (kind, *arguments)
        if (found := self._atoms.get(key)) is None:
            found = self._atoms[key] = Atom(kind, arguments, len(self._atoms))
        return found

    def of(self, kind: str, *arguments: Any) -> Value:
        """The value that is that atom."""
        return Sum(0, ((self.atom(kind, *arguments), 1),))

    def moved(self, value: Any, moves: Mapping[Atom, int], made: dict[Any, Any]) -> Any:
        """A value, or an argument of an atom, where each origin in `moves` stands for itself and so much more."""
        if isinstance(value, Sum):
            if not any(atom.origins for atom, _ in value.parts):
                return value
            if (known := made.get(value)) is None:
                constant, parts = value.constant, dict[Atom, int]()
                for atom, factor in value.parts:
                    constant += moves.get(atom, 0) * factor
                    new = self.moved_atom(atom, moves, made)
                    parts[new] = parts.get(new, 0) + factor
                known = made[value] = total(constant, parts)
            return known
        if isinstance(value, tuple):
            return tuple(self.moved(each, moves, made) for each in cast("tuple[Any, ...]", value))
        return value

    def moved_atom(self, atom: Atom, moves: Mapping[Atom, int], made: dict[Any, Any]) -> Atom:
        """The same for an atom."""
        if not atom.origins or atom.origins.isdisjoint(moves):
            return atom
        if (known := made.get(atom)) is None:
            known = made[atom] = self.atom(atom.kind, *(self.moved(each, moves, made) for each in atom.arguments))
        return known


def total(constant: int, parts: Mapping[Atom, int]) -> Value:
    """The sum of a constant and of atoms."""
    kept = sorted(((atom, factor) for atom, factor in parts.items() if factor), key=lambda part: part[0].number)
    return Sum(constant, tuple(kept)) if kept else constant


def add(left: Value, right: Value, factor: int = 1) -> Value:
    """`left + factor * right`."""
    if isinstance(left, int) and isinstance(right, int):
        return left + factor * right
    parts = dict(parts_of(left))
    for atom, each in parts_of(right):
        parts[atom] = parts.get(atom, 0) + factor * each
    return total(constant_of(left) + factor * constant_of(right), parts)


def scale(value: Value, factor: int) -> Value:
    """`factor * value`."""
    return add(0, value, factor)


def parts_of(value: Value) -> tuple[Part, ...]:
    """The atoms of a value with their coefficients."""
    return () if isinstance(value, int) else value.parts


def constant_of(value: Value) -> int:
    """Return what a value has besides its atoms."""
    return value if isinstance(value, int) else value.constant


def order(value: Value) -> tuple[int, ...]:
    """A key to sort by."""
    return (0, value) if isinstance(value, int) else (1, value.constant, *(atom.number for atom, _ in value.parts))


def only_atom(value: Value) -> Atom | None:
    """The atom that a value is; None for others."""
    return value.parts[0][0] if isinstance(value, Sum) and value.constant == 0 and _is_one(value.parts) else None


def _is_one(parts: tuple[Part, ...]) -> bool:
    return len(parts) == 1 and parts[0][1] == 1


@dataclass(frozen=True)
class View:
    """A part of a buffer: of the array that `allocation` makes, one buffer or all."""

    allocation: int
    """Its number among the allocations of the kernel."""
    slot: int | None = None
    """Which buffer of the array; None for all."""
    box: tuple[tuple[int, int], ...] | None = None
    """First element and number of elements along each dimension of the buffer; None for all of it."""
    axes: tuple[int, ...] = ()
    """For each dimension of the view that of the buffer."""
    is_exact: bool = True
    """False if it may be less than that."""
