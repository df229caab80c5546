"""MLIR's `tensor` with what xDSL 0.75 verifies in part: shapes that are expanded from rank 0, and collapsed ones.
What builds one must take it from here. https://mlir.llvm.org/docs/Dialects/TensorOps/
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import tensor as upstream
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.utils import print_dynamic_index_list
from xdsl.dialects.utils.reshape_ops_utils import verify_reshape_like_types
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .base import Groups, GroupsAttr, groups_attr, print_groups, tensor_type


def _verify(small: Attribute, large: Attribute, groups: GroupsAttr) -> None:
    small, large = tensor_type(small), tensor_type(large)
    if small.element_type != large.element_type:
        raise VerifyException(f"the element type must stay, found {small} and {large}")
    if any(not group for group in groups):
        raise VerifyException("a group has a dimension at least")
    if small.get_shape():
        verify_reshape_like_types(small, large, groups)
    elif len(groups) or prod(large.get_shape()) != 1:
        raise VerifyException(f"a tensor of rank 0 is one of sizes 1, in no groups, found {groups} and {large}")


def _print_types(printer: Printer, op: upstream.CollapseShapeOp | upstream.ExpandShapeOp) -> None:
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.src.type)
    printer.print_string(" into ")
    printer.print_attribute(op.result.type)


class CollapseShapeOp(upstream.CollapseShapeOp):
    """Merge neighbouring dimensions: `tensor.collapse_shape %0 [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>`."""

    @classmethod
    def of(cls, src: SSAValue, groups: Groups, result_type: Attribute) -> CollapseShapeOp:
        """The elements of `src` as `result_type`, whose dimensions are those groups of dimensions."""
        return cls.create(operands=[src], properties={"reassociation": groups_attr(groups)}, result_types=[result_type])

    def verify_(self) -> None:
        """Each dimension of the result has the elements of its group."""
        _verify(self.result.type, self.src.type, self.reassociation)

    def print(self, printer: Printer) -> None:
        """Print ` %a [[0, 1]] : type into type`."""
        printer.print_string(" ")
        printer.print_operand(self.src)
        print_groups(printer, self.reassociation)
        _print_types(printer, self)


class ExpandShapeOp(upstream.ExpandShapeOp):
    """Split dimensions: `tensor.expand_shape %0 [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>`."""

    @classmethod
    def of(cls, src: SSAValue, groups: Groups, result_type: Attribute) -> ExpandShapeOp:
        """The elements of `src` as `result_type`, in which those groups are dimensions of `src`."""
        type_ = tensor_type(result_type)
        return cls(src, [], groups_attr(groups), type_.get_shape(), type_)

    def verify_(self) -> None:
        """Each dimension of the source has the elements of its group."""
        rank = len(tensor_type(self.result.type).get_shape())
        if len(self.static_output_shape) != rank:
            raise VerifyException(f"expected {rank} sizes of the result, found {len(self.static_output_shape)}")
        _verify(self.src.type, self.result.type, self.reassociation)

    def print(self, printer: Printer) -> None:
        """Print ` %a [[0, 1]] output_shape [4, 8] : type into type`."""
        printer.print_string(" ")
        printer.print_operand(self.src)
        print_groups(printer, self.reassociation)
        printer.print_string(" output_shape ")
        print_dynamic_index_list(
            printer, DYNAMIC_INDEX, self.dynamic_output_shape, self.static_output_shape.get_values()
        )
        _print_types(printer, self)


_OURS = (CollapseShapeOp, ExpandShapeOp)

Tensor = Dialect(
    "tensor",
    [*(op for op in upstream.Tensor.operations if op.name not in {ours.name for ours in _OURS}), *_OURS],
    list(upstream.Tensor.attributes),
)
