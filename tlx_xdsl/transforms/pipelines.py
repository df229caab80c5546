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
from tlx_xdsl.transforms.nvidia.barrier_lifecycle import BarrierLifecyclePass
from tlx_xdsl.transforms.nvidia.buffer_branches import KeepBufferBranchesPass
from tlx_xdsl.transforms.nvidia.bulk_copies import LowerBulkCopiesPass
from tlx_xdsl.transforms.nvidia.check_target import CheckTargetPass
from tlx_xdsl.transforms.nvidia.cluster_barriers import LowerClusterBarriersPass
from tlx_xdsl.transforms.nvidia.cluster_launch_control import LowerCLCPass
from tlx_xdsl.transforms.nvidia.device_descriptors import LowerDeviceDescriptorsPass
from tlx_xdsl.transforms.nvidia.dynamic_subslices import LowerDynamicSubslicesPass
from tlx_xdsl.transforms.nvidia.inline_beside_tasks import InlineBesideTasksPass
from tlx_xdsl.transforms.nvidia.keep_buffers import KeepBuffersPass
from tlx_xdsl.transforms.nvidia.multicast_loads import LowerMulticastLoadsPass
from tlx_xdsl.transforms.nvidia.named_barriers import LowerNamedBarriersPass
from tlx_xdsl.transforms.nvidia.narrow_copies import LowerNarrowCopiesPass
from tlx_xdsl.transforms.nvidia.pair_products import LowerPairProductsPass
from tlx_xdsl.transforms.nvidia.proxy_fences import InsertProxyFencesPass
from tlx_xdsl.transforms.nvidia.registers import DonateRegistersPass
from tlx_xdsl.transforms.nvidia.remote_arrivals import WeakenRemoteArrivalsPass
from tlx_xdsl.transforms.nvidia.remote_memory import LowerRemoteMemoryPass
from tlx_xdsl.transforms.nvidia.special_instructions import LowerSpecialInstructionsPass
from tlx_xdsl.transforms.nvidia.thread_arrivals import LowerThreadArrivalsPass
from tlx_xdsl.transforms.nvidia.votes import LowerVotesPass
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
        # Refuse what the target lacks while the user's names for it are still there.
        CheckTargetPass(),
        # Refuse what can't work while the user's constructs are still there to point at.
        TritonTLXFixupPass(),
        # What reads registers that the tensor cores still write, in the user's own operations.
        CheckDotsInFlightPass(),
        # What operations need of layouts and users wish for: what buffers take of memory depends on it.
        InsertRequireLayoutPass(),
        PropagateLayoutPass(),
        # Partitions have warps of their own; stock Triton has no word for a layout that is yet to come.
        ResolvePlaceholderLayoutsPass(),
        FinalizeUserLayoutsPass(),
        # Stock Triton has no arrays of scales; columns of tensor memory it has. It copies a matrix of them, not lines.
        LowerScaleArraysPass(),
        LowerScaleCopiesPass(),
        # Stock Triton refuses them; what threads then write themselves may need a fence.
        LowerNarrowCopiesPass(),
        # What threads write for TMA and the tensor cores, while every buffer still has a name of its own.
        InsertProxyFencesPass(),
        # Stock Triton drops requests for registers that do not add up, and knows no wishes of ours.
        DonateRegistersPass(),
        # What can't fit the target is told with who takes how much, while the user's buffers are still there.
        *((StorageBudgetPass(),) if check_budget else ()),
        # Buffers that share a region become views of one allocation; sizes and offsets are settled here.
        StorageAliasLoweringPass(),
        # Stock Triton knows no tlx.local_alias.
        RewriteLocalAliasPass(whole_views=whole_views),
        # Stock Triton 3.6 and 3.7 do not lower arith.negf.
        ExpandNegfPass(),
        # Stock Triton 3.6 picks from registers only.
        *(() if native_gathers else (ExpandLocalGatherPass(),)),
        # Where the CTAs of a cluster wait for each other, while it is plain who uses whose memory.
        LowerClusterBarriersPass(),
        # What arrivals there must release costs most of their time, and it is plain who accesses what.
        WeakenRemoteArrivalsPass(),
        # Stock Triton has no word for these instructions; their elements get layouts like any other.
        LowerSpecialInstructionsPass(),
        # Stock Triton's order of an accumulator's elements keeps the exponentials of a softmax waiting.
        ChainReductionsPass(),
        # Layouts for every tensor, by the warps of its region; conversions at the borders.
        ConvertTritonToTritonGPUPass(),
        # The boxes of a descriptor follow its layout.
        LowerDeviceDescriptorsPass(),
        # Stock Triton has no word for copies without a descriptor, nor for arrivals of single threads, nor, before
        # 3.8, for cluster launch control.
        LowerBulkCopiesPass(),
        LowerThreadArrivalsPass(),
        LowerCLCPass(native=native_clc),
        # Who votes with which element is known now.
        LowerVotesPass(),
        # Stock Triton knows other CTAs' memory only for tensors that span the cluster.
        LowerMulticastLoadsPass(),
        LowerPairProductsPass(),
        LowerRemoteMemoryPass(),
        # What has become no address by now: stock Triton takes parts of buffers at constant places only.
        LowerDynamicSubslicesPass(),
        # Stock Triton has no word for the user's named barriers.
        LowerNamedBarriersPass(),
        # Stock Triton reuses a barrier's memory unless its life is ended: last, when all barriers exist.
        BarrierLifecyclePass(),
        # The same for buffers whose addresses were taken for PTX: behind all passes that do.
        KeepBuffersPass(),
        # Stock Triton 3.6 and 3.7 assert when a select chooses a buffer, and they make one of a bare branch.
        *(() if buffer_selects else (KeepBufferBranchesPass(),)),
        # Stock Triton 3.8 can't lower calls in kernels with tasks.
        *(() if calls_beside_tasks else (InlineBesideTasksPass(),)),
        # What the user wants to see and asserts of layouts: last, when ours are final.
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
