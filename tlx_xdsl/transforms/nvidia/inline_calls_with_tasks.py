"""`tlx-inline-calls-with-tasks`: have upstream Triton inline every function of a kernel with tasks, before Triton 3.9.

The lowering of tasks in 3.8 looks for an attribute of each function, which no pass sets on those that the default task
calls. In 3.6 and 3.7 a barrier in such a function waits for the threads of all tasks, and the kernel hangs.

Before:
```mlir
tt.func private @f() attributes {noinline = true} { tt.return }
```
After, in a module with a `ttg.warp_specialize`:
```mlir
tt.func private @f() attributes {noinline = false} { tt.return }
```
"""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, ModuleOp

from tlx_xdsl.dialects import tt, ttg

from ..rewriting import Pass, ops_of

_NOINLINE = "noinline"


class InlineCallsWithTasksPass(Pass):
    """Clear `noinline` on the functions of a module with tasks."""

    name = "tlx-inline-calls-with-tasks"

    def run(self, op: ModuleOp) -> None:
        """Clear the attribute in place; upstream Triton's inliner does the rest."""
        if not ops_of(op, ttg.WarpSpecializeOp):
            return
        for func in ops_of(op, tt.FuncOp):
            if _NOINLINE in func.attributes:
                func.attributes[_NOINLINE] = BoolAttr.from_bool(False)
