"""Synchronisation that may order the writes of programs: a lock, a flag or a counter in global memory.

A write that is followed by a release is ordered before one that an acquire precedes, where the two meet at one address.
Whether they do depends on what programs read; `tlx check` runs that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile

from xdsl.dialects import scf
from xdsl.ir import Operation

from tlx_xdsl.dialects.base import Kind, Space, Sync, accesses_of, sync_of
from tlx_xdsl.dialects.scf import WhileOp

_LOOPS = (scf.WhileOp, WhileOp)


def ordering(first: Operation, second: Operation) -> tuple[Operation, Operation] | None:
    """A release after one of two writes, and an acquire before the other, in all programs that get so far."""
    for one, other in ((first, second), (second, first)):
        release, acquire = _found(_after(one), Sync.RELEASE), _found(_before(other), Sync.ACQUIRE)
        if release is not None and acquire is not None:
            return release, acquire
    return None


def _found(ops: Iterable[Operation], sync: Sync) -> Operation | None:
    return next((each for op in ops for each in _run(op) if sync in sync_of(each) and _is_of_memory(each)), None)


def _is_of_memory(op: Operation) -> bool:
    """Return whether it orders by way of global memory: an atomic operation there, or a fence."""
    return Sync.FENCE in sync_of(op) or any(
        access.space is Space.GLOBAL and Kind.ATOMIC in access.kind for access in accesses_of(op) or ()
    )


def _run(op: Operation) -> Iterator[Operation]:
    """An operation, and those in it that run if it does: the condition of a loop."""
    yield op
    if isinstance(op, _LOOPS):
        yield from op.regions[0].block.ops


def _after(op: Operation) -> Iterator[Operation]:
    return _around(op, lambda block, here: block[block.index(here) + 1 :])


def _before(op: Operation) -> Iterator[Operation]:
    return _around(op, lambda block, here: reversed(list(takewhile(lambda each: each is not here, block))))


def _around(op: Operation, part: Callable[[list[Operation], Operation], Iterable[Operation]]) -> Iterator[Operation]:
    here: Operation | None = op
    while here is not None and (block := here.parent_block()) is not None:
        yield from part(list(block.ops), here)
        here = block.parent_op()
