"""Files, functions, statements and variables of C++."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FunctionType, IntegerType, StringAttr, SymbolNameConstraint, UnitAttr
from xdsl.dialects.emitc import EmitC_LValueType
from xdsl.dialects.utils import parse_func_op_like, print_func_op_like
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class FileOp(IRDLOperation):
    """One file of C++: `emitc.file "reader" { ... }`."""

    name = "emitc.file"

    id = prop_def(StringAttr)
    body = region_def("single_block")

    traits = traits_def(NoTerminator())
    assembly_format = "$id attr-dict-with-keyword $body"

    def __init__(self, id_: str, body: Region):
        super().__init__(properties={"id": StringAttr(id_)}, regions=[body])


@irdl_op_definition
class IncludeOp(IRDLOperation):
    """Include a header: `emitc.include "api/compute/common.h"`, a standard one as `emitc.include <"cstdint">`."""

    name = "emitc.include"

    include = prop_def(StringAttr)
    is_standard_include = opt_prop_def(UnitAttr)

    def __init__(self, include: str, *, standard: bool = False):
        super().__init__(
            properties={"include": StringAttr(include), "is_standard_include": UnitAttr() if standard else None}
        )

    @classmethod
    def parse(cls, parser: Parser) -> IncludeOp:
        """Read the path, in angle brackets where it is standard."""
        standard = parser.parse_optional_punctuation("<") is not None
        path = parser.parse_str_literal()
        if standard:
            parser.parse_punctuation(">")
        return cls(path, standard=standard)

    def print(self, printer: Printer) -> None:
        """Write the path."""
        printer.print_string(" <" if self.is_standard_include else " ")
        printer.print_attribute(self.include)
        if self.is_standard_include:
            printer.print_string(">")


@irdl_op_definition
class VerbatimOp(IRDLOperation):
    """Text as it is: `emitc.verbatim "// A comment"`.

    With operands, `{}` in it is the next one of them, and `{{` a brace: `emitc.verbatim "f({{{}});" args %x : i32`.
    """

    name = "emitc.verbatim"

    value = prop_def(StringAttr)
    fmt_args = var_operand_def()

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$value attr-dict (`args` $fmt_args^ `:` type($fmt_args))?"

    def __init__(self, value: str, args: Sequence[SSAValue] = ()):
        super().__init__(operands=[args], properties={"value": StringAttr(value)})

    def verify_(self) -> None:
        """Check that there are as many operands as places."""
        places = self.value.data.replace("{{", "").count("{}") if self.fmt_args else 0
        if places != len(self.fmt_args):
            raise VerifyException(f"the text has {places} places for {len(self.fmt_args)} operands")


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A function: `emitc.func @kernel_main() { ... emitc.return }`."""

    name = "emitc.func"

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    body = region_def()

    traits = traits_def(SymbolOpInterface())

    def __init__(self, name: str, body: Region, function_type: FunctionType | None = None):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function_type": function_type or FunctionType.from_lists([], []),
            },
            regions=[body],
        )

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        """Read the function like `func.func`."""
        name, inputs, outputs, region, attributes, _, _ = parse_func_op_like(
            parser, reserved_attr_names=("sym_name", "function_type")
        )
        op = cls(name, region, FunctionType.from_lists(inputs, outputs))
        if attributes is not None:
            op.attributes.update(attributes.data)
        return op

    def print(self, printer: Printer) -> None:
        """Write the function like `func.func`."""
        print_func_op_like(
            printer,
            self.sym_name,
            self.function_type,
            self.body,
            self.attributes,
            reserved_attr_names=("sym_name", "function_type"),
        )


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """End of a function without a result: `emitc.return`."""

    name = "emitc.return"

    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"


