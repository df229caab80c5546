"""The passes that our tools know, by name; each is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module

from xdsl.passes import ModulePass

_CANONICALIZE = "canonicalize"
_MODULES = {
    _CANONICALIZE: "transforms.canonicalize",
    "affine-data-copy-generate": "ttl.transforms.affine.affine_data_copy_generate",
    "affine-loop-fusion": "ttl.transforms.affine.affine_loop_fusion",
    "convert-triton-to-tritongpu": "transforms.tritongpu.convert",
    "convert-ttkernel-to-emitc": "ttl.transforms.convert_ttkernel_to_emitc",
    "expand-float-conversions": "transforms.tritongpu.expand_float_conversions",
    "expand-local-gather": "transforms.tritongpu.expand_local_gather",
    "expand-local-scatter": "transforms.nvidia.local_scatters",
    "expand-dependent-launches": "transforms.nvidia.dependent_launches",
    "expand-negf": "transforms.tritongpu.expand_negf",
    "linalg-bufferize": "cpu.bufferize.bufferize",
    "linalg-carry-structure": "cpu.linalg.carry_structure",
    "linalg-expand-descriptors": "cpu.linalg.expand_descriptors",
    "linalg-fuse-elementwise": "cpu.bufferize.fuse_elementwise",
    "linalg-lower-accesses": "cpu.linalg.lower_accesses",
    "linalg-lower-functions": "cpu.linalg.lower_functions",
    "linalg-lower-tensors": "cpu.linalg.lower_tensors",
    "linalg-scalarize-carried": "cpu.linalg.scalarize_carried",
    "linalg-separate-uses": "cpu.linalg.separate_uses",
    "linalg-split-pointers": "cpu.linalg.split_pointers",
    "memref-plan-arena": "cpu.bufferize.plan_arena",
    "tlx-annotate-program-addresses": "addresses.annotate_program_addresses",
    "tlx-buffer-offset-calculation": "transforms.storage_alias.offset_calculation",
    "tlx-chain-reductions": "transforms.tritongpu.chain_reductions",
    "tlx-check-dots-in-flight": "transforms.tritongpu.check_dots",
    "tlx-check-target": "transforms.nvidia.check_target",
    "tlx-dump-layout": "transforms.layout.dump_layout",
    "tlx-end-barrier-lifetimes": "transforms.nvidia.barrier_lifetimes",
    "tlx-extend-buffer-lifetimes": "transforms.nvidia.buffer_lifetimes",
    "tlx-finalize-user-layouts": "transforms.layout.finalize_user_layouts",
    "tlx-fold-branches": "transforms.fold_branches",
    "tlx-inline-calls-with-tasks": "transforms.nvidia.inline_calls_with_tasks",
    "tlx-insert-barrier-before-tasks": "transforms.nvidia.barrier_before_tasks",
    "tlx-insert-barriers-at-atomics": "transforms.nvidia.barriers_at_atomics",
    "tlx-insert-proxy-fences": "transforms.nvidia.proxy_fences",
    "tlx-insert-require-layout": "transforms.layout.insert_require_layout",
    "tlx-keep-memdesc-branches": "transforms.nvidia.memdesc_branches",
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
    "tlx-print-ttgir-to-tlx": "decompile.print_ttgir_to_tlx",
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
    "triton-tlx-fixup": "transforms.tritongpu.fixup",
    "triton-to-linalg": "cpu.linalg.triton_to_linalg",
    "ttl-affine-dependence-analysis": "ttl.transforms.affine.affine_dependence_analysis",
    "ttl-allocate-circular-buffers": "ttl.transforms.allocate_circular_buffers",
    "ttl-assign-dst-registers": "ttl.transforms.assign_dst_registers",
    "ttl-bufferize": "ttl.transforms.bufferize",
    "ttl-canonicalize": "ttl.transforms.canonicalize",
    "ttl-expand-threads": "ttl.transforms.expand_threads",
    "ttl-infer-dst-requirements": "ttl.transforms.infer_dst_requirements",
    "ttl-infer-pipe-semaphores": "ttl.transforms.infer_pipe_semaphores",
    "ttl-insert-synchronization": "ttl.transforms.insert_synchronization",
    "ttl-lower-affine": "ttl.transforms.affine.lower_affine",
    "ttl-lower-compute": "ttl.transforms.lower_compute",
    "ttl-lower-data-movement": "ttl.transforms.lower_data_movement",
    "ttl-lower-synchronization": "ttl.transforms.lower_synchronization",
    "ttl-schedule-pipeline": "ttl.transforms.schedule_pipeline",
    "ttl-verify-layouts": "ttl.transforms.verify_layouts",
}
"""The module of each pass, below `tlx_xdsl`."""

_WITH_LAYOUTS = "tlx-lower-to-ptx-with-layouts"
_ALIASES = {
    "AffineDataCopyGeneration": "affine-data-copy-generate",
    "AffineDependenceAnalysis": "ttl-affine-dependence-analysis",
    "AffineLoopFusion": "affine-loop-fusion",
    "ConvertTTKernelToEmitC": "convert-ttkernel-to-emitc",
    "TTLAllocateCircularBuffers": "ttl-allocate-circular-buffers",
    "TTLAssignDSTRegisters": "ttl-assign-dst-registers",
    "TTLBufferizePass": "ttl-bufferize",
    "TTLCanonicalizePass": "ttl-canonicalize",
    "TTLExpandThreads": "ttl-expand-threads",
    "TTLInferDSTRequirements": "ttl-infer-dst-requirements",
    "TTLInferPipeSemaphores": "ttl-infer-pipe-semaphores",
    "TTLInsertSynchronization": "ttl-insert-synchronization",
    "TTLLowerCompute": "ttl-lower-compute",
    "TTLLowerDataMovement": "ttl-lower-data-movement",
    "TTLLowerSynchronization": "ttl-lower-synchronization",
    "TTLSchedulePipeline": "ttl-schedule-pipeline",
    "TTLVerifyLayoutsPass": "ttl-verify-layouts",
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
"""Other names of passes, those of TLX and of the TTL design document and older ones of ours, which tests and scripts
use. One of several for the same pass runs the part of it that had this name."""


def current_name(name: str) -> str:
    """The name of the pass that `name`, which may be an older one, stands for."""
    return _ALIASES.get(name, name)


@cache
def pass_class(name: str) -> type[ModulePass]:
    """The pass of that name, or a second name of one; its module is imported now."""
    if name in _ALIASES:
        cls = pass_class(_ALIASES[name])
        # xDSL compares the name in a pipeline with that of the class.
        return type(cls.__name__, (cls,), {"name": name})
    members = vars(import_module(f"tlx_xdsl.{_MODULES[name]}")).values()
    return next(cls for cls in members if getattr(cls, "name", None) == name)


ALL_PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    name: partial(pass_class, name) for name in (*_MODULES, *_ALIASES) if name != _CANONICALIZE
}
"""Every pass of ours, also by its older names."""

OVERRIDES: dict[str, Callable[[], type[ModulePass]]] = {_CANONICALIZE: partial(pass_class, _CANONICALIZE)}
"""Passes that replace xDSL's of the same name, in our own tools only."""
