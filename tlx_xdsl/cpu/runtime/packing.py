"""The slots of a launch as the bytes that machine code reads."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from tlx_xdsl.element_types import BY_NAME, BY_SPELLING
from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.frontend.python.source import Parameter
from tlx_xdsl.numerics.arrays import numpy_type
from tlx_xdsl.runtime.driver.host_values import is_constant, is_descriptor, on_host

from ..codegen.metadata import Metadata
from .arguments import split

_ADDRESS = "*"


def _format(type_: str) -> str:
    """The format in which a number of a type lies in its slot of 8 bytes."""
    if type_ == _ADDRESS:
        return "Q"
    element = BY_SPELLING[type_]
    letter = element.letter or BY_NAME[f"uint{element.bits}"].letter
    return f"{letter}{8 - element.bytes}x"


def _is_packed_as_bits(type_: str) -> bool:
    """Say whether numbers of a type are floats that Python's `struct` does not know."""
    return type_ != _ADDRESS and BY_SPELLING[type_].letter is None


def _in_object(type_: str) -> str:
    """The name that the metadata of an object has for a type; integers of both signs are `i8` to `i64` there."""
    return "ptr" if type_ == _ADDRESS else BY_SPELLING[type_].mlir


_RANGES = struct.Struct("<qq")
_UNLIMITED = (0, -1)


class Packer:
    """Packs the slots of one specialisation.

    `types` are those of the slots, in Triton's spelling, and `rules` those of the kernel's parameters.
    """

    def __init__(self, types: Sequence[str], metadata: Metadata, rules: Sequence[Parameter]):
        wanted = [each.type for each in metadata.arguments]
        given = [_in_object(each) for each in types]
        if wanted != given:
            raise AssertionError(f"{metadata.name} takes {', '.join(wanted)}, its signature has {', '.join(given)}")
        self._types = tuple(types)
        self._rules = rules
        self._pack: Callable[..., bytes] = struct.Struct("<" + "".join(map(_format, types))).pack
        self._converts = any(map(_is_packed_as_bits, types))
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
    if type_ in (_ADDRESS, "i1"):
        return value
    if BY_SPELLING[type_].kind == "f":
        with np.errstate(over="ignore"):
            number = np.asarray(value).astype(numpy_type(BY_SPELLING[type_]))
        return int(number.view(f"u{number.itemsize}")) if _is_packed_as_bits(type_) else float(number)
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