@irdl_op_definition
class ForOp(IRDLOperation):
    """A loop from a bound up to another one: `emitc.for %i = %a to %b step %c : !emitc.size_t { ... }`."""

    name = "emitc.for"

    lower_bound = operand_def(AnyAttr())
    upper_bound = operand_def(AnyAttr())
    step = operand_def(AnyAttr())
    body = region_def("single_block")

    traits = traits_def(NoTerminator())

    def __init__(self, lower_bound: SSAValue, upper_bound: SSAValue, step: SSAValue, body: Region):
        super().__init__(operands=[lower_bound, upper_bound, step], regions=[body])

    def verify_(self) -> None:
        """The body takes the variable, whose type is that of the bounds."""
        types = [argument.type for argument in self.body.block.args]
        if types != [self.lower_bound.type] or len({*self.operand_types}) != 1:
            raise VerifyException("emitc.for: expected one type of the bounds, the step and the variable")

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        """Read the variable, the bounds, the type and the body."""
        variable = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        bounds = [parser.parse_unresolved_operand()]
        for keyword in ("to", "step"):
            parser.parse_keyword(keyword)
            bounds.append(parser.parse_unresolved_operand())
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        lower, upper, step = (parser.resolve_operand(each, type_) for each in bounds)
        body = parser.parse_region([variable.resolve(type_)])
        if not body.blocks:
            body.add_block(Block(arg_types=[type_]))
        return cls(lower, upper, step, body)

    def print(self, printer: Printer) -> None:
        """Write the variable, the bounds, the type and the body."""
        (variable,) = self.body.block.args
        printer.print_string(" ")
        printer.print_ssa_value(variable)
        for word, operand in zip(("=", "to", "step"), self.operands, strict=True):
            printer.print_string(f" {word} ")
            printer.print_ssa_value(operand)
        printer.print_string(" : ")
        printer.print_attribute(variable.type)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)


@irdl_op_definition
class IfOp(IRDLOperation):
    """A condition: `emitc.if %c { ... } else { ... }`; the second part may be empty."""

    name = "emitc.if"

    condition = operand_def(AnyAttr())
    then_region = region_def("single_block")
    else_region = region_def()

    traits = traits_def(NoTerminator())

    def __init__(self, condition: SSAValue, then_region: Region, else_region: Region | None = None):
        super().__init__(operands=[condition], regions=[then_region, else_region or Region()])

    @classmethod
    def parse(cls, parser: Parser) -> IfOp:
        """Read the condition and the parts."""
        condition = parser.resolve_operand(parser.parse_unresolved_operand(), IntegerType(1))
        then_region = parser.parse_region()
        if not then_region.blocks:
            then_region.add_block(Block())
        else_region = parser.parse_region() if parser.parse_optional_keyword("else") else None
        return cls(condition, then_region, else_region)

    def print(self, printer: Printer) -> None:
        """Write the condition and the parts that there are."""
        printer.print_string(" ")
        printer.print_ssa_value(self.condition)
        printer.print_string(" ")
        printer.print_region(self.then_region, print_empty_block=False)
        if self.else_region.blocks:
            printer.print_string(" else ")
            printer.print_region(self.else_region, print_empty_block=False)


@irdl_op_definition
class VariableOp(IRDLOperation):
    """A variable without a value: `%0 = "emitc.variable"() : () -> !emitc.lvalue<i32>`."""

    name = "emitc.variable"

    result = result_def(EmitC_LValueType)

    def __init__(self, type_: Attribute):
        super().__init__(result_types=[EmitC_LValueType(type_)])


@irdl_op_definition
class LoadOp(IRDLOperation):
    """The current value of a variable: `%1 = emitc.load %0 : !emitc.lvalue<i32> -> i32`."""

    name = "emitc.load"

    variable = operand_def(EmitC_LValueType)
    result = result_def(AnyAttr())

    assembly_format = "$variable attr-dict `:` type($variable) `->` type($result)"

    def __init__(self, variable: SSAValue, type_: Attribute):
        super().__init__(operands=[variable], result_types=[type_])


@irdl_op_definition
class AssignOp(IRDLOperation):
    """Let a variable hold a value: `emitc.assign %1, %0 : i32, !emitc.lvalue<i32>`."""

    name = "emitc.assign"

    value = operand_def(AnyAttr())
    variable = operand_def(EmitC_LValueType)

    assembly_format = "operands attr-dict `:` type(operands)"

    def __init__(self, value: SSAValue, variable: SSAValue):
        super().__init__(operands=[value, variable])
