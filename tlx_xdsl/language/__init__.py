"""The `tl` language of kernels: `import tlx_xdsl.language as tl`.

Names and meaning are those of `triton.language`. In the signatures below, `tensor` stands for a scalar or a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from tlx_xdsl.language.core import (
    bfloat16,
    builtin,
    constexpr,
    dtype,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    int64,
    pointer_type,
    uint8,
    uint16,
    uint32,
    uint64,
)

__all__ = [
    "arange",
    "bfloat16",
    "cdiv",
    "constexpr",
    "dtype",
    "float8e4nv",
    "float8e5",
    "float16",
    "float32",
    "float64",
    "full",
    "int1",
    "int8",
    "int16",
    "int32",
    "int64",
    "load",
    "maximum",
    "minimum",
    "num_programs",
    "pointer_type",
    "program_id",
    "range",
    "static_range",
    "store",
    "tensor",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "where",
    "zeros",
]

tensor: TypeAlias = Any
"""A scalar or a block of elements; kernels meet it as an annotation only."""

_tl = builtin("tl")


@_tl
def program_id(axis: int) -> Any:
    """The index of this program along `axis` (0, 1 or 2) of the grid, an int32."""


@_tl
def num_programs(axis: int) -> Any:
    """The size of the grid along `axis` (0, 1 or 2), an int32."""


@_tl
def arange(start: int, end: int) -> Any:
    """The int32 block `start`, ..., `end` - 1; its length must be a power of two."""


@_tl
def full(shape: Sequence[int], value: Any, dtype: dtype) -> Any:
    """A block of `shape` elements that all hold `value`."""


@_tl
def zeros(shape: Sequence[int], dtype: dtype) -> Any:
    """A block of `shape` zeros."""


@_tl
def load(pointer: Any, mask: Any = None, other: Any = None) -> Any:
    """Read through a pointer or a block of pointers; where `mask` is false the result is `other`."""


@_tl
def store(pointer: Any, value: Any, mask: Any = None) -> Any:
    """Write through a pointer or a block of pointers where `mask` is true."""


@_tl
def where(condition: Any, x: Any, y: Any) -> Any:
    """`x` where `condition` holds, else `y`, element by element."""


@_tl
def minimum(x: Any, y: Any) -> Any:
    """The smaller of `x` and `y`, element by element."""


@_tl
def maximum(x: Any, y: Any) -> Any:
    """The larger of `x` and `y`, element by element."""


@_tl
def cdiv(x: Any, div: Any) -> Any:
    """`x` / `div`, rounded up, for positive integers."""


@_tl
def range(arg1: Any, arg2: Any = None, step: Any = None) -> Any:
    """A loop range, as Python's `range`."""


@_tl
def static_range(arg1: Any, arg2: Any = None, step: Any = None) -> Any:
    """A range of compile-time integers: the loop is unrolled by the frontend."""
