"""The types of arguments that IR states."""

from __future__ import annotations

from xdsl.ir import Attribute

from tlx_xdsl.dialects.memref import element_of, is_memref
from tlx_xdsl.dialects.tt.types import PointerType, TensorDescType
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.tools.launch_line.argument_values import Hint


def hint_of_type(type_: Attribute) -> Hint:
    """Return what the type of a function's argument says."""
    if isinstance(type_, TensorDescType):
        return Hint(dtype_of(type_.element_type), type_.shape)
    if isinstance(type_, PointerType):
        return Hint(dtype_of(type_.pointee))
    if is_memref(type_):
        return Hint(dtype_of(element_of(type_)))
    return Hint(dtype_of(type_), (), is_number=True)
