"""The arguments of a kernel: from arrays, numbers and tensor descriptors to the values of the function's arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerType, UnrankedMemRefType
from xdsl.ir import Attribute

from tlx_xdsl.analysis.tma_copies import written_columns
from tlx_xdsl.dialects.memref import element_of, is_memref, sizes_of, strides_of
from tlx_xdsl.dialects.tt.types import PointerType, TensorDescType
from tlx_xdsl.errors import InputError, InputTypeError
from tlx_xdsl.interpreter.code import Function
from tlx_xdsl.interpreter.descriptor import Descriptor
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.memref import MemRef
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.plan import coordinates_of
from tlx_xdsl.interpreter.uninitialized import UninitializedArray


@dataclass(frozen=True, eq=False)
class _Range:
    """Bytes of this process's memory."""

    start: int
    end: int
    name: str
    owner: Any
    """References that keep them alive."""


def bind(function: Function, values: Sequence[Any], names: Sequence[str], memory: GlobalMemory) -> list[Any]:
    """The values of the arguments of `function`; arrays are given addresses in `memory`, and written in place.

    A value is a numpy array (or what numpy takes without a copy, such as a torch tensor on the CPU) for a pointer or a
    memref, a number, or a tensor descriptor, with the fields of `tlx_xdsl.TensorDescriptor`. A descriptor also gives
    the arguments after it that hold its shape (i32) and strides (i64), where the function has them.
    Raises TypeError for a value that does not fit its argument, and ValueError for a wrong number of them.
    """
    addresses = addresses_of(values, names, memory)
    types = list(function.function_type.inputs.data)
    types = types[: len(types) - coordinates_of(function)]
    result: list[Any] = []
    extents = sum(2 * len(value.shape) for value in values if _is_descriptor(value))
    with_extents = len(types) == len(values) + extents
    if not with_extents and len(types) != len(values):
        raise InputError(f"'{function.sym_name.data}' takes {len(types)} arguments, found {len(values)}")
    for value, name, address in zip(values, names, addresses, strict=True):
        type_ = types[len(result)]
        result.append(_value(value, name, type_, address))
        if _is_descriptor(value) and with_extents:
            result.extend(np.int32(extent) for extent in value.shape)
            result.extend(np.int64(stride) for stride in value.strides)
    return result


class Addressed(Protocol):
    """Memory that gives bytes addresses."""

    def add(
        self, name: str, data: NDArray[np.uint8], *, skew: int = 0, written: NDArray[np.uint8] | None = None
    ) -> int:
        """Give bytes an address, `skew` past a multiple of the alignment; they are written in place."""
        ...

    def add_at(self, name: str, data: NDArray[np.uint8], start: int) -> None:
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


def _is_descriptor(value: Any) -> bool:
    return hasattr(value, "block_shape")


def _array_of(value: Any) -> NDArray[Any] | None:
    """The memory that a value gives the kernel."""
    if _is_descriptor(value):
        value = value.base
    if isinstance(value, bool | int | float | np.generic) or value is None:
        return None
    # Not as an array of numpy's own class: one that is uninitialized stays that.
    return np.asanyarray(value)


def _value(value: Any, name: str, type_: Attribute, address: int | None) -> Any:
    if isinstance(type_, TensorDescType):
        return _descriptor(value, name, type_, address)
    if isinstance(type_, PointerType):
        return np.int64(0) if _is_null(value) else _pointer(value, name, type_.pointee, address)
    if is_memref(type_):
        return _memory(value, name, type_, address)
    if address is not None or value is None:
        raise InputTypeError(f"'{name}' must be a number, found {type(value).__name__}")
    return _number(value, name, type_)


def _descriptor(value: Any, name: str, type_: TensorDescType, address: int | None) -> Descriptor:
    if not _is_descriptor(value):
        raise InputTypeError(f"'{name}' must be a TensorDescriptor, found {type(value).__name__}")
    assert address is not None
    block, dtype = tuple(int(size) for size in value.block_shape), dtype_of(type_.element_type)
    if block != type_.shape:
        raise InputTypeError(f"'{name}' has blocks of {list(block)} elements, the kernel takes {list(type_.shape)}")
    if np.asarray(value.base).dtype.itemsize != dtype.itemsize:
        raise InputTypeError(f"'{name}' has {np.asarray(value.base).dtype} elements, the kernel takes {dtype}")
    shape, strides = tuple(map(int, value.shape)), tuple(map(int, value.strides))
    pads_with_nan, rounds = getattr(value, "padding", "zero") == "nan", getattr(value, "round_f32_to_tf32", False)
    return Descriptor(address, shape, strides, block, dtype, pads_with_nan, bool(rounds))


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, int) and value == 0)


