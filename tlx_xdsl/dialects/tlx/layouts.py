"""Layouts that the user asks for: operations that state them, and the placeholders that stand for them meanwhile."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, IntAttr, NoneAttr, UnitAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..base import ORDERED, DeclaredEffects, LayoutWrapper, View, ViewLayout
from ..ttg import MemDescType, as_tensor, shape_attr, shape_of


def _kind_shape_element(type_: Attribute) -> tuple[str, tuple[int, ...], Attribute]:
    """The properties of a tensor or buffer that a layout does not change."""
    if isinstance(type_, MemDescType):
        return "memdesc", type_.shape, type_.element_type
    if (tensor := as_tensor(type_)) is not None:
        return "tensor", tensor.get_shape(), tensor.element_type
    raise VerifyException(f"expected a ranked tensor or a memdesc, found {type_}")


def _encoding(type_: Attribute) -> Attribute:
    if isinstance(type_, MemDescType):
        return type_.encoding
    tensor = as_tensor(type_)
    if tensor is None:
        raise VerifyException(f"expected a ranked tensor or a memdesc, found {type_}")
    return tensor.encoding


class _LayoutChange(IRDLOperation):
    """Shared form of the operations that change nothing but a layout."""

    src = operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """Kind, shape and element type stay."""
        if _kind_shape_element(self.src.type) != _kind_shape_element(self.result.type):
            raise VerifyException(f"changes more than the layout: from {self.src.type} to {self.result.type}")


@irdl_op_definition
class RequireLayoutOp(_LayoutChange):
    """A tensor or buffer with the layout that an operation after it needs.

    With `pin` the layout is the user's choice, which no pass may change.
    Example: `%1 = tlx.require_layout %0 : tensor<64x64xf32> -> tensor<64x64xf32, #mma>`
    """

    name = "tlx.require_layout"
    VIEW: ClassVar = View(ViewLayout.SAME, of_array=True)

    pin = opt_prop_def(UnitAttr)

    irdl_options = (ParsePropInAttrDict(),)


@irdl_op_definition
class ReleaseLayoutOp(_LayoutChange):
    """A tensor that is free to have any layout again: `%1 = tlx.release_layout %0 : ... -> ...`.

    With `pin` the source's layout is the user's choice, and what computes with the result should keep to it until a
    release without `pin`: so the frontend, whose tensors have no layouts, hands a choice on to the passes.
    """

    name = "tlx.release_layout"

    pin = opt_prop_def(UnitAttr)

    irdl_options = (ParsePropInAttrDict(),)

    def verify_(self) -> None:
        """The source has a layout to be released from."""
        super().verify_()
        if as_tensor(self.src.type) is None or as_tensor(self.result.type) is None:
            raise VerifyException(f"releases tensors only, found {self.src.type}")
        if isinstance(_encoding(self.src.type), NoneAttr):
            raise VerifyException("requires the source tensor to have a layout encoding")


@irdl_op_definition
class DumpLayoutOp(IRDLOperation):
    """Print the final layout of a tensor or buffer while compiling: `tlx.dump_layout %0 : ...`."""

    name = "tlx.dump_layout"
    EFFECTS: ClassVar = ORDERED

    src = operand_def()

    # It must still stand where the user put it when layouts are final.
    traits = traits_def(DeclaredEffects())
    assembly_format = "$src attr-dict `:` type($src)"

    def verify_(self) -> None:
        """The operand has a layout to speak of."""
        _encoding(self.src.type)


@irdl_op_definition
class AssertSameLayoutOp(IRDLOperation):
    """Refuse to compile unless both operands end up in the same layout: `tlx.assert_same_layout %a, %b : A, B`."""

    name = "tlx.assert_same_layout"
    EFFECTS: ClassVar = ORDERED

    lhs = operand_def()
    rhs = operand_def()

    traits = traits_def(DeclaredEffects())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)"

    def verify_(self) -> None:
        """Both operands have layouts to compare."""
        _encoding(self.lhs.type)
        _encoding(self.rhs.type)


@irdl_op_definition
class AssertSameLayoutExpectedOp(IRDLOperation):
    """Refuse to compile unless the operand ends up in the layout `expected`.

    Example: `tlx.assert_same_layout_expected %a {expected = #blocked} : tensor<64xf32>`
    """

    name = "tlx.assert_same_layout_expected"
    EFFECTS: ClassVar = ORDERED

    src = operand_def()
    expected = prop_def()

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(DeclaredEffects())
    assembly_format = "$src attr-dict `:` type($src)"

    def verify_(self) -> None:
        """The operand has a layout to compare."""
        _encoding(self.src.type)


# --- placeholders ---------------------------------------------------------------------------------------------------


@irdl_attr_definition
class UserLayoutAttr(LayoutWrapper):
    """A layout that the user chose, which no pass may replace: `#tlx.user_layout<#blocked>`."""

    name = "tlx.user_layout"

    layout: Attribute = param_def()


@irdl_attr_definition
class NoVerifyLayoutAttr(LayoutWrapper):
    """A layout that is not checked against the number of warps yet: `#tlx.no_verify_layout<#blocked>`."""

    name = "tlx.no_verify_layout"

    layout: Attribute = param_def()


@irdl_attr_definition
class DummyRegisterLayoutAttr(ParametrizedAttribute):
    """Stands for a register layout that is chosen later, for a block of `shape` elements of `element_type`.

    With `tmem_compatible` the layout must be one that tensor memory can be loaded into.
    Example: `#tlx.dummy_register_layout<64x64xf32, tmem_compatible = true>`
    """

    name = "tlx.dummy_register_layout"

    shape_param: ArrayAttr[IntAttr] = param_def()
    element_type: Attribute = param_def()
    tmem_compatible: BoolAttr = param_def()

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements of the block along each dimension."""
        return shape_of(self.shape_param)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<shape x type, tmem_compatible = bool>`."""
        with parser.in_angle_brackets():
            shape, element_type = parser.parse_ranked_shape()
            parser.parse_punctuation(",")
            parser.parse_keyword("tmem_compatible")
            parser.parse_punctuation("=")
            compatible = parser.parse_boolean()
        return [shape_attr(shape), element_type, BoolAttr.from_bool(compatible)]

    def print_parameters(self, printer: Printer) -> None:
        """Print what `parse_parameters` reads."""
        with printer.in_angle_brackets():
            printer.print_dimension_list(self.shape)
            printer.print_string("x")
            printer.print_attribute(self.element_type)
            printer.print_string(f", tmem_compatible = {'true' if self.tmem_compatible.value.data else 'false'}")


@irdl_attr_definition
class DummyTMEMLayoutAttr(ParametrizedAttribute):
    """Stands for a layout in tensor memory that is chosen later: `#tlx.dummy_tmem_layout`."""

    name = "tlx.dummy_tmem_layout"
