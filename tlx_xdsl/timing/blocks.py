"""The static cost of basic blocks of PTX: what a warp takes of its sub-partition between two uses of other units."""

from __future__ import annotations

from dataclasses import dataclass

from tlx_xdsl.ptx.program import Program
from tlx_xdsl.sass.text import Code

from .instructions import PIPES


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


def costs(program: Program, machine_code: Code | None = None) -> list[BlockCost]:
    """Return the cost of each basic block, by its number."""
    nothing = (0.0,) * len(PIPES)
    return [
        BlockCost(
            (Work(block.last - block.first, nothing, 4.0 * (block.last - block.first), block.first, block.last),),
            (), (frozenset(),), (),
        )
        for block in program.blocks
    ]  # fmt: skip
