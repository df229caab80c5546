"""The compiler, top to bottom: what turns the frontend's module into TTGIR."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, NoneAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tlx_xdsl.dialects.ttg.types import as_tensor
from tlx_xdsl.transforms.layout.dump_layout import DumpLayoutPass
from tlx_xdsl.transforms.layout.finalize_user_layouts import FinalizeUserLayoutsPass
from tlx_xdsl.transforms.layout.insert_require_layout import InsertRequireLayoutPass
from tlx_xdsl.transforms.layout.lower_scale_arrays import LowerScaleArraysPass
from tlx_xdsl.transforms.layout.lower_scale_copies import LowerScaleCopiesPass
from tlx_xdsl.transforms.layout.propagate_layout import PropagateLayoutPass
from tlx_xdsl.transforms.layout.resolve_placeholder_layouts import ResolvePlaceholderLayoutsPass
from tlx_xdsl.transforms.nvidia.async_copies import LegalizeAsyncCopiesPass
from tlx_xdsl.transforms.nvidia.barrier_lifetimes import EndBarrierLifetimesPass
from tlx_xdsl.transforms.nvidia.buffer_lifetimes import ExtendBufferLifetimesPass
from tlx_xdsl.transforms.nvidia.check_target import CheckTargetPass
from tlx_xdsl.transforms.nvidia.cluster_barriers import LowerClusterBarriersPass
from tlx_xdsl.transforms.nvidia.dynamic_subslices import LowerDynamicSubslicesPass
from tlx_xdsl.transforms.nvidia.inline_calls_with_tasks import InlineCallsWithTasksPass
from tlx_xdsl.transforms.nvidia.lower_to_ptx import LowerToPTXPass
from tlx_xdsl.transforms.nvidia.lower_to_ptx_with_layouts import LowerToPTXWithLayoutsPass
from tlx_xdsl.transforms.nvidia.memdesc_branches import KeepMemDescBranchesPass
from tlx_xdsl.transforms.nvidia.named_barriers import LowerNamedBarriersPass
from tlx_xdsl.transforms.nvidia.proxy_fences import InsertProxyFencesPass
from tlx_xdsl.transforms.nvidia.remote_arrivals import RelaxRemoteArrivalsPass
from tlx_xdsl.transforms.nvidia.remote_memory import LowerRemoteMemoryPass
from tlx_xdsl.transforms.nvidia.setmaxnreg import RebalanceSetmaxnregPass
from tlx_xdsl.transforms.nvidia.two_cta_mma import LowerTwoCTAMMAPass
from tlx_xdsl.transforms.storage_alias.budget import StorageBudgetPass
from tlx_xdsl.transforms.storage_alias.lowering import StorageAliasLoweringPass
from tlx_xdsl.transforms.storage_alias.rewrite_local_alias import RewriteLocalAliasPass
from tlx_xdsl.transforms.tritongpu.chain_reductions import ChainReductionsPass
from tlx_xdsl.transforms.tritongpu.check_dots import CheckDotsInFlightPass
from tlx_xdsl.transforms.tritongpu.convert import ConvertTritonToTritonGPUPass
from tlx_xdsl.transforms.tritongpu.expand_local_gather import ExpandLocalGatherPass
from tlx_xdsl.transforms.tritongpu.expand_negf import ExpandNegfPass
from tlx_xdsl.transforms.tritongpu.fixup import TritonTLXFixupPass


def ttgir_pipeline(
    *,
    whole_views: bool = False,
    native_clc: bool = False,
    native_gathers: bool = True,
    buffer_selects: bool = True,
    calls_beside_tasks: bool = True,
    check_budget: bool = True,
) -> tuple[ModulePass, ...]:
    """The passes from the frontend's module to TTGIR for stock Triton, in order.

    The options are properties of Triton versions (`text.profiles.Profile`): `whole_views` is for those with
    `views_fill_allocations`, `native_clc` for those with `has_clc`, `native_gathers` for those with
    `has_local_gathers`, `buffer_selects` for those with `selects_buffers`, `calls_beside_tasks` for those of that name.
    Without `check_budget` what can't fit the target goes on, too: for looking at it, for it can never launch.
    """
    return (
        # --- refuse: what can't work, while the user's operations are there to point at ---
        # What the target lacks.
        CheckTargetPass(),
        # What no target can do; sets the launch attributes that the other passes read.
        TritonTLXFixupPass(),
        # Uses of registers that the tensor cores still write.
        CheckDotsInFlightPass(),
        # --- layouts of buffers: sizes in memory depend on them ---
        # Requirements of operations become operations.
        InsertRequireLayoutPass(),
        # Requirements reach the allocations, and layouts that the user pins reach the uses.
        PropagateLayoutPass(),
        # Layouts that depend on the number of warps are computed in each partition.
        ResolvePlaceholderLayoutsPass(),
        # No later pass changes a layout of the user's, so the marks go.
        FinalizeUserLayoutsPass(),
        # --- legalize: operations of the user that upstream Triton refuses ---
        # It allows one buffer of scales in an allocation.
        LowerScaleArraysPass(),
        # It copies a matrix of scales, not the lines that the hardware copies.
        LowerScaleCopiesPass(),
        # It refuses copies that no `cp.async` can make; threads write these themselves, so fences come later.
        LegalizeAsyncCopiesPass(),
        # It adds no fence between writes of threads and TMA or the tensor cores of another task.
        InsertProxyFencesPass(),
        # It drops requests for registers that do not add up.
        RebalanceSetmaxnregPass(),
        # --- aliasing: buffers become views of allocations ---
        # A kernel that does not fit is refused with the sizes of the user's buffers.
        *((StorageBudgetPass(),) if check_budget else ()),
        # Sizes and offsets of buffers that share storage.
        StorageAliasLoweringPass(),
        # Upstream Triton has no op for `tlx.local_alias`.
        RewriteLocalAliasPass(whole_views=whole_views),
        # --- expand what older Triton versions lack ---
        # 3.6 and 3.7 do not lower `arith.negf`.
        ExpandNegfPass(),
        # 3.6 gathers from registers only.
        *(() if native_gathers else (ExpandLocalGatherPass(),)),
        # --- synchronisation of clusters: while each buffer shows which CTA owns it ---
        # Barriers where the CTAs of a cluster start and end using each other's memory.
        LowerClusterBarriersPass(),
        # Weaker memory ordering for arrivals at other CTAs' mbarriers, where it suffices.
        RelaxRemoteArrivalsPass(),
        # --- to PTX, and to TTGIR ---
        # PTX for single instructions; its tensors get layouts like all others.
        LowerToPTXPass(),
        # An accumulator is reduced in the order of its columns, which costs fewer registers.
        ChainReductionsPass(),
        # Layouts for all tensors, and conversions between them.
        ConvertTritonToTritonGPUPass(),
        # PTX for single operations that depends on layouts.
        LowerToPTXWithLayoutsPass(native=native_clc),
        # MMAs of two CTAs change the types of all accumulators of the module.
        LowerTwoCTAMMAPass(),
        # Accesses to other CTAs' memory; neighbouring arrivals share a fence.
        LowerRemoteMemoryPass(),
        # Parts of buffers at run-time offsets, after the passes that turn such parts into addresses.
        LowerDynamicSubslicesPass(),
        # Numbers for the user's named barriers, beside Triton's own.
        LowerNamedBarriersPass(),
        # --- lifetimes: when all uses of buffers exist ---
        # Upstream Triton reuses the memory of an mbarrier that was not invalidated.
        EndBarrierLifetimesPass(),
        # Upstream Triton sees no use of a buffer in PTX.
        ExtendBufferLifetimesPass(),
        # --- work around single Triton versions ---
        # 3.6 and 3.7 assert at a select of buffers, which MLIR makes of a bare branch.
        *(() if buffer_selects else (KeepMemDescBranchesPass(),)),
        # 3.8 can't lower calls in kernels with tasks.
        *(() if calls_beside_tasks else (InlineCallsWithTasksPass(),)),
        # --- report ---
        # The layouts that the user prints or asserts: last, when they are final.
        DumpLayoutPass(),
    )


_OURS = ("tlx.", "ttg.", "ttng.")
"""How operations begin that stock Triton's passes would not leave as the user wrote them."""


def is_plain(module: ModuleOp) -> bool:
    """Whether the module is plain Triton, without an operation or a layout below the level of `tt`.

    Stock Triton's own way from TTIR to TTGIR, with its software pipelining, serves such a module best.
    """
    return first_beyond_plain(module) is None


def first_beyond_plain(module: ModuleOp) -> Operation | None:
    """The first operation of the module that is not plain Triton, if there is one."""
    for op in module.walk():
        if op.name.startswith(_OURS):
            return op
        for value in op.results:
            if (type_ := as_tensor(value.type)) is not None and not isinstance(type_.encoding, NoneAttr):
                return op
    return None


def plain_pipeline() -> tuple[ModulePass, ...]:
    """The passes that plain Triton needs before stock Triton gets it."""
    return (CheckTargetPass(plain=True), ExpandNegfPass())


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
