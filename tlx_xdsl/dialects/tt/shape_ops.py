"""Operations of `tt` that rearrange the elements of a tensor (TritonOps.td)."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import DenseArrayBase, TensorType, UnitAttr, i32
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.dialects.ttg.types import tensor_type


def shape_of_tensor(type_: Attribute) -> tuple[int, ...]:
    """The shape of a tensor type, in elements.

    Raises VerifyException for any other type.
    """
    return tensor_type(type_).get_shape()


@irdl_op_definition
class ReshapeOp(IRDLOperation):
    """The same elements in row-major order under another shape; with `allow_reorder`, in any order."""

    name = "tt.reshape"

    src = operand_def(TensorType)
    allow_reorder = opt_prop_def(UnitAttr)
    efficient_layout = opt_prop_def(UnitAttr)
    result = result_def(TensorType)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = "$src (`allow_reorder` $allow_reorder^)? attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """The number of elements stays."""
        source, result = shape_of_tensor(self.src.type), shape_of_tensor(self.result.type)
        if prod(source) != prod(result):
            raise VerifyException(f"cannot reshape {list(source)} to {list(result)}")


@irdl_op_definition
class TransOp(IRDLOperation):
    """Permute the dimensions: result dimension i is source dimension `order[i]`."""

    name = "tt.trans"

    src = operand_def(TensorType)
    order = prop_def(DenseArrayBase.constr(i32))
    result = result_def(TensorType)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """The result shape is the permuted source shape."""
        source, result = shape_of_tensor(self.src.type), shape_of_tensor(self.result.type)
        order: tuple[int, ...] = tuple(self.order.get_values())
        if sorted(order) != list(range(len(source))):
            raise VerifyException(f"order {list(order)} is no permutation of the {len(source)} dimensions")
        if result != tuple(source[dim] for dim in order):
            raise VerifyException(f"the result shape {list(result)} is not {list(source)} in the order {list(order)}")


@irdl_op_definition
class SplitOp(IRDLOperation):
    """The two halves along the last dimension, which has size 2.

    Example: `%a, %b = tt.split %0 : tensor<64x2xf32> -> tensor<64xf32>`
    """

    name = "tt.split"

    src = operand_def(TensorType)
    out_lhs = result_def(TensorType)
    out_rhs = result_def(TensorType)

    traits = traits_def(Pure())

    def print(self, printer: Printer) -> None:
        """Print ` %0 : type -> type of both halves`."""
        printer.print_string(" ")
        printer.print_operand(self.src)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.src.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.out_lhs.type)

    @classmethod
    def parse(cls, parser: Parser) -> SplitOp:
        """Parse what `print` writes."""
        operand = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source = parser.parse_type()
        parser.parse_punctuation("->")
        half = parser.parse_type()
        return cls(
            operands=[parser.resolve_operand(operand, source)],
            attributes=attributes,
            result_types=[half, half],
        )

    def verify_(self) -> None:
        """The source ends in a dimension of 2, which the halves lack."""
        source = shape_of_tensor(self.src.type)
        if not source or source[-1] != 2:
            raise VerifyException(f"the last dimension must be 2, found the shape {list(source)}")
        for half in (self.out_lhs, self.out_rhs):
            if shape_of_tensor(half.type) != source[:-1]:
                raise VerifyException(f"a half of {list(source)} must have shape {list(source[:-1])}")
