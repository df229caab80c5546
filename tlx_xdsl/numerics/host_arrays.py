"""Arrays of the host that a machine's global memory holds at addresses of its own, and what TMA writes of their rows.

Measured on an H200 on 2026-11-23, with tiles of 8 to 64 rows, elements of 1, 2 and 4 bytes, with and without swizzling:

- A copy begins at a multiple of 16 bytes, in whichever direction it goes and whether or not it begins inside of the
  tensor. From elsewhere it is an illegal instruction. (Stock Triton's interpreter asserts the same.)
- Rows are written in units of 16 bytes. Where they end within one, its rest is written, too, with what the tile holds
  there; a reduction is combined with it.

Rows that a gather or a scatter names one by one were not measured: they need a Blackwell GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.targets import TMA_UNIT

from .arrays import Array, Bytes
from .uninitialized import UninitializedArray

_Columns = TypeVar("_Columns", int, NDArray[np.int64])


def written_columns(columns: _Columns, element_bytes: int) -> _Columns:
    """The elements of a row that a store writes of a tensor whose rows have `columns`."""
    return columns + -columns % max(TMA_UNIT // element_bytes, 1)


@dataclass(frozen=True, eq=False)
class _Range:
    """Bytes of this process's memory."""

    start: int
    end: int
    name: str
    owner: Any
    """References that keep them alive."""
    skew: int
    """Bytes past a multiple of 16 at which the kernel's range begins."""


class Addressed(Protocol):
    """Memory that gives bytes addresses."""

    def add(self, name: str, data: Bytes, *, skew: int = 0, written: Bytes | None = None) -> int:
        """Give bytes an address, `skew` past a multiple of the alignment; they are written in place."""
        ...

    def add_at(self, name: str, data: Bytes, start: int) -> None:
        """Put bytes at an address."""
        ...


def addresses_of(values: Sequence[Any], names: Sequence[str], memory: Addressed) -> list[int | None]:
    """Give the arrays and tensor descriptors among `values` addresses in `memory`; others have none.

    Arrays that share bytes share them there, too. Raises TypeError for an array that runs backwards, or is read-only.
    """
    return _place([_range_of(value, name) for value, name in zip(values, names, strict=True)], memory)


def reach(arrays: Sequence[Any], memory: Addressed) -> None:
    """Put arrays at the addresses that they have in this process: pointers that a kernel loads lead to them.

    Raises TypeError for an array that runs backwards, or is read-only.
    """
    ranges = _merged([_range(array, "an array that is no argument") for array in arrays])
    for range_ in ranges:
        memory.add_at(range_.name, _bytes(range_), range_.start)


def is_descriptor(value: Any) -> bool:
    """Return whether an argument of a kernel is a tensor descriptor."""
    return hasattr(value, "block_shape")


def _array_of(value: Any) -> Array | None:
    """The memory that a value gives the kernel."""
    if is_descriptor(value):
        value = value.base
    if isinstance(value, bool | int | float | np.generic) or value is None:
        return None
    # Not as an array of numpy's own class: one that is uninitialized stays that.
    return np.asanyarray(value)


ALIGNED = 16
"""Bytes that a signature may promise that a pointer is a multiple of."""


def skew_of(array: Array) -> int:
    """Return how many bytes past a multiple of 16 an array begins in a kernel's memory.

    A GPU's allocations are aligned, so the start of memory that numpy has allocated counts as aligned, and a view has
    its distance from there. numpy aligns to 16 bytes on machines of 64 bits, and to 8 in WebAssembly. Memory that came
    from elsewhere, as a file's, has its own address.
    """
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return int(array.ctypes.data - (owner.ctypes.data if owner.flags.owndata else 0)) % ALIGNED


def _place(ranges: Sequence[_Range | None], memory: Addressed) -> list[int | None]:
    """The address of each range; those that share memory share it in the kernel, too."""
    merged = _merged(ranges)
    # Aligned as the signature says.
    starts: Mapping[_Range, int] = {
        range_: memory.add(range_.name, _bytes(range_), skew=range_.skew, written=_written(range_)) for range_ in merged
    }
    addresses: list[int | None] = []
    for range_ in ranges:
        if range_ is None:
            addresses.append(None)
        else:
            home = next(home for home in merged if home.start <= range_.start and range_.end <= home.end)
            addresses.append(starts[home] + range_.start - home.start)
    return addresses


def _merged(ranges: Sequence[_Range | None]) -> list[_Range]:
    """The ranges in the order of their addresses, those that overlap as one."""
    merged: list[_Range] = []
    for range_ in sorted((range_ for range_ in ranges if range_ is not None), key=lambda range_: range_.start):
        if merged and range_.start < merged[-1].end:
            last = merged[-1]
            name = last.name if last.name == range_.name else f"{last.name}, {range_.name}"
            merged[-1] = _Range(last.start, max(last.end, range_.end), name, (last.owner, range_.owner), last.skew)
        else:
            merged.append(range_)
    return merged


def _range_of(value: Any, name: str) -> _Range | None:
    """The memory that a value gives the kernel.

    Of a tensor descriptor that is what TMA writes after the last row, too, as far as the array is a part of another
    one that has it: rows that are padded to units of 16 bytes lose the last padding when they are sliced.
    Raises TypeError as `_range` does.
    """
    array = _array_of(value)
    found = _range(array, name)
    if found is None or array is None or not is_descriptor(value):
        return found
    owner: Array = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    last = owner.ctypes.data + owner.nbytes if owner.flags.forc else found.end
    written = found.start + written_columns(found.end - found.start, 1)
    return replace(found, end=max(found.end, min(written, last)))


def _range(array: Array | None, name: str) -> _Range | None:
    if array is None:
        return None
    if any(stride < 0 for stride in array.strides):
        raise InputTypeError(f"'{name}' runs backwards along a dimension, which no kernel can see: pass a copy")
    if not array.flags.writeable:
        raise InputTypeError(f"'{name}' is read-only: pass a copy")
    start = int(array.ctypes.data)
    last = sum((size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True))
    return _Range(start, start + last + array.itemsize if array.size else start, name, array, skew_of(array))


def _written(range_: _Range) -> Bytes | None:
    """Return which bytes of a range have been written, where it is of an array that was declared uninitialized."""
    owners = [range_.owner]
    while owners:
        owner = owners.pop()
        if isinstance(owner, tuple):
            owners.extend(cast(tuple[Any, ...], owner))
        elif isinstance(owner, UninitializedArray) and owner.record is not None:
            return owner.record.of(range_.start, range_.end)
    return None


def _bytes(range_: _Range) -> Bytes:
    """The bytes of a range as an array, which keeps their owner alive."""
    size = range_.end - range_.start
    if not size:
        return np.zeros(0, np.uint8)
    held = (ctypes.c_uint8 * size).from_address(range_.start)
    held._owner = range_.owner  # pyright: ignore[reportAttributeAccessIssue]
    return np.frombuffer(memoryview(held), np.uint8)
