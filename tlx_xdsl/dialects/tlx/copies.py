"""Copies between global and shared memory that stock Triton has no operation for, and prefetches."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import UnitAttr, i1, i32, i64
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from ..base import (
    BOOL_LIKE,
    BULK_COPY,
    LAUNCH_CONTROL,
    ORDERED,
    POINTER,
    POINTER_LIKE,
    TENSORMAP,
    TMA,
    Effects,
    EnumNumber,
    Feature,
    Features,
    Group,
    Keyword,
    Needs,
    Sync,
    TritonOp,
    as_tensor,
    element_bits,
    is_set,
    keyword_directive,
    prefetches,
    reads,
    stripped_directive,
    writes,
)
from ..tt import PaddingOption, PointerType, TensorDescType, descriptor_type
from ..ttg import MemDescType, memdesc_type, verify_mutable, verify_shared
from ..ttng import load_effects, verify_barrier, verify_response
from .cluster import SharedClusterMemoryAttr

BULK_BYTES = 16
"""The number of bytes of which the size of a bulk copy is a multiple (PTX ISA, "cp.async.bulk")."""


class CacheLevel(Keyword):
    """A cache to prefetch into."""

    L1 = 1, "L1"
    L2 = 2, "L2"


def _verify_bulk(pointer: Attribute, buffer: MemDescType) -> None:
    verify_shared(buffer)
    assert isinstance(pointer, PointerType)
    if element_bits(pointer.pointee) != buffer.element_bits:
        raise VerifyException(f"the elements differ: {pointer} and {buffer}")


def _verify_tma(descriptor: Attribute, coordinates: int, buffer: MemDescType | None = None) -> None:
    block = descriptor_type(descriptor)
    if coordinates != len(block.shape):
        raise VerifyException(f"the descriptor has {len(block.shape)} dimensions, found {coordinates} coordinates")
    if buffer is not None:
        if block.shape != buffer.shape or block.element_bits != buffer.element_bits:
            raise VerifyException(f"the block of {block} does not match the buffer {buffer}")
        verify_shared(buffer)
        verify_mutable(buffer)


@irdl_op_definition
class AsyncBulkLoadOp(TritonOp):
    """Start to copy `size` bytes, which follow each other, to a buffer; they complete on `barrier`.

    Source, buffer and size are multiples of 16 bytes, and one thread issues it (PTX: cp.async.bulk.shared::cluster.
    global.mbarrier::complete_tx::bytes). The bytes arrive in the order of the addresses, whatever the layout.
    Example: `tlx.async_bulk_load %p, %b, %size, %bar : !tt.ptr<f16> -> !ttg.memdesc<..>, !ttg.memdesc<1xi64, ..>`
    """

    name = "tlx.async_bulk_load"
    NEEDS: ClassVar = Needs("tlx.async_load with bulk=True", Feature.BULK_COPY)
    EFFECTS: ClassVar = Effects(reads("src"), writes("result"), by=BULK_COPY, completes_on="barrier")

    src = operand_def(POINTER)
    result = operand_def(MemDescType)
    size = operand_def(i32)
    barrier = operand_def(MemDescType)

    assembly_format = (
        "$src `,` $result `,` $size `,` $barrier attr-dict `:` type($src) `->` type($result) `,` type($barrier)"
    )

    def verify_(self) -> None:
        """Pointer and buffer have elements of one size, and the barrier is one."""
        _verify_bulk(self.src.type, memdesc_type(self.result.type))
        verify_mutable(memdesc_type(self.result.type))
        verify_barrier(memdesc_type(self.barrier.type))


@irdl_op_definition
class AsyncBulkStoreOp(TritonOp):
    """Start to copy the first `size` bytes of a buffer to global memory, as a group that TMA stores wait for.

    Buffer, destination and size are multiples of 16 bytes, and one thread issues it (PTX: cp.async.bulk.global.
    shared::cta.bulk_group, cp.async.bulk.commit_group). `ttng.async_tma_store_wait` counts it.
    Example: `tlx.async_bulk_store %b, %p, %size : !ttg.memdesc<64xf32, ...> -> !tt.ptr<f32>`
    """

    name = "tlx.async_bulk_store"
    NEEDS: ClassVar = Needs("tlx.async_store", Feature.BULK_COPY)
    EFFECTS: ClassVar = Effects(reads("src"), writes("dst"), by=BULK_COPY, completes_on=Group.BULK)

    src = operand_def(MemDescType)
    dst = operand_def(POINTER)
    size = operand_def(i32)

    assembly_format = "$src `,` $dst `,` $size attr-dict `:` type($src) `->` type($dst)"

    def verify_(self) -> None:
        """Pointer and buffer have elements of one size."""
        _verify_bulk(self.dst.type, memdesc_type(self.src.type))


@irdl_op_definition
class AsyncTMALoadOp(TritonOp):
    """`ttng.async_tma_copy_global_to_local` to the buffers of several CTAs that a mask names, or for a pair of them.

    Bit r of `multicast` stands for the CTA of rank r: its copy of `result` gets the block, and its copy of `barrier`
    the bytes (PTX: .multicast::cluster). With `two_ctas` the bytes complete on the barrier of the even CTA of the pair
    (PTX: .cta_group::2).
    Example: `tlx.async_tma_load %d[%i, %j] %b, %bar, %pred multicast %mask {two_ctas} : ...`
    """

    name = "tlx.async_tma_load"
    NEEDS: ClassVar = Needs("tlx.async_descriptor_load", Feature.TMA)

    desc = operand_def(TensorDescType)
    coord = var_operand_def(i32)
    barrier = operand_def(MemDescType)
    result = operand_def(MemDescType)
    pred = operand_def(i1)
    multicast = opt_operand_def(i32)
    two_ctas = opt_prop_def(UnitAttr)
    cache_policy = opt_prop_def(Attribute, prop_name="cachePolicy")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$desc `[` $coord `]` $result `,` $barrier `,` $pred (`multicast` $multicast^)? "
        "attr-dict `:` type($desc) `,` type($barrier) `->` type($result)"
    )

    def verify_(self) -> None:
        """Block, buffer, coordinates and barrier agree, and there is more than one CTA to serve."""
        _verify_tma(self.desc.type, len(self.coord), memdesc_type(self.result.type))
        barrier = memdesc_type(self.barrier.type)
        if not isinstance(barrier.memory_space, SharedClusterMemoryAttr):
            verify_barrier(barrier)
        if self.multicast is None and self.two_ctas is None:
            raise VerifyException("a load for one CTA is a 'ttng.async_tma_copy_global_to_local'")

    def effects(self) -> Effects:
        """Return the effects of a load by TMA; `multicast` is its last operand."""
        multicast = len(self.operands) > 0 and self.multicast is not None
        return load_effects(multicast=multicast, pair=is_set(self, "two_ctas"))

    def also_needs(self) -> Features:
        """A multicast has a cluster, and a pair of CTAs is Blackwell's."""
        pairs = () if self.two_ctas is None else (Feature.CTA_PAIRS,)
        return pairs if self.multicast is None else (Feature.CLUSTER, *pairs)


