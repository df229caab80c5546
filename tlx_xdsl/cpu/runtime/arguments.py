"""The arguments of a launch: which specialisation they want, and the numbers that the kernel gets.

A launch reads each value once. What the machine code depends on becomes a part of the specialisation's key: element
types, integers that are 1, constants. What it is given becomes a slot: addresses and numbers.
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.frontend.python.source import Fixed, Parameter, Signature
from tlx_xdsl.language.core import constexpr
from tlx_xdsl.runtime.driver.host_values import constant_ones, is_constant, is_descriptor, signature_of, type_of

Reader: TypeAlias = "Callable[[Any, list[Any], list[Any], Parameter], None]"
"""Appends what a value adds to the key of the specialisation, and its slots."""

_I32 = 1 << 31
_I64 = 1 << 63

_ONE = "1"
"""The part of a key that says: an integer that is 1, and so a constant."""


MISSING: Any = inspect.Parameter.empty
"""The default of a parameter without one."""


def constant_key(value: Any) -> Any:
    """Return what stands for a constant in a key: two that differ in type, in sign or as NaN are two."""
    cls = value.__class__
    if cls is int or cls is str or cls is bool or value is None:
        return cls, value
    if cls is float or isinstance(value, np.generic):
        return cls, repr(cast(Any, value))
    if isinstance(value, constexpr):
        return cls, constant_key(value.value)
    if isinstance(value, tuple | list):
        return cls, *map(constant_key, cast("Sequence[Any]", value))
    if isinstance(value, dict):
        items = cast("Mapping[Any, Any]", value).items()
        return cls, *((constant_key(key), constant_key(item)) for key, item in items)
    try:
        hash(value)
    except TypeError:
        return cls, repr(value)
    return cls, value


def read_constant(value: Any, parts: list[Any], slots: list[Any], rule: Parameter) -> None:
    """A compile-time value is a part of the key, and no slot."""
    cls = value.__class__
    # The common ones without a call.
    parts.append((cls, value) if cls is int or cls is bool or cls is str else constant_key(value))


def _read_int(value: int, parts: list[Any], slots: list[Any], rule: Parameter) -> None:
    if value == 1 and rule.takes_ones:
        parts.append(_ONE)
        return
    if -_I32 <= value < _I32:
        parts.append("i32")
    elif -_I64 <= value < _I64:
        parts.append("i64")
    else:
        parts.append(signature_of(rule.name, int(value)))
    slots.append(value)


def _read_float(value: float, parts: list[Any], slots: list[Any], rule: Parameter) -> None:
    parts.append("fp32")
    slots.append(value)


def _read_bool(value: Any, parts: list[Any], slots: list[Any], rule: Parameter) -> None:
    parts.append("i1")
    slots.append(bool(value))


def _read_number(value: Any, parts: list[Any], slots: list[Any], rule: Parameter) -> None:
    parts.append(value.dtype)
    slots.append(value.item())


_byte_of: Callable[[Any], Any] = ctypes.c_char.from_buffer
_address_of: Callable[[Any], int] = ctypes.addressof


class ReadOnly(int):
    """The address of an array that a kernel must not write."""


def _read_array(value: Any, parts: list[Any], slots: list[Any], rule: Parameter) -> None:
    """An array is the address of its first element; one that is read-only has a specialisation of its own."""
    parts.append(value.dtype)
    try:
        # Four times as fast as `value.ctypes.data`, for what is writable, without gaps, and of a type of C's.
        slots.append(_address_of(_byte_of(value)))
    except (TypeError, ValueError, BufferError):
        if value.flags.writeable:
            slots.append(int(value.ctypes.data))
        else:
            parts.append(ReadOnly)
            slots.append(ReadOnly(value.ctypes.data))


def _read_tensor(value: Any, parts: list[Any], slots: list[Any], rule: Parameter) -> None:
    if value.device.type != "cpu":
        raise InputTypeError(f"is on the device {value.device}: a launch on the CPU takes what is in its memory")
    parts.append(value.dtype)
    slots.append(value.data_ptr())


def _read_foreign(value: Any, parts: list[Any], slots: list[Any], rule: Parameter) -> None:
    """Read an array that gives its memory by a method of torch's, or by numpy's interface for arrays."""
    device = getattr(value, "device", None)
    if getattr(device, "type", "cpu") != "cpu":
        raise InputTypeError(f"is on the device {device}: a launch on the CPU takes what is in its memory")
    parts.append(str(value.dtype))
    if hasattr(value, "data_ptr"):
        slots.append(value.data_ptr())
    else:
        _read_array(np.asarray(value), parts, slots, rule)


def _read_tuple(value: tuple[Any, ...], parts: list[Any], slots: list[Any], rule: Parameter) -> None:
    parts.append((value.__class__, len(value)))
    for item in value:
        reader_of(item)(item, parts, slots, rule)


def _read_descriptor(value: Any, parts: list[Any], slots: list[Any], rule: Parameter) -> None:
    """A descriptor is its base, sizes and strides."""
    if getattr(value, "padding", "zero") != "zero":
        raise InputTypeError(f"pads with {value.padding}, which only a descriptor that a kernel makes can on the CPU")
    if getattr(value, "round_f32_to_tf32", False):
        raise InputTypeError("rounds to TF32, which no CPU does: leave round_f32_to_tf32 out")
    parts.append(tuple(map(int, value.block_shape)))
    reader_of(value.base)(value.base, parts, slots, rule)
    slots.extend(map(int, value.shape))
    slots.extend(map(int, value.strides))


READERS: dict[type, Reader] = {
    int: _read_int,
    float: _read_float,
    bool: _read_bool,
    tuple: _read_tuple,
    np.ndarray: _read_array,
    type(None): read_constant,
}
"""The reader of each class that was seen."""


def reader_of(value: Any) -> Reader:
    """The reader for the values of a class.

    Raises TypeError for what no kernel takes.
    """
    found = READERS.get(value.__class__)
    if found is None:
        found = READERS[value.__class__] = _new_reader(value)
    return found


def _new_reader(value: Any) -> Reader:
    if isinstance(value, bool | np.bool_):
        return _read_bool
    # Enumerations are read as the numbers that they are.
    if isinstance(value, float) and not isinstance(value, np.generic):
        return _read_float
    if isinstance(value, int):
        return lambda value, parts, slots, rule: _read_int(int(value), parts, slots, rule)
    if is_constant(value):
        return read_constant
    kinds: tuple[tuple[Any, Reader], ...] = (
        (isinstance(value, tuple), _read_tuple),
        (is_descriptor(value), _read_descriptor),
        (isinstance(value, np.generic), _read_number),
        (isinstance(value, np.ndarray), _read_array),
        (_is_of_torch(value), _read_tensor),
        (hasattr(value, "dtype") and hasattr(value, "shape"), _read_foreign),
    )
    for fits, reader in kinds:
        if fits:
            return reader
    raise InputTypeError(f"must be an array, a TensorDescriptor, a number or a tuple of them, found {_class(value)}")


def _class(value: object) -> str:
    return type(value).__name__


def _is_of_torch(value: object) -> bool:
    return any(cls.__module__ == "torch" and cls.__name__ == "Tensor" for cls in type(value).__mro__)


def split(
    rules: Sequence[Parameter], values: Sequence[Any]
) -> tuple[dict[str, Signature], dict[str, Any], list[tuple[str, Any]]]:
    """The types of runtime arguments, the compile-time ones, and each runtime value by its name, of a launch.

    Raises TypeError and OverflowError as `signature_of` does.
    """
    signature: dict[str, Signature] = {}
    constexprs: dict[str, Any] = {}
    runtime: list[tuple[str, Any]] = []
    for rule, value in zip(rules, values, strict=True):
        if rule.takes_ones:
            value = constant_ones(value)
        if rule.is_constexpr or is_constant(value):
            constexprs[rule.name] = value
            continue
        signature[rule.name] = type_of(rule, value)
        runtime.append((rule.name, value))
    return signature, constexprs, runtime


def flat_types(signature: Mapping[str, Signature]) -> list[str]:
    """The types of a kernel's slots: a descriptor has those of its base, its sizes and its strides."""
    found: list[str] = []
    for each in signature.values():
        _flatten(each, found)
    return found


def _flatten(type_: Signature, found: list[str]) -> None:
    if isinstance(type_, Fixed):
        return
    if not isinstance(type_, str):
        for item in type_:
            _flatten(item, found)
    elif type_.startswith("tensordesc<"):
        rank = type_.count(",") + 1
        found.extend(("*", *["i32"] * rank, *["i64"] * rank))
    else:
        found.append("*" if type_.startswith("*") else type_)
