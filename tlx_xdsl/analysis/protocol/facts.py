"""Assumptions on one path of the search: how unknown numbers compare, and their remainders.

A question without a known answer splits the path: `SplitError` has the answers, of which each is followed. Facts are
bounds of sums of atoms, and remainders of atoms; so that all tasks get the same answer to the same question.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import gcd, inf, lcm
from typing import Any, TypeAlias, cast

from xdsl.ir import Operation

from .values import Atom, Part, Sum, Value, add, constant_of, only_atom, parts_of, scale, total

Bounds: TypeAlias = tuple[float, float]
"""The least and the greatest number that a sum can be."""

UNBOUNDED: Bounds = (-inf, inf)


class LongerPeriodError(Exception):
    """The search must begin again: turns are counted modulo a number that is no multiple of `modulus`."""

    def __init__(self, modulus: int):
        super().__init__(modulus)
        self.modulus = modulus


class ForgottenError(Exception):
    """The search must begin again, and forget facts of turns later: the answer to a question was forgotten at once."""


class TooNearError(Exception):
    """The search must begin again, and forget turns later: a task entered a loop whose first turns were forgotten."""

    def __init__(self, op: Operation):
        super().__init__(op)
        self.op = op


class EarlierSplitError(Exception):
    """The search must begin again, and split by the remainder of `atom` as soon as a loop depends on it."""

    def __init__(self, atom: Atom, modulus: int):
        super().__init__(atom, modulus)
        self.atom = atom
        self.modulus = modulus


class EarlierQuestionError(Exception):
    """The search must begin again, and ask whether a sum is at least a number before a loop depends on it."""

    def __init__(self, parts: tuple[Part, ...], least: int):
        super().__init__(parts, least)
        self.parts = parts
        self.least = least


class NewLimitError(Exception):
    """The search must begin again: a loop goes up to a value with these atoms."""

    def __init__(self, atoms: frozenset[Atom]):
        super().__init__(atoms)
        self.atoms = atoms


class SplitError(Exception):
    """A question about `atoms` without a known answer: the path goes on once with each of the `answers`."""

    def __init__(self, answers: list[Facts], *atoms: Atom):
        super().__init__(answers)
        self.answers = answers
        self.atoms = atoms


@dataclass
class Questions:
    """Numbers that the search must keep to answer its questions; they grow each time it begins again."""

    period: int = 2
    """Turns of loops are counted modulo this."""
    reach: int = 0
    """Turns that are not forgotten: one task may be ahead of another by so many."""
    lag: int = 0
    """Facts of a turn are kept for so many turns more: tasks compute with numbers of earlier ones."""
    moduli: dict[Atom, int] = field(default_factory=dict[Atom, int])
    """The remainders that are asked for, by atom."""
    least: dict[tuple[Part, ...], frozenset[int]] = field(default_factory=dict[tuple[Part, ...], frozenset[int]])
    """The numbers with which sums are compared that are the same in all turns."""
    limits: frozenset[Atom] = frozenset()
    """The atoms of what loops go up to."""


@dataclass
class Facts:
    """The facts of a path."""

    questions: Questions
    bounds: dict[tuple[Part, ...], Bounds] = field(default_factory=dict[tuple[Part, ...], Bounds])
    """Of sums whose first coefficient is positive, and whose coefficients have no common divisor."""
    remainders: dict[Atom, tuple[int, int]] = field(default_factory=dict[Atom, tuple[int, int]])
    """For an atom a modulus, and the remainder."""

    def copy(self) -> Facts:
        """The same facts, to be added to."""
        return Facts(self.questions, self.bounds.copy(), self.remainders.copy())

    # Remainders ------------------------------------------------------------------------------------------------------

    def remainder(self, value: Value, modulus: int, *, split: bool = True) -> int | None:
        """The value modulo a number. What is not known splits the path, or is None."""
        result = constant_of(value)
        for atom, factor in parts_of(value):
            if factor % modulus == 0:
                continue
            each = self._remainder_of(atom, modulus // gcd(factor, modulus), split)
            if each is None:
                return None
            result += factor * each
        return result % modulus

    def _remainder_of(self, atom: Atom, modulus: int, split: bool) -> int | None:
        if modulus == 1:
            return 0
        match atom.kind:
            case "origin":
                if self.questions.period % modulus:
                    raise LongerPeriodError(modulus)
                return 0
            case "quotient":
                value, divisor = atom.arguments
                # If it says nothing of turns, its own remainders have fewer answers than those of what it is of.
                of_turns = bool(atom.origins) or any(each in self.questions.limits for each, _ in parts_of(value))
                whole = self.remainder(value, modulus * divisor, split=split and of_turns)
                return self._known_remainder(atom, modulus, split) if whole is None else whole // divisor
            case "remainder":
                value, divisor = atom.arguments
                part = self.remainder(value, divisor, split=split)
                return None if part is None else part % modulus
            case "product":
                if 0 in [self.remainder(value, modulus, split=False) for value in atom.arguments]:
                    return 0
                left, right = [self.remainder(value, modulus, split=split) for value in atom.arguments]
                return None if left is None or right is None else left * right % modulus
            case "select":
                chosen = self._chosen(atom, split)
                return None if chosen is None else self.remainder(chosen, modulus, split=split)
            case _:
                return self._known_remainder(atom, modulus, split)

    def _known_remainder(self, atom: Atom, modulus: int, split: bool) -> int | None:
        known, rest = self.remainders.get(atom, (1, 0))
        if known % modulus == 0:
            return rest % modulus
        low, high = self.bounds.get(((atom, 1),), UNBOUNDED)
        if low == high:
            return int(low) % modulus
        if not split:
            return None
        wanted = self.questions.moduli.get(atom, 1)
        if wanted % modulus:
            raise EarlierSplitError(atom, lcm(wanted, modulus))
        answers: list[Facts] = []
        for remainder in range(rest, wanted, known):
            answer = self.copy()
            answer.remainders[atom] = (wanted, remainder)
            answers.append(answer)
        raise SplitError(answers, atom)

    def split_early(self, value: Sum) -> None:
        """Split the path by all that is asked for somewhere of a value, and of its atoms' remainders."""
        parts, _, _ = normalised(value)
        atoms = frozenset(atom for atom, _ in parts)
        if not atoms <= self.questions.limits:
            raise NewLimitError(atoms)
        for least in sorted(self.questions.least.get(parts, ())):
            self.positive(Sum(1 - least, parts))
        for atom, _ in parts_of(value):
            if (modulus := self.questions.moduli.get(atom)) is not None:
                self._known_remainder(atom, modulus, split=True)

    # Numbers ---------------------------------------------------------------------------------------------------------

    def number(self, value: Value) -> int | None:
        """The number that a value is, as far as that is a question of remainders and choices; splits the path."""
        if isinstance(value, int):
            return value
        result = value.constant
        for atom, factor in value.parts:
            match atom.kind:
                case "remainder":
                    each = self.remainder(atom.arguments[0], atom.arguments[1])
                case "select":
                    chosen = self._chosen(atom, split=True)
                    each = None if chosen is None else self.number(chosen)
                case "less" | "equal" | "both" | "either" | "unequal":
                    each = int(bool(self.truth(Sum(0, ((atom, 1),)))))
                case _:
                    low, high = self.known(((atom, 1),))
                    each = int(low) if low == high else None
            if each is None:
                return None
            result += factor * each
        return result

    def constant(self, value: Value) -> int | None:
        """The number that a value is on this path, without a question."""
        value = self.simplified(value)
        result = constant_of(value)
        for atom, factor in parts_of(value):
            low, high = self.known(((atom, 1),))
            if low != high:
                return None
            result += factor * int(low)
        return result

    def simplified(self, value: Value) -> Value:
        """The value with the numbers of its atoms where they are known without a question."""
        if isinstance(value, int):
            return value
        result: Value = value.constant
        for atom, factor in value.parts:
            known: Value | None = None
            match atom.kind:
                case "remainder":
                    known = self.remainder(atom.arguments[0], atom.arguments[1], split=False)
                case "select":
                    known = self._chosen(atom, split=False)
                    known = None if known is None else self.simplified(known)
                case "product":
                    left, right = atom.arguments
                    if (number := self.constant(left)) is not None:
                        known = scale(self.simplified(right), number)
                    elif (number := self.constant(right)) is not None:
                        known = scale(self.simplified(left), number)
                case _:
                    pass
            result = add(result, Sum(0, ((atom, 1),)) if known is None else known, factor)
        return result

    def _chosen(self, atom: Atom, split: bool) -> Value | None:
        condition, left, right = atom.arguments
        chosen = self.truth(condition, split=split)
        return None if chosen is None else left if chosen else right

    # Comparisons -----------------------------------------------------------------------------------------------------

    def is_natural(self, value: Value) -> bool:
        """Return whether a value is known not to be negative where no integer argument of the kernel is."""
        value = self.simplified(value)
        if isinstance(value, int):
            return value >= 0
        least: float = value.constant
        for atom, factor in value.parts:
            low, high = self.known(((atom, 1),))
            low = max(low, 0) if self._is_natural(atom) else low
            least += factor * (low if factor > 0 else high)
        if least >= 0:
            return True
        return bool(self.positive(add(value, 1), split=False))

    def _is_natural(self, atom: Atom) -> bool:
        match atom.kind:
            case "quotient":
                return self.is_natural(atom.arguments[0])
            case "product":
                return all(map(self.is_natural, atom.arguments))
            case "select":
                return all(map(self.is_natural, atom.arguments[1:]))
            case "function":
                return False
            case _:
                # Arguments, ids of programs, turns of loops, remainders and bits.
                return True

    def truth(self, value: Value, *, split: bool = True) -> bool | None:
        """Return whether a bit, or one less a bit, is set; where that is not known, split the path, or return None."""
        if isinstance(value, int):
            return bool(value)
        if value.constant == 1 and len(value.parts) == 1 and value.parts[0][1] == -1:
            inverted = self.truth(add(1, value, -1), split=split)
            return None if inverted is None else not inverted
        atom = only_atom(value)
        result: bool | None
        match atom.kind if atom is not None else "":
            case "less":
                assert atom is not None
                result = self.positive(add(atom.arguments[1], atom.arguments[0], -1), split=split)
            case "equal":
                assert atom is not None
                difference = add(atom.arguments[1], atom.arguments[0], -1)
                above = self.positive(difference, split=split)
                result = False if above else self.positive(add(0, difference, -1), split=split)
                result = (None if above is None else not result) if result is not None and not above else result
            case "both" | "either" | "unequal":
                assert atom is not None
                result = self._combined(atom, split)
            case "select":
                assert atom is not None
                chosen = self._chosen(atom, split)
                result = None if chosen is None else self.truth(chosen, split=split)
            case _:
                result = self.positive(value, split=split)
        return result

    def _combined(self, atom: Atom, split: bool) -> bool | None:
        left, right = (self.truth(each, split=split) for each in atom.arguments)
        match atom.kind:
            case "both":
                return False if False in (left, right) else None if None in (left, right) else True
            case "either":
                return True if True in (left, right) else None if None in (left, right) else False
            case _:
                return None if None in (left, right) else left != right

    def positive(self, value: Value, *, split: bool = True) -> bool | None:
        """Return whether a value is above zero."""
        value = self.simplified(value)
        if split and isinstance(value, Sum) and all(atom.kind in ("remainder", "select") for atom, _ in value.parts):
            number = self.number(value)
            value = value if number is None else number
        if isinstance(value, Sum) and abs(value.constant) <= self.questions.period + self.questions.reach:
            # Of a loop in another one it is the same question in all turns of that, as long as none are forgotten.
            value = total(value.constant, {atom: factor for atom, factor in value.parts if not self._is_first(atom)})
        if isinstance(value, int):
            return value > 0
        parts, divisor, limit = normalised(value)
        low, high = self.known(parts)
        # The sum times `divisor` is more than `limit`: the sum is at least `least`; or at most `most`, if it is below.
        if divisor > 0:
            least = limit // divisor + 1
            if low >= least or high < least:
                return low >= least
            yes, no = (least, high), (low, least - 1)
        else:
            most = -(limit // -divisor) - 1
            if high <= most or low > most:
                return high <= most
            yes, no = (low, most), (most + 1, high)
        if not split:
            return None
        if not any(atom.origins for atom, _ in parts):
            edge = int(no[1] + 1 if divisor > 0 else no[0])
            if edge not in self.questions.least.get(parts, ()):
                raise EarlierQuestionError(parts, edge)
        answers: list[Facts] = []
        for bounds in (yes, no):
            answer = self.copy()
            answer.bounds[parts] = (_exact(bounds[0]), _exact(bounds[1]))
            answers.append(answer)
        raise SplitError(answers, *(atom for atom, _ in parts))

    def assume_positive(self, value: Value) -> None:
        """Note that a value is above zero, without a question."""
        if isinstance(value, Sum):
            parts, divisor, limit = normalised(value)
            low, high = self.bounds.get(parts, UNBOUNDED)
            if divisor > 0:
                self.bounds[parts] = max(low, limit // divisor + 1), high
            else:
                self.bounds[parts] = low, min(high, -(limit // -divisor) - 1)

    def known(self, parts: tuple[Part, ...]) -> Bounds:
        """Return what is known of a sum, by its remainder, too; a product of positive numbers is positive."""
        low, high = self.bounds.get(parts, UNBOUNDED)
        atom = parts[0][0]
        if len(parts) == 1 and atom.kind == "product" and all(self.positive(e, split=False) for e in atom.arguments):
            low = max(low, 1)
        least, most = self._inherited(parts)
        low, high = max(low, least), min(high, most)
        modulus = 0
        for atom, _ in parts:
            known = self.questions.period if atom.kind == "origin" else self.remainders.get(atom, (1, 0))[0]
            modulus = gcd(modulus, known)
        if modulus > 1:
            rest = self.remainder(Sum(0, parts), modulus, split=False)
            assert rest is not None
            low = low if low == -inf else low + (rest - int(low)) % modulus
            high = high if high == inf else high - (int(high) - rest) % modulus
        return low, high

    def _is_first(self, atom: Atom) -> bool:
        """Return whether it is the origin of a loop in another one of which no turns are forgotten."""
        return atom.kind == "origin" and bool(atom.arguments[1]) and self.bounds.get(((atom, 1),)) == (0, 0)

    def _inherited(self, parts: tuple[Part, ...]) -> Bounds:
        """The bounds of a sum of which nothing is noted: its origins may still be zero."""
        zero = [atom for atom, _ in parts if atom.kind == "origin" and self.bounds.get(((atom, 1),)) == (0, 0)]
        kept = tuple(part for part in parts if part[0] not in zero)
        if len(kept) == len(parts):
            return UNBOUNDED
        if not kept:
            return 0, 0
        rest, divisor, _ = normalised(Sum(0, kept))
        low, high = self.bounds.get(rest, UNBOUNDED)
        return (low * divisor, high * divisor) if divisor > 0 else (high * divisor, low * divisor)


def may_be_anything(guesses: Iterable[Atom]) -> bool:
    """Return whether each answer to questions about these is one that there is, however the others are answered.

    Facts say nothing of what is computed from other numbers. So that is one number alone, the same in all turns, and
    neither the smaller nor the larger of two: a quotient by an argument, say.
    """
    computed = {atom for atom in guesses if _is_computed(atom)}
    return len(computed) <= 1 and not any(atom.origins or _has_limit(atom) for atom in computed)


def _is_computed(atom: Atom) -> bool:
    match atom.kind:
        case "function":
            return atom.arguments[0][0] != "tt.load"
        case "product":
            return bool(atom.origins)
        case "quotient" | "remainder":
            return any(_is_computed(each) for each, _ in parts_of(atom.arguments[0]))
        case _:
            return False


def _has_limit(value: Any) -> bool:
    """Return whether a minimum or a maximum is a part of a value, or of an argument of an atom."""
    if isinstance(value, Atom):
        is_limit = value.kind == "function" and value.arguments[0][0].startswith(("arith.min", "arith.max"))
        return is_limit or any(map(_has_limit, value.arguments))
    if isinstance(value, Sum):
        return any(_has_limit(atom) for atom, _ in value.parts)
    return isinstance(value, tuple) and any(map(_has_limit, cast("tuple[Any, ...]", value)))


def _exact(bound: float) -> float:
    return bound if bound in (inf, -inf) else int(bound)


def normalised(value: Sum) -> tuple[tuple[Part, ...], int, int]:
    """The atoms with coefficients that have no common divisor, the divisor, which has the first one's sign, and the
    number that atoms times divisor must exceed for the value to be positive.
    """
    divisor = gcd(*(factor for _, factor in value.parts))
    if value.parts[0][1] < 0:
        divisor = -divisor
    return tuple((atom, factor // divisor) for atom, factor in value.parts), divisor, -value.constant