@irdl_op_definition
class AsyncTMAPrefetchOp(TritonOp):
    """Start to bring the block at `coord` (in elements) into the L2 cache (PTX: cp.async.bulk.prefetch.tensor).

    Example: `tlx.async_tma_prefetch %d[%i, %j], %pred : !tt.tensordesc<64x64xf16>`
    """

    name = "tlx.async_tma_prefetch"
    NEEDS: ClassVar = Needs("tlx.async_descriptor_prefetch_tensor", Feature.TMA)
    EFFECTS: ClassVar = Effects(prefetches("desc"), by=TMA)

    desc = operand_def(TensorDescType)
    coord = var_operand_def(i32)
    pred = operand_def(i1)
    cache_policy = opt_prop_def(Attribute, prop_name="cachePolicy")

    # It changes no value, but a dropped or moved hint is a hint lost.
    assembly_format = "$desc `[` $coord `]` `,` $pred attr-dict `:` type($desc)"

    def verify_(self) -> None:
        """Check that there is a coordinate for each dimension."""
        _verify_tma(self.desc.type, len(self.coord))


@irdl_op_definition
class PrefetchOp(TritonOp):
    """Start to bring what a pointer (or each of a tensor of pointers, where `mask` holds) points at into a cache.

    PTX: prefetch.global.L1 and .L2. Example: `tlx.prefetch L2 %p mask %m : tensor<64x!tt.ptr<f32>>, tensor<64xi1>`
    """

    name = "tlx.prefetch"
    EFFECTS: ClassVar = Effects(prefetches("src"))

    level = prop_def(EnumNumber(CacheLevel))
    src = operand_def(POINTER_LIKE)
    mask = opt_operand_def(BOOL_LIKE)

    custom_directives = (keyword_directive(CacheLevel),)
    assembly_format = "custom<CacheLevel>($level) $src (`mask` $mask^)? attr-dict `:` type($src) (`,` type($mask)^)?"

    def verify_(self) -> None:
        """Check that there is a mask bit for each pointer."""
        if self.mask is None:
            return
        pointers, mask = as_tensor(self.src.type), as_tensor(self.mask.type)
        if (None if pointers is None else pointers.get_shape()) != (None if mask is None else mask.get_shape()):
            raise VerifyException(f"pointers and mask must have one shape, found {self.src.type} and {self.mask.type}")


