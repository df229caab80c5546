"""`triton-tlx-fixup`: check what can't be compiled, and say in the module how it is launched.

Before:
```mlir
builtin.module { tt.func public @k() { tt.return } }
```
After `triton-tlx-fixup{num_warps=4 target=cuda:90}`:
```mlir
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", ...} { ... }
```
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, TensorType, i32
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from tlx_xdsl.dialects.ttg import WarpSpecializeOp
from tlx_xdsl.text.diagnostics import error_at, location_of
from tlx_xdsl.transforms.tritongpu.module_attrs import NUM_CTAS, NUM_WARPS, TARGET, THREADS_PER_WARP


def _check_captures(op: WarpSpecializeOp) -> None:
    for capture in op.partitions.explicit_captures:
        if isinstance(capture.type, TensorType):
            # The warps of a partition are others: they do not hold the registers of the block.
            raise error_at(
                location_of(capture),
                "WarpSpecializeOp should not capture RankedTensorType. Try moving tensor computation into specific "
                "async task.",
            )


@dataclass(frozen=True)
class TritonTLXFixupPass(ModulePass):
    """Set the launch attributes that the module lacks, and refuse what no later pass could repair."""

    name = "triton-tlx-fixup"

    num_warps: int = 4
    """Warps of the kernel outside of partitions."""
    num_ctas: int = 1
    """CTAs of a cluster that work on one tensor."""
    threads_per_warp: int = 32
    target: str = "cuda:90"
    """The compute capability, as Triton writes it."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check and annotate the module."""
        for inner in op.walk():
            if isinstance(inner, WarpSpecializeOp):
                _check_captures(inner)
        launch: dict[str, Attribute] = {
            NUM_CTAS: IntegerAttr(self.num_ctas, i32),
            NUM_WARPS: IntegerAttr(self.num_warps, i32),
            TARGET: StringAttr(self.target),
            THREADS_PER_WARP: IntegerAttr(self.threads_per_warp, i32),
        }
        for name, value in launch.items():
            op.attributes.setdefault(name, value)
