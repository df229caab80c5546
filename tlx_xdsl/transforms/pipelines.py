"""The compiler, top to bottom: what turns the frontend's module into TTGIR."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, NoneAttr
from xdsl.passes import ModulePass

from tlx_xdsl.dialects.ttg.types import as_tensor
from tlx_xdsl.transforms.nvidia.barrier_lifecycle import BarrierLifecyclePass
from tlx_xdsl.transforms.nvidia.named_barriers import LowerNamedBarriersPass
from tlx_xdsl.transforms.storage_alias.budget import StorageBudgetPass
from tlx_xdsl.transforms.storage_alias.lowering import StorageAliasLoweringPass
from tlx_xdsl.transforms.storage_alias.rewrite_local_alias import RewriteLocalAliasPass
from tlx_xdsl.transforms.tritongpu.convert import ConvertTritonToTritonGPUPass
from tlx_xdsl.transforms.tritongpu.expand_negf import ExpandNegfPass
from tlx_xdsl.transforms.tritongpu.fixup import TritonTLXFixupPass


def ttgir_pipeline(*, whole_views: bool = False) -> tuple[ModulePass, ...]:
    """The passes from the frontend's module to TTGIR for stock Triton, in order.

    `whole_views` is for Triton 3.8 (`text.profiles.Profile.views_fill_allocations`).
    """
    return (
        # Refuse what can't work while the user's constructs are still there to point at.
        TritonTLXFixupPass(),
        # What can't fit the target is told with who takes how much, while the user's buffers are still there.
        StorageBudgetPass(),
        # Buffers that share a region become views of one allocation; sizes and offsets are settled here.
        StorageAliasLoweringPass(),
        # Stock Triton knows no tlx.local_alias.
        RewriteLocalAliasPass(whole_views=whole_views),
        # Stock Triton 3.6 and 3.7 do not lower arith.negf.
        ExpandNegfPass(),
        # Layouts for every tensor, by the warps of its region; conversions at the borders.
        ConvertTritonToTritonGPUPass(),
        # Stock Triton has no word for the user's named barriers.
        LowerNamedBarriersPass(),
        # Stock Triton reuses a barrier's memory unless its life is ended: last, when all barriers exist.
        BarrierLifecyclePass(),
    )


_OURS = ("tlx.", "ttg.", "ttng.")
"""How operations begin that stock Triton's passes would not leave as the user wrote them."""


def is_plain(module: ModuleOp) -> bool:
    """Whether the module is plain Triton, without an operation or a layout below the level of `tt`.

    Stock Triton's own way from TTIR to TTGIR, with its software pipelining, serves such a module best.
    """
    for op in module.walk():
        if op.name.startswith(_OURS):
            return False
        for value in op.results:
            if (type_ := as_tensor(value.type)) is not None and not isinstance(type_.encoding, NoneAttr):
                return False
    return True


def plain_pipeline() -> tuple[ModulePass, ...]:
    """The passes that plain Triton needs before stock Triton gets it."""
    return (ExpandNegfPass(),)


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
