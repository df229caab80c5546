"""Fences, cluster barriers and cluster launch control (TritonNvidiaGPUOps.td)."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, IntegerType, i1, i32, i64
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..base import (
    ANY_TENSOR,
    LAUNCH_CONTROL,
    ORDERED,
    Effects,
    EnumNumber,
    Feature,
    Needs,
    Sync,
    TritonOp,
    enclosing,
    is_set,
    keyword_directive,
    num_ctas_of,
    reads,
    writes,
)
from ..tt import FuncOp, ProgramIDDim
from ..ttg import MemDescType, memdesc_type, verify_shared
from .barrier import verify_barrier
from .cga import verify_completion_barrier, verify_response_layout

FALSE, TRUE = BoolAttr.from_bool(False), BoolAttr.from_bool(True)
I128 = IntegerType(128)


@irdl_op_definition
class FenceAsyncSharedOp(TritonOp):
    """Make this thread's shared-memory accesses visible to the async proxy (PTX: fence.proxy.async).

    Example: `ttng.fence_async_shared {bCluster = false}`
    """

    name = "ttng.fence_async_shared"
    NEEDS: ClassVar = Needs("tlx.fence_async_shared", Feature.ASYNC_PROXY)
    EFFECTS: ClassVar = Effects(sync=Sync.FENCE_PROXY)

    b_cluster = prop_def(BoolAttr, prop_name="bCluster")

    assembly_format = "attr-dict"


class _ClusterOp(TritonOp):
    """Shared parts of what needs a cluster."""

    assembly_format = "attr-dict"

    def verify_(self) -> None:
        """Check that there is a cluster."""
        if num_ctas_of(self) == 1:
            raise VerifyException("needs a cluster of at least two CTAs ('ttg.num-ctas')")


@irdl_op_definition
class FenceMBarrierInitReleaseClusterOp(_ClusterOp):
    """Make the initialisation of mbarriers visible to the cluster."""

    name = "ttng.fence_mbarrier_init_release_cluster"
    NEEDS: ClassVar = Needs("tlx.fence_mbarrier_init_cluster", Feature.CLUSTER)
    EFFECTS: ClassVar = Effects(sync=Sync.FENCE)


@irdl_op_definition
class ClusterBarrierOp(_ClusterOp):
    """Wait for all warps of the cluster; a `relaxed` arrival releases nothing."""

    name = "ttng.cluster_barrier"
    NEEDS: ClassVar = Needs("tlx.cluster_barrier", Feature.CLUSTER)

    relaxed = prop_def(BoolAttr, default_value=FALSE)

    def verify_(self) -> None:
        """All warps of the cluster come here: a kernel does, a function that partitions may call does not."""
        super().verify_()
        function = enclosing(self, FuncOp)
        if function is not None and not function.is_kernel and function.attributes.get("noinline") == TRUE:
            raise VerifyException("must be in a kernel or in a function that is inlined")

    def effects(self) -> Effects:
        """The wait acquires; a relaxed arrival releases nothing (PTX ISA, "barrier.cluster")."""
        return Effects(sync=Sync.CLUSTER | Sync.ACQUIRE | (Sync.NONE if is_set(self, "relaxed") else Sync.RELEASE))


@irdl_op_definition
class ClusterArriveOp(TritonOp):
    """Arrive at the barrier of the cluster (Triton 3.6 to 3.8): `ttng.cluster_arrive {relaxed = false}`."""

    name = "ttng.cluster_arrive"
    NEEDS: ClassVar = Needs("tlx.cluster_barrier", Feature.CLUSTER)

    relaxed = opt_prop_def(BoolAttr)

    assembly_format = "attr-dict"

    def effects(self) -> Effects:
        """A relaxed arrival orders no memory."""
        return Effects(sync=Sync.CLUSTER | (Sync.ORDERED if is_set(self, "relaxed") else Sync.RELEASE))


@irdl_op_definition
class ClusterWaitOp(TritonOp):
    """Wait at the barrier of the cluster (Triton 3.6 to 3.8)."""

    name = "ttng.cluster_wait"
    NEEDS: ClassVar = Needs("tlx.cluster_barrier", Feature.CLUSTER)
    EFFECTS: ClassVar = Effects(sync=Sync.ACQUIRE | Sync.CLUSTER)

    assembly_format = "attr-dict"


def verify_response(buffer: MemDescType) -> None:
    """Check that a buffer holds the 16 bytes of one response of the cluster launch control."""
    verify_shared(buffer)
    if buffer.element_type != i64 or buffer.shape != (2,):
        raise VerifyException(f"a response is a memdesc of shape 2xi64, found {buffer}")
    verify_response_layout(buffer)


@irdl_op_definition
class CLCTryCancelSyncOp(TritonOp):
    """Ask for the cluster that would be launched next, and wait for the response."""

    name = "ttng.clc_try_cancel_sync"
    NEEDS: ClassVar = Needs("ttng.clc_try_cancel_sync", Feature.CLUSTER_LAUNCH_CONTROL)
    EFFECTS: ClassVar = ORDERED

    response = result_def(ANY_TENSOR)

    assembly_format = "attr-dict `:` type($response)"

    def verify_(self) -> None:
        """The response is two i64."""
        response = self.response.type
        if response.element_type != i64 or response.get_shape() != (2,):
            raise VerifyException(f"a response is a tensor of shape 2xi64, found {response}")


@irdl_op_definition
class CLCTryCancelOp(TritonOp):
    """Ask for the cluster that would be launched next: the response arrives in `result` and completes on `mbarrier`.

    Example: `ttng.clc_try_cancel %response, %bar : !ttg.memdesc<2xi64, ...>, !ttg.memdesc<1xi64, ...>`
    """

    name = "ttng.clc_try_cancel"
    NEEDS: ClassVar = Needs("tlx.clc_producer", Feature.CLUSTER_LAUNCH_CONTROL)
    EFFECTS: ClassVar = Effects(writes("result"), by=LAUNCH_CONTROL, completes_on="mbarrier")

    result = operand_def(MemDescType)
    mbarrier = operand_def(MemDescType)

    assembly_format = "$result `,` $mbarrier attr-dict `:` type($result) `,` type($mbarrier)"

    def verify_(self) -> None:
        """The response has 16 bytes, and the barrier is one."""
        verify_response(memdesc_type(self.result.type))
        verify_barrier(memdesc_type(self.mbarrier.type), num_ctas_of(self))
        verify_completion_barrier(memdesc_type(self.mbarrier.type))


@irdl_op_definition
class CLCLoadResultOp(TritonOp):
    """Read a response: `%r = ttng.clc_load_result %buf : !ttg.memdesc<2xi64, ...> -> i128`."""

    name = "ttng.clc_load_result"
    NEEDS: ClassVar = Needs("tlx.clc_consumer", Feature.CLUSTER_LAUNCH_CONTROL)
    EFFECTS: ClassVar = Effects(reads("src"))

    src = operand_def(MemDescType)
    clc_result = result_def(I128)

    assembly_format = "$src attr-dict `:` type($src) `->` type($clc_result)"

    def verify_(self) -> None:
        """The response has 16 bytes."""
        verify_response(memdesc_type(self.src.type))


@irdl_op_definition
class CLCIsCanceledOp(TritonOp):
    """True if a response brings a cluster: `%c = ttng.clc_is_canceled %r : i128 -> i1`."""

    name = "ttng.clc_is_canceled"
    NEEDS: ClassVar = Needs("tlx.clc_consumer", Feature.CLUSTER_LAUNCH_CONTROL)

    clc_result = operand_def(I128)
    is_canceled = result_def(i1)

    traits = traits_def(Pure())
    assembly_format = "$clc_result attr-dict `:` type($clc_result) `->` type($is_canceled)"


@irdl_op_definition
class CLCGetProgramIdOp(TritonOp):
    """The coordinate of the cluster in a response: `%x = ttng.clc_get_program_id %r, x : i128 -> i32`."""

    name = "ttng.clc_get_program_id"
    NEEDS: ClassVar = Needs("tlx.clc_consumer", Feature.CLUSTER_LAUNCH_CONTROL)

    clc_result = operand_def(I128)
    dim = prop_def(EnumNumber(ProgramIDDim))
    result = result_def(i32)

    traits = traits_def(Pure())
    custom_directives = (keyword_directive(ProgramIDDim),)
    assembly_format = "$clc_result `,` custom<ProgramIDDim>($dim) attr-dict `:` type($clc_result) `->` type($result)"
