"""The passes that our tools know, by name; each is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast

from xdsl.passes import ModulePass

_HOMES: dict[str, tuple[str, str]] = {
    "convert-triton-to-tritongpu": ("tritongpu.convert", "ConvertTritonToTritonGPUPass"),
    "expand-local-gather": ("tritongpu.expand_local_gather", "ExpandLocalGatherPass"),
    "expand-negf": ("tritongpu.expand_negf", "ExpandNegfPass"),
    "tlx-annotate-program-addresses": ("annotate_program_addresses", "AnnotateProgramAddressesPass"),
    "tlx-barrier-lifecycle": ("nvidia.barrier_lifecycle", "BarrierLifecyclePass"),
    "tlx-buffer-offset-calculation": ("storage_alias.offset_calculation", "BufferOffsetCalculationPass"),
    "tlx-chain-reductions": ("tritongpu.chain_reductions", "ChainReductionsPass"),
    "tlx-check-dots-in-flight": ("tritongpu.check_dots", "CheckDotsInFlightPass"),
    "tlx-check-target": ("nvidia.check_target", "CheckTargetPass"),
    "tlx-donate-registers": ("nvidia.registers", "DonateRegistersPass"),
    "tlx-dump-layout": ("layout.dump_layout", "DumpLayoutPass"),
    "tlx-finalize-user-layouts": ("layout.finalize_user_layouts", "FinalizeUserLayoutsPass"),
    "tlx-inline-beside-tasks": ("nvidia.inline_beside_tasks", "InlineBesideTasksPass"),
    "tlx-insert-proxy-fences": ("nvidia.proxy_fences", "InsertProxyFencesPass"),
    "tlx-insert-require-layout": ("layout.insert_require_layout", "InsertRequireLayoutPass"),
    "tlx-keep-buffer-branches": ("nvidia.buffer_branches", "KeepBufferBranchesPass"),
    "tlx-keep-buffers": ("nvidia.keep_buffers", "KeepBuffersPass"),
    "tlx-lower-bulk-copies": ("nvidia.bulk_copies", "LowerBulkCopiesPass"),
    "tlx-lower-clc": ("nvidia.cluster_launch_control", "LowerCLCPass"),
    "tlx-lower-cluster-barriers": ("nvidia.cluster_barriers", "LowerClusterBarriersPass"),
    "tlx-lower-device-descriptors": ("nvidia.device_descriptors", "LowerDeviceDescriptorsPass"),
    "tlx-lower-dynamic-subslices": ("nvidia.dynamic_subslices", "LowerDynamicSubslicesPass"),
    "tlx-lower-multicast-loads": ("nvidia.multicast_loads", "LowerMulticastLoadsPass"),
    "tlx-lower-named-barriers": ("nvidia.named_barriers", "LowerNamedBarriersPass"),
    "tlx-lower-narrow-copies": ("nvidia.narrow_copies", "LowerNarrowCopiesPass"),
    "tlx-lower-pair-products": ("nvidia.pair_products", "LowerPairProductsPass"),
    "tlx-lower-remote-memory": ("nvidia.remote_memory", "LowerRemoteMemoryPass"),
    "tlx-lower-scale-arrays": ("layout.lower_scale_arrays", "LowerScaleArraysPass"),
    "tlx-lower-scale-copies": ("layout.lower_scale_copies", "LowerScaleCopiesPass"),
    "tlx-lower-special-instructions": ("nvidia.special_instructions", "LowerSpecialInstructionsPass"),
    "tlx-lower-thread-arrivals": ("nvidia.thread_arrivals", "LowerThreadArrivalsPass"),
    "tlx-lower-votes": ("nvidia.votes", "LowerVotesPass"),
    "tlx-print-ttgir-to-tlx": ("layout.print_ttgir_to_tlx", "PrintTTGIRToTLXPass"),
    "tlx-propagate-layout": ("layout.propagate_layout", "PropagateLayoutPass"),
    "tlx-resolve-placeholder-layouts": ("layout.resolve_placeholder_layouts", "ResolvePlaceholderLayoutsPass"),
    "tlx-rewrite-local-alias": ("storage_alias.rewrite_local_alias", "RewriteLocalAliasPass"),
    "tlx-storage-advice": ("storage_alias.advice", "StorageAdvicePass"),
    "tlx-storage-alias-allocation": ("storage_alias.allocation", "StorageAliasAllocationPass"),
    "tlx-storage-alias-lowering": ("storage_alias.lowering", "StorageAliasLoweringPass"),
    "tlx-storage-alias-size-definition": ("storage_alias.size_definition", "StorageAliasSizeDefinitionPass"),
    "tlx-storage-budget": ("storage_alias.budget", "StorageBudgetPass"),
    "tlx-weaken-remote-arrivals": ("nvidia.remote_arrivals", "WeakenRemoteArrivalsPass"),
    "triton-tlx-fixup": ("tritongpu.fixup", "TritonTLXFixupPass"),
}
"""Module below `tlx_xdsl.transforms` and class of each pass."""

_ALIASES = {
    "tlx-reused-buffer-offset-calculation": "tlx-buffer-offset-calculation",
    "tlx-shared-buffer-allocation": "tlx-storage-alias-allocation",
    "tlx-shared-buffer-size-definition": "tlx-storage-alias-size-definition",
}
"""Names that an early design of TLX gave to passes of ours: tests that were written for it keep working."""


def _loader(module: str, name: str) -> Callable[[], type[ModulePass]]:
    def load() -> type[ModulePass]:
        return cast(type[ModulePass], getattr(import_module(f"tlx_xdsl.transforms.{module}"), name))

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
    "canonicalize": _loader("canonicalize", "CanonicalizePass"),
}
"""Passes that stand in for xDSL's of the same name, in our own tools only."""
