"""The stock Triton passes that run on our TTGIR, in order: read it from top to bottom.

Only passes that keep an explicitly synchronised kernel as written are here. Left out on purpose:

- `reorder_instructions` sinks a `local_load` below the `arrive_barrier` that releases its buffer;
- `pipeline` (with `assign_latencies`, `schedule_loops`) adds waits before the ones that the user placed;
- `hopper_warpspec`, `warp_specialize`, `hoist_tmem_alloc` and their kin decide what a TLX kernel has decided.

This file is data and imports nothing of Triton, so that it can be read, tested and printed without it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StockPass:
    """One pass: `add_<name>` in group `group` of Triton's bindings (`nvidia.` marks the NVIDIA backend's).

    `optional` passes do not exist in every supported Triton and are skipped where they are missing.
    """

    group: str
    name: str
    why: str
    arguments: tuple[object, ...] = ()
    optional: bool = False
    from_capability: int = 0


def runs_coalesce(module_text: str) -> bool:
    """Tell whether stock `coalesce` runs on this module.

    It re-lays every global load, also one that was given a dot's layout on purpose; then the values around
    the dot are computed twice. So it is to stay out of modules with wgmma or tcgen05 as soon as our own
    conversion coalesces. Until then every module needs it: an uncoalesced load is worse.
    """
    del module_text
    return True


def stock_passes(capability: int, module_text: str) -> tuple[StockPass, ...]:
    """Return the passes for a module on a target of compute `capability`."""
    passes = (
        StockPass("gluon", "inliner", "calls that our frontend kept are bodies from here on"),
        *(_COALESCE if runs_coalesce(module_text) else ()),
        StockPass("ttgpuir", "f32_dot_tc", "f32 tt.dot on tensor cores as its precision asks", (True,)),
        StockPass("ttgpuir", "remove_layout_conversions", "default layouts give way to those of loads and dots"),
        StockPass("ttgpuir", "optimize_thread_locality", "reductions stay inside a thread where they can"),
        StockPass("ttgpuir", "accelerate_matmul", "a tt.dot next to TLX ops gets its MMA layout"),
        StockPass("ttgpuir", "remove_layout_conversions", "carry that MMA layout through the loops"),
        StockPass("ttgpuir", "optimize_dot_operands", "operands of such a dot come straight from memory", (True,)),
        StockPass("nvidia.ttnvgpuir", "optimize_descriptor_encoding", "un-encoded tensor descriptors get a layout"),
        StockPass("ttir", "loop_aware_cse", "index arithmetic that the inlined calls repeat"),
        StockPass("ttir", "triton_licm", "loop-invariant index arithmetic leaves the loop"),
        StockPass("common", "canonicalizer", "fold what the passes above left over"),
        StockPass("ttgpuir", "combine_tensor_select_and_if", "a tensor select beside an scf.if joins it"),
        StockPass("ttgpuir", "coalesce_async_copy", "cp.async copies as wide as the layout allows"),
        StockPass("nvidia.ttnvgpuir", "optimize_tmem_layouts", "tensor memory loads in the consumer's layout"),
        StockPass("nvidia.ttnvgpuir", "tmem_load_reduce", "reductions done by the load (sm_103)", optional=True),
        StockPass(
            "nvidia.ttnvgpuir",
            "tma_lowering",
            "descriptor_load and _store become TMA copies",
            from_capability=90,
        ),
        StockPass(
            "nvidia.ttnvgpuir",
            "lower_clc",
            "cluster launch control becomes its async form",
            optional=True,
            from_capability=100,
        ),
        StockPass("ttgpuir", "remove_layout_conversions", "conversions that the lowerings above introduced"),
        StockPass("ttgpuir", "reduce_data_duplication", "conversions to dot operands go through shared memory"),
        StockPass("ttir", "loop_aware_cse", "what became equal since"),
        StockPass("common", "symbol_dce", "functions that inlining left without a caller"),
        StockPass(
            "nvidia.ttnvgpuir",
            "fence_insertion",
            "async-proxy fence between a local_store and an MMA",
            (capability,),
        ),
        StockPass("nvidia.ttnvgpuir", "lower_mma", "tcgen05 MMAs get their completion barriers"),
        # 3.9 runs this one nowhere else, and later stages read the module attribute that it leaves.
        StockPass("nvidia.ttnvgpuir", "check_matmul_two_cta", "all MMAs use one CTA or all two", optional=True),
        StockPass("common", "sccp", "constants through regions and branches"),
        StockPass("common", "cse", "what became equal since"),
        StockPass("common", "canonicalizer", "fold and drop dead code before LLVM sees it"),
    )
    return tuple(p for p in passes if capability >= p.from_capability)


_COALESCE = (StockPass("ttgpuir", "coalesce", "global loads and stores in vectors along the contiguous axis"),)