def _pointer(value: Any, name: str, wanted: Attribute, address: int | None) -> np.int64:
    if address is None or _is_descriptor(value):
        raise InputTypeError(f"'{name}' must be an array, found {type(value).__name__}")
    if not isinstance(wanted, PointerType):
        have, want = np.asarray(value).dtype, dtype_of(wanted)
        if have.itemsize != want.itemsize or (have.kind == "f") != (want.kind == "f"):
            raise InputTypeError(f"'{name}' is an array of {have}, the kernel takes {want}")
    return np.int64(address)


def _memory(value: Any, name: str, type_: Attribute, address: int | None) -> MemRef:
    """The memory of an array: of an unknown rank, as Triton's pointers are, or with the array's sizes and strides."""
    element = element_of(type_)
    dtype = dtype_of(element)
    if isinstance(type_, UnrankedMemRefType):
        return MemRef(0 if _is_null(value) else int(_pointer(value, name, element, address)), dtype)
    start = int(_pointer(value, name, element, address))
    array = np.asarray(value)
    strides = [stride // dtype.itemsize for stride in array.strides]
    wanted, offset = strides_of(type_)
    fits = offset in (None, 0) and not any(stride % dtype.itemsize for stride in array.strides)
    for found, stated in ((array.shape, sizes_of(type_)), (strides, wanted)):
        fits = fits and len(found) == len(stated)
        fits = fits and all(number in (None, each) for each, number in zip(found, stated, strict=True))
    if not fits:
        shown = f"the shape {list(array.shape)} and the strides {strides}"
        raise InputTypeError(f"'{name}' is an array of {shown}, the kernel takes {type_}")
    return MemRef(start, dtype, 0, tuple(array.shape), tuple(strides))


def _number(value: Any, name: str, type_: Attribute) -> Any:
    dtype = dtype_of(type_)
    if isinstance(type_, IntegerType) and dtype.kind == "i":
        width = 8 * dtype.itemsize
        number = int(value)
        if not -(1 << (width - 1)) <= number < 1 << width:
            raise InputTypeError(f"'{name}' is an i{width}, which cannot hold {number}")
        return np.array(number % (1 << width), f"u{dtype.itemsize}").view(dtype)[()]
    return dtype.type(value)


ALIGNED = 16
"""Bytes that a signature may promise that a pointer is a multiple of."""


def _place(ranges: Sequence[_Range | None], memory: Addressed) -> list[int | None]:
    """The address of each range; those that share memory share it in the kernel, too."""
    merged = _merged(ranges)
    # Aligned as they are here: the signature says so.
    starts: Mapping[_Range, int] = {
        range_: memory.add(range_.name, _bytes(range_), skew=range_.start % ALIGNED, written=_written(range_))
        for range_ in merged
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
            merged[-1] = _Range(last.start, max(last.end, range_.end), name, (last.owner, range_.owner))
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
    if found is None or array is None or not _is_descriptor(value):
        return found
    owner: NDArray[Any] = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    last = owner.ctypes.data + owner.nbytes if owner.flags.forc else found.end
    written = found.start + written_columns(found.end - found.start, 1)
    return replace(found, end=max(found.end, min(written, last)))


def _range(array: NDArray[Any] | None, name: str) -> _Range | None:
    if array is None:
        return None
    if any(stride < 0 for stride in array.strides):
        raise InputTypeError(f"'{name}' runs backwards along a dimension, which no kernel can see: pass a copy")
    if not array.flags.writeable:
        raise InputTypeError(f"'{name}' is read-only: pass a copy")
    start = int(array.ctypes.data)
    last = sum((size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True))
    return _Range(start, start + last + array.itemsize if array.size else start, name, array)


def _written(range_: _Range) -> NDArray[np.uint8] | None:
    """Which bytes of a range have been written, where it is of an array that was declared uninitialized."""
    owners = [range_.owner]
    while owners:
        owner = owners.pop()
        if isinstance(owner, tuple):
            owners.extend(cast(tuple[Any, ...], owner))
        elif isinstance(owner, UninitializedArray) and owner.record is not None:
            return owner.record.of(range_.start, range_.end)
    return None


def _bytes(range_: _Range) -> NDArray[np.uint8]:
    """The bytes of a range as an array, which keeps their owner alive."""
    size = range_.end - range_.start
    if not size:
        return np.zeros(0, np.uint8)
    held = (ctypes.c_uint8 * size).from_address(range_.start)
    held._owner = range_.owner  # pyright: ignore[reportAttributeAccessIssue]
    return np.frombuffer(memoryview(held), np.uint8)
