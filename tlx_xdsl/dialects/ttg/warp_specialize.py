"""Warp specialisation: different code on different warps of one thread block (TritonGPUOps.td)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

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

from ..base import Feature, Features, Needs, location_here, num_warps_of, print_attr_dict, split_properties

MAX_WARPS = 32
"""Most warps of a thread block (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""
MIN_REGISTERS, MAX_REGISTERS = 24, 256
"""Registers per thread that a warp group may ask for, in steps of 8 (PTX ISA, "setmaxnreg")."""


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
    NEEDS: ClassVar = Needs("tlx.async_task with registers")

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
        """Warp counts, registers and results fit the partitions, and nothing is nested."""
        partitions = self.partitions
        count = len(partitions.partition_regions)
        self._verify_warps(count)
        self._verify_registers(count)
        parent = self.parent_op()
        while parent is not None:
            if isinstance(parent, WarpSpecializeOp):
                raise VerifyException("cannot stand inside another 'ttg.warp_specialize'")
            parent = parent.parent_op()

    def _verify_warps(self, partitions: int) -> None:
        if len(self.num_warps) != partitions:
            raise VerifyException(f"has {partitions} partitions but {len(self.num_warps)} warp counts")
        for index, warps in enumerate(self.num_warps):
            if warps < 1 or warps & (warps - 1):
                raise VerifyException(f"a partition needs a power of two of warps, partition {index} has {warps}")
        default = num_warps_of(self)
        total = (default or 0) + sum(self.num_warps)
        if total > MAX_WARPS:
            raise VerifyException(f"has {total} warps in all, a thread block has at most {MAX_WARPS}")
        if self.warp_group_start_ids is not None and len(self.warp_group_start_ids) != partitions:
            raise VerifyException(f"has {partitions} partitions but {len(self.warp_group_start_ids)} start ids")

    def _verify_registers(self, partitions: int) -> None:
        if self.requested_registers is not None:
            # Stock Triton's passes write placeholders here: numbers are checked where they are used.
            count = len(self.requested_registers)
            if count != partitions:
                raise VerifyException(f"has {partitions} partitions but {count} register counts")
        # The default region comes first.
        if self.actual_registers is not None and len(self.actual_registers) != partitions + 1:
            raise VerifyException(f"needs {partitions + 1} actual register counts, found {len(self.actual_registers)}")

    def print(self, printer: Printer) -> None:
        """Print the pretty form, which is the same in Triton 3.6 to 3.9."""
        partitions = self.partitions
        printer.print_operands(partitions.explicit_captures)
        print_attr_dict(printer, self, hidden=("partitionNumWarps",), keyword=True)
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
        place = location_here(parser)
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
        op = cls.build_with(
            operands, counts, default_region, regions, types, None if attributes is None else attributes.data
        )
        if place is not None:
            op.partitions.location = place
        return op

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
        properties, discardable = split_properties(cls, dict(attributes or {}))
        properties["partitionNumWarps"] = DenseArrayBase.from_list(i32, list(num_warps))
        return cls(
            properties=properties,
            attributes=discardable,
            result_types=[list(types.outputs.data) if types is not None else []],
            regions=[default_region, Region(Block([partitions]))],
        )

    def also_needs(self) -> Features:
        """Partitions with registers of their own exchange them."""
        return () if self.requested_registers is None else (Feature.SETMAXNREG,)


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

    def verify_(self) -> None:
        """Each partition takes the captures as its arguments."""
        captured = [capture.type for capture in self.explicit_captures]
        for index, region in enumerate(self.partition_regions):
            entry = region.blocks.first
            if entry is None or [argument.type for argument in entry.args] != captured:
                raise VerifyException(f"the arguments of partition {index} do not match the captures")


@irdl_op_definition
class WarpYieldOp(IRDLOperation):
    """End the default region; the operands become the results of the `ttg.warp_specialize`."""

    name = "ttg.warp_yield"

    values = var_operand_def()

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(WarpSpecializeOp), Pure()))
    assembly_format = "($values^)? attr-dict (`:` type($values)^)?"

    def verify_(self) -> None:
        """The values are the results of the `ttg.warp_specialize`."""
        parent = self.parent_op()
        assert parent is not None, "HasParent says so"
        given, wanted = [value.type for value in self.values], list(parent.result_types)
        if len(given) != len(wanted):
            raise VerifyException(f"yields {len(given)} values, 'ttg.warp_specialize' has {len(wanted)} results")
        for index, (found, expected) in enumerate(zip(given, wanted, strict=True)):
            if found != expected:
                raise VerifyException(f"value {index} must be {expected}, found {found}")


@irdl_op_definition
class WarpReturnOp(IRDLOperation):
    """End a partition region."""

    name = "ttg.warp_return"

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(WarpSpecializePartitionsOp), Pure()))
    assembly_format = "attr-dict"
