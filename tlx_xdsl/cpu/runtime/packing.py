"""The slots of a launch as the bytes that machine code reads."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import ml_dtypes
import numpy as np

from tlx_xdsl.cpu.runtime.arguments import Rule, split
from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.runtime.driver.host_values import is_constant, is_descriptor, on_host

if TYPE_CHECKING:
    from tlx_xdsl.cpu.codegen.metadata import Metadata

_FORMATS = {
    "*": "Q",
    "i1": "?7x",
    "i8": "b7x", "u8": "B7x", "i16": "h6x", "u16": "H6x", "i32": "i4x", "u32": "I4x", "i64": "q", "u64": "Q",
    "fp16": "e6x", "bf16": "H6x", "fp32": "f4x", "fp64": "d", "fp8e4nv": "B7x", "fp8e5": "B7x",
}  # fmt: skip
"""How a number of each type lies in its slot of 8 bytes."""

_IN_OBJECTS = {
    "*": "ptr", "fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64", "fp8e4nv": "f8E4M3FN", "fp8e5": "f8E5M2",
}  # fmt: skip
"""The names that the metadata of an object has for types; integers of both signs are `i8` to `i64` there."""

_FLOATS: dict[str, Any] = {
    "fp16": np.float16, "fp32": np.float32, "fp64": np.float64, "bf16": ml_dtypes.bfloat16,
    "fp8e4nv": ml_dtypes.float8_e4m3fn, "fp8e5": ml_dtypes.float8_e5m2,
}  # fmt: skip

_AS_BITS = frozenset(("bf16", "fp8e4nv", "fp8e5"))
"""Floats that Python's `struct` does not know."""

_RANGES = struct.Struct("<qq")
_UNLIMITED = (0, -1)


class Packer:
    """Packs the slots of one specialisation.

    `types` are those of the slots, in Triton's spelling, and `rules` those of the kernel's parameters.
    """

    def __init__(self, types: Sequence[str], metadata: Metadata, rules: Sequence[Rule]):
        wanted = [each.type for each in metadata.arguments]
        given = [_IN_OBJECTS.get(each, f"i{each[1:]}") for each in types]
        if wanted != given:
            raise AssertionError(f"{metadata.name} takes {', '.join(wanted)}, its signature has {', '.join(given)}")
        self._types = tuple(types)
        self._rules = rules
        self._pack: Callable[..., bytes] = struct.Struct("<" + "".join(_FORMATS[each] for each in types)).pack
        self._converts = not _AS_BITS.isdisjoint(types)
        self._checks = metadata.checks

    def __call__(self, slots: Sequence[Any], values: Sequence[Any]) -> bytes:
        """The bytes of the slots; with checks, the addresses that may be touched through each follow."""
        try:
            packed = self._pack(*(self._converted(slots) if self._converts else slots))
        except (struct.error, OverflowError):
            packed = self._pack(*self._converted(slots))
        return packed + self._ranges(values) if self._checks else packed

    def _converted(self, slots: Sequence[Any]) -> list[Any]:
        return [_converted(type_, value) for type_, value in zip(self._types, slots, strict=True)]

    def _ranges(self, values: Sequence[Any]) -> bytes:
        _, _, runtime = split(self._rules, values)
        found = [each for name, value in runtime for each in _ranges_of(name, value)]
        return b"".join(_RANGES.pack(*each) for each in found)


def _converted(type_: str, value: Any) -> Any:
    """A number as one of a type: a float is rounded, an integer keeps its low bits.

    Raises TypeError for a fraction that is to be an integer.
    """
    if type_ in _FLOATS:
        with np.errstate(over="ignore"):
            number = np.asarray(value).astype(_FLOATS[type_])
        return int(number.view(f"u{number.itemsize}")) if type_ in _AS_BITS else float(number)
    if type_ in ("*", "i1"):
        return value
    if value != int(value):
        raise InputTypeError(f"a parameter of the type {type_} can't be {value}")
    bits = int(type_[1:])
    number = int(value) % (1 << bits)
    return number - (1 << bits) if type_[0] == "i" and number >> (bits - 1) else number


def _ranges_of(name: str, value: Any) -> list[tuple[int, int]]:
    """The first address and that after the last one of the memory of each slot of a value."""
    if is_constant(value):
        return []
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        return [found for item in items for found in _ranges_of(name, item)]
    if is_descriptor(value):
        return [*_ranges_of(name, value.base), *[_UNLIMITED] * (2 * len(value.shape))]
    if isinstance(value, bool | int | float | np.generic):
        return [_UNLIMITED]
    array = on_host(name, value)
    start = int(array.ctypes.data)
    return [np.lib.array_utils.byte_bounds(array) if array.size else (start, start)]
