"""Basic blocks as pieces of work between events, and how they are put together from single instructions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tlx_xdsl.ptx.flow import Block
from tlx_xdsl.ptx.program import Program
from tlx_xdsl.ptx.steps import Step

from .instructions import PIPES, Use

NO_EVENT = -1
"""What stands in `BlockCost.ats` where a piece ends without an event."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a warp between two events, in cycles of one sub-partition."""

    slots: float
    """Instructions that are issued: one slot of the sub-partition each."""
    pipes: tuple[float, ...]
    """Cycles for which each pipe is taken, in the order of `instructions.PIPES`."""
    latency: float
    """Cycles from the start to the end if the warp is alone on its sub-partition."""
    first: int
    """The number of the first instruction in `program.function.instructions`, which may be of a block close by."""
    last: int
    """The number of the instruction after the last one; `first` if the work has no instruction of its own."""


@dataclass(frozen=True, slots=True)
class BlockCost:
    """A basic block as pieces of work, with the instructions that may bear events between them.

    `len(pieces) == len(ats) + 1`: `pieces[i]` comes before the instruction `ats[i]`, and the last one ends the block.
    `ats` are in the order of the machine, which may be another than that of the PTX, each at most once. One need not
    have an event when the block runs, as its guard may be false. `NO_EVENT` in the place of an instruction never has
    one: the piece after it begins with the first use of a loaded register.
    """

    pieces: tuple[Work, ...]
    ats: tuple[int, ...]
    needs: tuple[frozenset[int], ...]
    """For each piece the registers of loads in flight that it needs before it begins, by their numbers."""
    results: tuple[tuple[int, ...], ...]
    """For each of `ats` the registers that it fills some time after it is issued: those of loads."""
    lag: int = 0
    """Where ptxas has unrolled a loop, it loads for several turns at once: a use waits for what was loaded so many
    turns before."""


_BEARERS = frozenset((
    "mbarrier", "bar", "barrier", "cp", "wgmma", "ld", "ldu", "st", "atom", "red", "ldmatrix", "stmatrix", "tcgen05",
    "nanosleep", "clusterlaunchcontrol", "griddepcontrol",
))  # fmt: skip
_LOADS = frozenset(("ld", "ldu", "ldmatrix", "atom"))
_NO_EVENTS = ("wgmma.fence", "tcgen05.fence")


def bears_events(program: Program, number: int) -> bool:
    """Say whether an instruction may make an event of the trace."""
    instruction = program.function.instructions[number]
    if instruction.name not in _BEARERS or program.steps[number] is None or instruction.opcode.startswith(_NO_EVENTS):
        return False
    return not (instruction.name in ("ld", "ldu", "st") and {"param", "const"}.intersection(instruction.modifiers))


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
    """Collects the instructions of the machine that a chain of basic blocks becomes, in their order.

    The blocks of a chain always run one after the other, and ptxas mixes their instructions. Where a chain is there
    several times, as in a loop that ptxas has unrolled, the copies add up, and `costs` takes the mean. A copy begins
    where an event comes again.
    """

    def __init__(self):
        """Begin a chain."""
        self._pieces = [_Piece()]
        self._ats: list[int] = []
        self._place: dict[int, int] = {}
        """For each event the piece after it."""
        self._current = 0
        self.lag = 0
        """Loads by one instruction of PTX that are under way when the first of them is waited for, less one."""

    def add(self, uses: Iterable[tuple[Use, float]], cycles: float, number: int | None) -> None:
        """Add instructions of the machine, with how many of each; together they take some cycles before the next ones.

        `number` is the instruction of PTX that they are of.
        """
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
        """Go on after an event."""
        if (place := self._place.get(number)) is not None:
            self._current = place
        elif self._is_at_end():
            self._cut(number)
            self._place[number] = self._current

    def need(self, registers: Iterable[int]) -> None:
        """Go on where loads have brought these registers."""
        if self._is_at_end() and (wanted := set(registers) - self._pieces[-1].needs):
            if self._pieces[-1].slots:
                self._cut(NO_EVENT)
            self._pieces[-1].needs |= wanted

    def _is_at_end(self) -> bool:
        return self._current == len(self._pieces) - 1

    def _cut(self, number: int) -> None:
        self._ats.append(number)
        self._pieces.append(_Piece())
        self._current += 1

    def costs(
        self, program: Program, blocks: Sequence[Block], events: Sequence[Sequence[int]], copies: float = 1.0
    ) -> list[BlockCost]:
        """Return the cost of each block of the chain; `events` has the instructions of each that may bear events.

        Events that were not added come right after those before them in the PTX. What comes before an event counts for
        the block of the event, and what comes after all of them for the last block.
        """
        parts, rest = self._parts([number for block in events for number in block])
        block_of = {number: block for block, numbers in enumerate(events) for number in numbers}
        lag = min(self.lag, max(0, int(copies) - 1))
        # The machine may do an event of a later block first. Blocks can't: their events take each other's places.
        order = sorted((number for _, number in parts), key=lambda each: block_of[each])
        by_block: list[list[tuple[_Piece, int]]] = [[] for _ in events]
        for (pieces, _), number in zip(parts, order, strict=True):
            ends = [*[NO_EVENT] * (len(pieces) - 1), number]
            by_block[block_of[number]].extend(zip(pieces, ends, strict=True))
        return [
            _cost(program, blocks[place].first, each, rest if place == len(events) - 1 else [_Piece()], copies, lag)
            for place, each in enumerate(by_block)
        ]

    def _parts(self, events: Sequence[int]) -> tuple[list[tuple[list[_Piece], int]], list[_Piece]]:
        """Pieces with the event that ends them, in the order of the machine, and the pieces after the last event."""
        parts: list[tuple[list[_Piece], int]] = []
        pieces: list[_Piece] = []
        for piece, at in zip(self._pieces, self._ats, strict=False):
            pieces.append(piece)
            if at != NO_EVENT:
                parts.append((pieces, at))
                pieces = []
        pieces.append(self._pieces[-1])
        place = -1
        places = {number: place for place, (_, number) in enumerate(parts)}
        missing: dict[int, list[int]] = {}
        for number in events:
            if number in places:
                place = places[number]
            else:
                missing.setdefault(place, []).append(number)
        for place in sorted(missing, reverse=True):
            parts[place + 1 : place + 1] = [([_Piece()], number) for number in missing[place]]
        return parts, pieces


def _cost(
    program: Program,
    first: int,
    ended: Sequence[tuple[_Piece, int]],
    rest: Sequence[_Piece],
    copies: float,
    lag: int,
) -> BlockCost:
    """The cost of a block from pieces with the events that end them, and those after the last event."""
    pieces = [*(piece for piece, _ in ended), *rest]
    ats = (*(at for _, at in ended), *[NO_EVENT] * (len(rest) - 1))
    works: list[Work] = []
    for place, piece in enumerate(pieces):
        if piece.numbers is None:
            first = ats[place] if place < len(ats) and ats[place] != NO_EVENT else first
        low, high = piece.numbers or (first, first - 1)
        cycles = tuple(each / copies for each in piece.cycles)
        works.append(Work(piece.slots / copies, cycles, piece.latency / copies, low, high + 1))
    return BlockCost(
        tuple(works),
        ats,
        tuple(frozenset(each.needs) for each in pieces),
        tuple(() if each == NO_EVENT else results_of(program, each) for each in ats),
        lag,
    )
