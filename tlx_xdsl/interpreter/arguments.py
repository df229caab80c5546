"""The arguments of a kernel: from arrays, numbers and tensor descriptors to the values of the function's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerType, UnrankedMemRefType
from xdsl.ir import Attribute

from tlx_xdsl.dialects.memref import element_of, is_memref, sizes_of, strides_of
from tlx_xdsl.dialects.tt import PointerType, TensorDescType
from tlx_xdsl.errors import InputError, InputTypeError
from tlx_xdsl.numerics.host_arrays import addresses_of, is_descriptor

from .code import Function
from .descriptor import Descriptor
from .global_memory import GlobalMemory
from .memref import MemRef
from .numbers import dtype_of
from .plan import coordinates_of


def bind(function: Function, values: Sequence[Any], names: Sequence[str], memory: GlobalMemory) -> list[Any]:
    """The values of the arguments of `function`; arrays are given addresses in `memory`, and written in place.

    A value is a numpy array (or what numpy takes without a copy, such as a torch tensor on the CPU) for a pointer or a
    memref, a number, or a tensor descriptor, with the fields of `tlx_xdsl.TensorDescriptor`. A descriptor also gives
    the arguments after it that hold its shape (i32) and strides (i64), where the function has them.
    Raises TypeError for a value that does not fit its argument, and ValueError for a wrong number of them.
    """
    return bound_at(function, values, names, addresses_of(values, names, memory))


def bound_at(
    function: Function, values: Sequence[Any], names: Sequence[str], addresses: Sequence[int | None]
) -> list[Any]:
    """The same of arrays that have addresses already: one for each value that is an array or a descriptor.

    Raises as `bind` does.
    """
    types = list(function.function_type.inputs.data)
    types = types[: len(types) - coordinates_of(function)]
    result: list[Any] = []
    extents = sum(2 * len(value.shape) for value in values if is_descriptor(value))
    with_extents = len(types) == len(values) + extents
    if not with_extents and len(types) != len(values):
        raise InputError(f"'{function.sym_name.data}' takes {len(types)} arguments, found {len(values)}")
    for value, name, address in zip(values, names, addresses, strict=True):
        type_ = types[len(result)]
        result.append(_value(value, name, type_, address))
        if is_descriptor(value) and with_extents:
            result.extend(np.int32(extent) for extent in value.shape)
            result.extend(np.int64(stride) for stride in value.strides)
    return result


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
    if not is_descriptor(value):
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
    if address is None or is_descriptor(value):
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
