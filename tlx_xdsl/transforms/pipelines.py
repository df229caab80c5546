"""The compiler, top to bottom: what turns the frontend's module into TTGIR."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tlx_xdsl.transforms.nvidia.barrier_lifecycle import BarrierLifecyclePass
from tlx_xdsl.transforms.storage_alias.lowering import StorageAliasLoweringPass
from tlx_xdsl.transforms.storage_alias.rewrite_local_alias import RewriteLocalAliasPass
from tlx_xdsl.transforms.tritongpu.convert import ConvertTritonToTritonGPUPass
from tlx_xdsl.transforms.tritongpu.expand_negf import ExpandNegfPass
from tlx_xdsl.transforms.tritongpu.fixup import TritonTLXFixupPass


def ttgir_pipeline() -> tuple[ModulePass, ...]:
    """The passes from the frontend's module to TTGIR for stock Triton, in order."""
    return (
        # Refuse what can't work while the user's constructs are still there to point at.
        TritonTLXFixupPass(),
        # Buffers that share a region become views of one allocation; sizes and offsets are settled here.
        StorageAliasLoweringPass(),
        # Stock Triton knows no tlx.local_alias.
        RewriteLocalAliasPass(),
        # Stock Triton 3.6 and 3.7 do not lower arith.negf.
        ExpandNegfPass(),
        # Layouts for every tensor, by the warps of its region; conversions at the borders.
        ConvertTritonToTritonGPUPass(),
        # Stock Triton reuses a barrier's memory unless its life is ended: last, when all barriers exist.
        BarrierLifecyclePass(),
    )


def run_pipeline(
    module: ModuleOp,
    passes: tuple[ModulePass, ...],
    context: Context,
    after_each: Callable[[ModulePass, ModuleOp], None] = lambda _pass, _module: None,
) -> None:
    """Run `passes` over `module` in place, calling `after_each` behind every one.

    Raises CompilationError, located in the user's source, when a pass refuses the module.
    """
    for module_pass in passes:
        module_pass.apply(context, module)
        after_each(module_pass, module)
