"""Classes of values that kernels name, as annotations or in `isinstance`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn

from tlx_xdsl.language.composite_types import block_type, pointer_type
from tlx_xdsl.language.dtypes import dtype

if TYPE_CHECKING:
    from tlx_xdsl.language import creation, math, matrix, memory, reduction, shape as shapes, standard
    from tlx_xdsl.language.arguments import Value, Values
    from tlx_xdsl.language.compile_time_types import constexpr  # pyright: ignore[reportMissingModuleSource]

    class element_type(dtype):
        """The element type of a tensor, or the type of a pointer."""

        element_ty: dtype
        """What a pointer points at; only pointers have it."""


__all__ = ["PropagateNan", "slice", "tensor", "tensor_descriptor", "tuple"]


class PropagateNan(Enum):
    """Result of a minimum or maximum with one NaN operand: the other operand, or NaN."""

    NONE = 0
    ALL = 0xFFFF


class tensor:
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

    if TYPE_CHECKING:
        # Python calls these by their names, `_operator` makes them.
        def _binary(self, other: Value, /) -> tensor: ...
        def _comparison(self, other: Value, /) -> mask: ...
        def _unary(self) -> tensor: ...

        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = _binary
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = _binary
        __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = _binary
        __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = _binary
        __lt__ = __le__ = __gt__ = __ge__ = _comparison

        def __eq__(self, other: Value, /) -> mask: ...  # type: ignore[override]  # pyright: ignore
        def __ne__(self, other: Value, /) -> mask: ...  # type: ignore[override]  # pyright: ignore

        __neg__ = __invert__ = _unary

        def __getitem__(self, index: Any, /) -> tensor: ...
        def __hash__(self) -> int: ...
        # A scalar may be the condition of `if`, and an end of `range`.
        def __bool__(self) -> bool: ...
        def __index__(self) -> int: ...

        # The functions that are methods, which the package sets (`marks.MEMBERS`).
        cast = creation.cast
        to = creation.to
        abs = math.abs
        cdiv = math.cdiv
        ceil = math.ceil
        cos = math.cos
        erf = math.erf
        exp = math.exp
        exp2 = math.exp2
        floor = math.floor
        log = math.log
        log2 = math.log2
        logical_and = math.logical_and
        logical_or = math.logical_or
        rsqrt = math.rsqrt
        sin = math.sin
        sqrt = math.sqrt
        sqrt_rn = math.sqrt_rn
        gather = matrix.gather
        histogram = matrix.histogram
        advance = memory.advance
        atomic_add = memory.atomic_add
        atomic_and = memory.atomic_and
        atomic_cas = memory.atomic_cas
        atomic_load = memory.atomic_load
        atomic_max = memory.atomic_max
        atomic_min = memory.atomic_min
        atomic_or = memory.atomic_or
        atomic_poll = memory.atomic_poll
        atomic_store = memory.atomic_store
        atomic_xchg = memory.atomic_xchg
        atomic_xor = memory.atomic_xor
        store = memory.store
        argmax = reduction.argmax
        argmin = reduction.argmin
        associative_scan = reduction.associative_scan
        cumprod = reduction.cumprod
        cumsum = reduction.cumsum
        max = reduction.max
        min = reduction.min
        reduce = reduction.reduce
        reduce_or = reduction.reduce_or
        sum = reduction.sum
        xor_sum = reduction.xor_sum
        broadcast_to = shapes.broadcast_to
        expand_dims = shapes.expand_dims
        item = shapes.item
        permute = shapes.permute
        ravel = shapes.ravel
        reshape = shapes.reshape
        split = shapes.split
        trans = shapes.trans
        view = shapes.view
        flip = standard.flip
        sigmoid = standard.sigmoid
        softmax = standard.softmax
        sort = standard.sort


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


class tensor_descriptor_base:
    """A TMA descriptor, whose shape and strides only its maker knows."""

    dtype: element_type
    block_type: block_type
    block_shape: list[int]
    """The sizes of a block, in elements."""

    if TYPE_CHECKING:

        def load(self, offsets: Values, /) -> tensor:
            """The block at `offsets`, in elements."""
            ...

        def store(self, offsets: Values, value: tensor, store_reduce: str = "") -> None:
            """Write a block at `offsets`; `store_reduce` combines it with what is there."""
            ...

        def gather(self, x_offsets: tensor, y_offset: Value) -> tensor:
            """The rows `x_offsets`, from column `y_offset` on."""
            ...

        def scatter(self, value: tensor, x_offsets: tensor, y_offset: Value) -> None:
            """Write the rows of a block to the rows `x_offsets`, from column `y_offset` on."""
            ...

        def _atomic(self, offsets: Values, value: tensor) -> None:
            """Combine a block with what is at `offsets`, atomically."""
            ...

        atomic_add = atomic_min = atomic_max = atomic_and = atomic_or = atomic_xor = _atomic


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
