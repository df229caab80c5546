"""Views of buffers: they move no data (TritonGPUOps.td)."""

from __future__ import annotations

from itertools import takewhile
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.conversion.shared import OFFSET, buffer_rank, shared_to_linear
from tlx_xdsl.layouts.encodings import Ints, PaddedSharedLayout, SharedLayout
from tlx_xdsl.layouts.shared import bytes_of

from ..base import Space, TritonOp, View, ViewLayout, chosen_layout, verify_permutation
from .types import MemDescType, columns_of, memdesc_type


def verify_view(source: MemDescType, result: MemDescType) -> None:
    """Check what every view keeps: the memory space and the element type; a constant buffer stays constant."""
    if source.memory_space != result.memory_space:
        raise VerifyException(f"the memory space must stay: from {source} to {result}")
    if source.element_type != result.element_type:
        raise VerifyException(f"the element type must stay: from {source} to {result}")
    if result.is_mutable and not source.is_mutable:
        raise VerifyException(f"a view of an immutable buffer cannot be mutable: from {source} to {result}")


@irdl_op_definition
class MemDescIndexOp(TritonOp):
    """Buffer `index` of a multi-buffered allocation: the view loses its first dimension.

    Example: `%1 = ttg.memdesc_index %0[%i] : !ttg.memdesc<3x64x64xf16, ...> -> !ttg.memdesc<64x64xf16, ...>`
    """

    name = "ttg.memdesc_index"
    VIEW: ClassVar = View(ViewLayout.SAME)

    src = operand_def(MemDescType)
    index = operand_def(i32)
    result = result_def(MemDescType)

    traits = traits_def(Pure())
    assembly_format = "$src `[` $index `]` attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """The result is the source without its first dimension."""
        source, result = memdesc_type(self.src.type), self.result.type
        if result.shape != source.shape[1:]:
            raise VerifyException(
                f"the result must drop the first dimension of {list(source.shape)}, found {list(result.shape)}"
            )
        verify_view(source, result)
        if result.encoding != source.encoding:
            raise VerifyException(f"the layout must stay: from {source} to {result}")
        if source.shape == source.alloc_shape and result.alloc_shape != result.shape:
            raise VerifyException(f"a buffer of an array is an allocation of its own shape, found {result}")


@irdl_custom_directive
class Offsets(CustomDirective):
    """The offsets of a subslice: `0, 64`."""

    offsets: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse integers, at least one."""
        values = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_integer)
        self.offsets.set(state, DenseArrayBase.from_list(i32, values))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print what `parse` reads."""
        state.print_whitespace(printer)
        offsets = self.offsets.get(op)
        assert isinstance(offsets, DenseArrayBase)
        values: Ints = tuple(offsets.get_values())  # pyright: ignore[reportAssignmentType]
        printer.print_list(values, lambda value: printer.print_string(str(value)))


@irdl_op_definition
class MemDescSubsliceOp(TritonOp):
    """The part of a buffer that starts at `offsets` and has the shape of the result.

    Example: `%1 = ttg.memdesc_subslice %0[0, 64] : !ttg.memdesc<64x128xf16, ...> -> !ttg.memdesc<64x64xf16, ...>`
    """

    name = "ttg.memdesc_subslice"
    VIEW: ClassVar = View(ViewLayout.SAME, of_array=True)

    src = operand_def(MemDescType)
    offsets = prop_def(DenseArrayBase.constr(i32))
    result = result_def(MemDescType)

    traits = traits_def(Pure())
    custom_directives = (Offsets,)
    assembly_format = "$src `[` custom<Offsets>($offsets) `]` attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """The part lies in the source, begins on a multiple of its own size, and keeps everything else."""
        source, result = memdesc_type(self.src.type), self.result.type
        offsets: Ints = tuple(self.offsets.get_values())
        if not len(source.shape) == len(result.shape) == len(offsets):
            raise VerifyException(
                f"source, result and offsets must have one rank, found {len(source.shape)}, "
                f"{len(result.shape)} and {len(offsets)}"
            )
        verify_view(source, result)
        if result.encoding != source.encoding:
            raise VerifyException(f"the layout must stay: from {source} to {result}")
        if result.alloc_shape != source.alloc_shape:
            raise VerifyException(f"both are parts of one allocation: from {source} to {result}")
        layout = chosen_layout(source.encoding)
        if isinstance(layout, PaddedSharedLayout) and buffer_rank(layout) < len(source.shape):
            raise VerifyException(f"cannot take a part of an array of padded buffers: {source}")
        for dim, (offset, part, whole) in enumerate(zip(offsets, result.shape, source.shape, strict=True)):
            if offset < 0 or offset + part > whole:
                raise VerifyException(
                    f"elements {offset} to {offset + part - 1} of dimension {dim} are outside of its {whole}"
                )
            if offset % part:
                raise VerifyException(f"offset {offset} of dimension {dim} is no multiple of its size {part}")


@irdl_op_definition
class MemDescTransOp(TritonOp):
    """The same buffer with its dimensions permuted.

    Example: `%1 = ttg.memdesc_trans %0 {order = array<i32: 1, 0>} : ... -> ...`
    """

    name = "ttg.memdesc_trans"
    VIEW: ClassVar = View(ViewLayout.FOLLOWS, of_array=True)

    src = operand_def(MemDescType)
    order = prop_def(DenseArrayBase.constr(i32))
    result = result_def(MemDescType)

    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """The result shape is the permuted source shape."""
        verify_permutation(self.order, memdesc_type(self.src.type).shape, self.result.type.shape)
        verify_view(memdesc_type(self.src.type), self.result.type)


@irdl_op_definition
class MemDescReshapeOp(TritonOp):
    """The same elements in row-major order under another shape; the layout of the result says where they are."""

    name = "ttg.memdesc_reshape"
    VIEW: ClassVar = View(ViewLayout.FOLLOWS, of_array=True)

    src = operand_def(MemDescType)
    result = result_def(MemDescType)

    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """The number of elements stays."""
        source, result = memdesc_type(self.src.type), self.result.type
        verify_view(source, result)
        if prod(source.shape) != prod(result.shape):
            raise VerifyException(f"cannot reshape {list(source.shape)} to {list(result.shape)}")


@irdl_op_definition
class MemDescReinterpretOp(TritonOp):
    """The same bytes seen with another shape, element type or layout; the result must not reach past the source."""

    name = "ttg.memdesc_reinterpret"
    VIEW: ClassVar = View(ViewLayout.OWN, of_array=True)

    src = operand_def(MemDescType)
    result = result_def(MemDescType)

    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """The memory space stays and the result fits in the source."""
        source, result = memdesc_type(self.src.type), self.result.type
        if source.memory_space != result.memory_space:
            raise VerifyException(f"the memory space must stay: from {source} to {result}")
        if source.is_mutable != result.is_mutable:
            raise VerifyException(f"both are mutable, or neither: from {source} to {result}")
        before, after = chosen_layout(source.encoding), chosen_layout(result.encoding)
        if before and after and isinstance(before, PaddedSharedLayout) != isinstance(after, PaddedSharedLayout):
            raise VerifyException(f"both have a padded layout, or neither: from {source} to {result}")
        if source.space is Space.TENSOR and before is not None and after is not None:
            # Scales are there four times, once for each warp.
            columns, needed = columns_of(source), columns_of(result)
            if needed > columns:
                raise VerifyException(f"the result takes {needed} columns of tensor memory, the source has {columns}")
            return
        have, need = source.bytes_of_trailing(len(source.shape)), result.bytes_of_trailing(len(result.shape))
        if need > have:
            raise VerifyException(f"the result takes {need} bytes, the source has {have}")
        have = min(have, _contiguous_bytes(source))
        if need > have:
            raise VerifyException(f"the result takes {need} bytes, the source has {have} that follow each other")


def _contiguous_bytes(buffer: MemDescType) -> int:
    """The bytes of a buffer in shared memory from its first one on, without what lies between and is not its own."""
    layout = chosen_layout(buffer.encoding)
    whole = buffer.bytes_of_trailing(len(buffer.shape))
    if not isinstance(layout, SharedLayout) or isinstance(layout, PaddedSharedLayout):
        return whole
    rank = buffer_rank(layout)
    part, allocation = buffer.shape[-rank:], buffer.alloc_shape[-rank:]
    if part == allocation:
        return whole
    offsets = shared_to_linear(layout, allocation).bases_of(OFFSET)
    inside = takewhile(lambda basis: all(step < size for step, size in zip(basis, part, strict=True)), offsets)
    return bytes_of(1 << sum(1 for _ in inside), buffer.element_bits)
