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
    "tlx-barrier-lifecycle": ("transforms.nvidia.barrier_lifecycle", "BarrierLifecyclePass"),
    "tlx-buffer-offset-calculation": ("transforms.storage_alias.offset_calculation", "BufferOffsetCalculationPass"),
    "tlx-chain-reductions": ("transforms.tritongpu.chain_reductions", "ChainReductionsPass"),
    "tlx-check-dots-in-flight": ("transforms.tritongpu.check_dots", "CheckDotsInFlightPass"),
    "tlx-check-target": ("transforms.nvidia.check_target", "CheckTargetPass"),
    "tlx-donate-registers": ("transforms.nvidia.registers", "DonateRegistersPass"),
    "tlx-dump-layout": ("transforms.layout.dump_layout", "DumpLayoutPass"),
    "tlx-finalize-user-layouts": ("transforms.layout.finalize_user_layouts", "FinalizeUserLayoutsPass"),
    "tlx-inline-beside-tasks": ("transforms.nvidia.inline_beside_tasks", "InlineBesideTasksPass"),
    "tlx-insert-proxy-fences": ("transforms.nvidia.proxy_fences", "InsertProxyFencesPass"),
    "tlx-insert-require-layout": ("transforms.layout.insert_require_layout", "InsertRequireLayoutPass"),
    "tlx-keep-buffer-branches": ("transforms.nvidia.buffer_branches", "KeepBufferBranchesPass"),
    "tlx-keep-buffers": ("transforms.nvidia.keep_buffers", "KeepBuffersPass"),
    "tlx-lower-bulk-copies": ("transforms.nvidia.bulk_copies", "LowerBulkCopiesPass"),
    "tlx-lower-clc": ("transforms.nvidia.cluster_launch_control", "LowerCLCPass"),
    "tlx-lower-cluster-barriers": ("transforms.nvidia.cluster_barriers", "LowerClusterBarriersPass"),
    "tlx-lower-device-descriptors": ("transforms.nvidia.device_descriptors", "LowerDeviceDescriptorsPass"),
    "tlx-lower-dynamic-subslices": ("transforms.nvidia.dynamic_subslices", "LowerDynamicSubslicesPass"),
    "tlx-lower-multicast-loads": ("transforms.nvidia.multicast_loads", "LowerMulticastLoadsPass"),
    "tlx-lower-named-barriers": ("transforms.nvidia.named_barriers", "LowerNamedBarriersPass"),
    "tlx-lower-narrow-copies": ("transforms.nvidia.narrow_copies", "LowerNarrowCopiesPass"),
    "tlx-lower-pair-products": ("transforms.nvidia.pair_products", "LowerPairProductsPass"),
    "tlx-lower-remote-memory": ("transforms.nvidia.remote_memory", "LowerRemoteMemoryPass"),
    "tlx-lower-scale-arrays": ("transforms.layout.lower_scale_arrays", "LowerScaleArraysPass"),
    "tlx-lower-scale-copies": ("transforms.layout.lower_scale_copies", "LowerScaleCopiesPass"),
    "tlx-lower-special-instructions": ("transforms.nvidia.special_instructions", "LowerSpecialInstructionsPass"),
    "tlx-lower-thread-arrivals": ("transforms.nvidia.thread_arrivals", "LowerThreadArrivalsPass"),
    "tlx-lower-votes": ("transforms.nvidia.votes", "LowerVotesPass"),
    "tlx-print-ttgir-to-tlx": ("decompile.print_ttgir_to_tlx", "PrintTTGIRToTLXPass"),
    "tlx-propagate-layout": ("transforms.layout.propagate_layout", "PropagateLayoutPass"),
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
    "tlx-weaken-remote-arrivals": ("transforms.nvidia.remote_arrivals", "WeakenRemoteArrivalsPass"),
    "triton-tlx-fixup": ("transforms.tritongpu.fixup", "TritonTLXFixupPass"),
}
"""Module below `tlx_xdsl` and class of each pass."""

_ALIASES = {
    "tlx-reused-buffer-offset-calculation": "tlx-buffer-offset-calculation",
    "tlx-shared-buffer-allocation": "tlx-storage-alias-allocation",
    "tlx-shared-buffer-size-definition": "tlx-storage-alias-size-definition",
}
"""Names that an early design of TLX gave to passes of ours: tests that were written for it keep working."""


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
