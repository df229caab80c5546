"""The passes that our tools know, by name; each is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast

from xdsl.passes import ModulePass

_HOMES: dict[str, tuple[str, str]] = {
    "convert-triton-to-tritongpu": ("tritongpu.convert", "ConvertTritonToTritonGPUPass"),
    "expand-negf": ("tritongpu.expand_negf", "ExpandNegfPass"),
    "tlx-barrier-lifecycle": ("nvidia.barrier_lifecycle", "BarrierLifecyclePass"),
    "tlx-buffer-offset-calculation": ("storage_alias.offset_calculation", "BufferOffsetCalculationPass"),
    "tlx-lower-named-barriers": ("nvidia.named_barriers", "LowerNamedBarriersPass"),
    "tlx-rewrite-local-alias": ("storage_alias.rewrite_local_alias", "RewriteLocalAliasPass"),
    "tlx-storage-advice": ("storage_alias.advice", "StorageAdvicePass"),
    "tlx-storage-alias-allocation": ("storage_alias.allocation", "StorageAliasAllocationPass"),
    "tlx-storage-alias-lowering": ("storage_alias.lowering", "StorageAliasLoweringPass"),
    "tlx-storage-alias-size-definition": ("storage_alias.size_definition", "StorageAliasSizeDefinitionPass"),
    "tlx-storage-budget": ("storage_alias.budget", "StorageBudgetPass"),
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
