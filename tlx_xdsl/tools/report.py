"""The report of `tlx compile` on a compiled kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tlx_xdsl.backend import BackendResult

PTX_COUNTS: tuple[tuple[str, str], ...] = (
    ("wgmma", r"\bwgmma\.mma_async\b"),
    ("TMA loads", r"\bcp\.async\.bulk\.tensor\.[^\s;]*\.shared::\w+\.global"),
    ("TMA stores", r"\bcp\.async\.bulk\.tensor\.[^\s;]*\.global\.shared::"),
    ("mbarrier waits", r"\bmbarrier\.try_wait\b"),
)
"""Instructions worth counting, by the pattern that finds them in PTX."""


def ptx_counts(ptx: str) -> dict[str, int]:
    """Return how often each instruction of `PTX_COUNTS` stands in `ptx`."""
    return {name: len(re.findall(pattern, ptx)) for name, pattern in PTX_COUNTS}


def format_report(
    name: str,
    target: str,
    times_ms: Mapping[str, float],
    result: BackendResult | None,
    paths: Sequence[Path],
) -> str:
    """The report as text: times, instruction counts, resources and paths."""
    lines = [f"{name} for {target}" + (f", Triton {result.triton_version}" if result is not None else "")]
    lines.append("  time per stage, ms")
    lines.extend(f"    {stage:<32}{milliseconds:9.1f}" for stage, milliseconds in times_ms.items())
    lines.append(f"    {'total':<32}{sum(times_ms.values()):9.1f}")
    if result is not None and result.ptx:
        lines.append("  instructions in the PTX")
        lines.extend(f"    {what:<32}{count:9d}" for what, count in ptx_counts(result.ptx).items())
    if result is not None and result.cubin:
        lines.extend(_resources(result))
    lines.append("  written")
    lines.extend(f"    {path}" for path in paths)
    return "\n".join(lines)


def _resources(result: BackendResult) -> list[str]:
    resources, metadata = result.resources, result.metadata
    rows = (
        ("registers per thread", resources.registers),
        ("spill stores, bytes per thread", resources.spill_store_bytes),
        ("spill loads, bytes per thread", resources.spill_load_bytes),
        ("stack, bytes per thread", resources.stack_bytes),
        ("shared memory, bytes per block", metadata.shared),
        ("static shared memory, bytes", resources.static_shared_bytes),
        ("tensor memory, columns", metadata.tmem_size),
        ("constant memory, bytes", resources.constant_bytes),
        ("named barriers, of 16", resources.barriers),
        ("warps per block", metadata.num_warps),
    )
    always = ("registers", "spill", "shared memory, bytes per block", "warps")
    rows = tuple(row for row in rows if row[1] or row[0].startswith(always))
    return ["  resources, by ptxas", *(f"    {what:<32}{amount:9d}" for what, amount in rows)]
