"""The launch of a kernel: its grid, and the values of its arguments as all programs have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from tlx_xdsl.analysis.integers.transfer import bits_of
from tlx_xdsl.dialects import tt

from .values import Descriptor, Number, Pointer, Truth, Unknown, Value, constant


@dataclass(frozen=True)
class Launch:
    """The launch of a kernel, as far as it is known."""

    grid: tuple[int, int, int]
    numbers: Mapping[str, int] = field(default_factory=dict[str, int])
    """Values of integer arguments."""
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])
    """Sizes in elements of the arrays of pointers and descriptors, which are contiguous."""

    @property
    def programs(self) -> int:
        """The number of programs in the grid."""
        return prod(self.grid)

    def place(self, number: int) -> tuple[int, int, int]:
        """The ids of a program along x, y and z; programs are numbered along x first."""
        x, y, _ = self.grid
        return number % x, number // x % y, number // (x * y)


def argument_names(function: tt.FuncOp) -> dict[SSAValue, str]:
    """The arguments of a kernel by name: that of the parameter, else by number; the parts of a tuple by both."""
    arguments = function.body.blocks[0].args
    count = Counter(each.name_hint for each in arguments)
    return {
        each: f"arg{each.index}"
        if each.name_hint is None
        else each.name_hint + (f".{each.index}" if count[each.name_hint] > 1 else "")
        for each in arguments
    }


def argument_values(names: Mapping[SSAValue, str], launch: Launch) -> list[tuple[SSAValue, Value]]:
    sizes = _extents(names, launch)
    result: list[tuple[SSAValue, Value]] = []
    for argument, name in names.items():
        bits = bits_of(argument)
        number = sizes.get(name, launch.numbers.get(name))
        value: Value
        match argument.type:
            case tt.PointerType():
                value = Pointer(argument, constant(0))
            case tt.TensorDescType():
                value = _descriptor(argument, name, launch)
            case TensorType():
                value = Unknown(f"it depends on '{name}', which is a tensor")
            case _ if bits is None or number is None:
                what = "it is no integer" if bits is None else "it has no value"
                value = Unknown(f"it depends on '{name}', and {what}")
            case _:
                value = Truth((np.full(1, bool(number)),)) if bits == 1 else constant(number, bits=bits)
        result.append((argument, value))
    return result


def _descriptor(argument: SSAValue, name: str, launch: Launch) -> Value:
    if name not in launch.shapes:
        return Unknown(f"the shape of '{name}' is not given", argument)
    shape = launch.shapes[name]
    numbers = tuple(constant(size) for size in shape)
    strides = tuple(constant(prod(shape[dim + 1 :])) for dim in range(len(shape)))
    return Descriptor(Pointer(argument, Number((np.zeros(1, np.int64),))), numbers, strides)


def _extents(names: Mapping[SSAValue, str], launch: Launch) -> dict[str, int]:
    """The arguments that hold shape and strides of a descriptor: the frontend puts them after it."""
    found: dict[str, int] = {}
    for argument, name in names.items():
        if isinstance(argument.type, tt.TensorDescType) and name in launch.shapes:
            shape = launch.shapes[name]
            for dim, size in enumerate(shape):
                found[f"{name}.shape.{dim}"] = size
                found[f"{name}.stride.{dim}"] = prod(shape[dim + 1 :])
    return found
