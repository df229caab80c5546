"""What the operations of `ttkernel` share: one assembly format, and the kind of thread that may call the function."""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import IndexType, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.irdl import AnyOf, IRDLOperation, ParsePropInAttrDict, eq, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException

from .types import ThreadAttr, ThreadKind

INDEX = AnyOf((eq(IndexType()), eq(i32)))
"""Numbers of tiles and registers."""

THREAD = "ttkernel.thread"
"""Attribute of a function that is a kernel of TT-Metalium, a `#ttkernel.thread`."""


class CallableFromThread(OpTrait):
    """The operation's `KIND` is that of the function around it, where that says one."""

    def verify(self, op: Operation) -> None:
        """Compare with the function."""
        assert isinstance(op, TTKernelOp)
        if op.KIND is None:
            return
        parent = op.parent_op()
        while parent is not None and not isinstance(parent, FuncOp):
            parent = parent.parent_op()
        kind = None if parent is None else parent.attributes.get(THREAD)
        if isinstance(kind, ThreadAttr) and kind.data is not op.KIND:
            raise VerifyException(
                f"{op.name} is a function of {op.KIND.value} threads, found it in a {kind.data.value} thread"
            )


class TTKernelOp(IRDLOperation):
    """Base of the operations, each of which is a call: `ttkernel.cb_pop_front(%cb, %n) : (T, i32) -> ()`."""

    KIND: ClassVar[ThreadKind | None] = None
    """The threads that have the function; None if all have."""
    NON_NEGATIVE: ClassVar[bool] = False
    """Whether the number that it gives is 0 or more, also as one of 32 bits with a sign."""

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(CallableFromThread())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read the operands, the attributes and the type of the function."""
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        at = parser.pos
        types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        parser.parse_punctuation("->")
        results = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        if len(types) != len(operands):
            parser.raise_error(f"expected {len(operands)} types of operands, found {len(types)}", at)
        known = cls.get_irdl_definition().properties
        return cls.create(
            operands=[parser.resolve_operand(each, type_) for each, type_ in zip(operands, types, strict=True)],
            result_types=[parser.parse_type()] if results is None else results,
            properties={name: value for name, value in attributes.items() if name in known},
            attributes={name: value for name, value in attributes.items() if name not in known},
        )

    def print(self, printer: Printer) -> None:
        """Write it as a call with its type."""
        with printer.in_parens():
            printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes({**self.properties, **self.attributes})
        printer.print_string(" : ")
        with printer.in_parens():
            printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_string(" -> ")
        if len(self.results) == 1:
            printer.print_attribute(self.results[0].type)
        else:
            with printer.in_parens():
                printer.print_list(self.result_types, printer.print_attribute)


class ComputeOp(TTKernelOp):
    """Base of the functions of compute threads."""

    KIND: ClassVar = ThreadKind.COMPUTE


class NocOp(TTKernelOp):
    """Base of the functions of threads that move data."""

    KIND: ClassVar = ThreadKind.NOC
