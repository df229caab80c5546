"""A launch that begins before the one before it has ended: accesses that come too early.

With programmatic dependent launch a grid may run while its prerequisites do, whose accesses are over and visible after
`griddepcontrol.wait` alone (PTX ISA, "griddepcontrol"). Which kernels are launched before is not known. The kernel
itself may be, on the same arrays, as the interpreter takes it, too (`interpreter/dependent_launches.py`): what is
accessed before the wait is compared with all that it accesses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Booleans, Integers

from .read.faults import PtxRace, describe, fault

TOO_EARLY = "before griddepcontrol.wait"
"""What reports of this say."""
_CONFLICTS = {"read": ("write", "update"), "write": ("read", "write", "update"), "update": ("read", "write")}
"""What an access conflicts with: atomic operations not with each other."""
_DONE = {"read": "read", "write": "written", "update": "updated"}


def waits_for_grids(program: Any) -> bool:
    """Return whether a kernel waits for the launches before it."""
    return any(each.opcode == "griddepcontrol.wait" for each in program.function.instructions)


class DependentLaunch:
    """Accesses of a launch to global memory, before and after the wait."""

    def __init__(self, program: Any):
        self._program = program
        self._accesses: dict[tuple[str, str, bool], NDArray[np.int32]] = {}
        """By array, kind, and whether it was before the wait: the instruction that has accessed each byte, from 1."""

    def note(self, buffer: Any, addresses: Integers, size: int, what: str, at: int, early: Booleans | bool) -> None:
        """Note an access by an instruction to `size` bytes at each address of an array."""
        for is_early in (True, False):
            chosen = addresses[early == is_early] if isinstance(early, np.ndarray) else addresses
            if not len(chosen) or (not isinstance(early, np.ndarray) and early != is_early):
                continue
            key = (buffer.name, what, is_early)
            if (held := self._accesses.get(key)) is None:
                held = self._accesses[key] = np.zeros(len(buffer.bytes), np.int32)
            places = chosen - buffer.start
            held[(places[:, None] + np.arange(size)).ravel()] = at + 1

    @property
    def early_reads(self) -> tuple[str, ...]:
        """The arrays that are read before the wait: right only where no launch before, which may still run, writes."""
        return tuple(sorted({name for name, what, is_early in self._accesses if what == "read" and is_early}))

    def conflict(self) -> PtxRace | None:
        """Return an access before the wait that conflicts with one of the launch before, if that is like it."""
        for (name, kind, is_early), mine in self._accesses.items():
            if not is_early:
                continue
            for (other, past, _), theirs in self._accesses.items():
                if other != name or past not in _CONFLICTS[kind]:
                    continue
                both = np.flatnonzero((mine != 0) & (theirs != 0))
                if len(both):
                    return self._race(name, kind, past, int(both[0]), int(mine[both[0]]), int(theirs[both[0]]))
        return None

    def _race(self, name: str, kind: str, past: str, byte: int, mine: int, theirs: int) -> PtxRace:
        module, instructions = self._program.module, self._program.function.instructions
        made = fault(
            module, instructions[mine - 1],
            f"'{name}' is {_DONE[kind]} {TOO_EARLY}: a launch before of this kernel, on the same "
            f"arrays, may {past} byte {byte} later",
            (
                f"{_DONE[past]} at {describe(module, instructions[theirs - 1])}",
                "griddepcontrol.wait must come before this line",
            ),
            PtxRace,
        )  # fmt: skip
        assert isinstance(made, PtxRace)
        return made