@irdl_op_definition
class PrefetchTensormapOp(TritonOp):
    """Start to bring a TMA descriptor into the descriptor cache (PTX: prefetch.tensormap).

    Example: `tlx.prefetch_tensormap %d : !tt.tensordesc<64x64xf16>`
    """

    name = "tlx.prefetch_tensormap"
    NEEDS: ClassVar = Needs("tlx.prefetch with tensormap=True", Feature.TMA)
    EFFECTS: ClassVar = ORDERED

    desc = operand_def(TensorDescType)

    assembly_format = "$desc attr-dict `:` type($desc)"


@irdl_op_definition
class MakeTensorDescOp(TritonOp):
    """`tt.make_tensor_descriptor` that writes the 128 bytes of the descriptor to memory that the user names.

    Shape and strides are in elements, the last stride is 1; the bytes are visible to TMA afterwards.
    Example: `%d = tlx.make_tensor_descriptor %where, %p, [%m, %n], [%s, %one] : <i8>, <f16>, <64x64xf16>`
    """

    name = "tlx.make_tensor_descriptor"
    NEEDS: ClassVar = Needs("tlx.make_tensor_descriptor", Feature.TMA)
    EFFECTS: ClassVar = Effects(writes("desc_ptr"), by=TENSORMAP, sync=Sync.ORDERED)

    desc_ptr = operand_def(POINTER)
    base = operand_def(POINTER)
    shape = var_operand_def(i32)
    strides = var_operand_def(i64)
    padding = prop_def(EnumNumber(PaddingOption), default_value=PaddingOption.PAD_ZERO.attr)
    result = result_def(TensorDescType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (stripped_directive("Ptr", PointerType), stripped_directive("Desc", TensorDescType))
    assembly_format = (
        "$desc_ptr `,` $base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` custom<Ptr>(type($desc_ptr)) `,` "
        "custom<Ptr>(type($base)) `,` custom<Desc>(type($result))"
    )

    def verify_(self) -> None:
        """Shape, strides and block have one rank, and the elements agree."""
        block, pointer = self.result.type, self.base.type
        assert isinstance(pointer, PointerType)
        ranks = (len(self.shape), len(self.strides), len(block.shape))
        if len(set(ranks)) != 1:
            raise VerifyException(f"shape, strides and block must have one rank, found {', '.join(map(str, ranks))}")
        if element_bits(pointer.pointee) != block.element_bits:
            raise VerifyException(f"the elements differ: {pointer} and {block}")


@irdl_op_definition
class CLCTryCancelOp(TritonOp):
    """`ttng.clc_try_cancel` for a cluster: where `pred` holds, one request, whose response all its CTAs get.

    Each CTA's copy of `result` receives the response and each CTA's copy of `barrier` the 16 bytes (PTX:
    clusterlaunchcontrol.try_cancel.async.multicast::cluster::all).
    Example: `tlx.clc_try_cancel %response, %bar, %pred : !ttg.memdesc<2xi64, ...>, !ttg.memdesc<1xi64, ...>`
    """

    name = "tlx.clc_try_cancel"
    NEEDS: ClassVar = Needs("tlx.clc_producer", Feature.CLUSTER_LAUNCH_CONTROL)
    EFFECTS: ClassVar = Effects(writes("result", cluster=True), by=LAUNCH_CONTROL, completes_on="barrier")

    result = operand_def(MemDescType)
    barrier = operand_def(MemDescType)
    pred = operand_def(i1)

    assembly_format = "$result `,` $barrier `,` $pred attr-dict `:` type($result) `,` type($barrier)"

    def verify_(self) -> None:
        """The response has 16 bytes, and the barrier is one."""
        verify_response(memdesc_type(self.result.type))
        verify_barrier(memdesc_type(self.barrier.type))
