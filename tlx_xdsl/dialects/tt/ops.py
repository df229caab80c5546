"""Tensor operations of `tt`: creation, shape, pointers and memory (TritonOps.td)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import IntegerAttr, TensorType, i1, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.dialects.tt.shape_ops import shape_of_tensor
from tlx_xdsl.dialects.tt.types import PointerType
from tlx_xdsl.dialects.ttg.types import as_tensor


def scalar_type(type_: Attribute) -> Attribute:
    """The element type of a tensor, or the type itself."""
    tensor = as_tensor(type_)
    return type_ if tensor is None else tensor.element_type


def with_element_type(type_: Attribute, element_type: Attribute) -> Attribute:
    """`type_` with another element type: tensors keep shape and layout, a scalar becomes `element_type`."""
    if (tensor := as_tensor(type_)) is None:
        return element_type
    return TensorType(element_type, tensor.get_shape(), tensor.encoding)


@irdl_op_definition
class MakeRangeOp(IRDLOperation):
    """The integers `start` to `end` - 1.

    Example: `%0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>`
    """

    name = "tt.make_range"

    end = prop_def(IntegerAttr.constr(i32))
    start = prop_def(IntegerAttr.constr(i32))
    result = result_def(TensorType)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def verify_(self) -> None:
        """The result has one element per integer of the range."""
        count = self.end.value.data - self.start.value.data
        shape = self.result.type.get_shape()
        if shape != (count,):
            raise VerifyException(f"the range has {count} elements, the result has shape {list(shape)}")


@irdl_op_definition
class SplatOp(IRDLOperation):
    """A tensor with one value in all elements: `%1 = tt.splat %0 : f32 -> tensor<64x64xf32>`."""

    name = "tt.splat"

    src = operand_def()
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """The source is the result's element type."""
        if self.src.type != self.result.type.element_type:
            raise VerifyException(f"cannot splat {self.src.type} into {self.result.type}")


@irdl_op_definition
class ExpandDimsOp(IRDLOperation):
    """Insert a dimension of size 1 at `axis`: `%1 = tt.expand_dims %0 {axis = 1 : i32} : ... -> ...`."""

    name = "tt.expand_dims"

    src = operand_def(TensorType)
    axis = prop_def(IntegerAttr.constr(i32))
    result = result_def(TensorType)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """The result is the source with a 1 at `axis`."""
        shape = list(shape_of_tensor(self.src.type))
        axis = self.axis.value.data
        if not 0 <= axis <= len(shape):
            raise VerifyException(f"axis {axis} is outside the {len(shape) + 1} dimensions of the result")
        shape.insert(axis, 1)
        if list(shape_of_tensor(self.result.type)) != shape:
            raise VerifyException(f"expected the shape {shape}, found {list(shape_of_tensor(self.result.type))}")


@irdl_op_definition
class BroadcastOp(IRDLOperation):
    """Repeat dimensions of size 1: `%1 = tt.broadcast %0 : tensor<64x1xi32> -> tensor<64x64xi32>`."""

    name = "tt.broadcast"

    src = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """Only dimensions of size 1 may change, and the rank stays."""
        source, result = shape_of_tensor(self.src.type), shape_of_tensor(self.result.type)
        if len(source) != len(result) or any(s not in (1, r) for s, r in zip(source, result, strict=True)):
            raise VerifyException(f"cannot broadcast the shape {list(source)} to {list(result)}")


@irdl_op_definition
class AddPtrOp(IRDLOperation):
    """Move a pointer (or a tensor of pointers) by `offset` elements."""

    name = "tt.addptr"

    ptr = operand_def()
    offset = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    def __init__(self, ptr: SSAValue, offset: SSAValue):
        super().__init__(operands=[ptr, offset], result_types=[ptr.type])

    def print(self, printer: Printer) -> None:
        """Print ` %p, %o : type of p, type of o`."""
        _print_operands_and_types(printer, self, (self.ptr, self.offset), (self.ptr.type, self.offset.type))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        operands, attributes = _parse_operands(parser)
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        ptr, offset = parser.resolve_operands(operands, types, parser.pos)
        op = cls(ptr, offset)
        op.attributes |= attributes
        return op


