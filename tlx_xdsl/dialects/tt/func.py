"""Functions of `tt`: `tt.func`, `tt.return`, and the program's coordinates (TritonOps.td)."""

from __future__ import annotations

import re
from typing import Self

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FlatSymbolRefAttrConstr,
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
    ParsePropInAttrDict,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from ..base import EnumNumber, keyword_directive
from .enums import ProgramIDDim

_RESERVED = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs")
"""Properties that the function's own syntax shows."""
_EMPTY_BODY = re.compile(r"(?<!attributes)(?<!attributes )(\{(?:\s|//[^\n]*\n)*\})\s*\Z")


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

    @property
    def is_kernel(self) -> bool:
        """True if it is a kernel, which nothing but a launch calls."""
        return self.sym_visibility is not None and self.sym_visibility.data == "public"

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
        # xDSL's region of no blocks is a declaration; an empty one in braces is an error in MLIR.
        text = parser.lexer.input.content
        begin = 0 if body.blocks else text.rfind(cls.name, 0, parser.pos)
        if not body.blocks and (empty := _EMPTY_BODY.search(text, begin, parser.pos)) is not None:
            parser.raise_error("expected a function body that is not empty", empty.start(1), empty.end(1))
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
class CallOp(IRDLOperation):
    """Call a `tt.func` of this module: `%1 = tt.call @f(%0) : (f32) -> f32`."""

    name = "tt.call"

    callee = prop_def(FlatSymbolRefAttrConstr)
    arguments = var_operand_def()
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    res_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    res = var_result_def()

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, $res)"

    def verify_(self) -> None:
        """The callee stands in this module, and its signature is that of the call."""
        root = self
        while (parent := root.parent_op()) is not None:
            root = parent
        if root is self:
            return
        callee = SymbolTable.lookup_symbol(root, self.callee)
        name = self.callee.string_value()
        if not isinstance(callee, FuncOp):
            raise VerifyException(f"'@{name}' is no function of this module")
        signature = callee.function_type
        for what, given, wanted in (
            ("argument", [value.type for value in self.arguments], signature.inputs.data),
            ("result", [value.type for value in self.res], signature.outputs.data),
        ):
            if len(given) != len(wanted):
                raise VerifyException(f"'@{name}' has {len(wanted)} {what}s, the call {len(given)}")
            for index, (found, expected) in enumerate(zip(given, wanted, strict=True)):
                if found != expected:
                    raise VerifyException(f"{what} {index} of '@{name}' is {expected}, found {found}")


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Return from a `tt.func`."""

    name = "tt.return"

    srcs = var_operand_def()

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(FuncOp), Pure()))
    assembly_format = "attr-dict ($srcs^ `:` type($srcs))?"

    def verify_(self) -> None:
        """The values are the function's results."""
        func = self.parent_op()
        assert isinstance(func, FuncOp), "HasParent says so"
        given, wanted = [value.type for value in self.srcs], list(func.function_type.outputs.data)
        if given != wanted:
            listed = ", ".join(map(str, wanted)) or "nothing"
            raise VerifyException(f"'@{func.sym_name.data}' returns {listed}, found {', '.join(map(str, given))}")


AXES = tuple(axis.keyword for axis in ProgramIDDim)
"""The grid's axes, in the order of their numbers."""


class _AxisOp(IRDLOperation):
    """Shared parts of the operations that take a grid axis, which stands as a bare `x`, `y` or `z`."""

    axis = prop_def(EnumNumber(ProgramIDDim))
    result = result_def(i32)

    traits = traits_def(Pure())
    custom_directives = (keyword_directive(ProgramIDDim),)
    assembly_format = "custom<ProgramIDDim>($axis) attr-dict `:` type($result)"

    def __init__(self, axis: int):
        super().__init__(properties={"axis": IntegerAttr(axis, i32)}, result_types=[i32])


@irdl_op_definition
class GetProgramIdOp(_AxisOp):
    """The index of this program in the grid along an axis: `%0 = tt.get_program_id x : i32`."""

    name = "tt.get_program_id"


@irdl_op_definition
class GetNumProgramsOp(_AxisOp):
    """The size of the grid along an axis: `%0 = tt.get_num_programs x : i32`."""

    name = "tt.get_num_programs"
