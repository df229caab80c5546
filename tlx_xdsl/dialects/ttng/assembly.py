"""Pieces of assembly formats that tensor-memory operations share."""

from __future__ import annotations

from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    CustomDirective,
    OptionalOperandVariable,
    ParsingState,
    PrintingState,
    TypeDirective,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from ..ttg import AsyncTokenType


@irdl_custom_directive
class Token(CustomDirective):
    """`[%token]` takes a token and yields one, `[]` only yields one; without brackets there is neither."""

    dep: OptionalOperandVariable
    token: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the brackets, if they are there."""
        dep = None
        if present := parser.parse_optional_punctuation("[") is not None:
            dep = parser.parse_optional_unresolved_operand()
            parser.parse_punctuation("]")
        if dep is None:
            self.dep.set_empty(state)
        else:
            self.dep.set(state, dep)
        self.token.set(state, (AsyncTokenType(),) if present else ())

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print what `parse` reads."""
        if self.token.get(op):
            with printer.in_square_brackets():
                if (dep := self.dep.get(op)) is not None:
                    printer.print_ssa_value(dep)
        state.should_emit_space = True
        state.last_was_punctuation = False


@irdl_custom_directive
class BarriersAndPreds(CustomDirective):
    """`, %barrier[%pred]` for each barrier."""

    barriers: VariadicOperandVariable
    preds: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse as many as there are."""
        barriers: list[UnresolvedOperand] = []
        preds: list[UnresolvedOperand] = []
        while parser.parse_optional_punctuation(",") is not None:
            barriers.append(parser.parse_unresolved_operand())
            with parser.in_square_brackets():
                preds.append(parser.parse_unresolved_operand())
        self.barriers.set(state, barriers)
        self.preds.set(state, preds)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print what `parse` reads."""
        for barrier, pred in zip(self.barriers.get(op), self.preds.get(op), strict=True):
            printer.print_string(", ")
            printer.print_ssa_value(barrier)
            with printer.in_square_brackets():
                printer.print_ssa_value(pred)
        state.should_emit_space = True
        state.last_was_punctuation = False
