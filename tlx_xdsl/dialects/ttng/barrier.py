"""mbarrier operations of `ttng` (TritonNvidiaGPUOps.td; PTX ISA, "mbarrier").

A barrier is a `!ttg.memdesc<1xi64>` in shared memory; an array of N barriers is a `!ttg.memdesc<Nx1xi64>`. All
operations here touch the barrier's memory, so no pass may merge, move or erase them.
"""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, i1, i32, i64
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.dialects.ttg.types import MemDescType, memdesc_type


def _verify_barrier(type_: Attribute) -> None:
    barrier = memdesc_type(type_)
    if barrier.element_type != i64 or barrier.shape != (1,):
        raise VerifyException(f"an mbarrier is a memdesc of shape 1xi64, found {barrier}")


@irdl_op_definition
class InitBarrierOp(IRDLOperation):
    """Initialise an mbarrier to complete a phase after `count` arrivals.

    Example: `ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, ...>`
    """

    name = "ttng.init_barrier"

    alloc = operand_def(MemDescType)
    count = prop_def(IntegerAttr.constr(i32))

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$alloc `,` $count attr-dict `:` type($alloc)"

    def verify_(self) -> None:
        """The operand is one barrier and the count is positive."""
        _verify_barrier(self.alloc.type)
        if self.count.value.data < 1:
            raise VerifyException(f"the arrival count must be at least 1, found {self.count.value.data}")


@irdl_op_definition
class InvalBarrierOp(IRDLOperation):
    """End the life of an mbarrier, so that its memory may hold something else."""

    name = "ttng.inval_barrier"

    alloc = operand_def(MemDescType)

    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$alloc attr-dict `:` type($alloc)"

    def verify_(self) -> None:
        """The operand is one barrier."""
        _verify_barrier(self.alloc.type)


@irdl_op_definition
class BarrierExpectOp(IRDLOperation):
    """Arrive once and make the current phase also wait for `size` bytes of asynchronous copies.

    Example: `ttng.barrier_expect %bar, 32768, %pred : !ttg.memdesc<1xi64, ...>`
    """

    name = "ttng.barrier_expect"

    alloc = operand_def(MemDescType)
    size = prop_def(IntegerAttr.constr(i32))
    pred = operand_def(i1)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$alloc `,` $size attr-dict `,` $pred `:` type($alloc)"

    def verify_(self) -> None:
        """The operand is one barrier."""
        _verify_barrier(self.alloc.type)


@irdl_op_definition
class WaitBarrierOp(IRDLOperation):
    """Block until the barrier's phase of parity `phase` (0 or 1) completes; `deps` are buffers in use till then.

    Example: `ttng.wait_barrier %bar, %phase, %pred deps %buf : !ttg.memdesc<1xi64, ...>, !ttg.memdesc<...>`
    """

    name = "ttng.wait_barrier"

    alloc = operand_def(MemDescType)
    phase = operand_def(i32)
    pred = opt_operand_def(i1)
    deps = var_operand_def(MemDescType)

    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$alloc `,` $phase (`,` $pred^)? (`deps` $deps^)? attr-dict `:` type($alloc) (`,` type($deps)^)?"

    def verify_(self) -> None:
        """The operand is one barrier."""
        _verify_barrier(self.alloc.type)


@irdl_op_definition
class ArriveBarrierOp(IRDLOperation):
    """Arrive `count` times on the barrier.

    Example: `ttng.arrive_barrier %bar, 1, %pred : !ttg.memdesc<1xi64, ...>`
    """

    name = "ttng.arrive_barrier"

    alloc = operand_def(MemDescType)
    count = prop_def(IntegerAttr.constr(i32))
    pred = opt_operand_def(i1)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$alloc `,` $count (`,` $pred^)? attr-dict `:` type($alloc)"

    def verify_(self) -> None:
        """The operand is one barrier and the count is positive."""
        _verify_barrier(self.alloc.type)
        if self.count.value.data < 1:
            raise VerifyException(f"the arrival count must be at least 1, found {self.count.value.data}")


@irdl_op_definition
class FenceAsyncSharedOp(IRDLOperation):
    """Make this thread's shared-memory accesses visible to the async proxy (PTX: fence.proxy.async).

    Example: `ttng.fence_async_shared {bCluster = false}`
    """

    name = "ttng.fence_async_shared"

    b_cluster = prop_def(BoolAttr.constr(i1), prop_name="bCluster")

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"
