"""Arguments of a specialised kernel's launch, made of the plain kernel's: descriptors, sizes of the grid, conditions.

What is made, and when it may be, are Python expressions over the names of the plain kernel's parameters, as the passes
wrote them into the module (`read_host_part.py`). A pointer's name is its address, `grid` the plain launch's grid, and
`elements(x_ptr)` how many elements there is memory for from that address on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import prod
from types import CodeType
from typing import Any, cast

import numpy as np

from tlx_xdsl.grid import Grid, grid_of
from tlx_xdsl.language.compile_time import unwrapped

from ..driver.host_values import is_constant, is_descriptor
from ..launch.tensor_descriptor import TensorDescriptor, element_size
from .memory import memory_beside


@dataclass(frozen=True)
class Given:
    """An argument of the plain kernel, as it is; `block` is that of a descriptor, which may be another than the
    launch's.
    """

    name: str
    block: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Described:
    """A descriptor of the memory that a pointer of the plain kernel leads to; the extents are expressions."""

    pointer: str
    shape: tuple[str, ...]
    strides: tuple[str, ...]
    block: tuple[int, ...]
    padding: str = "zero"


@dataclass(frozen=True)
class Computed:
    """A number: an expression."""

    expression: str


@dataclass(frozen=True)
class Memory:
    """Memory that a launch needs while it runs: so many elements, an expression, of a type.

    What is zero before the launch is zero after it.
    """

    count: str
    dtype: str
    is_zero: bool = False


Part = Given | Described | Computed | Memory

_KINDS: dict[str, type[Any]] = {"given": Given, "described": Described, "computed": Computed, "memory": Memory}
_FUNCTIONS: dict[str, Any] = {"__builtins__": {}, "min": min, "max": max, "abs": abs}
"""All that expressions may call."""


@dataclass(frozen=True)
class HostPart:
    """The launch of a specialised kernel: its arguments in order, and the conditions under which it may be launched."""

    parts: tuple[Part, ...]
    conditions: tuple[str, ...] = ()
    persistent: bool = False
    """True if a program takes several programs of the plain launch: as many run as fit on the GPU."""
    cluster: int = 1
    """CTAs of a cluster of such programs: there are as many programs as fill them."""
    split: int = 1
    """Programs that share the work of one of the plain launch, along x."""

    @property
    def has_memory(self) -> bool:
        """True where a launch needs memory that no other one may have at the same time."""
        return any(isinstance(part, Memory) for part in self.parts)

    def arguments(
        self, grid: Grid, named: Mapping[str, Any], programs: int
    ) -> tuple[tuple[int, int, int], list[Any]] | str:
        """The grid and the arguments for the plain launch's, or the reason why the plain kernel must be launched.

        `named` has all arguments by name; `programs` is how many programs the GPU runs at a time.
        """
        sizes = grid_of(grid, {name: unwrapped(value) for name, value in named.items()})
        names: dict[str, Any] = {**_FUNCTIONS, **{name: _number(value) for name, value in named.items()}, "grid": sizes}

        def elements(address: int) -> int:
            return max(_elements(each) for each in named.values() if _is_at(each, address))

        names["elements"] = elements
        for text, code in self._conditions:
            if not eval(code, names):  # the compiler's own text
                return f"the launch does not fit: {text} does not hold"
        values: list[Any] = []
        for part in self.parts:
            made = self._value(part, named, names)
            if isinstance(made, _Unfit):
                return made.reason
            values.append(made)
        if self.persistent:
            clusters = max(1, min(-(-prod(sizes) // self.cluster), programs // self.cluster))
            sizes = (clusters * self.cluster, 1, 1) if prod(sizes) else sizes
        return (sizes[0] * self.split, sizes[1], sizes[2]), values

    def _value(self, part: Part, named: Mapping[str, Any], names: dict[str, Any]) -> Any:
        match part:
            case Given(name, block):
                value = named[name]
                return value if block is None or not is_descriptor(value) else with_block(value, block)
            case Computed(expression):
                return eval(self._code(expression), names)  # the compiler's own text
            case Memory(count, dtype, is_zero):
                made = memory_beside(named.values(), eval(self._code(count), names), dtype, is_zero=is_zero)
                return _Unfit("the launch does not fit: its arrays are no tensors of torch") if made is None else made
            case Described(pointer, shape, strides, block, padding):
                sizes, steps = ([int(eval(self._code(each), names)) for each in group] for group in (shape, strides))
                try:
                    return TensorDescriptor(named[pointer], sizes, steps, list(block), padding)
                except ValueError as error:
                    return _Unfit(f"the launch does not fit: TMA can't address '{pointer}': {error}")

    @cached_property
    def _conditions(self) -> list[tuple[str, CodeType]]:
        return [(each, self._code(each)) for each in self.conditions]

    @cached_property
    def _codes(self) -> dict[str, CodeType]:
        return {}

    def _code(self, expression: str) -> CodeType:
        found = self._codes.get(expression)
        if found is None:
            found = self._codes[expression] = compile(expression, "<launch>", "eval")
        return found

    def as_json(self) -> dict[str, Any]:
        """The same for a file."""
        names = {kind: name for name, kind in _KINDS.items()}
        parts = [{"kind": names[type(part)], **asdict(part)} for part in self.parts]
        known = {"conditions": list(self.conditions), "persistent": self.persistent, "cluster": self.cluster}
        known["split"] = self.split
        return {"parts": parts, **known}

    @staticmethod
    def of_json(known: Mapping[str, Any]) -> HostPart:
        """Return what `as_json` has made a file of. Raises LookupError and TypeError for anything else."""
        parts: list[Part] = []
        for each in cast("list[dict[str, Any]]", known["parts"]):
            kind = _KINDS[each.pop("kind")]
            lists = {name: tuple(cast("list[Any]", value)) for name, value in each.items() if isinstance(value, list)}
            parts.append(kind(**{**each, **lists}))
        persistent, cluster, split = bool(known["persistent"]), int(known["cluster"]), int(known["split"])
        return HostPart(tuple(parts), tuple(known["conditions"]), persistent, cluster, split)


@dataclass(frozen=True)
class _Unfit:
    reason: str


def _number(value: Any) -> Any:
    """Return what an argument's name means in an expression: an address for an array."""
    if is_constant(value):
        return unwrapped(value)
    if is_descriptor(value) or isinstance(value, bool | int | float | np.generic | tuple):
        return cast(Any, value)
    return address_of(value)


