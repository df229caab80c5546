"""Launches as they can be made again: copies of what their arguments hold. Triton is not imported."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.runtime.driver.host_values import is_constant, is_descriptor, on_host
from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor

_LINE = 64
"""The alignment in bytes that copies keep: a kernel is compiled for what its addresses are multiples of."""

MOST_BYTES = 1 << 26
"""Bytes of the arrays of a launch that is recorded."""

MOST_LAUNCHES = 1000
"""Launches of a process that are recorded."""


@dataclass(frozen=True)
class Recorded:
    """A launch, as it can be made again."""

    source: KernelSource
    grid: tuple[int, int, int]
    arguments: Callable[[], Mapping[str, Any]]
    """Makes the arguments, with what they held before the launch."""
    options: Mapping[str, Any]
    """The options of the launch that are those of a compile."""
    target: str
    size: int
    """Bytes of the arrays."""
    identity: str
    """The types, shapes and numbers of the arguments."""


RECORD: list[Recorded] = []
"""The launches of this process."""


class Frozen:
    """Copies of the memory of arguments, in which arrays overlap as they did."""

    def __init__(self, arguments: Mapping[str, Any], constants: Collection[str] = ()):
        """Copy what arguments hold, but `constants`, which a kernel is compiled for and which may be anything."""
        self._memory: dict[tuple[int, int], NDArray[np.uint8]] = {}
        self._parts = {
            name: value if name in constants else self._frozen(name, value) for name, value in arguments.items()
        }
        self.size = sum(len(each) for each in self._memory.values())
        self.identity = ", ".join(f"{name}={_shown(part)}" for name, part in self._parts.items())

    def thawed(self) -> dict[str, Any]:
        """Return the arguments, in memory of their own."""
        memory = {place: _at_alignment(data, place[0] % _LINE) for place, data in self._memory.items()}
        return {name: _thawed(part, memory) for name, part in self._parts.items()}

    def _frozen(self, name: str, value: Any) -> Any:
        if is_constant(value):
            return value
        if isinstance(value, tuple):
            items = [self._frozen(name, each) for each in cast("tuple[Any, ...]", value)]
            cls: Any = type(cast("tuple[Any, ...]", value))
            return cls(*items) if hasattr(cls, "_fields") else tuple(items)
        given: Any = value if isinstance(value, str) else on_host(name, value)
        if is_descriptor(given):
            return _Descriptor(self._array(given.base), given)
        return self._array(given.view(np.ndarray)) if isinstance(given, np.ndarray) else given

    def _array(self, array: NDArray[Any]) -> _Array:
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        start, end = (int(each) for each in np.lib.array_utils.byte_bounds(root))
        place = (start, end - start)
        if place not in self._memory:
            whole = np.ndarray((end - start,), np.uint8, root.reshape(-1).view(np.uint8)) if root.size else _NOTHING
            self._memory[place] = whole.copy()
        return _Array(place, array.ctypes.data - start, array.shape, array.strides, array.dtype)


_NOTHING = np.zeros(0, np.uint8)


@dataclass(frozen=True)
class _Array:
    """Place of an array in the copied memory; offset and strides are in bytes."""

    place: tuple[int, int]
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class _Descriptor:
    """A tensor descriptor, and its array."""

    base: _Array
    like: TensorDescriptor


def _thawed(part: Any, memory: Mapping[tuple[int, int], NDArray[np.uint8]]) -> Any:
    match part:
        case _Array():
            if not prod(part.shape):
                return np.zeros(part.shape, part.dtype)
            return np.ndarray(part.shape, part.dtype, memory[part.place], part.offset, part.strides)
        case _Descriptor():
            like = part.like
            return TensorDescriptor(
                _thawed(part.base, memory), list(like.shape), list(like.strides), list(like.block_shape), like.padding,
                like.round_f32_to_tf32,
            )  # fmt: skip
        case tuple():
            items = [_thawed(each, memory) for each in cast("tuple[Any, ...]", part)]
            cls: Any = type(cast("tuple[Any, ...]", part))
            return cls(*items) if hasattr(cls, "_fields") else tuple(items)
        case _:
            return part


def _at_alignment(data: NDArray[np.uint8], rest: int) -> NDArray[np.uint8]:
    """Return a copy at an address that leaves this rest."""
    room = np.empty(len(data) + _LINE, np.uint8)
    start = (rest - room.ctypes.data) % _LINE
    found = room[start : start + len(data)]
    found[...] = data
    return found


def _shown(part: Any) -> str:
    if isinstance(part, _Array):
        return f"{part.dtype}{list(part.shape)}{'' if part.offset == 0 else f'+{part.offset}'}{list(part.strides)}"
    if isinstance(part, _Descriptor):
        return f"desc({_shown(part.base)}, {list(part.like.block_shape)})"
    return getattr(part, "__qualname__", None) or repr(part)
