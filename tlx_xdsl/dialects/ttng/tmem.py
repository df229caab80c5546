"""Tensor memory: allocation, loads, stores, copies and views (TritonNvidiaGPUOps.td; PTX ISA, "Tensor Memory")."""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import BoolAttr, Float32Type, IntegerAttr, TensorType, i1, i32
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrSizedResultSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.encodings import DistributedLayout, TensorMemoryLayout
from tlx_xdsl.layouts.inferred import places
from tlx_xdsl.targets import TMEM_COLUMNS

from ..base import (
    ANY_TENSOR,
    ORDERED,
    Effects,
    Engine,
    EnumNumber,
    Feature,
    Features,
    Needs,
    OverBudgetException,
    TritonOp,
    View,
    ViewLayout,
    allocates,
    chosen_layout,
    keyword_directive,
    print_attr_dict,
    reads,
    spells,
    split_properties,
    writes,
)
from ..ttg import (
    ROWS,
    AsyncTokenType,
    MemDescType,
    columns_of as columns_of,
    memdesc_type,
    tensor_memory_layout,
    verify_mutable,
    verify_same_elements,
    verify_view,
)
from .assembly import Token
from .attrs import TMEMLoadReduceModifierAttr, TMEMWaitKind

TMEM_STORE = Engine("tcgen05.st")
COLUMNS = TMEM_COLUMNS
"""Columns of tensor memory, of 32 bits each (PTX ISA, "Tensor Memory Addressing")."""


def verify_block(buffer: MemDescType) -> None:
    """Check that the shape of a buffer in tensor memory is made of the blocks of its layout."""
    layout = tensor_memory_layout(buffer)
    if len(buffer.shape) not in (2, 3):
        raise VerifyException(f"a buffer in tensor memory has 2 or 3 dimensions, found {buffer}")
    if not isinstance(layout, TensorMemoryLayout):
        return
    m, n = buffer.alloc_shape[-2:]
    if m < layout.block_m or n < layout.block_n or m % layout.block_m or n % layout.block_n:
        raise VerifyException(f"the shape {m}x{n} is not made of blocks of {layout.block_m}x{layout.block_n}")


def rows_of(buffer: MemDescType) -> int:
    """Rows of tensor memory that a buffer takes in each of its columns: 64 or 128."""
    layout = tensor_memory_layout(buffer)
    if not isinstance(layout, TensorMemoryLayout) or layout.halves_columns:
        return ROWS
    if layout.block_m == ROWS // 2 and buffer.shape[-2] == ROWS // 2:
        return ROWS // 2
    return ROWS


@irdl_op_definition
class TMEMAllocOp(TritonOp):
    """Allocate a buffer in tensor memory, optionally initialised with `src`.

    Example: `%d, %t = ttng.tmem_alloc : () -> (!ttg.memdesc<128x64xf32, #tmem, ...>, !ttg.async.token)`
    """

    name = "ttng.tmem_alloc"
    NEEDS: ClassVar = Needs("tlx.local_alloc in tensor memory", Feature.TENSOR_MEMORY)

    src = opt_operand_def(ANY_TENSOR)
    result = result_def(MemDescType)
    token = opt_result_def(AsyncTokenType)

    assembly_format = "($src^)? attr-dict `:` functional-type(operands, results)"

    def verify_(self) -> None:
        """The buffer is made of blocks, fits, and is mutable or has an initial value."""
        buffer = self.result.type
        if (fault := buffer.fault()) is not None:
            raise VerifyException(fault)
        verify_block(buffer)
        if (columns := columns_of(buffer)) > COLUMNS:
            message = f"takes {columns} columns of tensor memory, there are {COLUMNS}"
            raise OverBudgetException(message, resource="tensor memory", required=columns, limit=COLUMNS)
        if self.src is not None:
            verify_same_elements(buffer, self.src.type)
        elif not buffer.is_mutable:
            raise VerifyException("a buffer without an initial value must be mutable")

    def effects(self) -> Effects:
        """New memory, with the initial value if there is one."""
        return Effects(allocates("result", initialised=bool(self.operands)), by=TMEM_STORE)


