"""The passes that our tools know, by name; each is imported when it is used."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Collection
from functools import cache, partial
from importlib import import_module

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec

from tlx_xdsl import wings
from tlx_xdsl.errors import CompilationError

_CANONICALIZE = "canonicalize"
_MODULES = {
    _CANONICALIZE: "transforms.canonicalize",
    "convert-triton-to-tritongpu": "transforms.tritongpu.convert",
    "expand-float-conversions": "transforms.tritongpu.expand_float_conversions",
    "expand-local-gather": "transforms.tritongpu.expand_local_gather",
    "expand-local-scatter": "transforms.nvidia.local_scatters",
    "expand-dependent-launches": "transforms.nvidia.dependent_launches",
    "expand-negf": "transforms.tritongpu.expand_negf",
    "tlx-annotate-program-addresses": "addresses.annotate_program_addresses",
    "tlx-buffer-offset-calculation": "transforms.storage_alias.offset_calculation",
    "tlx-chain-reductions": "transforms.tritongpu.chain_reductions",
    "tlx-check-dots-in-flight": "transforms.tritongpu.check_dots",
    "tlx-check-miscompiled": "transforms.tritongpu.misjudged",
    "tlx-check-target": "transforms.nvidia.check_target",
    "tlx-dump-layout": "transforms.layout.dump_layout",
    "tlx-end-barrier-lifetimes": "transforms.nvidia.barrier_lifetimes",
    "tlx-extend-buffer-lifetimes": "transforms.nvidia.buffer_lifetimes",
    "tlx-finalize-user-layouts": "transforms.layout.finalize_user_layouts",
    "tlx-finish-stores": "transforms.nvidia.proxies.finish_stores",
    "tlx-fold-branches": "transforms.fold_branches",
    "tlx-guard-flattened-loops": "transforms.tritongpu.misjudged",
    "tlx-hide-alignment": "transforms.tritongpu.misjudged",
    "tlx-inline-calls-with-tasks": "transforms.nvidia.inline_calls_with_tasks",
    "tlx-insert-barrier-before-tasks": "transforms.nvidia.forgotten_barriers",
    "tlx-insert-barriers-at-atomics": "transforms.nvidia.forgotten_barriers",
    "tlx-insert-cluster-barriers": "transforms.nvidia.cluster_insertion",
    "tlx-insert-proxy-fences": "transforms.nvidia.proxies.insert_fences",
    "tlx-insert-require-layout": "transforms.layout.insert_require_layout",
    "tlx-insert-tensor-memory-barriers": "transforms.nvidia.forgotten_barriers",
    "tlx-keep-memdesc-branches": "transforms.nvidia.memdesc_branches",
    "tlx-keep-sums-of-products": "transforms.tritongpu.misjudged",
    "tlx-round-to-e5m2": "transforms.tritongpu.round_to_e5m2",
    "tlx-legalize-async-copies": "transforms.nvidia.async_copies",
    "tlx-lower-2cta-mma": "transforms.nvidia.two_cta_mma",
    "tlx-lower-cluster-barriers": "transforms.nvidia.cluster_barriers",
    "tlx-lower-dynamic-subslices": "transforms.nvidia.dynamic_subslices",
    "tlx-lower-named-barriers": "transforms.nvidia.named_barriers",
    "tlx-lower-pair-accumulators": "transforms.nvidia.pair_accumulators",
    "tlx-lower-remote-memory": "transforms.nvidia.remote_memory",
    "tlx-lower-scale-arrays": "transforms.layout.lower_scale_arrays",
    "tlx-lower-scale-copies": "transforms.layout.lower_scale_copies",
    "tlx-lower-to-ptx": "transforms.nvidia.lower_to_ptx",
    "tlx-lower-to-ptx-with-layouts": "transforms.nvidia.lower_to_ptx_with_layouts",
    "tlx-propagate-layout": "transforms.layout.propagate_layout",
    "tlx-rebalance-setmaxnreg": "transforms.nvidia.setmaxnreg",
    "tlx-relax-remote-arrivals": "transforms.nvidia.remote_arrivals",
    "tlx-resolve-placeholder-layouts": "transforms.layout.resolve_placeholder_layouts",
    "tlx-rewrite-local-alias": "transforms.storage_alias.rewrite_local_alias",
    "tlx-storage-advice": "transforms.storage_alias.advice",
    "tlx-storage-alias-allocation": "transforms.storage_alias.allocation",
    "tlx-storage-alias-lowering": "transforms.storage_alias.lowering",
    "tlx-storage-alias-size-definition": "transforms.storage_alias.size_definition",
    "tlx-storage-budget": "transforms.storage_alias.budget",
    "tlx-print-ttgir-to-tlx": "decompile.print_ttgir_to_tlx",
    "tlx-ws-async-dots": "transforms.warp_specialize.products.dots",
    "tlx-ws-delay-arrivals": "transforms.warp_specialize.delay_arrivals",
    "tlx-ws-delay-scales": "transforms.warp_specialize.delay_scales",
    "tlx-ws-form-descriptors": "transforms.warp_specialize.descriptors",
    "tlx-ws-form-tasks": "transforms.warp_specialize.tasks",
    "tlx-ws-host-descriptors": "transforms.warp_specialize.host_descriptors",
    "tlx-ws-issue-products": "transforms.warp_specialize.tcgen05.issue",
    "tlx-ws-make-persistent": "transforms.warp_specialize.persistent",
    "tlx-ws-order-tiles": "transforms.warp_specialize.order_tiles",
    "tlx-ws-overlap-products": "transforms.warp_specialize.products.overlap_products",
    "tlx-ws-pipeline-products": "transforms.warp_specialize.products.pipeline_products",
    "tlx-ws-prefetch-loads": "transforms.warp_specialize.prefetch_loads",
    "tlx-ws-replicate-tasks": "transforms.warp_specialize.replicate",
    "tlx-ws-share-loads": "transforms.warp_specialize.share_loads",
    "tlx-ws-split-k": "transforms.warp_specialize.split_k",
    "tlx-ws-split-masks": "transforms.warp_specialize.split_masks",
    "tlx-ws-split-rows": "transforms.warp_specialize.rows.split_rows",
    "tlx-ws-stage-stores": "transforms.warp_specialize.stores.stage_stores",
    "tlx-ws-structure-returns": "transforms.warp_specialize.structure_returns",
    "tlx-ws-take-turns": "transforms.warp_specialize.products.turns",
    "tlx-ws-tensor-memory": "transforms.warp_specialize.tcgen05.products",
    "tlx-ws-transpose-products": "transforms.warp_specialize.products.transposition",
    "triton-tlx-fixup": "transforms.tritongpu.fixup",
}
"""The module of each pass, below `tlx_xdsl`."""

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
"""Other names of passes, those of TLX and older ones of ours, which tests and scripts use. One of several for
the same pass runs the part of it that had this name."""


@cache
def _homes() -> dict[str, tuple[str, str]]:
    """Module, or place `module:class`, of each pass by its name, and who has it if that is not this package."""
    found = {name: (f"tlx_xdsl.{module}", "") for name, module in _MODULES.items()}
    for name, (place, by) in wings.names("passes", _MODULES).items():
        found[name] = place, "" if by.is_ours else by.owner
    return found


@cache
def former_names() -> dict[str, str]:
    """Other names of passes, those of the wings too -> the name today."""
    return {**_ALIASES, **{name: now for name, (now, _) in wings.names("former_passes", _ALIASES).items()}}


def pass_names() -> tuple[str, ...]:
    """The names of all passes but older ones."""
    return tuple(_homes())


def current_name(name: str) -> str:
    """The name of the pass that `name`, which may be an older one, stands for."""
    return former_names().get(name, name)


@cache
def pass_class(name: str) -> type[ModulePass]:
    """The pass of that name, or a second name of one; its module is imported now.

    Raises CompilationError for a pass of another package that can't be imported.
    """
    # A compile asks for ours alone, and need not look for others.
    if name not in _MODULES and (now := current_name(name)) != name:
        cls = pass_class(now)
        # xDSL compares the name in a pipeline with that of the class.
        return type(cls.__name__, (cls,), {"name": name})
    place, owner = (f"tlx_xdsl.{_MODULES[name]}", "") if name in _MODULES else _homes()[name]
    try:
        module, _, attribute = place.partition(":")
        members = vars(import_module(module))
        found = members.get(attribute) if attribute else None
        return found or next(cls for cls in members.values() if getattr(cls, "name", None) == name)
    except (Exception, SystemExit) as error:
        if not owner:
            raise
        reason = "it has no such class" if isinstance(error, StopIteration) else f"{type(error).__name__}: {error}"
        raise CompilationError(f"the pass '{name}' of the {owner} can't be loaded from {place}: {reason}") from error


def configured(cls: type[ModulePass], spec: ArgSpec) -> ModulePass:
    """The pass with the options that a command line gives it.

    Raises CompilationError for options that it does not have, or whose values do not fit.
    """
    options = [field.name for field in dataclasses.fields(cls) if field.init]
    for name in spec.normalize_parameter_names().parameters:
        if name not in options:
            have = f"its options are {', '.join(options)}" if options else "it has no options"
            raise CompilationError(f"the pass '{spec.name}' has no option '{name}'; {have}")
    try:
        return cls.from_pass_spec(spec)
    except ValueError as error:
        raise CompilationError(f"the options of the pass '{spec.name}' do not fit: {error}") from error


def meant_pass(name: str, known: Collection[str], prefix: str = "") -> str:
    """Return what was probably meant by the name of a pass that there is not; empty where nothing is close."""
    close = difflib.get_close_matches(name, known, n=1)
    return f", did you mean '{prefix}{close[0]}'?" if close else ""


def our_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """The passes of this package and its wings, by their older names, too."""
    others = {name for name, (_, owner) in _homes().items() if owner}
    return {name: load for name, load in all_passes().items() if current_name(name) not in others}


def all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Every pass of this package, its wings and the packages of others, also by its older names."""
    return {name: partial(pass_class, name) for name in (*pass_names(), *former_names()) if name != _CANONICALIZE}


OVERRIDES: dict[str, Callable[[], type[ModulePass]]] = {_CANONICALIZE: partial(pass_class, _CANONICALIZE)}
"""Passes that replace xDSL's of the same name, in our own tools only."""
