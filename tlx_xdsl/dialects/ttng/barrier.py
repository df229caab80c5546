"""mbarrier operations of `ttng` (TritonNvidiaGPUOps.td; PTX ISA, "mbarrier").

A barrier is a `!ttg.memdesc<1xi64>` in shared memory; an array of N barriers is a `!ttg.memdesc<Nx1xi64>`. Where
tensors span a cluster, a barrier may have one element per CTA. All operations here touch the barrier's memory, so no
pass may merge, move or erase them.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i1, i32, i64
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.encodings import DistributedLayout, SharedLayout
from tlx_xdsl.layouts.shared_access import element_offsets, vector_elements

from ..base import (
    ANY_TENSOR,
    Effects,
    Feature,
    Features,
    Group,
    Needs,
    Sync,
    TritonOp,
    arrives,
    chosen_layout,
    enclosing,
    frees,
    initialises,
    num_ctas_of,
    tensor_type,
    waits,
    writes,
)
from ..ttg import (
    MemDescType,
    WarpSpecializeOp,
    memdesc_type,
    verify_mutable,
    verify_same_elements,
    verify_shared,
)

MIN_STORE_BITS = 32
"""Fewest bits that a thread stores to another CTA at a time (PTX ISA, "st.async")."""
MAX_ARRIVALS = (1 << 20) - 1
"""Most arrivals that a phase of an mbarrier may wait for (PTX ISA, "Size and alignment of mbarrier object")."""


def verify_barrier(barrier: MemDescType, num_ctas: int | None = None) -> None:
    """Check that `barrier` is one mbarrier, or one per CTA of a cluster of `num_ctas`."""
    if barrier.element_type != i64 or len(barrier.shape) != 1 or barrier.shape[0] not in (1, num_ctas or 1):
        one_per_cta = f" (or {num_ctas}xi64)" if num_ctas and num_ctas > 1 else ""
        raise VerifyException(f"an mbarrier is a memdesc of shape 1xi64{one_per_cta}, found {barrier}")
    verify_shared(barrier)


def _verify_count(count: int) -> None:
    if not 1 <= count <= MAX_ARRIVALS:
        raise VerifyException(f"the arrival count must be at least 1 and at most {MAX_ARRIVALS}, found {count}")


class MBarrierOp(TritonOp):
    """Base of the operations on the mbarrier `alloc`.

    One with more operands defines `alloc` again: those of a class come before those of its base.
    """

    alloc = operand_def(MemDescType)

    def verify_(self) -> None:
        """The operand is one barrier."""
        verify_barrier(memdesc_type(self.alloc.type), num_ctas_of(self))


@irdl_op_definition
class InitBarrierOp(MBarrierOp):
    """Initialise an mbarrier to complete a phase after `count` arrivals.

    Example: `ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, ...>`
    """

    name = "ttng.init_barrier"
    NEEDS: ClassVar = Needs("tlx.alloc_barriers", Feature.MBARRIER)
    EFFECTS: ClassVar = Effects(initialises("alloc"))

    count = prop_def(IntegerAttr.constr(i32))

    assembly_format = "$alloc `,` $count attr-dict `:` type($alloc)"

    def verify_(self) -> None:
        """The operand is one barrier and the count is legal."""
        super().verify_()
        _verify_count(self.count.value.data)
        # Other CTAs see the barrier after a barrier of the cluster, which tasks can't pass.
        if memdesc_type(self.alloc.type).shape[0] != (num_ctas_of(self) or 1) and enclosing(self, WarpSpecializeOp):
            raise VerifyException("a barrier of several CTAs can't be initialised inside 'ttg.warp_specialize'")


@irdl_op_definition
class InvalBarrierOp(MBarrierOp):
    """End the lifetime of an mbarrier, so that its memory may hold something else."""

    name = "ttng.inval_barrier"
    NEEDS: ClassVar = Needs("tlx.alloc_barriers", Feature.MBARRIER)
    EFFECTS: ClassVar = Effects(frees("alloc"), sync=Sync.ORDERED)

    assembly_format = "$alloc attr-dict `:` type($alloc)"


@irdl_op_definition
class BarrierExpectOp(MBarrierOp):
    """Arrive once and make the current phase also wait for `size` bytes of asynchronous copies.

    `fromCTA` masks the bits of the CTA's number that choose whose arrival counts.
    Example: `ttng.barrier_expect %bar, 32768, %pred : !ttg.memdesc<1xi64, ...>`
    """

    name = "ttng.barrier_expect"
    NEEDS: ClassVar = Needs("tlx.barrier_expect_bytes", Feature.MBARRIER_COUNTS)
    EFFECTS: ClassVar = Effects(arrives("alloc"))

    alloc = operand_def(MemDescType)
    size = prop_def(IntegerAttr.constr(i32))
    pred = operand_def(i1)
    from_cta = opt_prop_def(IntegerAttr.constr(i32), prop_name="fromCTA")

    assembly_format = "$alloc `,` $size attr-dict `,` $pred `:` type($alloc)"

    def verify_(self) -> None:
        """The operand is one barrier, and the bytes are not negative."""
        super().verify_()
        if self.size.value.data < 0:
            raise VerifyException(f"the number of bytes can't be negative, found {self.size.value.data}")


@irdl_op_definition
class WaitBarrierOp(MBarrierOp):
    """Block until the barrier's phase of parity `phase` (0 or 1) completes; `deps` are buffers in use till then.

    Example: `ttng.wait_barrier %bar, %phase, %pred deps %buf : !ttg.memdesc<1xi64, ...>, !ttg.memdesc<...>`
    """

    name = "ttng.wait_barrier"
    NEEDS: ClassVar = Needs("tlx.barrier_wait", Feature.MBARRIER)
    EFFECTS: ClassVar = Effects(waits("alloc"))

    alloc = operand_def(MemDescType)
    phase = operand_def(i32)
    pred = opt_operand_def(i1)
    deps = var_operand_def(MemDescType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = "$alloc `,` $phase (`,` $pred^)? (`deps` $deps^)? attr-dict `:` type($alloc) (`,` type($deps)^)?"


@irdl_op_definition
class ArriveBarrierOp(MBarrierOp):
    """Arrive `count` times on the barrier.

    `multicastCTA` masks the bits of the CTA's number in which the CTAs may differ that are arrived at, too; `fromCTA`
    masks the bits that choose whose arrival counts.
    Example: `ttng.arrive_barrier %bar, 1, %pred : !ttg.memdesc<1xi64, ...>`
    """

    name = "ttng.arrive_barrier"
    NEEDS: ClassVar = Needs("tlx.barrier_arrive", Feature.MBARRIER)
    EFFECTS: ClassVar = Effects(arrives("alloc"))

    alloc = operand_def(MemDescType)
    count = prop_def(IntegerAttr.constr(i32))
    pred = opt_operand_def(i1)
    from_cta = opt_prop_def(IntegerAttr.constr(i32), prop_name="fromCTA")
    multicast_cta = prop_def(IntegerAttr.constr(i32), prop_name="multicastCTA", default_value=IntegerAttr(0, i32))

    assembly_format = "$alloc `,` $count (`,` $pred^)? attr-dict `:` type($alloc)"

    def verify_(self) -> None:
        """The operand is one barrier, the count is legal, and a multicast has a cluster."""
        num_ctas = num_ctas_of(self)
        super().verify_()
        _verify_count(self.count.value.data)
        mask = self.multicast_cta.value.data
        if mask and num_ctas is not None and not 0 < mask < num_ctas:
            raise VerifyException(f"multicastCTA must be below the {num_ctas} CTAs of the cluster, found {mask}")
        if mask and self.from_cta is not None:
            raise VerifyException("multicastCTA and fromCTA exclude each other")

    def also_needs(self) -> Features:
        """Several arrivals at once are an instruction of their own."""
        return (Feature.MBARRIER_COUNTS,) if self.count.value.data > 1 else ()


@irdl_op_definition
class AsyncCopyMbarrierArriveOp(TritonOp):
    """Arrive on the barrier when this thread's `ttg.async_copy_global_to_local` so far are done.

    The arrival is counted on top of those that the barrier waits for, unless `noIncrement` is given.
    """

    name = "ttng.async_copy_mbarrier_arrive"
    NEEDS: ClassVar = Needs("ttng.async_copy_mbarrier_arrive", Feature.MBARRIER)
    EFFECTS: ClassVar = Effects(arrives("barrier"), ends=Group.CP_ASYNC)

    barrier = operand_def(MemDescType)
    no_increment = opt_prop_def(UnitAttr, prop_name="noIncrement")

    assembly_format = "$barrier attr-dict `:` type($barrier)"

    def verify_(self) -> None:
        """The operand is one barrier."""
        verify_barrier(memdesc_type(self.barrier.type), num_ctas_of(self))


@irdl_op_definition
class AsyncSharedStoreOp(TritonOp):
    """Write a tensor to shared memory of the cluster; its bytes complete on `mbarrier`.

    Example: `ttng.async_shared_store %v, %buf, %bar : tensor<..> -> !ttg.memdesc<..>, !ttg.memdesc<2xi64, ..>`
    """

    name = "ttng.async_shared_store"
    NEEDS: ClassVar = Needs("ttng.async_shared_store", Feature.CLUSTER)
    EFFECTS: ClassVar = Effects(writes("dst", cluster=True), completes_on="mbarrier")

    src = operand_def(ANY_TENSOR)
    dst = operand_def(MemDescType)
    mbarrier = operand_def(MemDescType)

    assembly_format = "$src `,` $dst `,` $mbarrier attr-dict `:` type($src) `->` type($dst) `,` type($mbarrier)"

    def verify_(self) -> None:
        """Check that there is a cluster, and that the buffer is mutable and takes just the elements."""
        num_ctas = num_ctas_of(self)
        if num_ctas == 1:
            raise VerifyException("needs a cluster of at least two CTAs ('ttg.num-ctas')")
        verify_mutable(memdesc_type(self.dst.type))
        verify_shared(memdesc_type(self.dst.type))
        verify_same_elements(memdesc_type(self.dst.type), self.src.type)
        verify_barrier(memdesc_type(self.mbarrier.type), num_ctas)
        self._verify_width()

    def _verify_width(self) -> None:
        """The hardware stores 32 bits at least (PTX ISA, "st.async")."""
        registers = chosen_layout(tensor_type(self.src.type).encoding)
        buffer = memdesc_type(self.dst.type)
        shared = chosen_layout(buffer.encoding)
        if not isinstance(registers, DistributedLayout) or not isinstance(shared, SharedLayout):
            return
        offsets = element_offsets(registers, shared, buffer.shape, buffer.alloc_shape)
        width = vector_elements(offsets, max(1, MIN_STORE_BITS // buffer.element_bits)) * buffer.element_bits
        if width < MIN_STORE_BITS:
            raise VerifyException(f"each thread must store {MIN_STORE_BITS} bits in a row, the layouts allow {width}")
