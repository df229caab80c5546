"""Shared and tensor memory as bytes, and the views of them that buffers are.

A view knows for each of its elements which byte it lies at, as its layout says; so buffers that share bytes really
overwrite each other, swizzled or not. Beside every byte stands the number of the buffer family that wrote it last:
none (then it is poison), the family that reads it, or another one whose data still or already lies there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from tlx_xdsl.layouts.encodings import Ints
from tlx_xdsl.numerics.arrays import Array, Bytes, Dtype, Integers

from .faults import Fault, fault_at
from .races import Cell, Footprint, Races

if TYPE_CHECKING:
    from .mbarrier import Mbarrier

SCATTERED = 8
"""Intervals of bytes above which they are looked at one by one, instead of interval by interval."""
POISON = 0xFF
"""The content of every uninitialized byte: NaN as a float of any width."""
UNINITIALIZED = 0
"""The family of bytes that were not written yet."""


@dataclass(frozen=True, slots=True)
class Family:
    """The buffers whose data may be read through one another: an allocation and its explicit reinterpretations.

    Buffers that storage aliasing puts at the same place are families of their own.
    """

    number: int
    name: str
    op: Operation


class Placement:
    """The bytes of allocations, and their families: the same in all thread blocks of a cluster (PTX ISA, "mapa")."""

    def __init__(self) -> None:
        self.families: list[Family] = []
        self.places: dict[Any, int] = {}
        self.end = 0
        """The byte after the last allocation."""
        self._family_of: dict[Any, Family] = {}

    def family(self, key: Any, op: Operation, name: str) -> Family:
        """The family that `key` stands for."""
        if (family := self._family_of.get(key)) is None:
            family = self._family_of[key] = Family(len(self.families) + 1, name, op)
            self.families.append(family)
        return family


class UninitializedReads(Protocol):
    """The policy for reads of bytes that the buffer's family has not written last."""

    def read(self, op: Operation, view: View, values: Array) -> Array:
        """Return the values of `view`, of which memory holds `values`, or raise a Fault."""
        ...

    def read_raw(self, op: Operation, view: View, owners: NDArray[np.int32]) -> None:
        """Let the first bytes of `view`, which those families have written, be read, or raise a Fault."""
        ...

    def refusal(self, op: Operation, view: View) -> Fault:
        """Return the fault of a read that must not happen, naming the first element that is not the family's."""
        ...


