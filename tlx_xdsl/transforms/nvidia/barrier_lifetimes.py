"""`tlx-end-barrier-lifetimes`: end the lifetime of every mbarrier.

Upstream Triton gives the memory of an mbarrier to another allocation as soon as it sees no more uses, while an mbarrier
is in use until it is invalidated (PTX ISA, "mbarrier.inval"). A barrier that is never invalidated keeps its memory up
to every exit that its allocation reaches. Where a kernel ends there, that is all: its memory is released, and each
invalidation would take a barrier of the threads. After another exit the memory has other uses, so the barriers are
invalidated.

Before:
```mlir
%bars = ttg.local_alloc : () -> !ttg.memdesc<1x1xi64, #shared, #smem, mutable>
%bar = ttg.memdesc_index %bars[%c0] : ...
ttng.init_barrier %bar, 1 : ...
tt.return
```
After, in a kernel:
```mlir
...
ttg.local_dealloc %bars : ...
tt.return
```
After, in a function that is called:
```mlir
...
%c0_1 = arith.constant 0 : i32
%bar_1 = ttg.memdesc_index %bars[%c0_1] : ...
ttng.inval_barrier %bar_1 : ...
tt.return
```
"""

from __future__ import annotations

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl.dominance import DominanceInfo

from tlx_xdsl.analysis.buffer_users import accesses
from tlx_xdsl.analysis.value_classes import ValueClasses
from tlx_xdsl.dialects import tt, ttng
from tlx_xdsl.dialects.ttg import LocalAllocOp, LocalDeallocOp, MemDescIndexOp, MemDescType

from ..rewriting import Pass, insert_before, ops_of


class EndBarrierLifetimesPass(Pass):
    """End every initialised mbarrier on every exit that its allocation dominates."""

    name = "tlx-end-barrier-lifetimes"

    def run(self, op: ModuleOp) -> None:
        """Handle every allocation of barriers."""
        allocations = [inner for inner in ops_of(op, LocalAllocOp) if _is_barrier_array(inner.result.type)]
        classes = ValueClasses.of(op, MemDescType) if allocations else ValueClasses()
        for inner in allocations:
            if _needs_end(inner.result, classes):
                for exit_ in exits_of(inner):
                    if _ends_kernel(exit_):
                        insert_before(exit_, LocalDeallocOp(operands=[inner.result]), located_at=inner)
                    else:
                        _invalidate(inner, exit_)


def _ends_kernel(exit_: Operation) -> bool:
    func = exit_.parent_op()
    return isinstance(func, tt.FuncOp) and func.is_kernel


def _is_barrier_array(type_: MemDescType) -> bool:
    return type_.element_type == i64 and type_.shape[-1:] == (1,) and len(type_.shape) <= 2


def _needs_end(barriers: SSAValue, classes: ValueClasses) -> bool:
    users = [type(user) for user in accesses(barriers, classes)]
    return ttng.InitBarrierOp in users and ttng.InvalBarrierOp not in users and LocalDeallocOp not in users


def exits_of(alloc: LocalAllocOp) -> list[Operation]:
    """The operations that leave the region of `alloc` and that `alloc` dominates."""
    block, region = alloc.parent_block(), alloc.parent_region()
    assert block is not None and region is not None
    reached = list(region.blocks)
    if block is not reached[0]:
        # Most allocations are in the first block, which dominates all others.
        dominance = DominanceInfo(region)
        reached = [other for other in reached if dominance.dominates(block, other)]
    terminators = [other.last_op for other in reached]
    return [op for op in terminators if op is not None and not op.successors]


def _invalidate(alloc: LocalAllocOp, exit_: Operation) -> None:
    type_ = alloc.result.type
    if len(type_.shape) == 1:
        _insert(exit_, ttng.InvalBarrierOp(operands=[alloc.result]), alloc)
        return
    one = type_.with_shape(type_.shape[1:])
    for index in range(type_.shape[0]):
        number = ConstantOp(IntegerAttr(index, i32))
        number.result.name_hint = f"c{index}"
        _insert(exit_, number, alloc)
        barrier = MemDescIndexOp(operands=[alloc.result, number.result], result_types=[one])
        _insert(exit_, barrier, alloc)
        _insert(exit_, ttng.InvalBarrierOp(operands=[barrier.result]), alloc)


def _insert(exit_: Operation, op: Operation, alloc: LocalAllocOp) -> None:
    # Errors about the end of a lifetime are shown at the allocation.
    insert_before(exit_, op, located_at=alloc)
