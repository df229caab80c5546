"""Basic blocks as pieces of work between events, and how they are put together from single instructions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tlx_xdsl.ptx.program import Program
from tlx_xdsl.ptx.steps import Step

from .instructions import PIPES, Use

NO_EVENT = -1
"""What stands in `BlockCost.ats` where a piece ends without an event."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a warp computes between two events, in cycles of one sub-partition."""

    slots: float
    """Instructions that are issued: one slot of the sub-partition each."""
    pipes: tuple[float, ...]
    """Cycles for which each pipe is taken, in the order of `instructions.PIPES`."""
    latency: float
    """Cycles from the start to the end if the warp is alone on its sub-partition."""
    first: int
    """The number of the first instruction in `program.function.instructions`."""
    last: int
    """The number of the instruction after it; `first` if the work has no instruction of its own."""


@dataclass(frozen=True, slots=True)
class BlockCost:
    """A basic block as pieces of work, with the instructions that may bear events between them.

    `len(pieces) == len(ats) + 1`: `pieces[i]` comes before the instruction `ats[i]`, and the last one ends the block.
    `ats` are in the order of the machine, which may be another than that of the PTX, each at most once. One need not have
    an event when the block runs, as its guard may be false. `NO_EVENT` in the place of an instruction never has one: the
    piece after it begins with the first use of a loaded register.
    """

    pieces: tuple[Work, ...]
    ats: tuple[int, ...]
    needs: tuple[frozenset[int], ...]
    """For each piece the registers of loads in flight that it needs before it begins, by their numbers."""
    results: tuple[tuple[int, ...], ...]
    """For each of `ats` the registers that it fills some time after it is issued: those of loads."""


_BEARERS = frozenset(
    "mbarrier bar barrier cp wgmma ld ldu st atom red ldmatrix stmatrix tcgen05 nanosleep clusterlaunchcontrol "
    "griddepcontrol".split()
)
_LOADS = frozenset(("ld", "ldu", "ldmatrix", "atom"))


def bears_events(program: Program, number: int) -> bool:
    """Say whether an instruction may make an event of the trace."""
    instruction = program.function.instructions[number]
    if instruction.name not in _BEARERS or program.steps[number] is None:
        return False
    parts = instruction.modifiers
    if instruction.name in ("ld", "ldu", "st"):
        return "param" not in parts and "const" not in parts
    return not (instruction.name in ("wgmma", "tcgen05") and parts[:1] in (("fence",), ("fence::before_thread_sync",),
                                                                           ("fence::after_thread_sync",)))  # fmt: skip


def results_of(program: Program, number: int) -> tuple[int, ...]:
    """Return the registers that an instruction fills some time after it is issued: those of loads."""
    step: Step | None = program.steps[number]
    if step is None or program.function.instructions[number].name not in _LOADS:
        return ()
    return tuple(register.number for register, _ in step.writes if register is not None)


@dataclass(slots=True)
class _Piece:
    slots: float = 0.0
    cycles: list[float] = field(default_factory=lambda: [0.0] * len(PIPES))
    latency: float = 0.0
    numbers: tuple[int, int] | None = None
    needs: set[int] = field(default_factory=set[int])


class Builder:
    """Collects the instructions of the machine that a basic block becomes, in their order.

    Where a block is there several times, as in a loop that ptxas has unrolled, the copies add up, and `cost` takes the
    mean. A copy begins where an event comes again.
    """

    def __init__(self, first: int):
        """Begin a block whose first instruction has this number."""
        self._first = first
        self._pieces = [_Piece()]
        self._ats: list[int] = []
        self._place: dict[int, int] = {}
        """For each event the piece after it."""
        self._current = 0

    def add(self, use: Use, cycles: float, number: int | None) -> None:
        """Add an instruction of the machine, which takes some cycles before the next one; `number` is of its PTX."""
        self.add_some(((use, 1.0),), cycles, number)

    def add_some(self, uses: Iterable[tuple[Use, float]], cycles: float, number: int | None) -> None:
        """Add instructions of the machine as `add` does, with how many of each."""
        piece = self._pieces[self._current]
        piece.latency += cycles
        for use, count in uses:
            piece.slots += count
            for pipe, taken in use.pipes:
                piece.cycles[pipe] += taken * count
        if number is not None:
            low, high = piece.numbers or (number, number)
            piece.numbers = min(low, number), max(high, number)

    def event(self, number: int) -> None:
        """Go on behind an event."""
        if (place := self._place.get(number)) is not None:
            self._current = place
        elif self._current == len(self._pieces) - 1:
            self._cut(number)
            self._place[number] = self._current

    def need(self, registers: Iterable[int]) -> None:
        """Go on where loads have brought these registers."""
        if self._current != len(self._pieces) - 1:
            return
        wanted = set(registers) - self._pieces[self._current].needs
        if wanted:
            if self._pieces[self._current].slots:
                self._cut(NO_EVENT)
            self._pieces[self._current].needs |= wanted

    def _cut(self, number: int) -> None:
        self._ats.append(number)
        self._pieces.append(_Piece())
        self._current += 1

    def cost(self, program: Program, events: Iterable[int], copies: float = 1.0) -> BlockCost:
        """Return the cost of the block; events that were not added come right after those before them in the PTX."""
        ats, pieces = self._ats, self._pieces
        place = -1
        for number in sorted(events):
            if number in self._place:
                place = ats.index(number)
            else:
                place += 1
                ats.insert(place, number)
                pieces.insert(place, _Piece())
        works: list[Work] = []
        at = self._first
        for number, piece in enumerate(pieces):
            low, high = piece.numbers or (at, at - 1)
            works.append(
                Work(piece.slots / copies, tuple(each / copies for each in piece.cycles), piece.latency / copies, low,
                     high + 1)
            )  # fmt: skip
            if number < len(ats) and ats[number] != NO_EVENT:
                at = ats[number] + 1
        return BlockCost(
            tuple(works), tuple(ats), tuple(frozenset(each.needs) for each in pieces),
            tuple(() if each == NO_EVENT else results_of(program, each) for each in ats),
        )  # fmt: skip
