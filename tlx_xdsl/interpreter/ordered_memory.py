"""Global memory as one task sees it: each access is noted, for the order of all (`global_order.py`)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt
from tlx_xdsl.numerics.arrays import Array, Bytes, Dtype, Integers

from .clocks import Clock
from .faults import fault_at
from .global_access import Strength, strength_of
from .global_memory import ALIGNMENT, GlobalMemory, offsets_of
from .global_order import GlobalOrder
from .grid import Program
from .races import Actor
from .within_task import conflicts


class Viewer(Protocol):
    """A task, as the order of its accesses needs it."""

    agent: int
    clock: Clock

    @property
    def label(self) -> str:
        """Return the task's name in reports."""
        ...

    @property
    def program(self) -> Program:
        """The program whose task it is."""
        ...


class OrderedMemory(GlobalMemory):
    """Global memory as one task sees it, or one asynchronous operation: each access is noted."""

    def __init__(self, memory: GlobalMemory, order: GlobalOrder, task: Viewer, issued: Actor | None = None):
        super().__init__()
        self.exclusive, self.changes, self.uninitialized = memory.exclusive, memory.changes, memory.uninitialized
        self._buffers, self._starts = memory._buffers, memory._starts  # pyright: ignore[reportPrivateUsage]
        self._order = order
        self._memory, self._task, self._issued = memory, task, issued
        self.program = task.program
        self.clock = task.clock
        self.issue = None if issued is None else (task.agent, task.clock.seen.get(task.agent, 1))

    def actor(self, op: Operation) -> Actor:
        """The agent and step of an access that is made now."""
        if self._issued is not None:
            return self._issued
        agent = self._task.agent
        return Actor(agent, self.clock.seen.setdefault(agent, 1), op, self._task.label)

    def issued(self, actor: Actor, clock: Clock) -> GlobalMemory:
        """The same for an asynchronous operation, whose accesses may happen at any time from now on."""
        found = OrderedMemory(self._memory, self._order, self._task, actor)
        found.clock = clock.copy()
        found.clock.seen[actor.agent] = actor.step
        # What the task does from now on is not ordered before it.
        seen, agent = self._task.clock.seen, self._task.agent
        seen[agent] = seen.get(agent, 1) + 1
        return found

    def add(
        self,
        name: str,
        data: Bytes,
        skew: int = 0,
        alignment: int = ALIGNMENT,
        written: Bytes | None = None,
    ) -> int:
        """Add as `GlobalMemory.add` does, for all tasks."""
        return self._memory.add(name, data, skew, alignment, written)

    def load(self, op: Operation, addresses: Array, dtype: Dtype, mask: Array | None, other: Array) -> Array:
        """Load as `GlobalMemory.load` does; raises Fault for a race, too."""
        result = super().load(op, addresses, dtype, mask, other)
        chosen = _chosen(addresses, mask)
        self._note(op, np.ravel(addresses)[chosen], dtype.itemsize, "read", self._places(op, addresses, chosen))
        return result

    def store(self, op: Operation, addresses: Array, values: Array, dtype: Dtype, mask: Array | None) -> None:
        """Store as `GlobalMemory.store` does; raises Fault for a race, too."""
        super().store(op, addresses, values, dtype, mask)
        chosen = _chosen(addresses, mask)
        reached = np.ravel(addresses)[chosen]
        if len(reached) > 1 and strength_of(op) is Strength.WEAK:
            self._check_once(op, addresses, values, dtype, chosen)
        self._note(op, reached, dtype.itemsize, "write", self._places(op, addresses, chosen))

    def _check_once(
        self, op: Operation, addresses: Array, values: Array, dtype: Dtype, chosen: slice | Integers
    ) -> None:
        """Check that what was stored is there: not where two elements of one store have one address.

        Raises Fault for those with different values.
        """
        reached = np.ravel(addresses)[chosen]
        given = np.ascontiguousarray(np.broadcast_to(values, np.shape(addresses)).astype(dtype, copy=False)).ravel()[
            chosen
        ]
        held = np.ascontiguousarray(self._loaded_again(op, reached, dtype))
        bits = np.dtype(f"V{dtype.itemsize}") if dtype.itemsize not in (1, 2, 4, 8) else np.dtype(f"u{dtype.itemsize}")
        lost = np.flatnonzero(given.view(bits) != held.view(bits))
        if not len(lost):
            return
        first = int(lost[0])
        second = int(np.flatnonzero(reached == reached[first])[-1])
        buffer = self.find(int(reached[first]))
        assert buffer is not None
        numbers = np.arange(np.size(addresses))[chosen]
        elements = [_place(int(numbers[at]), np.shape(addresses)) for at in (first, second)]
        byte = int(reached[first]) - buffer.start
        raise fault_at(
            op,
            f"'{buffer.name}' in global memory is written twice at byte {byte} by one store: "
            f"its elements {elements[0]} and {elements[1]} have different values, and either may stay",
            ("give each element an address of its own, mask all but one of them, or use an atomic operation",),
        )

    def _loaded_again(self, op: Operation, addresses: Array, dtype: Dtype) -> Array:
        """Return what is in memory, without a note of it."""
        buffer = self.find(int(addresses[0]))
        assert buffer is not None
        if int(addresses.min()) < buffer.start or int(addresses.max()) + dtype.itemsize > buffer.end:
            return self._scattered(op, addresses, dtype)
        whole = buffer.bytes[: len(buffer.bytes) // dtype.itemsize * dtype.itemsize].view(dtype)
        return whole[(addresses - np.int64(buffer.start)) // dtype.itemsize]

    def _places(self, op: Operation, addresses: Array, chosen: slice | Integers) -> Integers | None:
        """Return keys of the elements that are accessed; None where the threads of the task meet before it matters."""
        if self._issued is not None or not isinstance(op, tt.LoadOp | tt.StoreOp) or not conflicts(op):
            return None
        first = self._order.place_key(np.shape(addresses)) + 1
        return np.arange(first, first + np.size(addresses))[chosen]

    def bytes_at(self, op: Operation, address: int, size: int, verb: str) -> Bytes:
        """Return bytes as `GlobalMemory.bytes_at` does; raises Fault for a race, too."""
        found = super().bytes_at(op, address, size, verb)
        buffer = self.find(address)
        assert buffer is not None
        first = address - buffer.start
        self._order.note(self, op, buffer, slice(first, first + size), 1, _kind_of(verb))
        return found

    def read_descriptor(self, op: Operation, address: int, size: int) -> None:
        """Note the read; raises Fault for a race."""
        buffer = self.find(address)
        assert buffer is not None
        first = address - buffer.start
        self._order.note(self, op, buffer, slice(first, first + size), 1, "read", reads_descriptor=True)

    def strided(
        self, op: Operation, address: int, counts: list[int], strides: list[int], dtype: Dtype, verb: str
    ) -> Array:
        """Return elements as `GlobalMemory.strided` does; raises Fault for a race, too."""
        found = super().strided(op, address, counts, strides, dtype, verb)
        buffer = self.find(address)
        assert buffer is not None
        size, first = dtype.itemsize, address - buffer.start
        unit = size if first % size == 0 else 1
        offsets = offsets_of(first, counts, strides, size // unit)
        self._order.note(self, op, buffer, offsets // unit, unit, _kind_of(verb))
        return found

    def changed(self, op: Operation, address: int) -> None:
        """Note that an atomic operation has changed a number, for the report of who waits for another value."""
        self._order.note_change(self, op, address)

    def _note(self, op: Operation, flat: Integers, size: int, kind: str, places: Integers | None) -> None:
        while len(flat):
            buffer = self.find(int(flat[0]))
            assert buffer is not None
            relative = flat - np.int64(buffer.start)
            inside = (relative >= 0) & (relative < len(buffer.bytes))
            mine = None if places is None else places[inside]
            self._order.note(self, op, buffer, relative[inside] // size, size, kind, mine)
            flat = flat[~inside]
            places = None if places is None else places[~inside]


def _place(number: int, shape: tuple[int, ...]) -> list[int]:
    """The index of an element in row-major order."""
    return [int(i) for i in np.unravel_index(number, shape)]


def _chosen(addresses: Array, mask: Array | None) -> slice | Integers:
    """Return which of the elements, in row-major order, a mask leaves."""
    return slice(None) if mask is None else np.flatnonzero(np.broadcast_to(mask, np.shape(addresses)))


def _kind_of(verb: str) -> str:
    return "read" if verb.endswith("load") else "write"
