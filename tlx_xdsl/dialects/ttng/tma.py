"""TMA operations of `ttng` (TritonNvidiaGPUOps.td; PTX ISA, "cp.async.bulk.tensor")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    BFloat16Type,
    BoolAttr,
    Float16Type,
    Float32Type,
    IntegerAttr,
    IntegerType,
    Signedness,
    UnitAttr,
    i1,
    i32,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from ..base import (
    I32_TENSOR,
    ORDERED,
    TMA,
    Effects,
    EnumNumber,
    Feature,
    Group,
    Needs,
    TritonOp,
    TypeIs,
    atomically,
    integer_bits,
    is_set,
    keyword_directive,
    num_ctas_of,
    reads,
    shape_of_tensor,
    writes,
)
from ..tt import (
    CacheKeywords,
    DescriptorReduceKind,
    DescriptorType,
    TensorDescType,
    descriptor_type,
    verify_rows,
)
from ..ttg import MemDescType, NvmmaSharedEncodingAttr, memdesc_type, verify_mutable, verify_shared
from .attrs import TensorDescIm2ColType
from .barrier import verify_barrier
from .cga import verify_copy_barrier, verify_multicast, verify_row_offsets, verify_tile

FALSE = BoolAttr.from_bool(False)
ANY_DESCRIPTOR = TypeIs("a tensor descriptor", lambda type_: isinstance(type_, DescriptorType))
_INTEGERS_32, _INTEGERS_64 = ([IntegerType(bits, sign) for sign in Signedness] for bits in (32, 64))
MAX_DIMENSIONS = 5
"""Most dimensions of a tensor that TMA copies (PTX ISA, "Tensor dimension, size and format")."""


def _verify_elements(descriptor: DescriptorType, buffer: MemDescType) -> None:
    block, element = descriptor.element_type, buffer.element_type
    if block != element and (integer_bits(block) is None or integer_bits(block) != integer_bits(element)):
        raise VerifyException(f"the descriptor has {block} elements, the buffer {element}")


def _verify_copy(descriptor: DescriptorType, buffer: MemDescType, coordinates: int) -> None:
    """Check a copy between a block of `descriptor` and `buffer`."""
    rank = len(descriptor.shape)
    if rank > MAX_DIMENSIONS:
        raise VerifyException(f"TMA copies at most {MAX_DIMENSIONS} dimensions, the descriptor has {rank}")
    if isinstance(descriptor, TensorDescType):
        if coordinates != rank:
            raise VerifyException(f"the descriptor has {rank} dimensions, found {coordinates} coordinates")
        lead = rank - len(buffer.shape)
        if lead < 0 or descriptor.shape != (1,) * lead + buffer.shape:
            raise VerifyException(f"the block of {descriptor} does not match the buffer {buffer}")
    elif not 3 <= coordinates <= MAX_DIMENSIONS:
        raise VerifyException(f"im2col mode takes 3 to {MAX_DIMENSIONS} coordinates, found {coordinates}")
    _verify_elements(descriptor, buffer)
    verify_shared(buffer)
    layout = buffer.encoding
    if isinstance(layout, NvmmaSharedEncodingAttr) and layout.data.transposed:  # pyright: ignore
        raise VerifyException("TMA cannot copy to or from a transposed buffer")
    verify_tile(descriptor, buffer)


def load_effects(*, multicast: bool, pair: bool = False) -> Effects:
    """The effects of a load by TMA to one CTA's buffer or to those of several; of a `pair` one CTA has the barrier."""
    return Effects(
        reads("desc"),
        writes("result", cluster=multicast),
        by=TMA,
        completes_on="barrier",
        completes_in_cluster=pair,
    )


