"""Where buffers lie in one piece of memory: two that are live at the same time never share a byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64
"""Bytes to a multiple of which every buffer begins: a line of the cache, and the widest vector."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A buffer, and when it is needed."""

    size: int
    """Bytes."""
    first: int
    """The first moment at which it is needed."""
    last: int
    """The last one."""

    def meets(self, other: Lifetime) -> bool:
        """Return whether both are needed at some moment."""
        return self.first <= other.last and other.first <= self.last


def aligned(size: int) -> int:
    """The next multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def pack(lifetimes: Sequence[Lifetime]) -> tuple[list[int], int]:
    """An offset for each buffer, and the bytes of all together.

    The largest is placed first, each at the lowest offset that is free during its life.
    """
    offsets = [0] * len(lifetimes)
    placed: list[int] = []
    order = sorted(range(len(lifetimes)), key=lambda number: (-lifetimes[number].size, lifetimes[number].first))
    for number in order:
        new = lifetimes[number]
        if not new.size:
            continue
        at, size = 0, aligned(new.size)
        taken = sorted(
            (offsets[other], offsets[other] + aligned(lifetimes[other].size))
            for other in placed
            if new.meets(lifetimes[other])
        )
        for begin, end in taken:
            if begin - at >= size:
                break
            at = max(at, end)
        offsets[number] = at
        placed.append(number)
    total = max((offsets[number] + aligned(lifetimes[number].size) for number in placed), default=0)
    return offsets, total