class Memory:
    """`size` bytes of one thread block's shared or tensor memory."""

    def __init__(
        self,
        name: str,
        size: int,
        rank: int,
        placement: Placement,
        uninitialized_reads: UninitializedReads,
        *,
        grows: bool = False,
    ):
        self.name = name
        """`shared memory` or `tensor memory`."""
        self.placement = placement
        self.grows = grows
        self.uninitialized_reads = uninitialized_reads
        self.rank = rank
        """Of the thread block in its cluster."""
        self.bytes: Bytes = np.full(size, POISON, np.uint8)
        self.writers: NDArray[np.int32] = np.zeros(size, np.int32)
        self.races = Races()
        self.barriers: dict[int, Mbarrier] = {}
        """The live mbarriers by their address."""
        self.ended: Operation | None = None
        """The last operation that has ended the lifetime of an mbarrier."""
        self.pointed: dict[tuple[int, int], View] = {}
        """Views whose addresses were taken, by their families and first bytes."""
        self.views: dict[Any, View] = {}
        """Views that are made anew in every run of a kernel, by what they are."""
        self.writes = 0
        """Writes of views so far."""
        self.listener: Callable[[View], None] | None = None
        """Called with each view that is written."""

    def clear(self) -> None:
        """Forget what a thread block has left, but not where things lie: the next one allocates the same."""
        self.release(0, self.placement.end)
        self.races.clear()
        self.barriers.clear()
        self.ended = None

    def allocate(self, key: Any, op: Operation, size: int, alignment: int) -> int:
        """The address of `size` bytes for `op`; the same each time for the same `key`.

        Shared memory grows as needed: stock Triton lays buffers over each other whose lives do not meet, so what lies
        next to each other here may still fit (the pass `tlx-storage-budget` judges that).
        Raises Fault when tensor memory is exhausted.
        """
        placed = self.placement
        if (address := placed.places.get(key)) is None:
            address = -(-placed.end // alignment) * alignment
            if address + size > len(self.bytes) and not self.grows:
                raise fault_at(
                    op,
                    f"{self.name} is exhausted: {size} bytes from byte {address} on, there are {len(self.bytes)}",
                )
            placed.places[key] = address
            placed.end = address + size
        self.grow(placed.end)
        return address

    def grow(self, size: int) -> None:
        """Have at least `size` bytes."""
        if (missing := size - len(self.bytes)) > 0:
            missing = max(missing, len(self.bytes))
            self.bytes = np.concatenate([self.bytes, np.full(missing, POISON, np.uint8)])
            self.writers = np.concatenate([self.writers, np.zeros(missing, np.int32)])

    def release(self, start: int, size: int) -> None:
        """Poison bytes whose buffer is dead, or is allocated anew."""
        self.bytes[start : start + size] = POISON
        self.writers[start : start + size] = UNINITIALIZED

    def family(self, key: Any, op: Operation, name: str) -> Family:
        """The family of buffers that `key` stands for."""
        return self.placement.family(key, op, name)


@dataclass(eq=False, slots=True)
class View:
    """A buffer, or a part of one: where each element lies."""

    memory: Memory
    offsets: Integers
    """Byte of each element in the memory, in the shape of the buffer."""
    dtype: Dtype
    family: Family
    name: str
    """The Python name of the buffer, with the index of the slot."""
    alignment: int = 16
    """Bytes that the address of a tile must be a multiple of for TMA and the tensor cores."""
    copies: Ints = ()
    """Bytes from an element to each of its copies, which are written with it."""
    start: Ints = ()
    """The index of the first element in the tile that the view is a part of; empty for a whole tile."""
    seen_as: Integers | None = None
    """Byte of each element of the view that this one reinterprets, where that has the same ones in another order."""
    _at: Integers | None = None
    _bytes: Integers | None = None
    _footprint: Footprint | None = None
    _cell: Cell | None = None
    _children: dict[Any, View] = field(default_factory=dict[Any, "View"])

    def __post_init__(self) -> None:
        self.start = self.start or (0,) * self.offsets.ndim

    @property
    def shape(self) -> Ints:
        """Elements along each dimension."""
        return self.offsets.shape

    @property
    def address(self) -> int:
        """The lowest byte of the view."""
        return self.footprint.start

    @property
    def size(self) -> int:
        """Bytes of the elements."""
        return self.offsets.size * self.dtype.itemsize

    @property
    def footprint(self) -> Footprint:
        """The bytes of the view."""
        if self._footprint is None:
            places = [self.offsets, *(self.offsets + copy for copy in self.copies)]
            self._footprint = Footprint.of(np.stack(places) if self.copies else self.offsets, self.dtype.itemsize)
        return self._footprint

    @property
    def cell(self) -> Cell:
        """Return what is known of accesses to just these bytes."""
        if self._cell is None:
            self._cell = self.memory.races.cell(self.footprint)
        return self._cell

    def derive(self, key: Any, offsets: Integers, name: str | None = None) -> View:
        """A view of some of the elements, or of all in another order; `key` says which, so that it is made once."""
        if (child := self._children.get(key)) is None:
            child = View(self.memory, offsets, self.dtype, self.family, name or self.name, self.alignment, self.copies)
            self._children[key] = child
        return child

    def child(self, key: Any) -> View | None:
        """The view that was derived under `key`."""
        return self._children.get(key)

    def keep(self, key: Any, child: View) -> View:
        """Keep a view that was made from this one under `key`."""
        self._children[key] = child
        return child

    def index(self, op: Operation, number: int) -> View:
        """Tile `number` of an array of them.

        Raises Fault when there is no such tile.
        """
        if (child := self._children.get(number)) is None:
            if not 0 <= number < self.shape[0]:
                raise fault_at(op, f"index {number} is outside of the {self.shape[0]} buffers of '{self.name}'")
            child = self.derive(number, self.offsets[number], f"{self.name}[{number}]")
        return child

    def elsewhere(self, memory: Memory) -> View:
        """The same place in another thread block's memory."""
        if memory is self.memory:
            return self
        key = ("elsewhere", memory.rank)
        if (child := self._children.get(key)) is None:
            memory.grow(self.footprint.end)
            name = f"{self.name} of CTA {memory.rank}"
            child = View(memory, self.offsets, self.dtype, self.family, name, self.alignment, self.copies)
            self._children[key] = child
        return child

    def read(self, op: Operation) -> Array:
        """The elements.

        Raises Fault for bytes that another family of buffers has overwritten, and unless the launch only warns of
        that, for uninitialized bytes.
        """
        values = self._elements()[self._indices()]
        return values if self._is_written() else self.memory.uninitialized_reads.read(op, self, values)

    def write(self, values: Array) -> None:
        """Set all elements."""
        self.memory.writes += 1
        self.cell.written_as = (self.memory.writes, self.offsets)
        if self.memory.listener is not None:
            self.memory.listener(self)
        elements, at = self._elements(), self._indices()
        elements[at] = values
        for copy in self.copies:
            elements[at + copy // self.dtype.itemsize] = values
        writers, family = self.memory.writers, self.family.number
        if len(self.footprint.intervals) > SCATTERED:
            writers[self._all_bytes()] = family
            return
        for start, end in self.footprint.intervals:
            writers[start:end] = family

    @property
    def is_permuted(self) -> bool:
        """Return whether what was written last lies in the order of the view that this one reinterprets."""
        if self.seen_as is None or (written := self.cell.written_as) is None:
            return False
        serial, order = written
        is_last = all(each.written_as is None or each.written_as[0] <= serial for each in self.cell.neighbours)
        return is_last and np.array_equal(order.ravel(), self.seen_as)

    def raw(self, op: Operation, size: int) -> Bytes:
        """The first `size` bytes of the view, in the order of their addresses.

        Raises Fault as `read` does, for these bytes.
        """
        at = self._all_bytes()[:size]
        owners = self.memory.writers[at]
        if not (owners == self.family.number).all():
            self.memory.uninitialized_reads.read_raw(op, self, owners)
        return self.memory.bytes[at]

    def write_raw(self, values: Bytes) -> None:
        """Set the first bytes of the view, in the order of their addresses."""
        if self.memory.listener is not None:
            self.memory.listener(self)
        at = self._all_bytes()[: len(values)]
        self.memory.bytes[at] = values
        self.memory.writers[at] = self.family.number

    def check_written(self, op: Operation) -> None:
        """Check that this family has written all bytes of the view last, whatever the launch only warns of.

        Raises Fault, naming the first element of which that is not so.
        """
        if not self._is_written():
            raise self.memory.uninitialized_reads.refusal(op, self)

    def _is_written(self) -> bool:
        writers, family, intervals = self.memory.writers, self.family.number, self.footprint.intervals
        if len(intervals) == 1:
            start, end = intervals[0]
            return bool((writers[start:end] == family).all())
        if len(intervals) > SCATTERED:
            return bool((writers[self._all_bytes()] == family).all())
        return all((writers[start:end] == family).all() for start, end in intervals)

    def _elements(self) -> Array:
        return self.memory.bytes.view(self.dtype)

    def _all_bytes(self) -> Integers:
        if self._bytes is None:
            self._bytes = np.concatenate([np.arange(*interval) for interval in self.footprint.intervals])
        return self._bytes

    def _indices(self) -> Integers:
        if self._at is None:
            self._at = self.offsets // self.dtype.itemsize
        return self._at
