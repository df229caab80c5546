"""Lowering of barriers and fences of `tlx`."""

from __future__ import annotations

from xdsl.dialects.builtin import i64

from tlx_xdsl.dialects import nvvm, tlx as dialect, ttg, ttng
from tlx_xdsl.dialects.base import layout_attr
from tlx_xdsl.dialects.tlx import NAMED_BARRIERS, FenceScope
from tlx_xdsl.language.core import int1, int32
from tlx_xdsl.layouts.distributed import WARP_SIZE
from tlx_xdsl.layouts.shared import unswizzled_layout

from .. import semantic
from ..attributes import view
from ..calls import Call, lowers
from ..values import Constexpr, MBarriers, Tensor, Value
from .tlx_common import SMEM, is_remote, one_barrier, remote_view

_MOST_BARRIERS = 227 * 1024 // 8
"""mbarriers of 8 bytes in the shared memory of a thread block (CUDA C++ programming guide, compute capability 9.0)."""


def allocate_barriers(call: Call, num: int, count: int, *, per_thread: bool = False) -> MBarriers:
    """`num` mbarriers whose phases complete after `count` arrivals.

    Raises CompilationError for more than shared memory holds or than an mbarrier counts.
    """
    if num > _MOST_BARRIERS:
        call.fail("num_barriers", f"shared memory has room for {_MOST_BARRIERS} mbarriers, found {num}")
    if count > ttng.MAX_ARRIVALS:
        call.fail(None, f"the arrival count must be at least 1 and at most {ttng.MAX_ARRIVALS}, found {count}")
    # Upstream Triton requires a rank-2 array, whose first dimension may be any number.
    type_ = ttg.MemDescType.get((num, 1), i64, layout_attr(unswizzled_layout(1)), SMEM)
    array = call.emit(ttg.LocalAllocOp, None, results=[type_]).result
    barriers = MBarriers(array, num, per_thread)
    for index in range(num):
        one = view(call.visitor, call.node, barriers, Constexpr(index))
        assert isinstance(one, MBarriers)
        call.emit(ttng.InitBarrierOp, one, count=count)
    return barriers


@lowers("tlx.alloc_barriers")
def _alloc_barriers(call: Call) -> Value:
    num = call.integer("num_barriers", minimum=1)
    return allocate_barriers(call, num, call.integer("arrive_count", minimum=1))


@lowers("tlx.alloc_warp_barrier")
def _alloc_warp_barrier(call: Call) -> Value:
    num, warps = call.integer("num_barriers", minimum=1), call.integer("num_warps", minimum=1)
    count = warps * WARP_SIZE * call.integer("num_arrivals", minimum=1)
    return allocate_barriers(call, num, count, per_thread=True)


def expect(call: Call, barrier: MBarriers, size: int, pred: Tensor) -> None:
    """Let a barrier expect `size` bytes."""
    call.emit(ttng.BarrierExpectOp, barrier, pred, size=size)


@lowers("tlx.barrier_expect_bytes")
def _barrier_expect_bytes(call: Call) -> None:
    expect(call, one_barrier(call), call.integer("size", minimum=0), call.predicate())


def wait(call: Call, barrier: MBarriers, phase: Tensor, pred: Tensor) -> None:
    """Wait for a phase of a barrier."""
    call.emit(ttng.WaitBarrierOp, barrier, phase, pred, [])


def parity(call: Call, parameter: str) -> Tensor:
    """The argument, a phase's parity, as an int32."""
    phase = call.args[parameter]
    if isinstance(phase, Tensor) and phase.dtype == int1:
        phase = semantic.cast(call.builder, phase, int32)
    return call.as_scalar(parameter, phase, int32)


@lowers("tlx.barrier_wait")
def _barrier_wait(call: Call) -> None:
    wait(call, one_barrier(call), parity(call, "phase"), call.predicate())


@lowers("tlx.barrier_arrive")
def _barrier_arrive(call: Call) -> None:
    barrier, count = one_barrier(call, remote=True), call.integer("arrive_count", minimum=1)
    pred = call.scalar("pred", int1) if call.given("pred") else None
    if call.given("remote_cta_rank"):
        if is_remote(barrier):
            call.fail("remote_cta_rank", "the barrier is a remote view, which names its CTA already")
        rank = call.scalar("remote_cta_rank", int32)
        barrier = MBarriers(remote_view(call, barrier.ssa, rank), 0, barrier.per_thread)
    arrive(call, barrier, count, pred)


def arrive(call: Call, barrier: MBarriers, count: int, pred: Tensor | None) -> None:
    """Arrive at a barrier of this CTA or of another one."""
    if barrier.per_thread:
        if is_remote(barrier):
            call.fail("bar", "a warp barrier of another CTA can't be arrived at")
        if count != 1:
            call.fail("arrive_count", f"each thread arrives once at a warp barrier, found {count}")
        call.emit(dialect.ArrivePerThreadOp, barrier, pred)
    elif is_remote(barrier):
        call.emit(dialect.ArriveRemoteOp, barrier, pred, count=count)
    else:
        call.emit(ttng.ArriveBarrierOp, barrier, pred, count=count)


# --- named barriers -------------------------------------------------------------------------------------------------


def _named(call: Call) -> tuple[Tensor, int]:
    """The number of the barrier and of its threads."""
    bar = call.args["bar"]
    if isinstance(bar, Constexpr) and isinstance(bar.value, int) and not 0 <= bar.value < NAMED_BARRIERS:
        call.fail("bar", f"a thread block has the named barriers 0 to {NAMED_BARRIERS - 1}, found {bar.value}")
    return call.scalar("bar", int32), call.integer("arrive_count", minimum=1)


@lowers("tlx.named_barrier_wait")
def _named_barrier_wait(call: Call) -> None:
    barrier, threads = _named(call)
    call.emit(dialect.NamedBarrierWaitOp, barrier, threads=threads)


@lowers("tlx.named_barrier_arrive")
def _named_barrier_arrive(call: Call) -> None:
    barrier, threads = _named(call)
    call.emit(dialect.NamedBarrierArriveOp, barrier, threads=threads)


# --- fences ---------------------------------------------------------------------------------------------------------


def fence_async(call: Call) -> None:
    """Order accesses of the threads with those of TMA and the tensor cores."""
    call.emit(ttng.FenceAsyncSharedOp, bCluster=False)


@lowers("tlx.fence")
def _fence(call: Call) -> None:
    of_threads = {"gpu": FenceScope.GPU, "sys": FenceScope.SYS}
    scope = call.choice("scope", {**of_threads, "async_shared": None, "async_global": nvvm.ProxyKind.ASYNC_GLOBAL})
    if scope is None:
        fence_async(call)
    elif isinstance(scope, nvvm.ProxyKind):
        call.emit(nvvm.FenceProxyOp, kind=nvvm.ProxyKindAttr(scope))
    else:
        call.emit(dialect.FenceOp, scope=scope)


@lowers("tlx.fence_async_shared")
def _fence_async_shared(call: Call) -> None:
    fence_async(call)


@lowers("tlx.fence_mbarrier_init_cluster")
def _fence_mbarrier_init_cluster(call: Call) -> None:
    if call.visitor.unit.num_ctas > 1:
        call.emit(ttng.FenceMBarrierInitReleaseClusterOp)
    else:
        # Stock Triton refuses its operation where each CTA has tensors of its own.
        call.emit(dialect.FenceMBarrierInitClusterOp)
