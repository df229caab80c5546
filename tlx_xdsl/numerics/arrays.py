"""Arrays of any element type, those of `ml_dtypes` (bf16, 8-bit floats) included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.element_types import ElementType

Array: TypeAlias = NDArray[Any]
"""A numpy array or scalar of any element type."""
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]
Dtype: TypeAlias = np.dtype[Any]

Unary: TypeAlias = Callable[[Array], Any]
"""A function of one array."""
Binary: TypeAlias = Callable[[Array, Array], Any]
"""A function of two."""
Ternary: TypeAlias = Callable[[Array, Array, Array], Any]
"""A function of three."""


def numpy_type(element: ElementType) -> Dtype:
    """The numpy type that holds the elements of a type; bytes where no library has it."""
    return np.dtype(getattr(ml_dtypes, element.numpy, element.numpy))


def is_small_float(dtype: Dtype) -> bool:
    """Return whether a floating-point type is narrower than f32: arithmetic on it is done in f32 and rounded."""
    return dtype.itemsize < 4 and (dtype.kind == "f" or dtype.name.startswith(("bfloat", "float")))


def is_float(dtype: Dtype) -> bool:
    """Return whether `dtype` is a floating-point type, ours included."""
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float"))


def unsigned(dtype: Dtype) -> Dtype:
    """The unsigned type of the same width as a signed integer; i1 stays."""
    return dtype if dtype.kind == "b" else np.dtype(f"u{dtype.itemsize}")


def poison(shape: tuple[int, ...], dtype: Dtype) -> Array:
    """Values whose every bit is set: NaN as a float, -1 as an integer."""
    if dtype.kind == "b":
        return np.ones(shape, dtype)
    return np.full(shape, 0xFF, np.uint8)[..., None].repeat(dtype.itemsize, -1).view(dtype)[..., 0]


def where(condition: Any, a: Any, b: Any) -> Array:
    """`numpy.where`, which gives a scalar for scalars."""
    return cast(Array, np.where(condition, a, b)[()])


def distinct(values: Array) -> Array:
    """The distinct values in ascending order, as a vector; none may be NaN.

    `numpy.unique` gives the same. Since numpy 2.3 it hashes, which takes 20 times as long as a sort.
    """
    ordered = np.sort(values, axis=None)
    return ordered[np.concatenate((ordered[:1] == ordered[:1], ordered[1:] != ordered[:-1]))]


def truncate_tf32(values: Array) -> Array:
    """f32 as the tensor cores read it for tf32: the low 13 bits of the mantissa play no part."""
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
