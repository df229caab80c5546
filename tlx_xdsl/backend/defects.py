"""Table of what single versions of stock Triton miscompile: since when, until when, and the remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Handling: TypeAlias = Literal["mended", "refused", "warned"]
"""`mended`: a pass, or a change of stock Triton's text, puts it right. `refused`: an error at the line. `warned`: a
warning at the line, with the release that has it right."""


@dataclass(frozen=True)
class Defect:
    """A miscompilation that some supported version has."""

    name: str
    """The name of its minimal kernel, too."""
    upstream: Sequence[str]
    """Issues and pull requests of Triton, such as `triton-lang/triton#9610`; empty where none is known."""
    what: str
    """What the version does wrong, in the words after "stock Triton 3.6.0": `leaves out the proxy fence ...`."""
    versions: Sequence[str]
    """The releases that have it."""
    mended_in: str
    """The first release that has it right; empty where none has."""
    handling: Handling
    where: str
    """The pass or the change that handles it."""
    reports: Sequence[str] = ()
    """Regular expressions of what the PTX machine says of nothing else, where the kernel itself is right."""
    target: str = "sm_90a"
    """A target that shows it."""

    def sentence(self, version: str) -> str:
        """Say what goes wrong, and which release has it right."""
        mended = f"; mended in {self.mended_in}" if self.mended_in else ""
        upstream = f" ({', '.join(self.upstream)})" if self.upstream else ""
        return f"stock Triton {version} {self.what}{upstream}{mended}"


_TEXT = "backend/mends.py"
_TO_3_6 = ("3.6.0",)
_TO_3_7 = ("3.6.0", "3.7.0", "3.7.1")
_TO_3_8 = (*_TO_3_7, "3.8.0")
_TO_3_9 = (*_TO_3_8, "3.9.0")


def _triton(*numbers: int) -> tuple[str, ...]:
    return tuple(f"triton-lang/triton#{number}" for number in numbers)


DEFECTS: tuple[Defect, ...] = (
    # --- fences and barriers ---
    Defect(
        "cp_async_before_wgmma",
        _triton(9610, 10537),
        "leaves out the proxy fence between cp.async and the product that reads what it wrote",
        ("3.6.0", "3.7.0"),
        "3.7.1",
        "mended",
        _TEXT,
        (r"async proxy reads .* written by the cp\.async .* without a proxy fence",),
    ),
    Defect(
        "fence_before_copies",
        _triton(9514, 9530),
        "writes registers of a product after its wgmma.fence",
        ("3.7.0", "3.7.1"),
        "3.8.0",
        "mended",
        _TEXT,
        (r"written after the last wgmma\.fence",),
    ),
    Defect(
        "shared_operand_of_two_groups",
        _triton(11047),
        "leaves out the barrier before the overwrite of an operand that another warp group may still multiply",
        _TO_3_8,
        "3.9.0",
        "mended",
        _TEXT,
        (r"shared memory, and nothing orders it after what was read by the wgmma",),
    ),
    Defect(
        "left_operand_in_registers",
        _triton(8997),
        "loads the next left operand into registers from which a product in flight still takes it",
        _TO_3_7,
        "3.8.0",
        "mended",
        _TEXT,
        (r"writes a register that a wgmma may still read",),
    ),
    Defect(
        "half_sums_in_flight",
        (),
        "unpacks sums of fp16 before the wait for their product, so that ptxas puts a wait there (C7517)",
        _TO_3_9,
        "",
        "mended",
        _TEXT,
        (r"uses the result of a wgmma that was not waited for[\s\S]*'wgmma\.mma_async\S*k\d+\.f16\.",),
    ),
    Defect(
        "tensor_memory_read_in_loop",
        _triton(8732),
        "lets the next product overwrite an accumulator in tensor memory that other warps still read",
        _TO_3_6,
        "3.7.0",
        "mended",
        _TEXT,
        (r"tensor memory, and nothing orders it after what was read by the tcgen05\.ld",),
        "sm_100a",
    ),
    Defect(
        "tensor_memory_in_two_shapes",
        ("facebookexperimental/triton#1992", *_triton(10263)),
        "leaves out the barrier between accesses of eight warps to tensor memory in two shapes",
        _TO_3_7,
        "3.8.0",
        "mended",
        "tlx-insert-tensor-memory-barriers",
        (r"tensor memory, and nothing orders it after what was (?:read|written) by the tcgen05\.(?:ld|st)",),
        "sm_100a",
    ),
    Defect(
        "captures_of_tasks",
        (),
        "stores what tasks capture where slower warps still read the parts of a reduction",
        _TO_3_6,
        "3.7.0",
        "mended",
        "tlx-insert-barrier-before-tasks",
    ),
    Defect(
        "call_in_task",
        (),
        "lets a barrier in a function that a task calls wait for the threads of all tasks",
        _TO_3_7,
        "3.9.0",
        "mended",
        "tlx-inline-calls-with-tasks",
    ),
    Defect(
        "release_of_atomic",
        _triton(10816),
        "releases by one thread what others may not have stored yet",
        _TO_3_8,
        "3.9.0",
        "mended",
        "tlx-insert-barriers-at-atomics",
    ),
    Defect(
        "release_of_tma_store",
        _triton(10415),
        "releases a store by TMA whose writes are not complete",
        _TO_3_7,
        "3.8.0",
        "mended",
        _TEXT,
    ),
    # --- numbers ---
    Defect(
        "scale_of_byte_zero",
        _triton(11624),
        "decodes the scale byte 0 of a tl.dot_scaled as 0.0, not as 2**-127",
        _TO_3_8,
        "3.9.0",
        "mended",
        _TEXT,
    ),
    Defect(
        "rounding_to_e5m2",
        _triton(11753),
        "rounds conversions to float8e5 by software wrong at ties, and to infinities beyond 57344",
        _TO_3_8,
        "3.9.0",
        "mended",
        "tlx-round-to-e5m2",
        target="sm_80",
    ),
    Defect(
        "sum_of_products_axis",
        _triton(10574),
        "takes a sum of products along any axis for a matrix product",
        _TO_3_7,
        "3.8.0",
        "mended",
        "tlx-keep-sums-of-products",
    ),
    Defect(
        "sum_of_products_tf32",
        _triton(9609, 9831),
        "rounds the factors of a sum of products of fp32 to tf32",
        _TO_3_7,
        "3.8.0",
        "mended",
        "tlx-keep-sums-of-products",
    ),
    Defect(
        "empty_flattened_loop",
        _triton(11656, 11607, 11688),
        "runs the inner loop of a flattened one once where its end lies before its begin",
        _TO_3_8,
        "3.9.0",
        "mended",
        "tlx-guard-flattened-loops",
    ),
    Defect(
        "joined_operand",
        _triton(10645),
        "multiplies the wrong elements of what tl.join made along M, with few elements along K",
        _TO_3_8,
        "3.9.0",
        "warned",
        "tlx-check-miscompiled",
    ),
    # --- alignment ---
    Defect(
        "quotient_of_negative",
        _triton(7749),
        "takes quotients and remainders of a range below zero for those of one above",
        _TO_3_9,
        "",
        "mended",
        "tlx-hide-alignment",
    ),
    Defect(
        "remainder_by_tensor",
        _triton(11544),
        "takes remainders by a tensor for aligned",
        _TO_3_8,
        "3.9.0",
        "mended",
        "tlx-hide-alignment",
    ),
    Defect(
        "shift_by_unknown",
        _triton(9613),
        "takes a range that is shifted by an argument for aligned",
        _TO_3_8,
        "3.9.0",
        "mended",
        "tlx-hide-alignment",
    ),
    Defect(
        "selected_ranges",
        _triton(10359),
        "takes elements that are selected from two ranges for aligned",
        _TO_3_7,
        "3.8.0",
        "mended",
        "tlx-hide-alignment",
    ),
    Defect(
        "sum_of_two_ranges",
        _triton(9297),
        "takes the sum of two ranges for aligned",
        _TO_3_6,
        "3.7.0",
        "mended",
        "tlx-hide-alignment",
    ),
    # --- tasks and clusters ---
    Defect(
        "registers_of_a_task_that_prints",
        _triton(10417),
        "gives a task that prints or asserts fewer than the 32 registers that the driver needs for it",
        _TO_3_7,
        "3.8.0",
        "mended",
        "tlx-rebalance-setmaxnreg",
    ),
    Defect(
        "atomic_of_two_ctas",
        _triton(10477, 10656, 11730),
        "hands the result of an atomic operation to one of the CTAs only, or (3.8.0) lets that one end too early",
        _TO_3_8,
        "3.9.0",
        "refused",
        "tlx-check-miscompiled",
    ),
    Defect(
        "reduction_of_two_ctas",
        _triton(9221),
        "reduces the part of one CTA only",
        _TO_3_7,
        "3.8.0",
        "warned",
        "tlx-check-miscompiled",
    ),
    Defect(
        "histogram_of_two_ctas",
        (),
        "counts in each CTA for itself",
        _TO_3_8,
        "3.9.0",
        "refused",
        "tlx-check-miscompiled",
    ),
    Defect(
        "gather_of_two_ctas",
        (),
        "gathers from the part of a CTA only",
        _TO_3_9,
        "",
        "refused",
        "tlx-check-miscompiled",
    ),
)


def cause_of(message: str, version: str) -> Defect | None:
    """Return the defect of a Triton release that makes the PTX machine say `message`; None for what is not known."""
    for defect in DEFECTS:
        if version in defect.versions and any(re.search(each, message) for each in defect.reports):
            return defect
    return None
