"""Functions that make blocks, and casts. `shape` is in elements; sizes are powers of two."""

from __future__ import annotations

from .arguments import Flag, Int, Shape, Text, Type, Value
from .dtypes import base_type
from .marks import builtin
from .objects import tensor

__all__ = ["arange", "cast", "cat", "full", "zeros", "zeros_like"]

_tl = builtin("tl")
_member = builtin("tl", member=True)


@_tl
def arange(start: Int, end: Int) -> tensor:
    """The int32 block `start`, ..., `end` - 1; both are constexpr, the length is a power of two."""
    ...


@_tl
def full(shape: Shape, value: Value, dtype: Type) -> tensor:
    """A block of `shape` elements of type `dtype` that all hold the scalar `value`."""
    ...


@_tl
def zeros(shape: Shape, dtype: Type) -> tensor:
    """A block of `shape` zeros."""
    ...


@_tl
def zeros_like(input: Value) -> tensor:
    """Zeros in the shape and type of `input`."""
    ...


@_tl
def cat(input: tensor, other: tensor, can_reorder: Flag = False, dim: Int = 0) -> tensor:
    """Both blocks, of one shape, one after the other along `dim`.

    With `can_reorder`, the elements of the two one-dimensional blocks come in any order, which is cheaper.
    """
    ...


@_member
def cast(
    input: Value, dtype: Type | base_type, fp_downcast_rounding: Text | None = None, bitcast: Flag = False
) -> tensor:
    """`input` with elements converted to `dtype`, as Triton does: floats to integers towards zero, to int1 by `!= 0`.

    `fp_downcast_rounding` ("rtne" or "rtz") is how a float becomes a smaller float; `bitcast` keeps the bits, which
    needs types of one width.
    """
    ...


@_member
def to(self: Value, dtype: Type | base_type, fp_downcast_rounding: Text | None = None, bitcast: Flag = False) -> tensor:
    """Do `cast`: a method of blocks and scalars only."""
    ...
