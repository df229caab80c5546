"""Tensor types, shapes, element types and the rows of the table that these are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    Builtin,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FixedBitwidthType,
    IntAttr,
    IntegerType,
    TensorType,
    i1,
)
from xdsl.ir import Attribute
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.element_types import BY_MLIR, ELEMENT_TYPES, ElementType
from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.layouts.encodings import Ints

from .pointer import PointerType


def shape_attr(shape: Sequence[int]) -> ArrayAttr[IntAttr]:
    """`shape` as an attribute parameter."""
    return ArrayAttr(IntAttr(size) for size in shape)


def shape_of(attr: ArrayAttr[IntAttr]) -> Ints:
    """The shape that an attribute parameter holds."""
    return tuple(size.data for size in attr)


def print_shaped(printer: Printer, shape: Sequence[int], element_type: Attribute) -> None:
    """Print `3x64xf16`."""
    printer.print_dimension_list(shape)
    printer.print_string("x")
    printer.print_attribute(element_type)


def as_tensor(type_: Attribute) -> TensorType[Attribute] | None:
    """`type_` when it is a ranked tensor, else None."""
    return cast(TensorType[Attribute], type_) if isinstance(type_, TensorType) else None


def tensor_type(type_: Attribute) -> TensorType[Attribute]:
    """`type_` as a ranked tensor.

    Raises VerifyException for any other type.
    """
    if (tensor := as_tensor(type_)) is None:
        raise VerifyException(f"expected a ranked tensor, found {type_}")
    return tensor


def shape_of_tensor(type_: Attribute) -> Ints:
    """The shape of a tensor type, in elements.

    Raises VerifyException for any other type.
    """
    return tensor_type(type_).get_shape()


def element_bits(element_type: Attribute) -> int:
    """Bits of one element; a pointer has 64.

    Raises TypeError for a type without a fixed width.
    """
    if isinstance(element_type, FixedBitwidthType):
        return element_type.bitwidth
    if isinstance(element_type, PointerType):
        return 64
    raise InputTypeError(f"an element of type {element_type} has no fixed width")


def integer_bits(type_: Attribute) -> int | None:
    """Bits of an integer type of any sign; None for every other type."""
    return element_bits(cast(Attribute, type_)) if isinstance(type_, IntegerType) else None


def scalar_type(type_: Attribute) -> Attribute:
    """The element type of a tensor, or the type itself."""
    tensor = as_tensor(type_)
    return type_ if tensor is None else tensor.element_type


def with_element_type(type_: Attribute, element_type: Attribute) -> Attribute:
    """`type_` with another element type: tensors keep shape and layout, a scalar becomes `element_type`."""
    if (tensor := as_tensor(type_)) is None:
        return element_type
    return TensorType(element_type, tensor.get_shape(), tensor.encoding)


def pointee_type(pointer: Attribute) -> Attribute:
    """The type that a load through `pointer` (a pointer or a tensor of pointers) yields.

    Raises VerifyException when it is no pointer.
    """
    element = scalar_type(pointer)
    if not isinstance(element, PointerType):
        raise VerifyException(f"expected a pointer or a tensor of pointers, found {pointer}")
    return with_element_type(pointer, element.pointee)


def mask_type(type_: Attribute) -> Attribute:
    """i1 in the shape and layout of `type_`."""
    return with_element_type(type_, i1)


def verify_permutation(order: DenseArrayBase[IntegerType], source: Ints, result: Ints) -> None:
    """Check that `result` is the shape `source` with its dimensions in `order`."""
    dims: Ints = tuple(order.get_values())
    if sorted(dims) != list(range(len(source))):
        raise VerifyException(f"order {list(dims)} is no permutation of the {len(source)} dimensions")
    if result != tuple(source[dim] for dim in dims):
        raise VerifyException(f"the result shape {list(result)} is not {list(source)} in the order {list(dims)}")


def splat_number(value: DenseIntOrFPElementsAttr) -> float:
    """The number of all elements of a splat; those after the first are not unpacked."""
    element: Any = value.get_element_type()
    return element.unpack(value.data.data[: element.compile_time_size], 1)[0]


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
