"""A launch that begins before the one before it has ended: accesses that come too early.

With programmatic dependent launch a grid may run while its prerequisites do. What they do is over and visible after
`griddepcontrol.wait` alone, whichever side of `griddepcontrol.launch_dependents` it stands (PTX ISA, "griddepcontrol").
So an access that is not ordered after the wait conflicts with what a launch before may do at any time.

Which kernels are launched before is not known. The kernel itself may be, on the same arrays: its accesses are compared
with all that it accesses. Of other kernels it is only said which arrays they may not write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.dialects import nvvm, tt
from tlx_xdsl.dialects.base import Kind, accesses_of
from tlx_xdsl.numerics.arrays import Integers
from tlx_xdsl.text.diagnostics import Diagnostic, source_location

from .clocks import Clock
from .faults import place_note, remedy
from .global_memory import Buffer

EARLIER = 0
"""The agent whose step 1 is the end of all launches before; those of clusters begin with 1."""
DEPENDENTS = -1
"""The agent whose step 1 is the permission for later launches to begin."""

_CONFLICTS = {"read": ("write", "update"), "write": ("read", "write", "update"), "update": ("read", "write")}
"""What an access conflicts with: atomic operations not with each other."""
_DONE = {"read": "read", "write": "written", "update": "updated"}
_REMEDY = "tl.extra.cuda.gdc_wait() must come before this line"


def waits_for_grids(module: ModuleOp) -> bool:
    """True if a kernel may begin before those before it have ended, and waits for them."""
    return any(is_wait(op) for op in module.walk())


def is_wait(op: Operation) -> bool:
    """True for the wait for the launches before."""
    return isinstance(op, tt.GridDependencyWaitOp) or (
        isinstance(op, nvvm.GriddepcontrolOp) and op.kind.data is nvvm.GridDepAction.WAIT
    )


def lets_dependents_start(op: Operation) -> bool:
    """True for the permission for later launches to begin."""
    return isinstance(op, tt.GridDependencyLaunchDependentsOp) or (
        isinstance(op, nvvm.GriddepcontrolOp) and op.kind.data is nvvm.GridDepAction.LAUNCH_DEPENDENTS
    )


@dataclass
class DependentLaunch:
    """Accesses of a launch to global memory, before and after its wait for earlier launches."""

    _ops: list[Operation] = field(default_factory=list[Operation])
    _numbers: dict[Operation, int] = field(default_factory=dict[Operation, int])
    _atomic: set[Operation] = field(default_factory=set[Operation])
    _late: set[Operation] = field(default_factory=set[Operation])
    """Operations after the permission for later launches."""
    _accesses: dict[tuple[str, str, bool], NDArray[np.int32]] = field(
        default_factory=dict[tuple[str, str, bool], NDArray[np.int32]]
    )
    """By array, kind, and whether it was before the wait: the number of an operation for each byte, from 1."""

    def note(self, op: Operation, buffer: Buffer, index: slice | Integers, size: int, kind: str, clock: Clock) -> None:
        """Note an access to elements of `size` bytes of an array: a `read` or a `write`."""
        if (number := self._numbers.get(op)) is None:
            self._ops.append(op)
            number = self._numbers[op] = len(self._ops)
            if any(Kind.ATOMIC in access.kind for access in accesses_of(op) or ()):
                self._atomic.add(op)
        if clock.knows(DEPENDENTS, 1):
            self._late.add(op)
        key = (buffer.name, "update" if op in self._atomic else kind, not clock.knows(EARLIER, 1))
        if (held := self._accesses.get(key)) is None:
            held = self._accesses[key] = np.zeros(len(buffer.bytes), np.int32)
        if isinstance(index, slice):
            held[index.start * size : index.stop * size] = number
        else:
            held[(index[:, None] * size + np.arange(size)).ravel()] = number

    def conflicts(self) -> Iterator[Diagnostic]:
        """Yield what goes wrong where the launch before is of the same kernel on the same arrays, each two lines once.

        A remark says which other arrays no launch before may write.
        """
        for (name, kind, is_early), mine in self._accesses.items():
            if is_early:
                found = list(self._with_others(name, kind, mine))
                yield from found
                if not found and kind == "read":
                    yield self._assumption(name, mine)

    def _with_others(self, name: str, kind: str, mine: NDArray[np.int32]) -> Iterator[Diagnostic]:
        pairs: dict[tuple[int, int], tuple[str, int]] = {}
        for (other, past, _), theirs in self._accesses.items():
            if other != name or past not in _CONFLICTS[kind]:
                continue
            both = np.flatnonzero((mine != 0) & (theirs != 0))
            for number, before in np.unique(np.stack([mine[both], theirs[both]], 1), axis=0).tolist():
                at = int(both[np.flatnonzero((mine[both] == number) & (theirs[both] == before))[0]])
                pairs.setdefault((number, before), (past, at))
        for (number, before), (past, at) in pairs.items():
            yield self._conflict(name, kind, self._ops[number - 1], past, self._ops[before - 1], at)

    def _conflict(self, name: str, kind: str, op: Operation, past: str, before: Operation, at: int) -> Diagnostic:
        after = ", after gdc_launch_dependents: this launch may have begun then" if before in self._late else ""
        message = (
            f"'{name}' is {_DONE[kind]} before gdc_wait: a launch before of this kernel, on the same arrays, may "
            f"{past} byte {at} later"
        )
        notes = (place_note(f"{_DONE[past]} at", before, after), remedy(_REMEDY))
        return Diagnostic("error", message, source_location(op.location), notes)

    def _assumption(self, name: str, mine: NDArray[np.int32]) -> Diagnostic:
        op = self._ops[int(mine[np.flatnonzero(mine)[0]]) - 1]
        message = f"'{name}' is read before gdc_wait: right only where no launch before, which may still run, writes it"
        return Diagnostic("remark", message, source_location(op.location))
