"""Functions of `tt`: `tt.func`, `tt.return`, and the program's coordinates (TritonOps.td)."""

from __future__ import annotations

from typing import Self

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    i32,
)
from xdsl.dialects.utils import parse_func_op_like, print_func_op_like
from xdsl.ir import Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

_RESERVED = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs")
"""Properties that the function's own syntax shows."""


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A function; the `public` one of a module is the kernel.

    Example: `tt.func public @add(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) { ... }`
    """

    name = "tt.func"

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    sym_visibility = opt_prop_def(StringAttr)
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    res_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    body = region_def()

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        function_type: FunctionType,
        body: Region,
        *,
        visibility: str | None = "public",
        arg_attrs: ArrayAttr[DictionaryAttr] | None = None,
        res_attrs: ArrayAttr[DictionaryAttr] | None = None,
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function_type": function_type,
                "sym_visibility": None if visibility is None else StringAttr(visibility),
                "arg_attrs": arg_attrs,
                "res_attrs": res_attrs,
            },
            regions=[body],
        )

    def verify_(self) -> None:
        """The entry block has the arguments that the function type states."""
        entry = self.body.blocks.first
        if entry is None:
            return
        found = tuple(argument.type for argument in entry.args)
        if found != self.function_type.inputs.data:
            raise VerifyException("the entry block's arguments do not match the function type")

    def print(self, printer: Printer) -> None:
        """Print the function with its visibility before the name."""
        if self.sym_visibility is not None:
            printer.print_string(f" {self.sym_visibility.data}")
        print_func_op_like(
            printer,
            self.sym_name,
            self.function_type,
            self.body,
            self.attributes,
            arg_attrs=self.arg_attrs,
            res_attrs=self.res_attrs,
            reserved_attr_names=_RESERVED,
            print_empty_outputs=False,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        visibility = parser.parse_optional_visibility_keyword()
        parsed = parse_func_op_like(parser, reserved_attr_names=_RESERVED)
        name, inputs, outputs, body, extra, arg_attrs, res_attrs = parsed
        func = cls(
            name,
            FunctionType.from_lists(inputs, outputs),
            body,
            visibility=None if visibility is None else visibility.data,
            arg_attrs=arg_attrs,
            res_attrs=res_attrs,
        )
        if extra is not None:
            func.attributes |= extra.data
        return func


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Return from a `tt.func`."""

    name = "tt.return"

    values = var_operand_def()

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(FuncOp), Pure()))
    assembly_format = "attr-dict ($values^ `:` type($values))?"


AXES = ("x", "y", "z")
"""The grid's axes, in the order of their numbers."""


class _AxisOp(IRDLOperation):
    """Shared text of the operations that take a grid axis, which stands as a bare `x`, `y` or `z`."""

    axis = prop_def(IntegerAttr.constr(i32))
    result = result_def(i32)

    traits = traits_def(Pure())

    def __init__(self, axis: int):
        super().__init__(properties={"axis": IntegerAttr(axis, i32)}, result_types=[i32])

    def verify_(self) -> None:
        """The axis is 0, 1 or 2."""
        if not 0 <= self.axis.value.data < len(AXES):
            raise VerifyException(f"the grid has axes 0, 1 and 2, found {self.axis.value.data}")

    def print(self, printer: Printer) -> None:
        """Print ` x : i32`."""
        printer.print_string(f" {AXES[self.axis.value.data]}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        position = parser.pos
        axis = parser.parse_identifier("axis")
        if axis not in AXES:
            parser.raise_error(f"expected one of {', '.join(AXES)}, found '{axis}'", position)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        parser.parse_type()
        op = cls(AXES.index(axis))
        op.attributes |= attributes
        return op


@irdl_op_definition
class GetProgramIdOp(_AxisOp):
    """The index of this program in the grid along an axis: `%0 = tt.get_program_id x : i32`."""

    name = "tt.get_program_id"


@irdl_op_definition
class GetNumProgramsOp(_AxisOp):
    """The size of the grid along an axis: `%0 = tt.get_num_programs x : i32`."""

    name = "tt.get_num_programs"