@irdl_op_definition
class AsyncTMACopyGlobalToLocalOp(TritonOp):
    """Copy the block at `coord` (in elements) to `result`; its bytes complete on `barrier`.

    Elements outside the tensor arrive as zeros, and count as bytes. With `multicast` the CTAs of the cluster whose
    buffers hold the same block get it from one copy. A descriptor of im2col mode takes `offsets` into the window.
    Example: `ttng.async_tma_copy_global_to_local %d[%i, %j] %buf, %bar, %pred : !tt.tensordesc<..>, .. -> ..`
    """

    name = "ttng.async_tma_copy_global_to_local"
    NEEDS: ClassVar = Needs("tlx.async_descriptor_load", Feature.TMA)

    desc = operand_def(ANY_DESCRIPTOR)
    coord = var_operand_def(i32)
    offsets = var_operand_def(IntegerType(16))
    barrier = operand_def(MemDescType)
    result = operand_def(MemDescType)
    pred = operand_def(i1)
    multicast = opt_prop_def(UnitAttr)
    cache_policy = opt_prop_def(Attribute, prop_name="cachePolicy")
    is_volatile = prop_def(BoolAttr, prop_name="isVolatile", default_value=FALSE)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (CacheKeywords,)
    assembly_format = (
        "$desc `[` $coord `]` (`offsets` `=` `[` $offsets^ `]`)? $result `,` $barrier `,` $pred "
        "custom<CacheKeywords>() attr-dict `:` type($desc) `,` type($barrier) `->` type($result)"
    )

    def __init__(
        self,
        operands: Sequence[SSAValue | Sequence[SSAValue]],
        properties: Mapping[str, Attribute | None] | None = None,
    ):
        """`operands` are descriptor, coordinates, (offsets,) barrier, buffer and predicate."""
        if len(operands) == 5:
            operands = [*operands[:2], [], *operands[2:]]
        super().__init__(operands=operands, properties=properties)

    def verify_(self) -> None:
        """Block, buffer, coordinates and barrier agree."""
        descriptor = descriptor_type(self.desc.type)
        _verify_copy(descriptor, memdesc_type(self.result.type), len(self.coord))
        verify_mutable(memdesc_type(self.result.type))
        verify_barrier(memdesc_type(self.barrier.type), num_ctas_of(self))
        verify_copy_barrier(self, memdesc_type(self.barrier.type))
        if self.multicast is not None:
            verify_multicast(memdesc_type(self.result.type))
        wanted = len(self.coord) - 2 if isinstance(descriptor, TensorDescIm2ColType) else 0
        if len(self.offsets) != wanted:
            raise VerifyException(f"expected {wanted} offsets, found {len(self.offsets)}")

    def effects(self) -> Effects:
        """A read of the tensor, and a write of the buffer or of those of several CTAs."""
        return load_effects(multicast=is_set(self, "multicast"))


@irdl_op_definition
class AsyncTMACopyLocalToGlobalOp(TritonOp):
    """Copy the buffer `src` to the block at `coord` (in elements); what lies outside the tensor is not written."""

    name = "ttng.async_tma_copy_local_to_global"
    NEEDS: ClassVar = Needs("tlx.async_descriptor_store", Feature.TMA)
    EFFECTS: ClassVar = Effects(reads("src"), writes("desc"), by=TMA, completes_on=Group.BULK)

    desc = operand_def(TensorDescType)
    coord = var_operand_def(i32)
    src = operand_def(MemDescType)
    cache_policy = opt_prop_def(Attribute, prop_name="cachePolicy")

    assembly_format = "$desc `[` $coord `]` $src attr-dict `:` type($desc) `,` type($src)"

    def verify_(self) -> None:
        """Block, buffer and coordinates agree."""
        _verify_copy(descriptor_type(self.desc.type), memdesc_type(self.src.type), len(self.coord))


@irdl_op_definition
class AsyncTMAReduceOp(TritonOp):
    """Combine the buffer `src` into the block at `coord`, element by element and atomically.

    Example: `ttng.async_tma_reduce add, %d[%i, %j] %buf : !tt.tensordesc<..>, !ttg.memdesc<..>`
    """

    name = "ttng.async_tma_reduce"
    NEEDS: ClassVar = Needs("tlx.async_descriptor_store", Feature.TMA)
    EFFECTS: ClassVar = Effects(reads("src"), atomically("desc"), by=TMA, completes_on=Group.BULK)

    kind = prop_def(EnumNumber(DescriptorReduceKind))
    desc = operand_def(TensorDescType)
    coord = var_operand_def(i32)
    src = operand_def(MemDescType)

    custom_directives = (keyword_directive(DescriptorReduceKind),)
    assembly_format = (
        "custom<DescriptorReduceKind>($kind) `,` $desc `[` $coord `]` $src attr-dict `:` type($desc) `,` type($src)"
    )

    def verify_(self) -> None:
        """Block, buffer and coordinates agree, and the hardware combines such elements so."""
        descriptor = descriptor_type(self.desc.type)
        _verify_copy(descriptor, memdesc_type(self.src.type), len(self.coord))
        kind = DescriptorReduceKind(self.kind.value.data)
        element = descriptor.element_type
        if not _reduces(kind, element):
            raise VerifyException(f"TMA has no '{kind.keyword}' of {element}")


