"""Warp specialisation: different code on different warps of one thread block (TritonGPUOps.td)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from xdsl.dialects.builtin import DenseArrayBase, FunctionType, i32
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class WarpSpecializeOp(IRDLOperation):
    """Run the default region on the current warps and each partition on warps of its own, and join them all.

    The default region may use outer values; a partition sees only its captures, which become its block arguments.

    Example:
    ```mlir
    ttg.warp_specialize(%a) attributes {requestedRegisters = array<i32: 232>}
    default {
      ttg.warp_yield
    }
    partition0(%arg0: i32) num_warps(4) {
      ttg.warp_return
    } : (i32) -> ()
    ```
    """

    name = "ttg.warp_specialize"

    partition_num_warps = prop_def(DenseArrayBase.constr(i32), prop_name="partitionNumWarps")
    warp_group_start_ids = opt_prop_def(DenseArrayBase.constr(i32), prop_name="warpGroupStartIds")
    requested_registers = opt_prop_def(DenseArrayBase.constr(i32), prop_name="requestedRegisters")
    actual_registers = opt_prop_def(DenseArrayBase.constr(i32), prop_name="actualRegisters")

    default_passthrough = var_result_def()
    default_region = region_def()
    partition_op_holder = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())

    @property
    def partitions(self) -> WarpSpecializePartitionsOp:
        """The operation that holds captures and partition regions."""
        op = self.partition_op_holder.block.first_op
        if not isinstance(op, WarpSpecializePartitionsOp):
            raise VerifyException("expected the partitions in a `ttg.warp_specialize.partitions`")
        return op

    @property
    def num_warps(self) -> tuple[int, ...]:
        """Warps of each partition."""
        return tuple(self.partition_num_warps.get_values())

    def verify_(self) -> None:
        """One power-of-two warp count per partition, registers in steps of 8, captures match block arguments."""
        partitions = self.partitions
        regions = partitions.partition_regions
        if len(self.num_warps) != len(regions):
            raise VerifyException(f"has {len(regions)} partitions but {len(self.num_warps)} warp counts")
        for count in self.num_warps:
            if count < 1 or count & (count - 1):
                raise VerifyException(f"a partition needs a power of two of warps, found {count}")
        if self.requested_registers is not None and len(self.requested_registers) != len(regions):
            raise VerifyException(f"has {len(regions)} partitions but {len(self.requested_registers)} register counts")
        captured = [capture.type for capture in partitions.explicit_captures]
        for index, region in enumerate(regions):
            found = [argument.type for argument in region.blocks[0].args]
            if found != captured:
                raise VerifyException(f"the arguments of partition {index} do not match the captures")

    def print(self, printer: Printer) -> None:
        """Print the pretty form, which is the same in Triton 3.6 to 3.9."""
        partitions = self.partitions
        printer.print_operands(partitions.explicit_captures)
        shown = {
            name: value for name, value in (self.properties | self.attributes).items() if name != "partitionNumWarps"
        }
        if shown:
            printer.print_op_attributes(shown, print_keyword=True)
        self._print_header(printer, "default ")
        printer.print_region(self.default_region, print_entry_block_args=False)
        for index, (region, count) in enumerate(zip(partitions.partition_regions, self.num_warps, strict=True)):
            self._print_header(printer, f"partition{index}")
            with printer.in_parens():
                printer.print_list(region.blocks[0].args, printer.print_block_argument)
            printer.print_string(f" num_warps({count}) ")
            printer.print_region(region, print_entry_block_args=False)
        printer.print_string(" : ")
        printer.print_function_type(
            [capture.type for capture in partitions.explicit_captures],
            [result.type for result in self.default_passthrough],
        )

    @staticmethod
    def _print_header(printer: Printer, text: str) -> None:
        # A newline written by print_string carries the current indentation with it.
        printer.print_string("\n" + text)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        captures = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        parser.parse_keyword("default")
        default_region = parser.parse_region()
        regions: list[Region] = []
        counts: list[int] = []
        while parser.parse_optional_keyword(f"partition{len(regions)}") is not None:
            arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_argument(parser))
            parser.parse_keyword("num_warps")
            with parser.in_parens():
                counts.append(parser.parse_integer(allow_boolean=False, allow_negative=False))
            regions.append(parser.parse_region(arguments))
        parser.parse_punctuation(":")
        position = parser.pos
        types = parser.parse_function_type()
        operands = parser.resolve_operands(captures, types.inputs.data, position)
        return cls.build_with(
            operands, counts, default_region, regions, types, None if attributes is None else attributes.data
        )

    @classmethod
    def build_with(
        cls,
        captures: Sequence[SSAValue],
        num_warps: Sequence[int],
        default_region: Region,
        regions: Sequence[Region],
        types: FunctionType | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Self:
        """Build the operation and the `ttg.warp_specialize.partitions` inside it."""
        partitions = WarpSpecializePartitionsOp(operands=[captures], regions=[list(regions)])
        properties: dict[str, Attribute] = {"partitionNumWarps": DenseArrayBase.from_list(i32, list(num_warps))}
        discardable: dict[str, Attribute] = {}
        known = cls.get_irdl_definition().properties
        for name, value in (attributes or {}).items():
            (properties if name in known else discardable)[name] = value
        return cls(
            properties=properties,
            attributes=discardable,
            result_types=[list(types.outputs.data) if types is not None else []],
            regions=[default_region, Region(Block([partitions]))],
        )


def _parse_argument(parser: Parser) -> Parser.Argument:
    argument = parser.parse_argument()
    argument.location = parser.parse_optional_location()
    return argument


@irdl_op_definition
class WarpSpecializePartitionsOp(IRDLOperation):
    """Holds the partition regions of a `ttg.warp_specialize`, isolated from above, and what they capture."""

    name = "ttg.warp_specialize.partitions"

    explicit_captures = var_operand_def()
    partition_regions = var_region_def()

    traits = lazy_traits_def(
        lambda: (IsolatedFromAbove(), IsTerminator(), HasParent(WarpSpecializeOp), RecursiveMemoryEffect())
    )


@irdl_op_definition
class WarpYieldOp(IRDLOperation):
    """End the default region; the operands become the results of the `ttg.warp_specialize`."""

    name = "ttg.warp_yield"

    values = var_operand_def()

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(WarpSpecializeOp), Pure()))
    assembly_format = "($values^)? attr-dict (`:` type($values)^)?"


@irdl_op_definition
class WarpReturnOp(IRDLOperation):
    """End a partition region."""

    name = "ttg.warp_return"

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(WarpSpecializePartitionsOp), Pure()))
    assembly_format = "attr-dict"
