"""The numpy types of values of the IR.

A scalar is a numpy scalar, a tensor an array of its shape. Integers are signless in the IR and held signed;
pointers are 64-bit addresses. Types that numpy lacks (bf16, 8-bit floats) come from `ml_dtypes`, which rounds to
nearest even.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute

from tlx_xdsl.dialects.base import as_tensor, element_type_of
from tlx_xdsl.dialects.tt import PointerType
from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.numerics.arrays import Dtype, numpy_type


@lru_cache(maxsize=1024)
def dtype_of(type_: Attribute) -> Dtype:
    """The numpy type of a scalar, or of the elements of a tensor.

    Raises TypeError for a type that holds no numbers. Integers without a numpy type of their width are Python
    integers in an array of objects.
    """
    if (tensor := as_tensor(type_)) is not None:
        type_ = tensor.element_type
    if (found := element_type_of(type_)) is not None:
        return numpy_type(found)
    if isinstance(type_, IndexType | PointerType):
        return np.dtype(np.int64)
    if isinstance(type_, IntegerType):
        return np.dtype(object)
    raise InputTypeError(f"no numbers have the type {type_}")