def _reduces(kind: DescriptorReduceKind, element: Attribute) -> bool:
    """True if TMA combines elements so (PTX ISA, "cp.reduce.async.bulk.tensor")."""
    of_integers = element in (*_INTEGERS_32, *_INTEGERS_64)
    match kind:
        case DescriptorReduceKind.ADD:
            is_float = isinstance(element, Float16Type | BFloat16Type | Float32Type)
            return is_float or (of_integers and element != IntegerType(64, Signedness.SIGNED))
        case DescriptorReduceKind.MIN | DescriptorReduceKind.MAX:
            return of_integers or isinstance(element, Float16Type | BFloat16Type)
        case DescriptorReduceKind.AND | DescriptorReduceKind.OR | DescriptorReduceKind.XOR:
            return of_integers
        case _:
            return False


@irdl_op_definition
class AsyncTMAGatherOp(TritonOp):
    """Copy rows to `result`: row `x_offsets[i]` from column `y_offset` on becomes row i; completes on `barrier`."""

    name = "ttng.async_tma_gather"
    NEEDS: ClassVar = Needs("tlx.async_descriptor_gather", Feature.TMA_GATHER)

    desc = operand_def(TensorDescType)
    x_offsets = operand_def(I32_TENSOR)
    y_offset = operand_def(i32)
    barrier = operand_def(MemDescType)
    result = operand_def(MemDescType)
    pred = operand_def(i1)
    multicast = opt_prop_def(UnitAttr)
    cache_policy = opt_prop_def(Attribute, prop_name="cachePolicy")

    assembly_format = (
        "$desc `[` $x_offsets `,` $y_offset `]` $result `,` $barrier `,` $pred attr-dict `:` type(operands)"
    )

    def verify_(self) -> None:
        """The block is a row, and the buffer has one row per offset."""
        verify_rows(
            descriptor_type(self.desc.type), shape_of_tensor(self.x_offsets.type), memdesc_type(self.result.type).shape
        )
        _verify_elements(descriptor_type(self.desc.type), memdesc_type(self.result.type))
        verify_shared(memdesc_type(self.result.type))
        verify_mutable(memdesc_type(self.result.type))
        verify_barrier(memdesc_type(self.barrier.type), num_ctas_of(self))
        verify_copy_barrier(self, memdesc_type(self.barrier.type))
        verify_tile(descriptor_type(self.desc.type), memdesc_type(self.result.type))
        verify_row_offsets(self.x_offsets.type, memdesc_type(self.result.type))
        if self.multicast is not None:
            verify_multicast(memdesc_type(self.result.type))

    def effects(self) -> Effects:
        """A read of the tensor, and a write of the buffer or of those of several CTAs."""
        return load_effects(multicast=is_set(self, "multicast"))


@irdl_op_definition
class AsyncTMAScatterOp(TritonOp):
    """Copy rows from `src`: row i goes to row `x_offsets[i]`, from column `y_offset` on."""

    name = "ttng.async_tma_scatter"
    NEEDS: ClassVar = Needs("tlx.async_descriptor_scatter", Feature.TMA_SCATTER)
    EFFECTS: ClassVar = Effects(reads("src"), writes("desc"), by=TMA, completes_on=Group.BULK)

    desc = operand_def(TensorDescType)
    x_offsets = operand_def(I32_TENSOR)
    y_offset = operand_def(i32)
    src = operand_def(MemDescType)
    cache_policy = opt_prop_def(Attribute, prop_name="cachePolicy")

    assembly_format = "$desc `[` $x_offsets `,` $y_offset `]` $src attr-dict `:` type(operands)"

    def verify_(self) -> None:
        """The block is a row, and the buffer has one row per offset."""
        verify_rows(
            descriptor_type(self.desc.type), shape_of_tensor(self.x_offsets.type), memdesc_type(self.src.type).shape
        )
        _verify_elements(descriptor_type(self.desc.type), memdesc_type(self.src.type))
        verify_shared(memdesc_type(self.src.type))
        verify_tile(descriptor_type(self.desc.type), memdesc_type(self.src.type))
        verify_row_offsets(self.x_offsets.type, memdesc_type(self.src.type))


@irdl_op_definition
class AsyncTMAStoreWaitOp(TritonOp):
    """Wait until at most `pendings` TMA stores of this thread are in flight.

    With `read_only` the wait is for their reads from shared memory alone, which is enough to write the buffer again.
    """

    name = "ttng.async_tma_store_wait"
    NEEDS: ClassVar = Needs("tlx.async_descriptor_store_wait", Feature.BULK_COPY)
    EFFECTS: ClassVar = ORDERED

    pendings = prop_def(IntegerAttr.constr(i32))
    read_only = opt_prop_def(UnitAttr)

    assembly_format = "attr-dict"

    def verify_(self) -> None:
        """The count is not negative."""
        if self.pendings.value.data < 0:
            raise VerifyException(f"the number of pending stores can't be negative: {self.pendings.value.data}")
