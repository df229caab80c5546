"""Synchronisation that stock Triton has no operation for: named barriers, fences, arrivals of single threads."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, i1, i32
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.distributed import WARP_SIZE

from ..base import (
    Effects,
    EnumNumber,
    Feature,
    Keyword,
    Needs,
    Sync,
    TritonOp,
    arrives,
    keyword_directive,
)
from ..ttg import MemDescType
from ..ttng import MBarrierOp

MAX_THREADS = 1024
"""Most threads of a thread block (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""
NAMED_BARRIERS = 16
"""Named barriers of a thread block (PTX ISA, "bar")."""


class FenceScope(Keyword):
    """The threads to which a fence makes earlier writes visible (PTX ISA, "Scope")."""

    GPU = 0
    SYS = 1


class _NamedBarrierOp(TritonOp):
    """Shared form of the operations on a named barrier.

    `id` is the user's number of it, 0 to 15; the hardware's number is chosen later, apart from the barriers that
    Triton needs for itself. `threads` is the number of threads that take part in one phase, waiting or not.
    """

    id = operand_def(i32)
    threads = prop_def(IntegerAttr.constr(i32))

    assembly_format = "$id `,` $threads attr-dict"

    def verify_(self) -> None:
        """Whole warps take part."""
        threads = self.threads.value.data
        if not WARP_SIZE <= threads <= MAX_THREADS or threads % WARP_SIZE:
            raise VerifyException(
                f"a named barrier counts {WARP_SIZE} to {MAX_THREADS} threads in whole warps, found {threads}"
            )


@irdl_op_definition
class NamedBarrierWaitOp(_NamedBarrierOp):
    """Arrive at a named barrier and block until `threads` threads have arrived (PTX: bar.sync).

    Example: `tlx.named_barrier_wait %id, 256`
    """

    name = "tlx.named_barrier_wait"
    EFFECTS: ClassVar = Effects(sync=Sync.NAMED | Sync.RELEASE | Sync.ACQUIRE | Sync.THREADS)


@irdl_op_definition
class NamedBarrierArriveOp(_NamedBarrierOp):
    """Arrive at a named barrier without waiting (PTX: bar.arrive): `tlx.named_barrier_arrive %id, 256`."""

    name = "tlx.named_barrier_arrive"
    EFFECTS: ClassVar = Effects(sync=Sync.NAMED | Sync.RELEASE | Sync.THREADS)


@irdl_op_definition
class FenceOp(TritonOp):
    """Make this thread's earlier writes visible to the GPU or to the whole system (PTX: fence.acq_rel.gpu, .sys).

    Example: `tlx.fence gpu`
    """

    name = "tlx.fence"
    EFFECTS: ClassVar = Effects(sync=Sync.RELEASE | Sync.ACQUIRE | Sync.FENCE)

    scope = prop_def(EnumNumber(FenceScope))

    custom_directives = (keyword_directive(FenceScope),)
    assembly_format = "custom<FenceScope>($scope) attr-dict"


@irdl_op_definition
class FenceMBarrierInitClusterOp(TritonOp):
    """Make the initialisation of mbarriers visible to the cluster (PTX: fence.mbarrier_init.release.cluster).

    It is `ttng.fence_mbarrier_init_release_cluster` for clusters of CTAs that each have tensors of their own
    (`ttg.num-ctas` is 1), where stock Triton refuses its operation.
    """

    name = "tlx.fence_mbarrier_init_cluster"
    NEEDS: ClassVar = Needs("tlx.fence_mbarrier_init_cluster", Feature.CLUSTER)
    EFFECTS: ClassVar = Effects(sync=Sync.FENCE)

    assembly_format = "attr-dict"


@irdl_op_definition
class ArrivePerThreadOp(MBarrierOp):
    """Every thread that runs this arrives once on the barrier, where `pred` holds (PTX: mbarrier.arrive).

    `ttng.arrive_barrier` arrives once for all threads of the region, which takes a synchronisation of its warps.
    Example: `tlx.arrive_per_thread %bar, %pred : !ttg.memdesc<1xi64, ...>`
    """

    name = "tlx.arrive_per_thread"
    NEEDS: ClassVar = Needs("tlx.barrier_arrive", Feature.MBARRIER)
    EFFECTS: ClassVar = Effects(arrives("alloc"))

    alloc = operand_def(MemDescType)
    pred = opt_operand_def(i1)

    assembly_format = "$alloc (`,` $pred^)? attr-dict `:` type($alloc)"
