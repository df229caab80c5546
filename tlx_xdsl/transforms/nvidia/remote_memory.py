"""`tlx-lower-remote-memory`: reach the shared memory of other CTAs of a cluster by PTX.

Upstream Triton has no operation for it where each CTA has tensors of its own. What one thread does for all of its
region waits for the others first; data are stored by the threads that hold them (`remote_stores`).

Before:
```mlir
%rank = tlx.cluster_cta_rank
%r = tlx.map_to_remote %bar, %other : !ttg.memdesc<1xi64, ...> -> !ttg.memdesc<1xi64, ..., #tlx.shared_cluster_memory>
tlx.arrive_remote %r, 1 : ...
```
After:
```mlir
%rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
ttg.barrier local
%a = ... the address of %bar ...
%m = nvvm.inline_ptx "mapa.shared::cluster.u32 $0, $1, $2;" ro(%a, %other : i32, i32) -> i32
nvvm.inline_ptx "{ ... @p mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$2], 1; }" ro(%thread, %c0, %m ...)
```
With `releases shared` it is a relaxed arrival after `fence.release.sync_restrict::shared::cta.cluster`, with `releases
cta` one that releases to the own CTA (`tlx-relax-remote-arrivals`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.analysis.remote_store_order import unordered_accesses
from tlx_xdsl.dialects import nvvm, tlx, ttg
from tlx_xdsl.layouts.linear_layout import log2
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass, replace
from .emit.integers import is_true
from .emit.ptx import run_in_one_thread, wait_for_region
from .emit.shared_address import address_terms, remote_address, shared_address
from .remote_stores import lower_remote_store


class LowerRemoteMemoryPass(Pass):
    """Replace the operations on other CTAs' memory by PTX."""

    name = "tlx-lower-remote-memory"

    def run(self, op: ModuleOp) -> None:
        """Lower each such operation of the module where it stands.

        Raises CompilationError for what no instruction can do.
        """
        for access in unordered_accesses(op):
            # Upstream Triton sees no access in the PTX that a remote store becomes, and puts no barrier for it.
            wait_for_region(access)
        views: list[Operation] = []
        fences = _Fences()
        for inner in list(op.walk()):
            match inner:
                case tlx.ClusterCTARankOp():
                    replace(inner, nvvm.SPECIAL_REGISTERS["cluster.ctarank"]())
                case tlx.ClusterSizeOp():
                    replace(inner, nvvm.SPECIAL_REGISTERS["cluster.nctarank"]())
                case tlx.MapToRemoteOp():
                    views.append(inner)
                case tlx.ArriveRemoteOp():
                    _arrive(inner, fences)
                case tlx.RemoteStoreOp() | tlx.AsyncRemoteStoreOp():
                    lower_remote_store(inner)
                    Rewriter.erase_op(inner)
                case tlx.AsyncRemoteCopyOp():
                    _copy(inner)
                case _:
                    pass
        for view in views:
            if not view.results[0].uses:
                Rewriter.erase_op(view)


_ARRIVALS = {
    tlx.Releases.CLUSTER: "release.cluster",
    tlx.Releases.SHARED: "relaxed.cluster",
    tlx.Releases.CTA: "release.cta",
}
"""`.sem` and `.scope` of an arrival (PTX ISA, "mbarrier.arrive")."""
_FENCE = "@p fence.release.sync_restrict::shared::cta.cluster; "
"""Releases accesses to the own shared memory with the relaxed arrivals after it (PTX ISA, "fence")."""


@dataclass
class _Fences:
    """The fences that were put: arrivals side by side share one."""

    conditions: dict[Operation, list[SSAValue | None]] = field(default_factory=dict[Operation, list[SSAValue | None]])
    """By the barrier of the threads that they follow: the conditions under which they run, None where they always do.
    The threads have accessed no memory after a barrier that is found again."""

    def covers(self, barrier_op: Operation, condition: SSAValue | None) -> bool:
        """True if a fence runs where `condition` holds; if not, the next one does from here on."""
        known = self.conditions.setdefault(barrier_op, [])
        if None in known or condition in known:
            return True
        known.append(condition)
        return False


def _arrive(op: tlx.ArriveRemoteOp, fences: _Fences) -> None:
    barrier = remote_address(op, op.alloc)
    # The barrier orders the other threads' accesses before the arrival.
    barrier_op = wait_for_region(op)
    condition = None if op.pred is None or is_true(op.pred) else op.pred
    fence = _FENCE if op.released is tlx.Releases.SHARED and not fences.covers(barrier_op, condition) else ""
    code = f"@p mbarrier.arrive.{_ARRIVALS[op.released]}.shared::cluster.b64 _, [{{0}}], {op.count.value.data};"
    run_in_one_thread(op, fence + code, [barrier], predicate=op.pred)
    Rewriter.erase_op(op)


def _copy(op: tlx.AsyncRemoteCopyOp) -> None:
    size = _bytes_side_by_side(op)
    target, barrier = remote_address(op, op.dst), remote_address(op, op.barrier)
    source = shared_address(op, op.src)
    wait_for_region(op)
    run_in_one_thread(
        op,
        f"@p cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [{{0}}], [{{1}}], {size}, [{{2}}];",
        [target, source, barrier],
    )
    Rewriter.erase_op(op)


def _bytes_side_by_side(op: tlx.AsyncRemoteCopyOp) -> int:
    """The bytes of both buffers, which one copy moves.

    Raises CompilationError where they do not follow each other, or are no multiple of 16.
    """
    for buffer in (op.src, op.dst):
        type_ = ttg.memdesc_type(buffer.type)
        size = prod(type_.shape) * type_.element_bits // 8
        terms = address_terms(op, buffer)
        images = [term.value(1 << bit) for term in terms for bit in range(log2(type_.shape[term.dim]))]
        if size % tlx.BULK_BYTES:
            raise error_at(op, f"an asynchronous copy moves a multiple of {tlx.BULK_BYTES} bytes, {type_} has {size}")
        if any(image >= size for image in images):
            raise error_at(op, f"an asynchronous copy moves bytes that follow each other, those of {type_} do not")
    return size
