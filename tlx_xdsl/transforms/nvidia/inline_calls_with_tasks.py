"""`tlx-inline-calls-with-tasks`: inline every function that a kernel with tasks calls, before Triton 3.9.

The lowering of tasks in 3.8 looks for an attribute of each function, which no pass sets on those that the default task
calls. In 3.6 and 3.7 a barrier in such a function waits for the threads of all tasks, and the kernel hangs. Functions
of several blocks, which early returns make, are left to upstream Triton's inliner: it takes those without operations of
`nvvm`.

Before:
```mlir
tt.func public @kernel() {
  ttg.warp_specialize() default { tt.call @f() : () -> () ttg.warp_yield } : () -> ()
  tt.return
}
tt.func private @f() attributes {noinline = true} { nvvm.fence.mbarrier.init tt.return }
```
After:
```mlir
tt.func public @kernel() {
  ttg.warp_specialize() default { nvvm.fence.mbarrier.init ttg.warp_yield } : () -> ()
  tt.return
}
```
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import BoolAttr, CallSiteLoc, ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import tt, ttg

from ..rewriting import Pass, callee_of, functions_of, insert_before, ops_of

_NOINLINE = "noinline"


class InlineCallsWithTasksPass(Pass):
    """Inline what a kernel with tasks calls."""

    name = "tlx-inline-calls-with-tasks"

    def run(self, op: ModuleOp) -> None:
        """Inline functions of one block in place, and let upstream Triton's inliner take the others."""
        if not ops_of(op, ttg.WarpSpecializeOp):
            return
        functions, done = functions_of(op), dict[str, bool]()
        for name in functions:
            _inline_into(name, functions, done)
        called = {callee_of(call) for call in ops_of(op, tt.CallOp)}
        for name, func in functions.items():
            if _NOINLINE in func.attributes:
                func.attributes[_NOINLINE] = BoolAttr.from_bool(False)
            if not func.is_kernel and name not in called:
                Rewriter.erase_op(func)


def _inline_into(name: str, functions: Mapping[str, tt.FuncOp], done: dict[str, bool]) -> None:
    """Inline the calls of a function, after those of what it calls; `done` is False while that is under way."""
    if name in done:
        return
    done[name] = False
    for call in ops_of(functions[name], tt.CallOp):
        callee = callee_of(call)
        _inline_into(callee, functions, done)
        # A function that calls itself stays.
        if done[callee] and len(functions[callee].body.blocks) == 1:
            _inline(call, functions[callee])
    done[name] = True


def _inline(call: tt.CallOp, callee: tt.FuncOp) -> None:
    block = callee.body.block
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, call.arguments, strict=True))
    for op in block.ops:
        if isinstance(op, tt.ReturnOp):
            for result, value in zip(call.results, op.operands, strict=True):
                result.replace_all_uses_with(values.get(value, value))
            break
        copy = insert_before(call, op.clone(values), located_at=op)
        for old, new in zip(op.walk(), copy.walk(), strict=True):
            new.location = CallSiteLoc(old.location, call.location)
    Rewriter.erase_op(call)
