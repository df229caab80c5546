"""`tlx-lower-cluster-barriers`: write the barriers of the cluster as operations that all warps take part in.

Where nothing but initialisations of mbarriers, and their fence, precedes a barrier, its arrival is relaxed:
the fence has released them, and a release to the cluster takes most of a microsecond before a kernel's first load.
Such a barrier only says that the other CTAs have started. So where partitions follow before anything reaches another
CTA, and all warps are theirs, it moves into them: they arrive first, and wait before they reach another CTA, or at
their end. What they do before that hides the wait.

`barrier.cluster` waits for all threads of all CTAs (PTX ISA, "barrier.cluster"). In a kernel with partitions, their
warps idle outside of them and would never arrive, so a barrier there runs in partitions of its own on all of them:
stock Triton fills the warps of partitions up to a multiple of 4.

Before, in a kernel with partitions of 3 warps in all:
```mlir
tlx.fence_mbarrier_init_cluster
ttng.cluster_arrive {relaxed = false}
ttng.cluster_wait
```
After:
```mlir
nvvm.fence.mbarrier.init
ttg.warp_specialize() default {
  nvvm.cluster.arrive.relaxed {aligned}
  nvvm.cluster.wait {aligned}
  ttg.warp_yield
} partition0() num_warps(4) {
  nvvm.cluster.arrive.relaxed {aligned}
  nvvm.cluster.wait {aligned}
  ttg.warp_return
}
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, ModuleOp, UnitAttr, i32
from xdsl.ir import Block, Operation, Region
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from tlx_xdsl.analysis.cluster_reach import ClusterReach
from tlx_xdsl.analysis.module_attrs import cluster_dims
from tlx_xdsl.dialects import nvvm, tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base import enclosing, module_integer
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass, insert_before, ops_of, replace
from .cluster_insertion import NO_ENDING_SYNC

_FILL = 4
"""The warps of partitions that stock Triton launches are a multiple of this, a warp group."""


@dataclass(frozen=True)
class LowerClusterBarriersPass(Pass):
    """Write the barriers of the cluster as `nvvm` operations."""

    name = "tlx-lower-cluster-barriers"

    def run(self, op: ModuleOp) -> None:
        """Handle every function of the module.

        Raises CompilationError for a barrier at which some warps would never arrive.
        """
        if (module_integer(op, "ttg.num-ctas") or 1) > 1:
            # Tensors span the cluster, and stock Triton puts the barriers.
            return
        dims, reach = cluster_dims(op), ClusterReach(op)
        for func in ops_of(op, tt.FuncOp):
            if dims is not None and func.is_kernel:
                func.attributes[nvvm.CLUSTER_DIM] = DenseArrayBase.from_list(i32, dims)
            if func.body.blocks:
                _relax_start(func)
                _lower(func, reach)


# --- the start --------------------------------------------------------------------------------------------------------


def _relax_start(func: tt.FuncOp) -> None:
    """Relax the first arrival of a kernel where nothing is left to release."""
    if not func.is_kernel:
        return
    fenced = True
    for op in func.body.blocks[0].ops:
        if isinstance(op, ttng.ClusterArriveOp):
            if fenced:
                op.relaxed = BoolAttr.from_bool(True)
            return
        match op:
            case ttng.InitBarrierOp():
                fenced = False
            case tlx.FenceMBarrierInitClusterOp():
                fenced = True
            case ttg.LocalAllocOp() | ttng.TMEMAllocOp() if op.src is None:
                pass
            case _ if not is_side_effect_free(op):
                return
            case _:
                pass


# --- what they become ------------------------------------------------------------------------------------------------


def _lower(func: tt.FuncOp, reach: ClusterReach) -> None:
    tasks = ops_of(func, ttg.WarpSpecializeOp)
    idle = -(-max((sum(op.num_warps) for op in tasks), default=0) // _FILL) * _FILL
    if idle:
        _sink_start(func, idle, reach)
    for op in list(func.walk()):
        match op:
            case tlx.FenceMBarrierInitClusterOp():
                replace(op, nvvm.FenceMbarrierInitOp())
            case ttng.ClusterArriveOp() | ttng.ClusterWaitOp():
                if op.parent is None:
                    # Taken together with the arrival before it.
                    continue
                if (inside := enclosing(op, ttg.WarpSpecializeOp)) is not None:
                    _check_warps(op, inside, idle)
                    _put([op], [])
                else:
                    _put(_run_of(op) if idle else [op], _partition_warps(idle))
            case _:
                pass


def _sink_start(func: tt.FuncOp, idle: int, reach: ClusterReach) -> None:
    """Move the barrier at the start of a kernel into the partitions that follow, if nothing needs it before."""
    arrive = next((op for op in func.walk() if isinstance(op, ttng.ClusterArriveOp)), None)
    if arrive is None or arrive.parent is not func.body.blocks[0] or not _is_relaxed(arrive):
        return
    wait = arrive.next_op
    if not isinstance(wait, ttng.ClusterWaitOp):
        return
    tasks = wait.next_op
    while tasks is not None and not isinstance(tasks, ttg.WarpSpecializeOp):
        if isinstance(tasks, ttng.ClusterArriveOp) or reach.within(tasks):
            return
        tasks = tasks.next_op
    if tasks is None or sum(tasks.num_warps) != idle:
        return
    for region in (tasks.default_region, *tasks.partitions.partition_regions):
        block = region.blocks[0]
        needs = next((op for op in block.ops if reach.within(op)), block.last_op)
        assert needs is not None, "a region ends in a terminator"
        insert_before(needs, ttng.ClusterWaitOp(), located_at=wait)
        first = block.first_op
        assert first is not None, "there is a wait"
        insert_before(first, arrive.clone(), located_at=arrive)
    Rewriter.erase_op(wait)
    Rewriter.erase_op(arrive)


def _check_warps(op: Operation, tasks: ttg.WarpSpecializeOp, idle: int) -> None:
    if (missing := idle - sum(tasks.num_warps)) > 0:
        raise error_at(
            op,
            f"a cluster barrier waits for all warps of the thread block, and {missing} of them idle here: Triton fills "
            f"the {sum(tasks.num_warps)} warps of the partitions up to {idle}. Move the barrier out of the tasks, or "
            "give the tasks those warps",
        )


def _run_of(op: Operation) -> list[Operation]:
    """An arrival and the wait after it, if there is one."""
    following = op.next_op
    if isinstance(op, ttng.ClusterArriveOp) and isinstance(following, ttng.ClusterWaitOp):
        return [op, following]
    return [op]


def _put(run: Sequence[Operation], partitions: Sequence[int]) -> None:
    """Replace operations by those of `nvvm`, on the current warps and on as many others as `partitions` says."""
    anchor = run[0]
    if not partitions:
        for op in run:
            insert_before(anchor, _nvvm(op))
    else:
        default = Region(Block([*map(_nvvm, run), ttg.WarpYieldOp(operands=[[]])]))
        regions = [Region(Block([*map(_nvvm, run), ttg.WarpReturnOp()])) for _ in partitions]
        holder = ttg.WarpSpecializeOp.build_with(
            [], partitions, default, regions, attributes={NO_ENDING_SYNC: UnitAttr()}
        )
        for inner in holder.walk():
            inner.location = anchor.location
        insert_before(anchor, holder)
    for op in run:
        Rewriter.erase_op(op)


def _nvvm(op: Operation) -> Operation:
    properties = {"aligned": UnitAttr()}
    if isinstance(op, ttng.ClusterWaitOp):
        return nvvm.ClusterWaitOp(properties=properties)
    assert isinstance(op, ttng.ClusterArriveOp)
    return (nvvm.ClusterArriveRelaxedOp if _is_relaxed(op) else nvvm.ClusterArriveOp)(properties=properties)


def _is_relaxed(op: ttng.ClusterArriveOp) -> bool:
    return op.relaxed is not None and bool(op.relaxed.value.data)


def _partition_warps(idle: int) -> list[int]:
    """The warps outside of the default ones in partitions, each a power of two of them."""
    return [1 << bit for bit in reversed(range(idle.bit_length())) if idle >> bit & 1]
