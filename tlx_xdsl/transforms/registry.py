"""The passes that our tools know, by name; each is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast

from xdsl.passes import ModulePass

_HOMES: dict[str, tuple[str, str]] = {
    "convert-triton-to-tritongpu": ("transforms.tritongpu.convert", "ConvertTritonToTritonGPUPass"),
    "expand-local-gather": ("transforms.tritongpu.expand_local_gather", "ExpandLocalGatherPass"),
    "expand-negf": ("transforms.tritongpu.expand_negf", "ExpandNegfPass"),
    "tlx-annotate-program-addresses": ("addresses.annotate_program_addresses", "AnnotateProgramAddressesPass"),
    "tlx-buffer-offset-calculation": ("transforms.storage_alias.offset_calculation", "BufferOffsetCalculationPass"),
    "tlx-chain-reductions": ("transforms.tritongpu.chain_reductions", "ChainReductionsPass"),
    "tlx-check-dots-in-flight": ("transforms.tritongpu.check_dots", "CheckDotsInFlightPass"),
    "tlx-check-target": ("transforms.nvidia.check_target", "CheckTargetPass"),
    "tlx-dump-layout": ("transforms.layout.dump_layout", "DumpLayoutPass"),
    "tlx-end-barrier-lifetimes": ("transforms.nvidia.barrier_lifetimes", "EndBarrierLifetimesPass"),
    "tlx-extend-buffer-lifetimes": ("transforms.nvidia.buffer_lifetimes", "ExtendBufferLifetimesPass"),
    "tlx-finalize-user-layouts": ("transforms.layout.finalize_user_layouts", "FinalizeUserLayoutsPass"),
    "tlx-inline-calls-with-tasks": ("transforms.nvidia.inline_calls_with_tasks", "InlineCallsWithTasksPass"),
    "tlx-insert-proxy-fences": ("transforms.nvidia.proxy_fences", "InsertProxyFencesPass"),
    "tlx-insert-require-layout": ("transforms.layout.insert_require_layout", "InsertRequireLayoutPass"),
    "tlx-keep-memdesc-branches": ("transforms.nvidia.memdesc_branches", "KeepMemDescBranchesPass"),
    "tlx-legalize-async-copies": ("transforms.nvidia.async_copies", "LegalizeAsyncCopiesPass"),
    "tlx-lower-2cta-mma": ("transforms.nvidia.two_cta_mma", "LowerTwoCTAMMAPass"),
    "tlx-lower-cluster-barriers": ("transforms.nvidia.cluster_barriers", "LowerClusterBarriersPass"),
    "tlx-lower-dynamic-subslices": ("transforms.nvidia.dynamic_subslices", "LowerDynamicSubslicesPass"),
    "tlx-lower-named-barriers": ("transforms.nvidia.named_barriers", "LowerNamedBarriersPass"),
    "tlx-lower-remote-memory": ("transforms.nvidia.remote_memory", "LowerRemoteMemoryPass"),
    "tlx-lower-scale-arrays": ("transforms.layout.lower_scale_arrays", "LowerScaleArraysPass"),
    "tlx-lower-scale-copies": ("transforms.layout.lower_scale_copies", "LowerScaleCopiesPass"),
    "tlx-lower-to-ptx": ("transforms.nvidia.lower_to_ptx", "LowerToPTXPass"),
    "tlx-lower-to-ptx-with-layouts": (
        "transforms.nvidia.lower_to_ptx_with_layouts",
        "LowerToPTXWithLayoutsPass",
    ),
    "tlx-print-ttgir-to-tlx": ("decompile.print_ttgir_to_tlx", "PrintTTGIRToTLXPass"),
    "tlx-propagate-layout": ("transforms.layout.propagate_layout", "PropagateLayoutPass"),
    "tlx-rebalance-setmaxnreg": ("transforms.nvidia.setmaxnreg", "RebalanceSetmaxnregPass"),
    "tlx-relax-remote-arrivals": ("transforms.nvidia.remote_arrivals", "RelaxRemoteArrivalsPass"),
    "tlx-resolve-placeholder-layouts": (
        "transforms.layout.resolve_placeholder_layouts",
        "ResolvePlaceholderLayoutsPass",
    ),
    "tlx-rewrite-local-alias": ("transforms.storage_alias.rewrite_local_alias", "RewriteLocalAliasPass"),
    "tlx-storage-advice": ("transforms.storage_alias.advice", "StorageAdvicePass"),
    "tlx-storage-alias-allocation": ("transforms.storage_alias.allocation", "StorageAliasAllocationPass"),
    "tlx-storage-alias-lowering": ("transforms.storage_alias.lowering", "StorageAliasLoweringPass"),
    "tlx-storage-alias-size-definition": ("transforms.storage_alias.size_definition", "StorageAliasSizeDefinitionPass"),
    "tlx-storage-budget": ("transforms.storage_alias.budget", "StorageBudgetPass"),
    "triton-tlx-fixup": ("transforms.tritongpu.fixup", "TritonTLXFixupPass"),
}
"""Module below `tlx_xdsl` and class of each pass."""

_WITH_LAYOUTS = "tlx-lower-to-ptx-with-layouts"
_ALIASES = {
    "tlx-barrier-lifecycle": "tlx-end-barrier-lifetimes",
    "tlx-donate-registers": "tlx-rebalance-setmaxnreg",
    "tlx-inline-beside-tasks": "tlx-inline-calls-with-tasks",
    "tlx-keep-buffer-branches": "tlx-keep-memdesc-branches",
    "tlx-keep-buffers": "tlx-extend-buffer-lifetimes",
    "tlx-lower-bulk-copies": _WITH_LAYOUTS,
    "tlx-lower-clc": _WITH_LAYOUTS,
    "tlx-lower-device-descriptors": _WITH_LAYOUTS,
    "tlx-lower-multicast-loads": _WITH_LAYOUTS,
    "tlx-lower-narrow-copies": "tlx-legalize-async-copies",
    "tlx-lower-pair-products": "tlx-lower-2cta-mma",
    "tlx-lower-special-instructions": "tlx-lower-to-ptx",
    "tlx-lower-thread-arrivals": _WITH_LAYOUTS,
    "tlx-lower-votes": _WITH_LAYOUTS,
    "tlx-reused-buffer-offset-calculation": "tlx-buffer-offset-calculation",
    "tlx-shared-buffer-allocation": "tlx-storage-alias-allocation",
    "tlx-shared-buffer-size-definition": "tlx-storage-alias-size-definition",
    "tlx-weaken-remote-arrivals": "tlx-relax-remote-arrivals",
}
"""Older names of passes, TLX's own and ours, which tests and scripts use. One of several for the same pass runs the
part of it that had this name."""


def current_name(name: str) -> str:
    """The name of the pass that `name`, which may be an older one, stands for."""
    return _ALIASES.get(name, name)


def _loader(module: str, name: str) -> Callable[[], type[ModulePass]]:
    def load() -> type[ModulePass]:
        return cast(type[ModulePass], getattr(import_module(f"tlx_xdsl.{module}"), name))

    return load


def _alias(name: str, of: str) -> Callable[[], type[ModulePass]]:
    load = _loader(*_HOMES[of])
    # xDSL compares the name in a pipeline with that of the class.
    return lambda: type(load().__name__, (load(),), {"name": name})


ALL_PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    **{name: _loader(module, class_name) for name, (module, class_name) in _HOMES.items()},
    **{alias: _alias(alias, name) for alias, name in _ALIASES.items()},
}
"""Every pass of ours, also by its older names."""

OVERRIDES: dict[str, Callable[[], type[ModulePass]]] = {
    "canonicalize": _loader("transforms.canonicalize", "CanonicalizePass"),
}
"""Passes that stand in for xDSL's of the same name, in our own tools only."""
