"""Accesses of one task's threads to global memory: here an operation runs as a whole, on a GPU by many threads.

Threads of a thread block are in no order until they meet: at `tl.debug_barrier`, or where compiled code has them meet
because values change hands (a reduction, shared memory, a number from an atomic operation). So after

    tl.store(p + i, x)
    y = tl.load(p + 127 - i)

a thread reads what another one need not have written yet. Which thread has which element is up to the compiler. Two
operations are sure to have the same thread at an address only where it is the same element of tensors of one shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from tlx_xdsl.analysis.ways import BODIES, ways
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import Sync, accesses_of, as_tensor, enclosing, stays_in_threads, sync_of
from tlx_xdsl.numerics.arrays import Integers

_KEPT = 1 << 12
"""Answers that are kept, with the modules that they are about."""


@lru_cache(maxsize=_KEPT)
def may_be_unordered(first: Operation, second: Operation) -> bool:
    """Return whether there is a way from `first` to `second` on which the threads of a task need not meet.

    Only ways through loops and branches of structured control flow are looked at, those with the fewest turns.
    """
    return any(not any(map(_meets, way)) for way in ways(first, second))


@lru_cache(maxsize=_KEPT)
def conflicts(op: Operation) -> bool:
    """Return whether an operation, or the same one later, may come after `op` unordered, and one of the two writes."""
    if (function := enclosing(op, tt.FuncOp)) is None:
        return False
    writes = isinstance(op, tt.StoreOp)
    others = [
        each for each in function.walk() if isinstance(each, tt.StoreOp) or (writes and isinstance(each, tt.LoadOp))
    ]
    return any(may_be_unordered(op, other) or may_be_unordered(other, op) for other in others)


def _meets(op: Operation) -> bool:
    """Return whether the threads may have to meet in `op`: it brings an order, or moves values between them."""
    if isinstance(op, BODIES):
        return any(_meets(each) for each in op.walk() if each is not op and not isinstance(each, BODIES))
    if op.has_trait(IsTerminator):
        return False
    if sync_of(op) & ~Sync.ORDERED or accesses_of(op) is None:
        return True
    if any(as_tensor(value.type) is not None for value in (*op.operands, *op.results)):
        return not stays_in_threads(op)
    return bool(sync_of(op) or accesses_of(op)) and not isinstance(op, tt.LoadOp | tt.StoreOp)


@dataclass(slots=True)
class Places:
    """Last accesses to each element of an array: the place in a tensor of the thread's element, from 1; 0 is none."""

    written: Integers | None = None
    read: Integers | None = None
    """Since the last write."""

    def conflicts(
        self, index: slice | Integers, places: Integers, *, reads_only: bool
    ) -> Iterator[tuple[str, Integers]]:
        """Yield which of some elements were accessed before as others of a tensor, and how: `written` or `read`."""
        for past, held in (("written", self.written), ("read", None if reads_only else self.read)):
            if held is not None:
                found = held[index]
                different = np.flatnonzero((found != places) & (found != 0))
                if len(different):
                    yield past, different

    def keep(self, index: slice | Integers, places: Integers | None, count: int, *, reads_only: bool) -> None:
        """Note an access to elements of an array of `count`; without `places` it is not one of single threads."""
        if reads_only:
            if places is not None:
                self.read = np.zeros(count, np.int64) if self.read is None else self.read
                self.read[index] = places
            return
        if places is not None and self.written is None:
            self.written = np.zeros(count, np.int64)
        if self.written is not None:
            self.written[index] = 0 if places is None else places
        if self.read is not None:
            self.read[index] = 0


def place_key(shape: Sequence[int], shapes: dict[tuple[int, ...], int]) -> int:
    """Return the base of the keys for elements of tensors of a shape, in 64 bits; `shapes` has the shapes so far."""
    return shapes.setdefault(tuple(shape), len(shapes)) << 40
