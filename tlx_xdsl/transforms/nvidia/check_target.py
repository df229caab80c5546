"""`tlx-check-target`: refuse what the target can't do, at the user's line. Changes nothing.

What no GPU of the target's architecture has would end in ptxas, or in an abort of LLVM's, far from its source. Each
operation says what it needs (`dialects/base/operation.py`); `targets.py` says who has it.

For a module with `ttg.target = "cuda:89"`, this operation
```mlir
%d = ttng.warp_group_dot %a, %b, %c {isAsync = true} : ...
```
is the error
```
kernel.py:36:15: error: tlx.async_dot into registers needs wgmma (sm_90a); target is sm_89
```
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.analysis.module_attrs import CLUSTER_DIMS, NUM_CTAS, TARGET, module_target
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import display_name, module_integer, needs_of, why_not_compiled
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.targets import Feature, Target, refusal
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass

_DESCRIPTORS = {Feature.TMA, Feature.TMA_GATHER, Feature.TMA_SCATTER}
"""The features of operations of `tt` on descriptors. Without TMA stock Triton's own passes turn them into loads and
stores through pointers."""


@dataclass(frozen=True)
class CheckTargetPass(Pass):
    """Report the first operation that needs what the module's target lacks."""

    name = "tlx-check-target"

    plain: bool = False
    """True if stock Triton's own passes follow, which need no TMA for tensor descriptors."""

    def run(self, op: ModuleOp) -> None:
        """Check the module, and every operation in it.

        Raises CompilationError, located at the operation, for what the target lacks; also for a module that names no
        target of ours.
        """
        target = module_target(op)
        if target is None:
            raise error_at(op, f"the module needs the attribute '{TARGET}'; the pass triton-tlx-fixup sets it")
        clusters = [name for name in (NUM_CTAS, *CLUSTER_DIMS) if (module_integer(op, name) or 1) > 1]
        if clusters and not target.has(Feature.CLUSTER):
            what = "num_ctas above 1" if NUM_CTAS in clusters else "a launch in clusters"
            raise error_at(op, refusal(what, (Feature.CLUSTER,), target))
        for inner in op.walk():
            if (error := self._fault(inner, target)) is not None:
                raise error

    def _fault(self, op: Operation, target: Target) -> CompilationError | None:
        if isinstance(op, tt.AssertOp) and op.is_breakpoint:
            return error_at(op, "breakpoint() is for launches on the CPU and for tlx debug: take it out for a GPU")
        if (why := why_not_compiled(op)) is not None:
            return error_at(op, f"{display_name(op)}: {why}")
        lacks = [feature for feature in needs_of(op) if not target.has(feature)]
        by_pointers = self.plain and op.dialect_name() == "tt" and _DESCRIPTORS.issuperset(lacks)
        if not lacks or (by_pointers and not target.has(Feature.TMA)):
            return None
        return error_at(op, refusal(display_name(op), lacks[:1], target))
