"""`tlx-lower-remote-memory`: reach the shared memory of other CTAs of a cluster by PTX.

Stock Triton has no operation for it where each CTA has tensors of its own. What one thread does for all of its region
waits for the others first; data are stored by the threads that hold them (`remote_stores`).

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
With `releases shared` it is a relaxed arrival behind `fence.release.sync_restrict::shared::cta.cluster`, with `releases
cta` one that releases to the own CTA (`tlx-relax-remote-arrivals`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import tlx
from tlx_xdsl.dialects.nvvm import SPECIAL_REGISTERS
from tlx_xdsl.dialects.tlx.cluster import Releases
from tlx_xdsl.dialects.tlx.copies import BULK_BYTES
from tlx_xdsl.dialects.ttg.types import memdesc_type
from tlx_xdsl.layouts.linear_layout import log2
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.nvidia.integers import is_true
from tlx_xdsl.transforms.nvidia.one_thread import run_in_one_thread, wait_for_region
from tlx_xdsl.transforms.nvidia.remote_address import remote_address
from tlx_xdsl.transforms.nvidia.remote_stores import lower_remote_store
from tlx_xdsl.transforms.nvidia.shared_address import address_terms, shared_address
from tlx_xdsl.transforms.rewriting import replace


class LowerRemoteMemoryPass(ModulePass):
    """Replace the operations on other CTAs' memory by PTX."""

    name = "tlx-lower-remote-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower each such operation of the module where it stands.

        Raises CompilationError for what no instruction can do.
        """
        views: list[Operation] = []
        fences = _Fences()
        for inner in list(op.walk()):
            match inner:
                case tlx.ClusterCTARankOp():
                    replace(inner, SPECIAL_REGISTERS["cluster.ctarank"]())
                case tlx.ClusterSizeOp():
                    replace(inner, SPECIAL_REGISTERS["cluster.nctarank"]())
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


_ARRIVALS = {Releases.CLUSTER: "release.cluster", Releases.SHARED: "relaxed.cluster", Releases.CTA: "release.cta"}
"""`.sem` and `.scope` of an arrival (PTX ISA, "mbarrier.arrive")."""
_FENCE = "@p fence.release.sync_restrict::shared::cta.cluster; "
"""Releases accesses to the own shared memory with the relaxed arrivals behind it (PTX ISA, "fence")."""


@dataclass
class _Fences:
    """The fences that were put: arrivals side by side share one."""

    behind: dict[Operation, list[SSAValue | None]] = field(default_factory=dict[Operation, list[SSAValue | None]])
    """By the meeting of the threads that they follow: the conditions under which they run, None where they always do.
    Behind a meeting the threads have touched no memory when one is found again."""

    def covers(self, meeting: Operation, condition: SSAValue | None) -> bool:
        """Whether a fence runs where `condition` holds; if not, the next one does from here on."""
        known = self.behind.setdefault(meeting, [])
        if None in known or condition in known:
            return True
        known.append(condition)
        return False


def _arrive(op: tlx.ArriveRemoteOp, fences: _Fences) -> None:
    barrier = remote_address(op, op.alloc)
    # The other threads' accesses are behind the arrival, since they have met this thread before.
    meeting = wait_for_region(op)
    condition = None if op.pred is None or is_true(op.pred) else op.pred
    fence = _FENCE if op.released is Releases.SHARED and not fences.covers(meeting, condition) else ""
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
        type_ = memdesc_type(buffer.type)
        size = type_.element_bits // 8
        for extent in type_.shape:
            size *= extent
        terms = address_terms(op, buffer)
        images: list[int] = []
        for dim, extent in enumerate(type_.shape):
            for bit in range(log2(extent)):
                image = 0
                for term in terms:
                    image ^= term.value(1 << bit) if term.dim == dim else 0
                images.append(image)
        if size % BULK_BYTES:
            raise error_at(op, f"an asynchronous copy moves a multiple of {BULK_BYTES} bytes, {type_} has {size}")
        if any(image >= size for image in images):
            raise error_at(op, f"an asynchronous copy moves bytes that follow each other, those of {type_} do not")
    return size
