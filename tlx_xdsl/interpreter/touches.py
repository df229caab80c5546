"""Touches of a step: places that others may touch in another order, and when that order matters."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt, ttng
from tlx_xdsl.dialects.tt import DescriptorReduceKind, RMWOp
from tlx_xdsl.numerics.arrays import distinct

READ, UPDATE = "read", "update"
"""Accesses to global memory: one that changes nothing, and one whose order with any other matters."""

_WORD = 4
"""Bytes that an access to global memory touches at least, so that accesses of different widths meet."""


@dataclass(frozen=True, slots=True)
class Touch:
    """One thing that a step touches."""

    place: Hashable
    """Global memory, a named barrier, or the programs that are not launched yet."""
    kind: Hashable
    """The kind of an access to global memory, or the phase of a named barrier at which someone has arrived."""
    words: frozenset[int] = frozenset()
    """The words of global memory, of which other accesses have none."""
    is_last: bool = False
    """Whether it completes the phase of a named barrier."""

    def depends_on(self, other: Touch) -> bool:
        """Return whether the order of two steps of a run matters."""
        if self.place != other.place:
            return False
        if not self.words:
            # Who arrives in one phase does so in any order.
            return self.kind != other.kind or self.kind is None
        if self.kind == other.kind and self.kind != UPDATE:
            return False
        return not self.words.isdisjoint(other.words)

    def wakes(self, other: Touch) -> bool:
        """Return whether it matters that this step comes before `other`, which another run has done in its place."""
        return self.depends_on(other) or (self.is_last and self.place == other.place)


Touches: TypeAlias = Sequence[Touch]

LAUNCHES = "launches"
"""The place of programs that are not launched yet."""


def depend(one: Touches, two: Touches) -> bool:
    """Return whether the order of two steps matters."""
    return any(a.depends_on(b) for a in one for b in two)


def wake(done: Touches, asleep: Touches) -> bool:
    """Return whether a step makes a difference for another one that has not been made."""
    return any(a.wakes(b) for a in done for b in asleep)


def global_touch(op: Operation, buffer: str, index: slice | NDArray[np.int64], size: int, *, reads: bool) -> Touch:
    """An access to elements of `size` bytes of a buffer in global memory, which is no plain one."""
    if isinstance(index, slice):
        words = frozenset(range(index.start * size // _WORD, (index.stop * size - 1) // _WORD + 1))
    else:
        first = distinct(index) * size
        words = frozenset(np.concatenate([(first + at) // _WORD for at in range(0, size, _WORD)]).tolist())
    return Touch(("global memory", buffer), READ if reads else _update(op), words)


_COMMUTING = {
    **{each: each.name for each in (RMWOp.ADD, RMWOp.AND, RMWOp.OR, RMWOp.XOR, RMWOp.MAX, RMWOp.MIN)},
    **{RMWOp.FADD: "ADD", RMWOp.UMAX: "UMAX", RMWOp.UMIN: "UMIN"},
}
_BOUNDED = (DescriptorReduceKind.INC, DescriptorReduceKind.DEC)


def _update(op: Operation) -> Hashable:
    """The kind of an update: those of one kind, whose old values are not asked for, may come in any order.

    Sums of floats differ in their last bits then.
    """
    match op:
        case tt.AtomicRMWOp() if not op.result.uses:
            return _COMMUTING.get(RMWOp(op.atomic_rmw_op.value.data), UPDATE)
        case ttng.AsyncTMAReduceOp() | tt.DescriptorReduceOp():
            kind = DescriptorReduceKind(op.kind.value.data)
            return UPDATE if kind in _BOUNDED else kind.name
        case _:
            return UPDATE