def address_of(array: Any) -> int:
    """The address of an array's first element; 0 for a tensor that stands for one."""
    if isinstance(array, np.ndarray):
        return array.ctypes.data
    return int(array.data_ptr()) if callable(getattr(array, "data_ptr", None)) else 0


def _is_at(value: Any, address: int) -> bool:
    """Return whether a value is an array that begins at an address."""
    is_array = not is_constant(value) and not is_descriptor(value) and hasattr(value, "dtype")
    return is_array and address_of(value) == address


def _elements(array: Any) -> int:
    """The elements from the first one of an array to the end of its memory."""
    if isinstance(array, np.ndarray):
        _, end = np.lib.array_utils.byte_bounds(cast(Any, array))
        return (end - address_of(array)) // array.itemsize
    if not callable(getattr(array, "untyped_storage", None)):
        return int(array.numel())
    return int(array.untyped_storage().nbytes()) // element_size(array) - int(array.storage_offset())


def with_block(descriptor: Any, block: Sequence[int]) -> Any:
    """The same descriptor for another block."""
    if list(descriptor.block_shape) == list(block):
        return descriptor
    if isinstance(descriptor, TensorDescriptor):
        return replace(descriptor, block_shape=list(block))
    padding, rounds = getattr(descriptor, "padding", "zero"), bool(getattr(descriptor, "round_f32_to_tf32", False))
    return TensorDescriptor(
        descriptor.base, list(descriptor.shape), list(descriptor.strides), list(block), padding, rounds
    )  # fmt: skip
