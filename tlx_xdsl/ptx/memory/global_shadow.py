"""Record of the accesses to one array in global memory: for each element its last write and two of its reads.

Elements are as wide as the narrowest access so far, at most 16 bytes. Reads of an array that nothing has written yet
are kept as they come: most arrays are never written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tlx_xdsl.numerics.arrays import Integers

from .global_memory import ALIGNMENT, Buffer

WIDEST = 16
AGENT_BITS, AGENT_SHIFT = 18, 29
"""The bits of an access: its wave, its agent there, the step of that, whether it is one of several, and its scope."""
AGENT = (1 << AGENT_BITS) - 1
SEVERAL = 8
"""The bit of a read that several warps of a CTA have made at once. Triton lets warps read what others have, too, and
one of them write it back: each has its own copy, and the order of the others' is no matter."""
_MOST_KEPT = 1 << 19
"""Reads that are kept before they are noted for each element."""

Codes: TypeAlias = "np.int64 | Integers"
"""Who makes accesses: one number, or one for each."""
Check: TypeAlias = "Callable[[Integers, Integers, str], None]"
"""Is given numbers of earlier accesses, the byte of each, and what they have done; raises Trap for a race."""


class GlobalShadow:
    """The accesses to a buffer; an access is a number above 0."""

    def __init__(self, buffer: Buffer, size: int, warps: int):
        self._warps = warps
        """Warps of a CTA."""
        self._start = buffer.start // ALIGNMENT * ALIGNMENT
        self._bytes = -(-(buffer.end - self._start) // ALIGNMENT) * ALIGNMENT
        self._offset = buffer.start - self._start
        self._size = size
        self._writes: Integers | None = None
        self._reads: tuple[Integers, Integers] | None = None
        """The last read of each element, and one by another agent before it."""
        self._sets: Integers | None = None
        self._kept: list[tuple[Integers, int, Codes]] = []
        self._kept_size = 0

    def read(self, addresses: Integers, size: int, codes: Codes, check: Check) -> None:
        """Reads of `size` bytes at each address. Raises Trap for a race with a write."""
        if self._writes is None and self._kept_size < _MOST_KEPT:
            self._kept.append((addresses, size, codes))
            self._kept_size += len(addresses)
            return
        self._note_kept()
        at = self._elements(addresses, size)
        codes = self._spread(codes, at)
        if self._writes is not None:
            self._check(self._writes, at, check, "written")
        self._note_read(at, codes)

    def write(self, addresses: Integers, size: int, codes: Codes, check: Check) -> None:
        """Writes of `size` bytes at each address. Raises Trap for a race."""
        self._note_kept()
        at = self._elements(addresses, size)
        if self._writes is None:
            self._writes = self._new()
        else:
            self._check(self._writes, at, check, "written")
        for each in self._reads or ():
            self._check(each, at, check, "read")
        codes = self._spread(codes, at)
        self._writes[at] = codes
        if isinstance(codes, np.ndarray):
            # Of several that write an element at once one is the last.
            winner = self._writes[at]
            lost = (winner ^ codes) >> AGENT_SHIFT != 0
            if lost.any():
                check(np.where(lost, winner, 0), at * self._size - self._offset, "written")

    def sets(self, addresses: Integers, size: int, *, makes: bool) -> tuple[Integers, Integers] | None:
        """The array of what was released at each element, by number, and the places of these addresses in it.

        None where nothing was, without `makes`.
        """
        if self._sets is None and not makes:
            return None
        at = self._elements(addresses, size)[:, 0]
        if self._sets is None:
            self._sets = self._new()
        return self._sets, at

    def _new(self) -> Integers:
        return np.zeros(self._bytes // self._size, np.int64)

    def _note_kept(self) -> None:
        kept, self._kept = self._kept, []
        for addresses, size, codes in kept:
            at = self._elements(addresses, size)
            self._note_read(at, self._spread(codes, at))

    def _note_read(self, at: Integers, codes: Codes) -> None:
        if self._reads is None:
            self._reads = self._new(), self._new()
        last, other = self._reads
        before = last[at]
        last[at] = codes
        # Of several that read an element at once one is the last, and another one the other.
        replaced = last[at] ^ codes
        if replaced.any():
            codes = np.broadcast_to(codes, at.shape)
            lost = replaced >> AGENT_SHIFT != 0
            near = lost & (cta_of(codes, self._warps) == cta_of(last[at], self._warps))
            other[at[lost & ~near]] = codes[lost & ~near] | SEVERAL
            last[at[near]] |= SEVERAL
        elif before.any():
            moved = (before != 0) & ((before ^ codes) >> AGENT_SHIFT != 0)
            other[at[moved]] = before[moved]

    @staticmethod
    def _spread(codes: Codes, at: Integers) -> Codes:
        return codes[:, None] if isinstance(codes, np.ndarray) else codes

    def _elements(self, addresses: Integers, size: int) -> Integers:
        """The elements of each access, as rows."""
        if (narrow := min(size, WIDEST)) < self._size:
            self._divide(narrow)
        first = (addresses - self._start) // self._size
        parts = size // self._size
        return first[:, None] if parts == 1 else first[:, None] + np.arange(parts)

    def _divide(self, size: int) -> None:
        parts, self._size = self._size // size, size
        if self._writes is not None:
            self._writes = np.repeat(self._writes, parts)
        if self._reads is not None:
            self._reads = np.repeat(self._reads[0], parts), np.repeat(self._reads[1], parts)
        if self._sets is not None:
            self._sets = np.repeat(self._sets, parts)

    def _check(self, held: Integers, at: Integers, check: Check, past: str) -> None:
        found = held[at]
        if found.any():
            check(found, at * self._size - self._offset, past)


def cta_of(codes: Integers, warps: int) -> Integers:
    """A number for the CTA of each access by a warp, where CTAs have so many."""
    return codes >> AGENT_SHIFT + AGENT_BITS << AGENT_BITS | (codes >> AGENT_SHIFT & AGENT) // warps
