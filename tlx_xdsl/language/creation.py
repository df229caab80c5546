"""Functions that make blocks, and casts. `shape` is in elements; sizes are powers of two."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.language.marks import builtin

__all__ = ["arange", "cast", "cat", "full", "zeros", "zeros_like"]

_tl = builtin("tl")
_member = builtin("tl", member=True)


@_tl
def arange(start: Any, end: Any) -> Any:
    """The int32 block `start`, ..., `end` - 1; both are constexpr, the length is a power of two."""


@_tl
def full(shape: Any, value: Any, dtype: Any) -> Any:
    """A block of `shape` elements of type `dtype` that all hold the scalar `value`."""


@_tl
def zeros(shape: Any, dtype: Any) -> Any:
    """A block of `shape` zeros."""


@_tl
def zeros_like(input: Any) -> Any:
    """Zeros in the shape and type of `input`."""


@_tl
def cat(input: Any, other: Any, can_reorder: Any = False, dim: Any = 0) -> Any:
    """Both blocks, of one shape, one after the other along `dim`.

    With `can_reorder`, the elements of the two one-dimensional blocks come in any order, which is cheaper.
    """


@_member
def cast(input: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False) -> Any:
    """`input` with elements converted to `dtype`, as Triton does: floats to integers towards zero, to int1 by `!= 0`.

    `fp_downcast_rounding` ("rtne" or "rtz") is how a float becomes a smaller float; `bitcast` keeps the bits, which
    needs types of one width.
    """


@_member
def to(self: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False) -> Any:
    """Do `cast`: a method of blocks and scalars only."""
