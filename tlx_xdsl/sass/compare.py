"""The accesses of one thread on both sides: which of the machine's belong to which of the PTX, and are they the same?

Products, copies and barriers are kept by compilers in number and in order: the first belongs to the first. Loads and
stores may be moved, merged, split and left out: each that the machine makes must touch bytes that the PTX touches, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .accesses import ADDS
from .program import Access, Event, Trace
from .values import UNKNOWN


@dataclass(frozen=True, slots=True)
class Difference:
    """An operand that is not the same."""

    world: int
    kind: str
    ptx: Access | None
    sass: Access | None
    """The accesses; None where that side has none."""
    operand: int
    """Its number; -1 where one side has more accesses."""
    ptx_event: int
    sass_event: int
    """The numbers of the events in their traces."""


@dataclass
class Comparison:
    """Differences found in all runs of two programs."""

    theirs: Sequence[Access]
    ours: Sequence[Access]
    same: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    """The numbers of the machine's accesses, each with that of an operand that was the same at least once."""
    different: dict[int, Difference] = field(default_factory=dict[int, Difference])
    """By the number of the machine's access, or that of the PTX less all of these."""

    def counts(self) -> tuple[int, int]:
        """The operands of the machine's accesses that were compared, and the others."""
        operands = {(number, each) for number, access in enumerate(self.ours) for each in range(len(access.names))}
        decided = {each for each in operands if each in self.same or each[0] in self.different}
        return len(decided), len(operands) - len(decided)

    def add(self, ptx: Trace, sass: Trace, world: int) -> None:
        """Compare the traces of a thread."""
        theirs, ours = _by_kind(ptx.events, self.theirs), _by_kind(sass.events, self.ours)
        for kind in {**theirs, **ours}:
            one, other = theirs.get(kind, []), ours.get(kind, [])
            if (self._machine(sass.events[other[0]]) if other else self._ptx(ptx.events[one[0]])).is_ordered:
                self._in_order(kind, ptx, sass, one, other, world)
            elif one and other:
                self._in_any_order(kind, ptx, sass, one, other, world)

    def _ptx(self, event: Event) -> Access:
        number: int = event[0]
        return self.theirs[number]

    def _machine(self, event: Event) -> Access:
        number: int = event[0]
        return self.ours[number]

    def _in_order(self, kind: str, ptx: Trace, sass: Trace, theirs: list[int], ours: list[int], world: int) -> None:
        for one, other in zip(theirs, ours, strict=False):
            _, certain, *left = ptx.events[one]
            place, also_certain, *right = sass.events[other]
            if not (certain and also_certain) or len(left) != len(right):
                return
            access, found = self._ptx(ptx.events[one]), self._machine(sass.events[other])
            for operand, (first, second) in enumerate(zip(left, right, strict=True)):
                if first is UNKNOWN or second is UNKNOWN:
                    continue
                # Where it knows that what it would add to is zero, it need not add.
                if first == second or (access.names[operand] == ADDS and first and ", RZ" in found.text):
                    self.same.add((place, operand))
                else:
                    made = Difference(world, kind, access, found, operand, one, other)
                    self.different.setdefault(place, made)
        if not (ptx.is_whole and sass.is_whole) or len(theirs) == len(ours):
            return
        if all(
            event[1] for trace, each in ((ptx, theirs), (sass, ours)) for event in map(trace.events.__getitem__, each)
        ):
            if len(theirs) > len(ours):
                number = theirs[len(ours)]
                access = self._ptx(ptx.events[number])
                made = Difference(world, kind, access, None, -1, number, -1)
                self.different.setdefault(ptx.events[number][0] - len(self.theirs), made)
            else:
                number = ours[len(theirs)]
                made = Difference(world, kind, None, self._machine(sass.events[number]), -1, -1, number)
                self.different.setdefault(sass.events[number][0], made)

    def _in_any_order(self, kind: str, ptx: Trace, sass: Trace, theirs: list[int], ours: list[int], world: int) -> None:
        whole = ptx.is_whole
        touched: set[int] = set()
        descriptors: list[Any] = []
        for event in map(ptx.events.__getitem__, theirs):
            if event[2] is UNKNOWN:
                whole = False
            else:
                touched.update(range(event[2], event[2] + self._ptx(event).size))
            descriptors.extend(event[3:])
        is_known = not any(each is UNKNOWN for each in descriptors)
        for each in ours:
            number, certain, place, *others = sass.events[each]
            if place is UNKNOWN:
                continue
            has_descriptor = is_known and bool(others) and others[0] is not UNKNOWN
            wrong = place not in touched
            if not wrong and has_descriptor and others[0] not in descriptors:
                access, found = self._ptx(ptx.events[theirs[0]]), self._machine(sass.events[each])
                made = Difference(world, kind, access, found, 1, theirs[0], each)
                self.different.setdefault(number, made)
            elif not wrong:
                self.same.update([(number, 0), (number, 1)] if has_descriptor else [(number, 0)])
            elif whole and certain:
                made = Difference(world, kind, None, self._machine(sass.events[each]), 0, -1, each)
                self.different.setdefault(number, made)


def _by_kind(events: list[Event], accesses: Sequence[Access]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    kinds = [found.setdefault(each.kind, []) for each in accesses]
    for number, event in enumerate(events):
        access: int = event[0]
        kinds[access].append(number)
    return {kind: each for kind, each in found.items() if each}
