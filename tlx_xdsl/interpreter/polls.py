"""Loops that poll global memory: where they look, what they find there, and what they wait for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import arith as upstream, scf
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base import Kind as AccessKind, Space, accesses_of, effects_of
from tlx_xdsl.dialects.scf import WhileOp
from tlx_xdsl.numerics.arrays import Dtype

from .global_memory import GlobalMemory
from .numbers import dtype_of

NANOSECONDS = "mov.u64 $0, %globaltimer;"
"""PTX that reads the time."""

NO_ONE = "and no one writes there any more"


def polls(loop: Operation) -> bool:
    """Return whether a loop does nothing but look at global memory, by atomic operations, too."""
    looks, limit = 0, limit_of(loop)
    for op in loop.walk():
        if limit is not None and op is limit.now:
            continue
        effects = effects_of(op)
        if op is loop or (effects.accesses == () and not effects.sync):
            continue
        accesses = accesses_of(op)
        if not accesses:
            return False
        for access in accesses:
            if access.space is not Space.GLOBAL or not (
                access.kind is AccessKind.READ or AccessKind.ATOMIC in access.kind
            ):
                return False
            looks += 1
    return looks > 0


@dataclass(frozen=True)
class Limit:
    """The time that ends a loop that polls (PTX: %globaltimer)."""

    now: Operation
    """Reads the time, in each turn."""
    begin: SSAValue
    """The time at which the loop has begun."""
    length: SSAValue
    """The nanoseconds that it may go on."""


def limit_of(loop: Operation) -> Limit | None:
    """Return the limit of a loop that goes on while a comparison holds, and `now - begin` is at most a number."""
    end = loop.regions[0].blocks[0].last_op if isinstance(loop, scf.WhileOp | WhileOp) else None
    both = end.operands[0].owner if isinstance(end, scf.ConditionOp) else None
    in_time = both.operands[1].owner if isinstance(both, upstream.AndIOp) else None
    if not isinstance(in_time, arith.CmpiOp) or in_time.predicate_name != "sle":
        return None
    spent = in_time.lhs.owner
    now = spent.lhs.owner if isinstance(spent, upstream.SubiOp) else None
    if not isinstance(spent, upstream.SubiOp) or not isinstance(now, tt.ElementwiseInlineAsmOp):
        return None
    is_timer = now.asm_string.data == NANOSECONDS and now.parent_op() is loop
    return Limit(now, spent.rhs, in_time.rhs) if is_timer else None


def element_at(memory: GlobalMemory, address: int, dtype: Dtype) -> tuple[int, str, Any] | None:
    """Return the number of the element at an address, the name of its array, and what it holds; None in no array."""
    buffer = memory.find(address)
    if buffer is None:
        return None
    first = address - buffer.start
    held = buffer.bytes[first : first + dtype.itemsize].view(dtype)
    return first // dtype.itemsize, buffer.name, held[0]


def element_text(memory: GlobalMemory, address: int, dtype: Dtype) -> str:
    """Return which element of which array is at an address, and what it holds: `element 0 of 'flags' is 2`."""
    if (found := element_at(memory, address, dtype)) is None:
        return "what it looks at is in no array"
    number, name, held = found
    return f"element {number} of '{name}' is {held}"


@dataclass(frozen=True)
class Poll:
    """The element that a loop looks at, and the comparison that ends it."""

    pointer: int
    """Slot of its address."""
    dtype: Dtype
    wanted: str
    bound: int
    """Slot of what it is compared with."""
    limit: tuple[int, int] | None = None
    """Slots of the time at which it has begun, and of the nanoseconds that it may go on, where it has a limit."""

    def address(self, frame: Sequence[Any]) -> int | None:
        """The address by the values of a task, whose threads must not differ about it."""
        pointer = frame[self.pointer]
        return int(pointer) if np.ndim(pointer) == 0 else None

    def ends(self, frame: Sequence[Any]) -> int | None:
        """The last nanosecond in which it goes on, by %globaltimer; None where it has no limit."""
        return None if self.limit is None else sum(int(frame[slot]) for slot in self.limit)

    def reason(self, memory: GlobalMemory, frame: Sequence[Any]) -> str:
        """Return what a task with these values waits for."""
        text, address, bound = f"polls global memory in a loop, {NO_ONE}", self.address(frame), frame[self.bound]
        if address is None or np.ndim(bound):
            return text
        return f"{text}: {element_text(memory, address, self.dtype)}, and it waits for {self.wanted} {bound}"


def poll_of(loop: scf.WhileOp | WhileOp, slot: Callable[[SSAValue], int]) -> Poll | None:
    """Return what a loop waits for, where its condition is one comparison of one number that it looks at."""
    end = loop.before_region.block.last_op
    compared = end.operands[0].owner if isinstance(end, scf.ConditionOp) else None
    limit = limit_of(loop)
    if limit is not None and isinstance(compared, upstream.AndIOp):
        compared = compared.lhs.owner
    if not isinstance(compared, arith.CmpiOp):
        return None
    slots = None if limit is None else (slot(limit.begin), slot(limit.length))
    wanted = _WANTED[compared.predicate_name.lstrip("su")]
    for found, other, text in ((compared.lhs, compared.rhs, wanted[0]), (compared.rhs, compared.lhs, wanted[1])):
        while isinstance(owner := found.owner, upstream.ExtSIOp | upstream.ExtUIOp):
            found = owner.input
        looks = accesses_of(owner) if isinstance(owner, Operation) else ()
        if looks and looks[0].space is Space.GLOBAL:
            return Poll(slot(looks[0].value), dtype_of(found.type), text, slot(other), slots)
    return None


_WANTED = {
    "eq": ("another value than",) * 2, "ne": ("the value",) * 2,
    "lt": ("at least", "at most"), "le": ("more than", "less than"),
    "gt": ("at most", "at least"), "ge": ("less than", "more than"),
}  # fmt: skip
"""What ends a loop that goes on while a comparison holds, of its left side and of its right one."""
