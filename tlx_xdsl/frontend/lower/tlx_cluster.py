"""Lowering of the cluster functions of `tlx`."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tlx_xdsl.dialects import tlx as dialect, ttng
from tlx_xdsl.language.core import int32

from ..calls import Call, lowers
from ..values import BufferedTensor, MBarriers, Tensor, Value
from .tlx_common import cta_rank, elements_like, one_barrier, remote_view, shared_buffer


@lowers("tlx.cluster_cta_rank")
def _cluster_cta_rank(call: Call) -> Value:
    return cta_rank(call)


@lowers("tlx.cluster_size_1d")
def _cluster_size(call: Call) -> Value:
    return call.emit_tensor(dialect.ClusterSizeOp, int32, ())


@lowers("tlx.cluster_barrier")
def _cluster_barrier(call: Call) -> None:
    # `ttng.cluster_barrier` of newer versions needs CTAs that share tensors; these two do not.
    call.emit(ttng.ClusterArriveOp, relaxed=False)
    call.emit(ttng.ClusterWaitOp)


@lowers("tlx.remote_view")
def _remote_view(call: Call) -> Value:
    if isinstance(call.args["local_allocated_buffer"], BufferedTensor):
        call.expected("local_allocated_buffer", "an mbarrier (data goes to another CTA by a remote store or copy)")
    barrier = one_barrier(call, "local_allocated_buffer")
    rank = call.scalar("remote_cta_rank", int32)
    return MBarriers(remote_view(call, barrier.ssa, rank), 0, barrier.per_thread)


def _destination(call: Call) -> tuple[BufferedTensor, Tensor, SSAValue]:
    """The buffer here, the other CTA's rank, and its copy of the buffer."""
    buffer, rank = shared_buffer(call, "dst"), call.scalar("remote_cta_rank", int32)
    return buffer, rank, remote_view(call, buffer.ssa, rank)


@lowers("tlx.remote_shmem_store")
def _remote_shmem_store(call: Call) -> None:
    buffer, _, remote = _destination(call)
    call.emit(dialect.RemoteStoreOp, elements_like(call, "src", buffer), remote)


@lowers("tlx.async_remote_shmem_store")
def _async_remote_shmem_store(call: Call) -> None:
    buffer, rank, remote = _destination(call)
    barrier = remote_view(call, one_barrier(call, "barrier").ssa, rank)
    call.emit(dialect.AsyncRemoteStoreOp, elements_like(call, "src", buffer), remote, barrier)


@lowers("tlx.async_remote_shmem_copy")
def _async_remote_shmem_copy(call: Call) -> None:
    buffer, rank, remote = _destination(call)
    source = shared_buffer(call, "src")
    if (source.dtype, source.shape) != (buffer.dtype, buffer.shape):
        call.fail("src", f"'src' must be like {buffer.describe()}, found {source.describe()}")
    barrier = remote_view(call, one_barrier(call, "barrier").ssa, rank)
    call.emit(dialect.AsyncRemoteCopyOp, source, remote, barrier)
