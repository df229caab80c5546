"""Values of memref types: views of global memory, or of memory that a function has allocated itself.

A view is a base, and for each index the place of the element in it, in elements. Global memory is reached through
`GlobalMemory`, which knows the bounds of each array; an allocation knows its own. What nothing has written to an
allocation is poison: NaN, or an integer whose every bit is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.layouts.encodings import Ints
from tlx_xdsl.numerics.arrays import Array, Dtype, Integers, poison

from .faults import Fault, fault_at, location_of
from .machine import Task

_UNUSED = np.zeros(())
"""The values for masked elements, where none are."""


@dataclass(eq=False, slots=True)
class Allocation:
    """Memory that a function has allocated."""

    op: Operation
    elements: Array
    freed: Operation | None = None
    """The end of its lifetime."""

    def check(self, op: Operation, verb: str, *places: int) -> None:
        """Raise Fault for places that are not in it, and after its end."""
        if self.freed is None and all(0 <= place < len(self.elements) for place in places):
            return
        allocated = f"the memory allocated at {location_of(self.op)}"
        if self.freed is not None:
            raise fault_at(op, f"{verb} of freed memory: {allocated} was freed at {location_of(self.freed)}")
        for place in places:
            if 0 <= place < len(self.elements):
                continue
            raise fault_at(op, f"{verb} out of bounds: element {place} of {allocated}, which has {len(self.elements)}")


@dataclass(frozen=True, eq=False, slots=True)
class MemRef:
    """A view of memory."""

    base: Allocation | int
    """An allocation, or an address in global memory."""
    dtype: Dtype
    offset: int = 0
    """Elements from the base to the first one."""
    sizes: Ints | None = None
    """None for memory of an unknown rank that nothing has given one."""
    strides: Ints = ()
    """Elements from one index to the next along each dimension."""

    @staticmethod
    def allocate(op: Operation, dtype: Dtype, sizes: Sequence[int], values: Array | None = None) -> MemRef:
        """New memory in row-major order, which holds `values`, or poison.

        Raises Fault for a negative size.
        """
        if min(sizes, default=0) < 0:
            raise fault_at(op, f"memory of the sizes {list(sizes)} can't be allocated")
        held = poison((prod(sizes),), dtype) if values is None else np.array(values, dtype).reshape(-1)
        return MemRef(Allocation(op, held), dtype, 0, tuple(sizes), row_major(sizes))

    @property
    def shape(self) -> Ints:
        """The sizes; none for memory of an unknown rank."""
        return self.sizes or ()

    def address(self, op: Operation, offset: int = 0) -> np.int64:
        """The address of the base, or of the element `offset` after it, in bytes.

        Raises Fault for memory that a function has allocated itself: the interpreter gives it none.
        """
        if isinstance(self.base, Allocation):
            raise fault_at(op, f"the memory allocated at {location_of(self.base.op)} has no address here")
        return np.int64(self.base + offset * self.dtype.itemsize)

    def view(self, offset: int, sizes: Sequence[int], strides: Sequence[int]) -> MemRef:
        """The memory from the base on, seen in another way."""
        return MemRef(self.base, self.dtype, offset, tuple(sizes), tuple(strides))

    def box(
        self, op: Operation, offsets: Sequence[int], sizes: Sequence[int], steps: Sequence[int], kept: Sequence[int]
    ) -> MemRef:
        """A box of the view, of which the dimensions `kept` are left.

        Raises Fault for a box that is not inside.
        """
        for dim, (first, count, step, size) in enumerate(zip(offsets, sizes, steps, self.shape, strict=True)):
            ends = (first, first + (count - 1) * step)
            if count < 0 or (count > 0 and not (min(ends) >= 0 and max(ends) < size)):
                box = f"{count} elements from {first} on in steps of {step}"
                raise fault_at(op, f"{box} are not inside of dimension {dim}, which has {size}")
        offset = self.offset + sum(first * stride for first, stride in zip(offsets, self.strides, strict=True))
        strides = [step * stride for step, stride in zip(steps, self.strides, strict=True)]
        return self.view(offset, [sizes[dim] for dim in kept], [strides[dim] for dim in kept])

    def expanded(self, groups: Sequence[Sequence[int]], sizes: Sequence[int]) -> MemRef:
        """Each dimension as a group of dimensions of those sizes."""
        strides = [1] * len(sizes)
        for stride, group in zip(self.strides, groups, strict=False):
            for dim in reversed(group):
                strides[dim] = stride
                stride *= sizes[dim]
        return self.view(self.offset, sizes, strides)

    def collapsed(self, op: Operation, groups: Sequence[Sequence[int]]) -> MemRef:
        """Each group of dimensions as one.

        Raises Fault for a group whose elements have no one stride.
        """
        strides: list[int] = []
        for group in groups:
            held = [dim for dim in group if self.shape[dim] != 1] or [group[-1]]
            for outer, inner in pairwise(held):
                if self.strides[outer] != self.strides[inner] * self.shape[inner]:
                    raise fault_at(op, f"dimensions {outer} and {inner} have no stride in common")
            strides.append(self.strides[held[-1]])
        return self.view(self.offset, [prod(self.shape[dim] for dim in group) for group in groups], strides)

    def place(self, op: Operation, indices: Sequence[Any]) -> int:
        """Elements from the base to the one at `indices`.

        Raises Fault for an index outside of its dimension.
        """
        found = self.offset
        for dim, (index, size, stride) in enumerate(zip(indices, self.shape, self.strides, strict=True)):
            number = int(index)
            if not 0 <= number < size:
                raise fault_at(op, f"index {number} is out of bounds: dimension {dim} has {size} elements")
            found += number * stride
        return found

    def places(self) -> Integers:
        """Elements from the base to each one, in the shape of the view."""
        found = np.array(self.offset, np.int64)
        for size, stride in zip(self.shape, self.strides, strict=True):
            found = found[..., None] + np.arange(size, dtype=np.int64) * stride
        return found

    def meets(self, other: MemRef) -> bool:
        """Return whether some element is one of the other's, too."""
        if self.base is not other.base and (isinstance(self.base, Allocation) or isinstance(other.base, Allocation)):
            return False
        if 0 in self.shape or 0 in other.shape:
            return False
        (first, last), (other_first, other_last) = self._ends(), other._ends()
        if other_last < first or last < other_first or self.dtype.itemsize != other.dtype.itemsize:
            return first <= other_last and other_first <= last
        mine, others = (each.places() * self.dtype.itemsize + each._start() for each in (self, other))
        return bool(np.isin(mine, others).any())

    def is_same(self, other: MemRef) -> bool:
        """Return whether both are the same elements, in the same order."""
        mine, others = ((each.base, each.offset, each.sizes, each.strides) for each in (self, other))
        return mine == others and self.dtype == other.dtype

    def _ends(self) -> tuple[int, int]:
        """The first and the last byte, in the allocation or in global memory."""
        spans = [(size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True)]
        first, last = (self.offset + sum(each(span, 0) for span in spans) for each in (min, max))
        start = self._start()
        return start + first * self.dtype.itemsize, start + (last + 1) * self.dtype.itemsize - 1

    def _start(self) -> int:
        """The byte at which the base is."""
        return 0 if isinstance(self.base, Allocation) else self.base

    def read(self, task: Task, op: Operation) -> Array:
        """All elements.

        Raises Fault for some that are outside of the memory, and after the end of an allocation.
        """
        places = self.places()
        if not places.size:
            return np.zeros(places.shape, self.dtype)
        if isinstance(self.base, Allocation):
            self.base.check(op, "load", int(places.min()), int(places.max()))
            return np.array(self.base.elements[places])
        addresses = np.int64(self.base) + places * self.dtype.itemsize
        return np.array(task.global_memory.load(op, addresses, self.dtype, None, _UNUSED))

    def write(self, task: Task, op: Operation, values: Array) -> None:
        """Set all elements.

        Raises Fault as `read` does, and for values of another shape.
        """
        if np.shape(values) != self.shape:
            raise fault_at(op, f"values of the shape {list(np.shape(values))} are written to one of {list(self.shape)}")
        places = self.places()
        if not places.size:
            return
        if isinstance(self.base, Allocation):
            self.base.check(op, "store", int(places.min()), int(places.max()))
            self.base.elements[places] = values
        else:
            addresses = np.int64(self.base) + places * self.dtype.itemsize
            task.global_memory.store(op, addresses, values, self.dtype, None)

    def load(self, task: Task, op: Operation, place: int) -> Any:
        """The element `place` elements after the base; raises Fault as `read` does."""
        if isinstance(self.base, Allocation):
            self.base.check(op, "load", place)
            return self.base.elements[place]
        address: Any = np.int64(self.base + place * self.dtype.itemsize)
        return task.global_memory.load(op, address, self.dtype, None, _UNUSED)[()]

    def gather(self, task: Task, op: Operation, indices: Sequence[Any]) -> Array:
        """The elements at indices that are arrays; raises Fault as `place` and `read` do."""
        places: Any = np.int64(self.offset)
        for dim, (index, size, stride) in enumerate(zip(indices, self.shape, self.strides, strict=True)):
            number = np.asarray(index, np.int64)
            if number.size and (number.min() < 0 or number.max() >= size):
                raise fault_at(op, f"an index is out of bounds: dimension {dim} has {size} elements")
            places = places + number * stride
        if isinstance(self.base, Allocation):
            self.base.check(op, "load", int(places.min()), int(places.max()))
            return self.base.elements[places]
        addresses = np.int64(self.base) + places * self.dtype.itemsize
        return np.array(task.global_memory.load(op, addresses, self.dtype, None, _UNUSED))

    def store(self, task: Task, op: Operation, place: int, value: Any) -> None:
        """Set the element `place` elements after the base; raises Fault as `read` does."""
        if isinstance(self.base, Allocation):
            self.base.check(op, "store", place)
            self.base.elements[place] = value
        else:
            address: Any = np.int64(self.base + place * self.dtype.itemsize)
            task.global_memory.store(op, address, value, self.dtype, None)

    def free(self, op: Operation) -> None:
        """End the lifetime of an allocation.

        Raises Fault for one that has ended, and for memory that is none.
        """
        if not isinstance(self.base, Allocation):
            raise fault_at(op, "memory is freed that no function has allocated")
        self.base.check(op, "free")
        self.base.freed = op


def row_major(sizes: Sequence[int]) -> Ints:
    """The strides of memory without gaps, the last index fastest."""
    return tuple(prod(sizes[dim + 1 :]) for dim in range(len(sizes)))


def mismatch(op: Operation, found: Sequence[int], stated: Sequence[int | None], what: str) -> Fault | None:
    """The fault of numbers that are not those that a type states, where it states any."""
    wrong = len(found) != len(stated) or any(
        number is not None and number != each for each, number in zip(found, stated, strict=True)
    )
    shown = ", ".join("?" if number is None else str(number) for number in stated)
    return fault_at(op, f"the {what} are {list(found)}, its type says [{shown}]") if wrong else None
