"""How values of the IR are held in numpy: element types, constants, and rounding to what the hardware multiplies.

A scalar is a numpy scalar, a tensor an array of its shape. Integers are signless in the IR and held signed;
pointers are 64-bit addresses. Types that numpy lacks (bf16, 8-bit floats) come from `ml_dtypes`, which rounds to
nearest even.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3B11FNUZType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E4M3Type,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
)
from xdsl.ir import Attribute

from tlx_xdsl.dialects.base.tensors import as_tensor
from tlx_xdsl.dialects.tt.types import PointerType

Array: TypeAlias = NDArray[Any]
"""A numpy array or scalar of any element type."""

_FLOATS: dict[type[Attribute], Any] = {
    Float16Type: np.float16,
    Float32Type: np.float32,
    Float64Type: np.float64,
    BFloat16Type: ml_dtypes.bfloat16,
    Float8E4M3FNType: ml_dtypes.float8_e4m3fn,
    Float8E4M3FNUZType: ml_dtypes.float8_e4m3fnuz,
    Float8E4M3B11FNUZType: ml_dtypes.float8_e4m3b11fnuz,
    Float8E4M3Type: ml_dtypes.float8_e4m3,
    Float8E5M2Type: ml_dtypes.float8_e5m2,
    Float8E5M2FNUZType: ml_dtypes.float8_e5m2fnuz,
}
_INTEGERS = {1: np.bool_, 4: ml_dtypes.int4, 8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


@lru_cache(maxsize=1024)
def dtype_of(type_: Attribute) -> np.dtype[Any]:
    """The numpy type of a scalar, or of the elements of a tensor.

    Raises TypeError for a type that holds no numbers. Integers without a numpy type of their width are Python
    integers in an array of objects.
    """
    if (tensor := as_tensor(type_)) is not None:
        type_ = tensor.element_type
    if (found := _FLOATS.get(type(type_))) is not None:
        return np.dtype(found)
    if isinstance(type_, IndexType | PointerType):
        return np.dtype(np.int64)
    if isinstance(type_, IntegerType):
        width = cast(int, type_.width.data)  # pyright: ignore[reportUnknownMemberType]
        return np.dtype(_INTEGERS.get(width, object))
    raise TypeError(f"no numbers have the type {type_}")


def is_small_float(dtype: np.dtype[Any]) -> bool:
    """Whether a floating-point type is narrower than f32: arithmetic on it is done in f32 and rounded."""
    return dtype.itemsize < 4 and (dtype.kind == "f" or dtype.name.startswith(("bfloat", "float")))


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether `dtype` is a floating-point type, ours included."""
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float"))


def unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The unsigned type of the same width as a signed integer; i1 stays."""
    return dtype if dtype.kind == "b" else np.dtype(f"u{dtype.itemsize}")


def poison(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Values whose every bit is set: NaN as a float, -1 as an integer."""
    if dtype.kind == "b":
        return np.ones(shape, dtype)
    return np.full(shape, 0xFF, np.uint8)[..., None].repeat(dtype.itemsize, -1).view(dtype)[..., 0]


def where(condition: Any, a: Any, b: Any) -> Array:
    """`numpy.where`, which gives a scalar for scalars."""
    return cast(Array, np.where(condition, a, b)[()])


def truncate_tf32(values: Array) -> Array:
    """f32 as the tensor cores read it for tf32: the low 13 bits of the mantissa play no part."""
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
