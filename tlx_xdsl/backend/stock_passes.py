"""The stock Triton passes that run on our TTGIR, in order: read it from top to bottom.

Only passes that keep an explicitly synchronised kernel as written are here. Left out on purpose:

- `reorder_instructions` sinks a `local_load` below the `arrive_barrier` that releases its buffer;
- `pipeline` (with `assign_latencies`, `schedule_loops`) adds waits before the ones that the user placed;
- `hopper_warpspec`, `warp_specialize` and their kin decide what a TLX kernel has decided.

This file is data and imports nothing of Triton, so that it can be read, tested and printed without it.
"""

from __future__ import annotations

import re
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


_DESCRIPTOR_WITHOUT_LAYOUT = re.compile(r"!tt\.tensordesc<(tensor<)?[^,>]*>")
_DESCRIPTORS = (
    # It also replaces layouts that descriptors have, and forgets the arguments of partitions when it does.
    StockPass("nvidia.ttnvgpuir", "optimize_descriptor_encoding", "un-encoded tensor descriptors get a layout"),
)


def runs_coalesce(module_text: str) -> bool:
    """Return whether stock `coalesce` runs on this module.

    It gives every global access a layout of its own, also one that has a matrix instruction's layout on purpose; then
    what lies between the two is computed twice. Modules with wgmma or tcgen05 come with their accesses coalesced
    (`transforms/tritongpu/access_layouts.py`).
    """
    return _MATRIX_INSTRUCTION.search(module_text) is None


def stock_passes(capability: int, module_text: str) -> tuple[StockPass, ...]:
    """Return the passes for a module on a target of compute `capability`."""
    has_dots = "tt.dot" in module_text
    passes = (
        StockPass("gluon", "inliner", "calls that our frontend kept are bodies from here on"),
        *(_COALESCE if runs_coalesce(module_text) else ()),
        StockPass("ttgpuir", "f32_dot_tc", "f32 tt.dot on tensor cores as its precision asks", (True,)),
        # Before the conversions of its operands are folded into their loads: a load in the layout of a dot without
        # tensor cores holds each element many times, and wgmma and tcgen05 want the operand in shared memory.
        StockPass("ttgpuir", "accelerate_matmul", "a tt.dot next to TLX ops becomes what its target multiplies with"),
        StockPass("ttgpuir", "remove_layout_conversions", "default layouts give way to those of loads and dots"),
        StockPass("ttgpuir", "optimize_thread_locality", "reductions stay inside a thread where they can"),
        StockPass("ttgpuir", "remove_layout_conversions", "carry the layouts of dots through the loops"),
        StockPass("ttgpuir", "optimize_dot_operands", "operands of such a dot come straight from memory", (True,)),
        *(_ACCUMULATORS if has_dots else ()),
        *(_DESCRIPTORS if _DESCRIPTOR_WITHOUT_LAYOUT.search(module_text) else ()),
        StockPass("ttir", "loop_aware_cse", "index arithmetic that the inlined calls repeat"),
        StockPass("ttir", "triton_licm", "loop-invariant index arithmetic leaves the loop"),
        StockPass("common", "canonicalizer", "fold what the passes above left over"),
        StockPass("ttgpuir", "combine_tensor_select_and_if", "a tensor select beside an scf.if joins it"),
        StockPass("ttgpuir", "coalesce_async_copy", "cp.async copies as wide as the layout allows"),
        *(_TOKENS if has_dots else ()),
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


def allocating_passes(capability: int, ptx_version: int, triton_version: str) -> tuple[StockPass, ...]:
    """Return the passes with which stock Triton's own lowering begins, up to those that allocate memory and warps.

    All supported versions begin alike, but for a flag of the sanitizer that 3.8 brought.
    """
    major, minor = map(int, triton_version.split(".")[:2])
    sanitizer = ((False,),) if (major, minor) >= (3, 8) else ((),)
    return (
        StockPass("ttgpuir", "combine_tensor_select_and_if", "a tensor select beside an scf.if joins it"),
        StockPass("ttgpuir", "allocate_warp_groups", "the warps of all partitions, filled up to groups", *sanitizer),
        StockPass("convert", "scf_to_cf", "lifetimes of buffers are counted in branches"),
        StockPass("gluon", "inliner", "buffers of called functions count where they are called"),
        StockPass("nvidia.ttgpuir", "allocate_shared_memory_nv", "bytes, with scratch", (capability, ptx_version)),
        StockPass("nvidia.ttnvgpuir", "allocate_tensor_memory", "columns"),
    )


_MATRIX_INSTRUCTION = re.compile(r"\bttng\.(?:warp_group_dot|tc_gen5_mma|tc_gen5_mma_scaled)\b")

_COALESCE = (StockPass("ttgpuir", "coalesce", "global loads and stores in vectors along the contiguous axis"),)

_ACCUMULATORS = (
    StockPass(
        "ttgpuir",
        "hoist_tmem_alloc",
        "the accumulator of a tt.dot stays in tensor memory while its loop runs",
        (False,),
        from_capability=100,
    ),
)
"""It follows tokens, which the MMAs that stock Triton makes have and those of a TLX kernel don't."""

_TOKENS = (
    StockPass(
        "nvidia.ttnvgpuir",
        "remove_tmem_tokens",
        "what accelerate_matmul ordered by tokens is in order: LLVM has no operation for them",
        from_capability=100,
    ),
)
