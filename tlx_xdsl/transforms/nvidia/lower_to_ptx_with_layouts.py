"""`tlx-lower-to-ptx-with-layouts`: PTX for single operations whose layouts are known.

One file has the patterns of one topic; those of arrivals are here. Operations are lowered in program order: where the
threads of a region have just waited for each other, the next operation needs no further barrier.

Before:
```mlir
tlx.arrive_per_thread %bar : !ttg.memdesc<1xi64, ...>
```
After (`%mbar` is the address of `%bar`):
```mlir
nvvm.inline_ptx "mbarrier.arrive.shared::cta.b64 _, [$0];" ro(%mbar : i32)
```
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tlx_xdsl.dialects import arith, tlx

from ..driver import walk_and_apply_patterns
from ..rewriting import Pass, insert_before
from . import bulk_copies, cluster_launch_control, device_descriptors, multicast_loads, tensor_memory_shifts, votes
from .emit.ptx import inline_ptx
from .emit.shared_address import shared_address

_ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [$0];"


class LowerThreadArrival(RewritePattern):
    """Replaces an arrival of every thread at an mbarrier by PTX (PTX ISA, "mbarrier.arrive").

    It releases what its own thread has done before, so the warps do not wait for each other first.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.ArrivePerThreadOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        address = shared_address(op, op.alloc)
        if op.pred is None:
            rewriter.replace(op, inline_ptx(_ARRIVE, [address]))
            return
        # A predicate as an operand breaks where it is a constant.
        code = f"{{ .reg .pred p; setp.ne.b32 p, $1, 0; @p {_ARRIVE} }}"
        rewriter.replace(op, inline_ptx(code, [address, insert_before(op, arith.ExtUIOp(op.pred, i32)).result]))


@dataclass(frozen=True)
class LowerToPTXWithLayoutsPass(Pass):
    """Replace operations whose layouts count by their PTX."""

    name = "tlx-lower-to-ptx-with-layouts"

    native: bool = False
    """Keep the operations for cluster launch control that Triton has from 3.8 on."""
    cached_loads: bool = True
    """Keep cache policies of TMA loads, which Triton has from 3.9 on."""

    def run(self, op: ModuleOp) -> None:
        """Rewrite each such operation of the module.

        Raises CompilationError as the patterns do.
        """
        topics = self._patterns(op)
        # An older name of this pass is that of one topic.
        chosen = topics.get(self.name) or [pattern for topic in topics.values() for pattern in topic]
        walk_and_apply_patterns(op, chosen)

    def _patterns(self, module: ModuleOp) -> dict[str, list[RewritePattern]]:
        return {
            "tlx-lower-device-descriptors": [device_descriptors.LowerDeviceDescriptor()],
            "tlx-lower-bulk-copies": bulk_copies.patterns(module),
            "tlx-lower-thread-arrivals": [LowerThreadArrival()],
            "tlx-lower-tensor-memory-shifts": [tensor_memory_shifts.LowerTensorMemoryShift()],
            "tlx-lower-clc": cluster_launch_control.patterns(native=self.native),
            "tlx-lower-votes": [votes.LowerVote()],
            "tlx-lower-multicast-loads": multicast_loads.patterns(cached_loads=self.cached_loads),
        }
