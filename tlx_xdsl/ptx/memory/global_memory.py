"""Global memory: the caller's arrays at made-up addresses, with gaps between them, and the variables of the module."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Array, Bytes, Integers

from .surroundings import Trap

FIRST = 1 << 24
"""The lowest address that is used; below it are null and its neighbours."""
ALIGNMENT = 256
"""Bytes that buffers are aligned to (as by cudaMalloc)."""
GAP = 1 << 16
"""Bytes between two buffers that belong to neither."""


@dataclass(slots=True)
class Buffer:
    """A range of addresses."""

    name: str
    start: int
    bytes: Bytes
    views: dict[tuple[int, int], Array] = field(default_factory=dict[tuple[int, int], Array])

    @property
    def end(self) -> int:
        """The address after it."""
        return self.start + len(self.bytes)

    def rows(self, item: int, count: int) -> Array:
        """View all as rows of `count` elements of `item` bytes; what is too little for a row is left out."""
        found = self.views.get((item, count))
        if found is None:
            size = item * count
            whole = self.bytes[: len(self.bytes) // size * size].view(f"u{item}")
            found = self.views[item, count] = whole.reshape(-1, count) if count > 1 else whole
        return found


class GlobalMemory:
    """The arrays that a kernel may reach."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self._starts: list[int] = []
        self._next = FIRST

    def add(self, name: str, data: Bytes, *, skew: int = 0, written: Bytes | None = None) -> int:
        """Give bytes an address, `skew` past a multiple of the alignment; they are written in place."""
        start = self._next + skew
        self.add_at(name, data, start)
        self._next = -(-(start + len(data) + GAP) // ALIGNMENT) * ALIGNMENT
        return start

    def add_at(self, name: str, data: Bytes, start: int) -> None:
        """Put bytes at an address."""
        at = bisect_right(self._starts, start)
        self._starts.insert(at, start)
        self.buffers.insert(at, Buffer(name, start, data))

    def find(self, address: int) -> Buffer | None:
        """The buffer that has a byte."""
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address >= self.buffers[at].end:
            return None
        return self.buffers[at]

    def groups(self, addresses: NDArray[np.uint64], size: int, what: str) -> list[tuple[Buffer, Any]]:
        """The buffers of accesses of `size` bytes, each with the accesses that are its own.

        Raises Trap for an access that is misaligned, or in no buffer.
        """
        low, high = int(addresses.min()), int(addresses.max())
        if size > 1 and int(np.bitwise_or.reduce(addresses)) & (size - 1):
            wrong = int(addresses[(addresses & np.uint64(size - 1)) != 0][0])
            raise Trap(
                f"misaligned {what}: the address {wrong:#x}{self._near(wrong)} is {wrong % size} past a multiple of "
                f"{size}"
            )
        buffer = self.find(low)
        if buffer is not None and high + size <= buffer.end:
            return [(buffer, slice(None))]
        found: list[tuple[Buffer, Any]] = []
        left = np.ones(len(addresses), np.bool_)
        while left.any():
            address = int(addresses[left].min())
            buffer = self.find(address)
            if buffer is None:
                raise self._outside(address, size, what)
            inside = left & (addresses < np.uint64(buffer.end))
            if (last := int(addresses[inside].max())) + size > buffer.end:
                raise self._outside(last, size, what)
            found.append((buffer, inside))
            left &= ~inside
        return found

    def load(self, addresses: NDArray[np.uint64], item: int, count: int) -> Array:
        """Rows of `count` elements of `item` bytes.

        Raises Trap for addresses that are in no array, or misaligned.
        """
        shape = (len(addresses), count) if count > 1 else (len(addresses),)
        if not len(addresses):
            return np.zeros(shape, f"u{item}")
        size = item * count
        result: Array | None = None
        for buffer, chosen in self.groups(addresses, size, "load"):
            places = (addresses[chosen] - np.uint64(buffer.start)).astype(np.int64)
            if buffer.start % size:
                raw = buffer.bytes[places[:, None] + np.arange(size)]
                rows = np.ascontiguousarray(raw).view(f"u{item}").reshape(-1, *shape[1:])
            else:
                whole = buffer.rows(item, count)
                rows = whole[places // size]
            if isinstance(chosen, slice):
                return rows
            if result is None:
                result = np.zeros(shape, f"u{item}")
            result[chosen] = rows
        assert result is not None
        return result

    def store(self, addresses: NDArray[np.uint64], values: Array, item: int, count: int) -> None:
        """Write rows of `count` elements of `item` bytes.

        Raises Trap for addresses that are in no array, or misaligned.
        """
        if not len(addresses):
            return
        size = item * count
        for buffer, chosen in self.groups(addresses, size, "store"):
            places = (addresses[chosen] - np.uint64(buffer.start)).astype(np.int64)
            if buffer.start % size:
                raw = np.ascontiguousarray(values[chosen]).view(np.uint8).reshape(-1, size)
                buffer.bytes[places[:, None] + np.arange(size)] = raw
            else:
                buffer.rows(item, count)[places // size] = values[chosen]

    def gather(self, addresses: Integers, what: str) -> Bytes:
        """Single bytes, at addresses of any shape."""
        buffer = self._one(addresses, what)
        return buffer.bytes[addresses - buffer.start]

    def scatter(self, addresses: Integers, values: Bytes, what: str) -> None:
        """Write single bytes, at addresses of any shape."""
        buffer = self._one(addresses, what)
        buffer.bytes[addresses - buffer.start] = values

    def _one(self, addresses: Integers, what: str) -> Buffer:
        low, high = int(addresses.min()), int(addresses.max())
        buffer = self.find(low)
        if buffer is None:
            raise self._outside(low, 1, what)
        if high >= buffer.end:
            raise self._outside(high, 1, what)
        return buffer

    def bytes_at(self, address: int, size: int, what: str) -> Bytes:
        """The bytes from an address on, which may be written.

        Raises Trap where they are not all in one array.
        """
        buffer = self.find(address)
        if buffer is None or address + size > buffer.end:
            raise self._outside(address, size, what)
        return buffer.bytes[address - buffer.start : address - buffer.start + size]

    def _near(self, address: int) -> str:
        buffer = self.find(address)
        return "" if buffer is None else f" in '{buffer.name}'"

    def _outside(self, address: int, size: int, what: str) -> Trap:
        at = bisect_right(self._starts, address + GAP // 2) - 1
        if at < 0 or address - self.buffers[at].end > 1 << 40:
            return Trap(f"{what} out of bounds at address {address:#x}, where there is no array")
        buffer = self.buffers[at]
        if address < buffer.start:
            where = f"{buffer.start - address} bytes before '{buffer.name}'"
        else:
            where = f"byte {address - buffer.start} of '{buffer.name}'"
        return Trap(f"{what} out of bounds: {size} bytes at {where}, which has {len(buffer.bytes)}")