@irdl_op_definition
class TMEMLoadOp(TritonOp):
    """Read a buffer from tensor memory into registers, in a layout that the hardware can load.

    `redOp` also yields the minimum or maximum of each row (of absolute values with `abs`; NaN wins with `NaN`).
    Example: `%v, %t1 = ttng.tmem_load %d[%t0] : !ttg.memdesc<128x64xf32, ...> -> tensor<128x64xf32, #blocked>`
    """

    name = "ttng.tmem_load"
    NEEDS: ClassVar = Needs("tlx.local_load from tensor memory", Feature.TENSOR_MEMORY)
    EFFECTS: ClassVar = Effects(reads("src"), by=Engine("tcgen05.ld"))

    src = operand_def(MemDescType)
    dep = opt_operand_def(AsyncTokenType)
    red_op = opt_prop_def(TMEMLoadReduceModifierAttr, prop_name="redOp")
    abs = opt_prop_def(BoolAttr)
    nan = opt_prop_def(BoolAttr, prop_name="NaN")
    result = result_def(ANY_TENSOR)
    token = opt_result_def(AsyncTokenType)
    red = opt_result_def(ANY_TENSOR)

    irdl_options = (AttrSizedResultSegments(as_property=True),)
    custom_directives = (Token,)
    assembly_format = (
        "$src `` custom<Token>($dep, type($token)) attr-dict `:` type($src) `->` type($result) (`,` type($red)^)?"
    )

    def verify_(self) -> None:
        """Tensor and buffer agree, and a reduction says what it needs."""
        tensor_memory_layout(memdesc_type(self.src.type))
        verify_same_elements(memdesc_type(self.src.type), self.result.type)
        if (self.red_op is None) != (self.red is None):
            raise VerifyException("'redOp' and a reduced result come together")
        if self.red_op is None:
            if self.abs is not None or self.nan is not None:
                raise VerifyException("'abs' and 'NaN' need a 'redOp'")
            return
        assert self.red is not None
        reduced: TensorType[Attribute] = self.red.type
        if not isinstance(self.result.type.element_type, Float32Type):
            raise VerifyException(f"a reducing load takes f32, found {self.result.type.element_type}")
        if reduced.get_shape() != self.result.type.get_shape()[:1]:
            raise VerifyException(f"the reduced result has one element per row, found {reduced}")
        layout = chosen_layout(self.result.type.encoding)
        if isinstance(layout, DistributedLayout):
            _, *threads = places(layout, self.result.type.get_shape())
            if any(basis[1] for bases in threads for basis in bases):
                raise VerifyException(f"a reducing load needs whole rows in each thread, found {self.result.type}")

    def also_needs(self) -> Features:
        """A reduction is done by the load itself."""
        return () if self.red_op is None else (Feature.TCGEN05_LOAD_REDUCE,)


@irdl_op_definition
class TMEMStoreOp(TritonOp):
    """Write a tensor from registers to a buffer in tensor memory.

    Example: `%t1 = ttng.tmem_store %v, %d[%t0], %true : tensor<128x64xf32, ..> -> !ttg.memdesc<128x64xf32, ..>`
    """

    name = "ttng.tmem_store"
    NEEDS: ClassVar = Needs("tlx.local_store to tensor memory", Feature.TENSOR_MEMORY)
    EFFECTS: ClassVar = Effects(writes("dst"), by=TMEM_STORE)

    dst = operand_def(MemDescType)
    dep = opt_operand_def(AsyncTokenType)
    src = operand_def(ANY_TENSOR)
    pred = operand_def(i1)
    token = opt_result_def(AsyncTokenType)

    custom_directives = (Token,)
    assembly_format = (
        "$src `,` $dst `` custom<Token>($dep, type($token)) `,` $pred attr-dict `:` type($src) `->` type($dst)"
    )

    def verify_(self) -> None:
        """Tensor and buffer agree, and the buffer is mutable."""
        tensor_memory_layout(memdesc_type(self.dst.type))
        verify_mutable(memdesc_type(self.dst.type))
        verify_same_elements(memdesc_type(self.dst.type), self.src.type)