def _print_operands_and_types(
    printer: Printer, op: IRDLOperation, operands: Sequence[SSAValue], types: Sequence[Attribute]
) -> None:
    printer.print_string(" ")
    printer.print_list(operands, printer.print_operand)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_list(types, printer.print_attribute)


def _parse_operands(parser: Parser) -> tuple[list[UnresolvedOperand], dict[str, Attribute]]:
    operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return operands, attributes


def pointee_type(pointer: Attribute) -> Attribute:
    """What a load through `pointer` (a pointer or a tensor of pointers) yields.

    Raises VerifyException when it is no pointer.
    """
    element = scalar_type(pointer)
    if not isinstance(element, PointerType):
        raise VerifyException(f"expected a pointer or a tensor of pointers, found {pointer}")
    return with_element_type(pointer, element.pointee)


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Load through pointers; where `mask` is false the result is `other` (undefined without it).

    Example: `%v = tt.load %ptrs, %mask, %other : tensor<64x!tt.ptr<f32>>`
    """

    name = "tt.load"

    ptr = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    result = result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(MemoryReadEffect())

    def __init__(self, ptr: SSAValue, mask: SSAValue | None = None, other: SSAValue | None = None):
        super().__init__(operands=[ptr, mask, other], result_types=[pointee_type(ptr.type)])

    def verify_(self) -> None:
        """The result, the mask and `other` have the shape of the pointers."""
        if self.result.type != pointee_type(self.ptr.type):
            raise VerifyException(f"loads {pointee_type(self.ptr.type)}, but the result is {self.result.type}")
        if self.mask is not None and self.mask.type != with_element_type(self.ptr.type, i1):
            raise VerifyException(f"the mask must be {with_element_type(self.ptr.type, i1)}, found {self.mask.type}")
        if self.other is not None and self.other.type != self.result.type:
            raise VerifyException(f"the other value must be {self.result.type}, found {self.other.type}")

    def print(self, printer: Printer) -> None:
        """Print ` %ptr, %mask, %other : pointer type`."""
        _print_operands_and_types(printer, self, self.operands, (self.ptr.type,))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        operands, attributes = _parse_operands(parser)
        pointer = parser.parse_type()
        types = (pointer, with_element_type(pointer, i1), pointee_type(pointer))
        op = cls(*(parser.resolve_operand(o, t) for o, t in zip(operands, types, strict=False)))
        op.attributes |= attributes
        return op


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Store through pointers where `mask` is true.

    Example: `tt.store %ptrs, %value, %mask : tensor<64x!tt.ptr<f32>>`
    """

    name = "tt.store"

    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()

    traits = traits_def(MemoryWriteEffect())

    def __init__(self, ptr: SSAValue, value: SSAValue, mask: SSAValue | None = None):
        super().__init__(operands=[ptr, value, mask])

    def verify_(self) -> None:
        """The value and the mask have the shape of the pointers."""
        if self.value.type != pointee_type(self.ptr.type):
            raise VerifyException(f"stores {pointee_type(self.ptr.type)}, but the value is {self.value.type}")
        if self.mask is not None and self.mask.type != with_element_type(self.ptr.type, i1):
            raise VerifyException(f"the mask must be {with_element_type(self.ptr.type, i1)}, found {self.mask.type}")

    def print(self, printer: Printer) -> None:
        """Print ` %ptr, %value, %mask : pointer type`."""
        _print_operands_and_types(printer, self, self.operands, (self.ptr.type,))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        operands, attributes = _parse_operands(parser)
        pointer = parser.parse_type()
        types = (pointer, pointee_type(pointer), with_element_type(pointer, i1))
        op = cls(*(parser.resolve_operand(o, t) for o, t in zip(operands, types, strict=False)))
        op.attributes |= attributes
        return op
