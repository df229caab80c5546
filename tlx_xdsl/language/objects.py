"""Classes of values that kernels name, as annotations or in `isinstance`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn

from .composite_types import block_type, pointer_type
from .dtypes import dtype

if TYPE_CHECKING:
    from .compile_time_types import constexpr  # pyright: ignore[reportMissingModuleSource]
    from .object_members import (  # pyright: ignore[reportMissingModuleSource]
        DescriptorMembers,
        TensorMembers,
    )

    class element_type(dtype):
        """The element type of a tensor, or the type of a pointer."""

        element_ty: dtype
        """What a pointer points at; only pointers have it."""
else:
    DescriptorMembers = TensorMembers = object


__all__ = ["PropagateNan", "slice", "tensor", "tensor_descriptor", "tuple"]


class PropagateNan(Enum):
    """Result of a minimum or maximum with one NaN operand: the other operand, or NaN."""

    NONE = 0
    ALL = 0xFFFF


class tensor(TensorMembers):
    """A runtime value of a kernel: a scalar or a block of elements.

    There are no instances outside of kernels: the class is for annotations and `isinstance`. Members of the language
    (`x.sum(0)`, `x.to(tl.float16)`) are its attributes.
    """

    type: Any
    """The block's type (`block_type`), or the scalar's (`dtype` or `pointer_type`)."""
    dtype: element_type
    """The element type."""
    shape: builtins.tuple[constexpr, ...]
    """The sizes, in elements; `()` for a scalar."""
    numel: constexpr
    """Elements in all."""
    T: tensor
    """The transpose of a matrix."""

    def __init__(self, handle: Any, type: dtype | pointer_type | block_type):
        raise RuntimeError("a tl.tensor exists only inside a kernel compiled by tlx_xdsl.jit")


def _operator(name: str) -> Any:
    def operate(self: tensor, *other: Any) -> NoReturn:
        raise RuntimeError(f"tensor.{name} has a meaning only inside a kernel compiled by tlx_xdsl.jit")

    operate.__name__ = name
    return operate


_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift")
OPERATORS = (
    *(f"__{name}__" for name in _ARITHMETIC),
    *(f"__r{name}__" for name in _ARITHMETIC),
    *(f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "invert", "not", "getitem")),
)
"""Python's operators that exist on runtime values."""

for _name in OPERATORS:
    setattr(tensor, _name, _operator(_name))


if TYPE_CHECKING:

    class mask(tensor, Any):
        """The result of a comparison: a tensor of int1, which Python's `min` and `if` take for a bool."""

    class number(tensor, Any):
        """A tensor, or a number where all operands are known at compile time."""


class tensor_descriptor_base(DescriptorMembers):
    """A TMA descriptor, whose shape and strides only its maker knows."""

    dtype: element_type
    block_type: block_type
    block_shape: list[int]
    """The sizes of a block, in elements."""


class tensor_descriptor(tensor_descriptor_base):
    """A TMA descriptor: a tensor in global memory that is read and written in blocks."""

    shape: builtins.tuple[tensor, ...]
    """The tensor's sizes, int32, in elements."""
    strides: builtins.tuple[tensor, ...]
    """The tensor's strides, int64, in elements."""

    def __init__(self, handle: Any, shape: list[tensor], strides: list[tensor], block_type: block_type):
        raise RuntimeError("a descriptor is made by tl.make_tensor_descriptor inside a kernel, or on the host")


class tuple(builtins.tuple[Any, ...]):
    """A tuple of values; in kernels, every Python tuple is one."""

    def __new__(cls, args: Sequence[Any] = (), type: Any = None) -> tuple:
        """The tuple of `args`; `type` is accepted for Triton's sake and follows from them."""
        return super().__new__(cls, args)


@dataclass(frozen=True)
class slice:
    """The slice `start:stop:step` of a tuple."""

    start: Any
    stop: Any
    step: Any
