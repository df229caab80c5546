"""Global memory: the caller's arrays at made-up addresses, with gaps between them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.numerics.arrays import Array, Bytes, Dtype, Integers, poison

from .clocks import Clock
from .faults import Fault, OutOfBounds, fault_at
from .peers import out_of_world
from .races import Actor
from .uninitialized import UninitializedReads

FIRST = 1 << 20
"""The lowest address that is used; below it are null and its neighbours."""
ALIGNMENT = 256
"""Bytes that buffers are aligned to (as by cudaMalloc)."""
GAP = 1 << 16
"""Bytes between two buffers that belong to neither, so that an index that runs off its buffer is found."""


READING = ("load", "reduction")
"""How the verbs of operations end that read."""


@dataclass(slots=True)
class Buffer:
    """A range of addresses."""

    name: str
    start: int
    bytes: Bytes
    written: Bytes | None = None
    """1 for each byte that has been written, where the array was declared uninitialized."""

    @property
    def end(self) -> int:
        """The address after it."""
        return self.start + len(self.bytes)


@dataclass(slots=True)
class Changes:
    """Number of writes to memory so far; those that are known to have changed nothing do not count."""

    count: int = 0
    listener: Callable[[Buffer, Integers], None] | None = None
    """Called with the bytes of a buffer that are about to be written."""


class GlobalMemory:
    """The arrays that a kernel may reach by pointers and descriptors."""

    def __init__(self) -> None:
        self._buffers: list[Buffer] = []
        self._starts: list[int] = []
        self._next = FIRST
        self.changes = Changes()
        self.uninitialized = UninitializedReads()
        self.outside: set[Operation] = set()
        """Copies of blocks wholly outside of their tensors, which were warned of."""
        self.exclusive: AbstractContextManager[Any] = nullcontext()
        """Held while an atomic operation reads and writes: other processes may run programs on the same memory."""

    def add(
        self,
        name: str,
        data: Bytes,
        skew: int = 0,
        alignment: int = ALIGNMENT,
        written: Bytes | None = None,
    ) -> int:
        """Give the flat bytes `data` an address, `skew` bytes past an aligned one; writes go to them."""
        start = -(-self._next // alignment) * alignment + skew
        self._buffers.append(Buffer(name, start, data, written))
        self._starts.append(start)
        self._next = -(-(start + len(data) + GAP) // ALIGNMENT) * ALIGNMENT
        return start

    def add_at(self, name: str, data: Bytes, start: int) -> None:
        """Give the flat bytes `data` the address `start`, above all that were given before."""
        assert start >= self._next, "addresses rise"
        self._buffers.append(Buffer(name, start, data))
        self._starts.append(start)
        self._next = start + len(data)

    def forget(self, count: int) -> None:
        """Drop all buffers after the first `count`."""
        del self._buffers[count:], self._starts[count:]

    def __iter__(self) -> Iterator[Buffer]:
        """Iterate over the buffers."""
        return iter(self._buffers)

    def __len__(self) -> int:
        """Count the buffers."""
        return len(self._buffers)

    def find(self, address: int) -> Buffer | None:
        """The buffer that holds the byte at `address`."""
        at = bisect_right(self._starts, address) - 1
        return self._buffers[at] if at >= 0 and address < self._buffers[at].end else None

    def load(self, op: Operation, addresses: Array, dtype: Dtype, mask: Array | None, other: Array) -> Array:
        """The elements at `addresses`, and `other` where `mask` is false.

        Raises Fault for an address outside of all buffers, or one that is not aligned.
        """
        if mask is None:
            return self._loaded(op, addresses, dtype)
        result = np.array(np.broadcast_to(other, np.shape(addresses)), dtype)
        chosen = np.broadcast_to(mask, result.shape)
        if chosen.any():
            result[chosen] = self._loaded(op, np.asarray(addresses)[chosen], dtype)
        return result

    def _loaded(self, op: Operation, addresses: Array, dtype: Dtype) -> Array:
        buffer, index = self._reach(op, addresses, dtype, "load")
        if buffer is not None:
            return buffer.bytes[: len(buffer.bytes) // dtype.itemsize * dtype.itemsize].view(dtype)[index]
        return self._scattered(op, np.asarray(addresses), dtype)

    def store(self, op: Operation, addresses: Array, values: Array, dtype: Dtype, mask: Array | None) -> None:
        """Write `values` where `mask` holds.

        Raises Fault as `load` does.
        """
        if mask is not None:
            chosen = np.broadcast_to(mask, np.shape(addresses))
            if not chosen.any():
                return
            addresses = np.asarray(addresses)[chosen]
            values = np.broadcast_to(values, chosen.shape)[chosen]
        self.changes.count += 1
        buffer, index = self._reach(op, addresses, dtype, "store")
        if buffer is not None:
            if self.changes.listener is not None:
                self.changes.listener(buffer, _bytes_of(index, dtype.itemsize))
            buffer.bytes[: len(buffer.bytes) // dtype.itemsize * dtype.itemsize].view(dtype)[index] = values
            return
        flat = np.ravel(addresses)
        for address, value in zip(flat.tolist(), np.broadcast_to(values, np.shape(addresses)).ravel(), strict=True):
            held, place = self._reach(op, np.array(address), dtype, "store")
            assert held is not None
            if self.changes.listener is not None:
                self.changes.listener(held, _bytes_of(place, dtype.itemsize))
            held.bytes[: len(held.bytes) // dtype.itemsize * dtype.itemsize].view(dtype)[place] = value

    def bytes_at(self, op: Operation, address: int, size: int, verb: str) -> Bytes:
        """The `size` bytes from `address` on.

        Raises Fault when a buffer does not hold them all.
        """
        buffer, found = self._span(op, address, size, verb)
        if self._notes(buffer, verb):
            first = address - buffer.start
            self._note_bytes(op, buffer, np.arange(first, first + size), verb)
        return found

    def read_descriptor(self, op: Operation, address: int, size: int) -> None:
        """Note that a copy reads the descriptor of its tensor there: nothing to do for a memory without order."""

    def strided(
        self, op: Operation, address: int, counts: list[int], strides: list[int], dtype: Dtype, verb: str
    ) -> Array:
        """The elements of a block from `address` on, `strides` bytes apart.

        Raises Fault when a buffer does not hold them all.
        """
        last = sum((count - 1) * stride for count, stride in zip(counts, strides, strict=True))
        buffer, data = self._span(op, address, last + dtype.itemsize, verb)
        if self._notes(buffer, verb):
            self._note_bytes(op, buffer, offsets_of(address - buffer.start, counts, strides, dtype.itemsize), verb)
        return np.ndarray(counts, dtype, data, strides=strides)

    def changed(self, op: Operation, address: int) -> None:
        """Note that an atomic operation has changed a number: nothing to do for a memory without order."""

    def issued(self, actor: Actor, clock: Clock) -> GlobalMemory:
        """The memory as an asynchronous operation sees it that is issued by who knows `clock`."""
        return self

    def _span(self, op: Operation, address: int, size: int, verb: str) -> tuple[Buffer, Bytes]:
        """The buffer that holds the `size` bytes from `address` on, and those bytes."""
        buffer = self.find(address)
        if buffer is None or address + size > buffer.end:
            raise self._outside(op, address, size, verb, "")
        if not verb.endswith("load"):
            self.changes.count += 1
        return buffer, buffer.bytes[address - buffer.start : address - buffer.start + size]

    def _notes(self, buffer: Buffer, verb: str) -> bool:
        """Return whether it matters which bytes of a buffer are reached."""
        return buffer.written is not None or (self.changes.listener is not None and not verb.endswith("load"))

    def _note_bytes(self, op: Operation, buffer: Buffer, offsets: Integers, verb: str) -> None:
        if buffer.written is not None:
            self._touch(op, buffer, offsets, 1, verb)
        if self.changes.listener is not None and not verb.endswith("load"):
            self.changes.listener(buffer, offsets)

    def _touch(self, op: Operation, buffer: Buffer, index: Array | np.int64, size: int, verb: str) -> None:
        """Note which elements of `size` bytes are written of a buffer that was uninitialized, and check those read."""
        assert buffer.written is not None
        held = buffer.written[: len(buffer.written) // size * size].reshape(-1, size)
        flat = np.ravel(index)
        if verb.endswith(READING):
            self.uninitialized.read.add(buffer.name)
        if verb.endswith(READING) and not (found := held[flat]).all():
            first = int(flat[np.flatnonzero(~found.all(1))[0]]) * size
            self.uninitialized.check(op, buffer.name, found, first)
        if not verb.endswith("load"):
            self.uninitialized.writers[buffer.name] = op
            held[flat] = 1

    def _reach(
        self, op: Operation, addresses: Array, dtype: Dtype, verb: str
    ) -> tuple[Buffer | None, Integers | np.int64]:
        """The buffer that holds all elements, and their indices in it; None where they are in several."""
        size = dtype.itemsize
        # Reducing one number takes as long as all else here.
        one = np.ndim(addresses) == 0
        low, high = (int(addresses),) * 2 if one else (int(np.min(addresses)), int(np.max(addresses)))
        buffer = self.find(low)
        if buffer is None or high + size > buffer.end:
            self._check(op, addresses, size, verb)
            return None, np.zeros(0, np.int64)
        if one and (low - buffer.start) % size == 0:
            place = np.int64((low - buffer.start) // size)
            if buffer.written is not None:
                self._touch(op, buffer, place, size, verb)
            return buffer, place
        relative = addresses - np.int64(buffer.start)
        if size > 1 and (wrong := relative % size).any():
            at = np.argwhere(np.atleast_1d(wrong))[0]
            raise fault_at(
                op,
                f"misaligned {verb}: the address of element {at.tolist()} is {int(np.atleast_1d(wrong)[tuple(at)])} "
                f"bytes past a multiple of {size} in '{buffer.name}'",
            )
        if buffer.written is not None:
            self._touch(op, buffer, relative // size, size, verb)
        return buffer, relative // size

    def _check(self, op: Operation, addresses: Array, size: int, verb: str) -> None:
        array = np.asarray(addresses)
        inside = np.zeros(array.shape, np.bool_)
        for buffer in self._buffers:
            inside |= (array >= buffer.start) & (array + size <= buffer.end)
        if not inside.all():
            index = tuple(int(i) for i in np.argwhere(~inside)[0]) if array.ndim else ()
            count = (
                f", {int((~inside).sum())} of {array.size} elements, element {list(index)} first" if array.ndim else ""
            )
            raise self._outside(op, int(array[index]), size, verb, count)

    def _outside(self, op: Operation, address: int, size: int, verb: str, count: str) -> Fault:
        at = bisect_right(self._starts, address + GAP // 2) - 1
        if at < 0:
            where = f"at address {address:#x}, where there is no array"
            return _out_of_bounds(op, f"{verb} out of bounds {where}{count}{out_of_world(op)}")
        buffer = self._buffers[at]
        if address < buffer.start:
            where = f"{buffer.start - address} bytes before '{buffer.name}'"
        else:
            where = f"byte {address - buffer.start} of '{buffer.name}'"
        said = f"{len(buffer.bytes)}{count}{out_of_world(op)}"
        return _out_of_bounds(op, f"{verb} out of bounds: {size} bytes at {where}, which has {said}")

    def _scattered(self, op: Operation, addresses: Array, dtype: Dtype) -> Array:
        result = poison(addresses.shape, dtype)
        for buffer in self._buffers:
            inside = (addresses >= buffer.start) & (addresses < buffer.end)
            if inside.any():
                _, index = self._reach(op, addresses[inside], dtype, "load")
                count = len(buffer.bytes) // dtype.itemsize * dtype.itemsize
                result[inside] = buffer.bytes[:count].view(dtype)[index]
        return result


def _out_of_bounds(op: Operation, message: str) -> Fault:
    fault = fault_at(op, message, (), OutOfBounds)
    assert isinstance(fault, OutOfBounds)
    fault.op = op
    return fault


def _bytes_of(index: Integers | np.int64, size: int) -> Integers:
    """The bytes of elements of `size` bytes, by their numbers."""
    return offsets_of(0, [], [], size) + np.ravel(index)[:, None] * size


def offsets_of(first: int, counts: list[int], strides: list[int], size: int) -> Integers:
    """The bytes of a block of elements that begins at the byte `first`, `strides` bytes apart; `size` of each."""
    offsets = np.asarray(np.int64(first))
    for count, stride in zip(counts, strides, strict=True):
        offsets = np.add.outer(offsets, np.arange(count, dtype=np.int64) * stride)
    return np.ravel(np.add.outer(offsets, np.arange(size, dtype=np.int64)) if size > 1 else offsets)