@irdl_op_definition
class TMEMWaitOp(TritonOp):
    """Wait for this thread's loads from (or stores to) tensor memory: `ttng.tmem_wait load`."""

    name = "ttng.tmem_wait"
    NEEDS: ClassVar = Needs("ttng.tmem_wait", Feature.TENSOR_MEMORY)
    EFFECTS: ClassVar = ORDERED

    kind = prop_def(EnumNumber(TMEMWaitKind))

    custom_directives = (keyword_directive(TMEMWaitKind),)
    assembly_format = "custom<TMEMWaitKind>($kind) attr-dict"


@irdl_op_definition
class TMEMSubSliceOp(TritonOp):
    """The part of a buffer in tensor memory that starts at `offset` along `dim` and has the shape of the result.

    Triton 3.6 to 3.8 write `N` for the offset, and slice columns only.
    Example: `%1 = ttng.tmem_subslice %0 {offset = 64 : i32} : !ttg.memdesc<128x128xf32, ...> -> !ttg.memdesc<...>`
    """

    name = "ttng.tmem_subslice"
    NEEDS: ClassVar = Needs("tlx.subslice of tensor memory", Feature.TENSOR_MEMORY)
    VIEW: ClassVar = View(ViewLayout.SAME, of_array=True)

    src = operand_def(MemDescType)
    offset = prop_def(IntegerAttr.constr(i32))
    dim = prop_def(IntegerAttr.constr(i32), default_value=IntegerAttr(1, i32))
    result = result_def(MemDescType)

    traits = traits_def(Pure())

    def print(self, printer: Printer) -> None:
        """Print ` %0 {offset = 64 : i32} : type -> type`, with the attributes of the printer's Triton version."""
        printer.print_string(" ")
        printer.print_operand(self.src)
        if spells(printer, "tmem_subslice_n"):
            printer.print_op_attributes({"N": self.offset} | self.attributes)
        else:
            print_attr_dict(printer, self)
        printer.print_string(" : ")
        printer.print_attribute(memdesc_type(self.src.type))
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes, for every Triton version."""
        source = parser.parse_unresolved_operand()
        position = parser.pos
        properties, attributes = split_properties(cls, parser.parse_optional_attr_dict())
        if (columns := attributes.pop("N", None)) is not None:
            properties["offset"] = columns
        if "offset" not in properties:
            parser.raise_error("'ttng.tmem_subslice' lacks the attribute 'offset'", position)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        operand = parser.resolve_operand(source, type_)
        return cls(operands=[operand], properties=properties, attributes=attributes, result_types=[result])

    def verify_(self) -> None:
        """The part lies in the source and keeps the other dimensions."""
        source, result = memdesc_type(self.src.type), self.result.type
        tensor_memory_layout(source)
        verify_view(source, result)
        dim, offset = self.dim.value.data, self.offset.value.data
        if len(source.shape) != len(result.shape) or not 0 <= dim < len(source.shape):
            raise VerifyException(f"cannot slice dimension {dim} of {source} to {result}")
        before, after = chosen_layout(source.encoding), chosen_layout(result.encoding)
        if isinstance(before, TensorMemoryLayout) and isinstance(after, TensorMemoryLayout):
            # Up to Triton 3.6 the columns of the blocks may be others.
            of_source, of_result = ((each.block_m, each.col_stride, each.cga_layout) for each in (before, after))
            if of_source != of_result:
                raise VerifyException(f"the blocks must stay: from {source} to {result}")
        for axis, (whole, part) in enumerate(zip(source.shape, result.shape, strict=True)):
            if axis != dim and whole != part:
                raise VerifyException(f"dimension {axis} must stay: from {source} to {result}")
        whole, part = source.shape[dim], result.shape[dim]
        if offset < 0 or offset + part > whole:
            raise VerifyException(
                f"elements {offset} to {offset + part - 1} of dimension {dim} are outside of its {whole}"
            )
