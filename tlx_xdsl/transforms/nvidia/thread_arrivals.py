"""`tlx-lower-thread-arrivals`: each thread arrives at an mbarrier for itself (PTX ISA, "mbarrier.arrive").

An arrival releases what its own thread has done before, so the warps do not wait for each other first.

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

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.passes import ModulePass

from tlx_xdsl.dialects import tlx
from tlx_xdsl.dialects.arith import ExtUIOp
from tlx_xdsl.transforms.nvidia.ptx import inline_ptx
from tlx_xdsl.transforms.nvidia.shared_address import shared_address
from tlx_xdsl.transforms.rewriting import insert_before, replace

_ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [$0];"


@dataclass(frozen=True)
class LowerThreadArrivalsPass(ModulePass):
    """Replace arrivals of every thread by PTX."""

    name = "tlx-lower-thread-arrivals"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every such arrival of the module."""
        for inner in list(op.walk()):
            if isinstance(inner, tlx.ArrivePerThreadOp):
                _lower(inner)


def _lower(op: tlx.ArrivePerThreadOp) -> None:
    address = shared_address(op, op.alloc)
    if op.pred is None:
        replace(op, inline_ptx(_ARRIVE, [address]))
        return
    # A predicate as an operand breaks where it is a constant.
    code = f"{{ .reg .pred p; setp.ne.b32 p, $1, 0; @p {_ARRIVE} }}"
    replace(op, inline_ptx(code, [address, insert_before(op, ExtUIOp(op.pred, i32)).result]))
