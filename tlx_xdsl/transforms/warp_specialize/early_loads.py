"""Loads that a producer may issue ahead: nothing that comes before them in the program may decide what they read.

A producer is ahead of the consumers by as many blocks as its rings have slots, and it does not wait for what the
consumers do in between. So nothing in the kernel may write what it reads, and nothing before a load, or around it in
a loop, may wait for another program to write it. Memory of different arguments is taken not to overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import Kind, Sync, accesses_of, effects_of, enclosing
from tlx_xdsl.dialects.scf import LOOPS

from .origins import origins_of
from .refusal import WarpSpecializeRefusal, refusal_at
from .slices import Slice, writes_memory


def check_early(function: tt.FuncOp, loads: Sequence[Operation]) -> None:
    """Check that a producer may do `loads` ahead of the rest of a kernel.

    Raises WarpSpecializeRefusal, located at what stands in the way.
    """
    read: set[SSAValue] = set()
    for op in Slice(loads).ops:
        for access in accesses_of(op) or ():
            origins = origins_of(access.value)
            if origins is None:
                raise refusal_at(op, "what it reads can't be traced to an argument of the kernel")
            read |= origins
    for op in function.body.walk():
        if writes_memory(op):
            _check_access(op, read)
    for op in _before(function, loads):
        if _may_wait(op):
            raise refusal_at(op, "it may wait for another program, and a producer would have loaded before")


def may_come_early(function: tt.FuncOp, load: Operation) -> bool:
    """Return whether a producer may do a load ahead of the rest of a kernel."""
    try:
        check_early(function, [load])
    except WarpSpecializeRefusal:
        return False
    return True


def _check_access(op: Operation, read: set[SSAValue]) -> None:
    accesses = accesses_of(op)
    if accesses is None:
        raise refusal_at(op, f"'{op.name}' may write what a producer would have loaded before")
    for access in accesses:
        if access.kind is Kind.READ:
            continue
        written = origins_of(access.value)
        if written is None or written & read:
            raise refusal_at(op, "it may write what a producer would have loaded before")


def _before(function: tt.FuncOp, loads: Sequence[Operation]) -> Iterator[Operation]:
    """The operations that may be done before one of the loads: earlier in the program, or in a loop around it."""
    ops = list(function.body.walk())
    last = max(number for number, op in enumerate(ops) if op in loads)
    loops = {loop for load in loads if (loop := _outermost_loop(load)) is not None}
    for number, op in enumerate(ops):
        if number < last or _outermost_loop(op) in loops:
            yield op


def _outermost_loop(op: Operation) -> Operation | None:
    found: Operation | None = None
    while (loop := enclosing(op.parent_op(), *LOOPS)) is not None:
        found = op = loop
    return found


def _may_wait(op: Operation) -> bool:
    """True if an operation may see that another program has written something, and the kernel acts on it."""
    if isinstance(op, tt.GridDependencyWaitOp):
        return not isinstance(op.parent_op(), tt.FuncOp)
    sync = effects_of(op).sync
    if Sync.ACQUIRE in sync:
        return not op.results or any(result.first_use for result in op.results)
    return isinstance(op, tt.LoadOp) and bool(sync)
