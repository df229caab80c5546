"""`expand-dependent-launches`: waits for earlier grids, and their permission, as PTX: operations since Triton 3.9.

Before:
```mlir
tt.grid_dependency_wait
tt.grid_dependency_launch_dependents
```
After `expand-dependent-launches`:
```mlir
%0 = tt.elementwise_inline_asm "griddepcontrol.wait; mov.b32 $0, 0;" {...} -> i32
%1 = tt.elementwise_inline_asm "griddepcontrol.launch_dependents; mov.b32 $0, 0;" {...} -> i32
```
PTX ISA, "griddepcontrol". The assembly has a result because Triton's operation must have one.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt

from ..rewriting import Pass, insert_before, ops_of
from .emit.ptx import elementwise_ptx


class ExpandDependentLaunchesPass(Pass):
    """Write both operations as PTX."""

    name = "expand-dependent-launches"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for inner in ops_of(op, tt.GridDependencyWaitOp):
            _expand(inner, "wait")
        for inner in ops_of(op, tt.GridDependencyLaunchDependentsOp):
            _expand(inner, "launch_dependents")


def _expand(op: Operation, action: str) -> None:
    code = f"griddepcontrol.{action}; mov.b32 $0, 0;"
    insert_before(op, elementwise_ptx(code, "=r", 1, [], i32, pure=False))
    op.detach()
    op.erase()
