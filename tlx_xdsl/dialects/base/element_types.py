"""The types of MLIR for the rows of the table of element types."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import Builtin, IntegerType
from xdsl.ir import Attribute

from tlx_xdsl.element_types import BY_MLIR, ELEMENT_TYPES, ElementType

from .tensors import integer_bits

_TYPES: dict[str, Attribute] = {
    **{each.mlir: IntegerType(each.bits) for each in ELEMENT_TYPES if each.kind != "f"},
    **{each.name: cast(Any, each)() for each in Builtin.attributes if each.name in BY_MLIR},
}


def attribute_of(element: ElementType) -> Attribute:
    """The type of MLIR that holds the elements of a type; its integers have no sign."""
    return _TYPES[element.mlir]


def element_type_of(type_: Attribute) -> ElementType | None:
    """The row of a scalar type of MLIR, integers of either sign as signed ones; None where the table has none."""
    bits = integer_bits(type_)
    return BY_MLIR.get(type_.name if bits is None else f"i{bits}")
