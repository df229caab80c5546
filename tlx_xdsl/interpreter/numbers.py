"""The numpy types of values of the IR.

A scalar is a numpy scalar, a tensor an array of its shape. Integers are signless in the IR and held signed;
pointers are 64-bit addresses. Types that numpy lacks (bf16, 8-bit floats) come from `ml_dtypes`, which rounds to
nearest even.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import ml_dtypes
import numpy as np
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
from tlx_xdsl.errors import InputTypeError

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
    raise InputTypeError(f"no numbers have the type {type_}")
