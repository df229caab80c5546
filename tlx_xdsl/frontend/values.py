"""What an expression of a kernel can be while it is compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.ir import SSAValue

from tlx_xdsl.language.core import dtype, pointer_type


@dataclass(frozen=True, eq=False)
class Constexpr:
    """A Python object known at compile time: a number, a type, a function, a module."""

    value: Any

    def describe(self) -> str:
        """The value in words, for error messages."""
        return f"the constexpr {self.value!r}"


@dataclass(frozen=True, eq=False)
class Tensor:
    """A runtime value: a scalar (shape `()`) or a block."""

    ssa: SSAValue
    dtype: dtype | pointer_type
    shape: tuple[int, ...] = ()

    def describe(self) -> str:
        """The value in words, for error messages."""
        if not self.shape:
            return f"a runtime value of type {self.dtype}"
        return f"a block of type {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, eq=False)
class BufferedTensor:
    """Buffers in shared memory: `num` of them, or one view when `num` is 0."""

    ssa: SSAValue
    dtype: dtype
    shape: tuple[int, ...]
    """Shape of one buffer, in elements."""
    num: int

    def describe(self) -> str:
        """The value in words, for error messages."""
        what = f"{self.num} buffers" if self.num else "a buffer"
        return f"{what} of type {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, eq=False)
class MBarriers:
    """mbarriers: `num` of them, or one when `num` is 0."""

    ssa: SSAValue
    num: int

    def describe(self) -> str:
        """The value in words, for error messages."""
        return f"an array of {self.num} mbarriers" if self.num else "an mbarrier"


@dataclass(frozen=True, eq=False)
class TensorDescriptor:
    """A TMA descriptor with the tensor's shape (int32, elements) and strides (int64, elements)."""

    ssa: SSAValue
    dtype: dtype
    block_shape: tuple[int, ...]
    shape: tuple[Tensor, ...]
    strides: tuple[Tensor, ...]

    def describe(self) -> str:
        """The value in words, for error messages."""
        return f"a tensor descriptor with blocks of type {self.dtype}[{', '.join(map(str, self.block_shape))}]"


@dataclass(frozen=True, eq=False)
class StorageAliasSpec:
    """A region that allocations share."""

    ssa: SSAValue

    def describe(self) -> str:
        """The value in words, for error messages."""
        return "a storage_alias_spec"


@dataclass(frozen=True, eq=False)
class ReuseGroup:
    """A node of an overlap tree."""

    ssa: SSAValue

    def describe(self) -> str:
        """The value in words, for error messages."""
        return "a reuse_group"


@dataclass(frozen=True, eq=False)
class TupleValue:
    """A tuple or list of values."""

    items: tuple[Value, ...]

    def describe(self) -> str:
        """The value in words, for error messages."""
        return f"a tuple of {len(self.items)} values"


@dataclass(frozen=True, eq=False)
class Method:
    """A method of a value, not called yet."""

    receiver: Value
    name: str

    def describe(self) -> str:
        """The value in words, for error messages."""
        return f"the method '{self.name}'"


Value: TypeAlias = (
    Constexpr
    | Tensor
    | BufferedTensor
    | MBarriers
    | TensorDescriptor
    | StorageAliasSpec
    | ReuseGroup
    | TupleValue
    | Method
)
"""Any of the above."""

NONE = Constexpr(None)
