"""MLIR's `scf` with what xDSL 0.75 reads or writes in part: `scf.while` without arguments or with locations, and
`scf.execute_region` without results. What builds one must take it from here.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Self

from xdsl.dialects import scf as upstream
from xdsl.ir import Dialect, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

LOOPS = (upstream.ForOp, upstream.WhileOp)
"""The loops, that of this module among them."""


class WhileOp(upstream.WhileOp):
    """Run the first region; while it ends in a true `scf.condition`, run the second one, and begin again.

    It is the operation of xDSL but for its text, so that what looks for that one finds this.
    Example: `%1 = scf.while (%a = %0) : (i32) -> i32 { ... } do { ^bb0(%b: i32): ... }`
    """

    def print(self, printer: Printer) -> None:
        """Print ` (%a = %0) : (i32) -> i32 {...} do {...}`; without arguments the parentheses are left out."""
        pairs = list(zip(self.before_region.block.args, self.arguments, strict=True))

        def print_pair(pair: tuple[SSAValue, SSAValue]) -> None:
            printer.print_ssa_value(pair[0])
            printer.print_string(" = ")
            printer.print_operand(pair[1])

        if pairs:
            printer.print_string(" ")
            with printer.in_parens():
                printer.print_list(pairs, print_pair)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)
        printer.print_string(" ")
        printer.print_region(self.before_region, print_entry_block_args=False)
        printer.print_string(" do ")
        printer.print_region(self.after_region)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""

        def parse_pair() -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
            argument = parser.parse_argument(expect_type=False)
            parser.parse_punctuation("=")
            return argument, parser.parse_unresolved_operand()

        pairs = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parse_pair) or []
        parser.parse_punctuation(":")
        position = parser.pos
        types = parser.parse_function_type()
        inputs = types.inputs.data
        if len(pairs) != len(inputs):
            parser.raise_error(f"expected {len(pairs)} argument types, found {len(inputs)}", position)
        arguments = [argument.resolve(type_) for (argument, _), type_ in zip(pairs, inputs, strict=True)]
        operands = parser.resolve_operands([operand for _, operand in pairs], inputs, position)
        before = parser.parse_region(arguments)
        parser.parse_keyword("do")
        after = parser.parse_region()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(operands, types.outputs.data, before, after)
        if attributes is not None:
            op.attributes |= attributes.data
        return op


class ExecuteRegionOp(upstream.ExecuteRegionOp):
    """Run a region once; xDSL leaves out its terminator where it yields nothing, and then can't read that.

    Example: `%1 = scf.execute_region -> i32 { ... scf.yield %0 : i32 }`
    """

    def print(self, printer: Printer) -> None:
        """Print ` -> i32 {...}`, with every terminator."""
        if self.outs:
            printer.print_string(" -> ")
            with printer.in_parens() if len(self.outs) > 1 else nullcontext():
                printer.print_list(self.outs.types, printer.print_attribute)
        printer.print_string(" ")
        printer.print_region(self.region, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)


_OURS = (ExecuteRegionOp, WhileOp)

Scf = Dialect(
    "scf",
    [*(op for op in upstream.Scf.operations if op.name not in {ours.name for ours in _OURS}), *_OURS],
    list(upstream.Scf.attributes),
)
