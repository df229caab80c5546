"""Output of `tlx run --stage ptx`: how the PTX compares with the interpreter, where instructions and bytes go."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.ptx.launch import PtxRun
from tlx_xdsl.ptx.read.faults import PtxFault
from tlx_xdsl.ptx.traffic import Cost, LineTraffic
from tlx_xdsl.runtime.simulate.interpret import Interpretation
from tlx_xdsl.runtime.simulate.ptx_comparison import Comparison, defect_of
from tlx_xdsl.text.diagnostics import Diagnostic

from ..output import say

_SHOWN = 10
"""Lines and operations that most instructions are of."""
_LINES = 5
"""Lines of each of the other tables."""


def report_ptx(run: PtxRun, comparison: Comparison | None, *, profile: bool) -> None:
    """Print what a run of PTX takes, where that is asked for, and how it compares with the interpreter's run."""
    if profile:
        _print_profile(run)
    if comparison is not None:
        _print_comparison(comparison)


def report_faults(result: Interpretation) -> None:
    """Print what a run has gone on past: warnings of what the installed Triton is known to do wrong, and errors.

    Raises the last error: that which has ended the run, else one that is no known defect of stock Triton.
    """
    errors = [each for each in result.faults if result.ptx is None or severity_of(each) == "error"]
    for each in result.faults:
        if not errors or each is not errors[-1]:
            severity = "error" if each in errors else "warning"
            say(Diagnostic(severity, each.message, each.location, each.notes))
    if errors:
        raise errors[-1]


def severity_of(fault: PtxFault) -> Literal["error", "warning"]:
    """Return how much a fault of the PTX weighs: what the installed Triton is known to do wrong is a warning."""
    return "error" if defect_of(fault) is None else "warning"


def ptx_as_json(run: PtxRun, comparison: Comparison | None) -> dict[str, Any]:
    """Return what a run of PTX takes by operation and by line, and how it compares with the interpreter's run."""
    places = sorted({*run.lines, *run.traffic}, key=lambda place: -run.lines.get(place, 0))
    return {
        "instructions": run.instructions,
        "opcodes": dict(sorted(run.counts.items(), key=lambda item: -item[1])),
        "lines": [
            {
                "file": place[0], "line": place[1] or None, "instructions": run.lines.get(place, 0),
                "shared_wavefronts": cost.shared.taken, "shared_wavefronts_least": cost.shared.least,
                "global_sectors": cost.sectors.taken, "global_sectors_least": cost.sectors.least,
                "waits": cost.waits, "tma_bytes": cost.copied, "tensor_core_operations": cost.products,
            }
            for place in places
            for cost in [run.traffic.get(place, LineTraffic())]
        ],
        "comparison": None if comparison is None else {
            "same": comparison.wrong is None and comparison.refusal is None,
            "not_compared": list(comparison.unordered),
            "arrays": {
                name: {"other_bits": each.difference.other_bits, "largest": each.difference.largest}
                for name, each in comparison.arrays.items()
            },
            "refusal": None if comparison.refusal is None else comparison.refusal.message,
        },
    }  # fmt: skip


def check_same(comparison: Comparison | None) -> None:
    """Raise CompilationError for an array that the interpreter's run has left otherwise."""
    if comparison is not None and (found := comparison.wrong) is not None:
        name, wrong = found
        raise CompilationError(wrong.sentence(name))


def _print_comparison(comparison: Comparison) -> None:
    if (refusal := comparison.refusal) is not None:
        print(f"not compared, as the interpreter can't run the TTGIR: {refusal.message}")
        return
    said: list[str] = []
    for name, compared in comparison.arrays.items():
        each = compared.difference
        if each.other_bits == 0:
            said.append(f"{name} has the same bits")
        else:
            said.append(
                f"{name} differs by up to {each.largest:.1e} of the largest value, {each.other_bits:,} of "
                f"{each.size:,} elements have other bits"
            )
    said += [f"{name} is not compared, it depends on the order of programs" for name in comparison.unordered]
    if comparison.contracted:
        said.append("not so without contraction of products and sums (--no-fp-fusion)")
    if comparison.out_of_range:
        places = ", ".join(map(str, comparison.out_of_range))
        said.append(
            f"the kernel converts numbers that are out of range to integers, which may be anything, at {places}"
        )
    print(f"the interpreter's run of the TTGIR ({comparison.seconds:.2f} s): {'; '.join(said) or 'no array changes'}")


def _print_profile(run: PtxRun) -> None:
    """Print the operations and the lines that most instructions are of, and what lines take besides."""
    for opcode, count in sorted(run.counts.items(), key=lambda item: -item[1])[:_SHOWN]:
        print(f"{count:>12,} {100 * count / run.instructions:5.1f} %  {opcode}")
    for place, count in sorted(run.lines.items(), key=lambda item: -item[1])[:_SHOWN]:
        print(f"{count:>12,} {100 * count / run.instructions:5.1f} %  {_shown(place)}")
    _print_costs("shared memory", "wavefronts", run.traffic, lambda each: each.shared)
    _print_costs("global memory", "sectors", run.traffic, lambda each: each.sectors)
    _print_counts("copies by TMA", "bytes", run.traffic, lambda each: each.copied)
    _print_counts("tensor cores", "operations", run.traffic, lambda each: each.products)
    _print_counts("waits of warps", "not met when first asked", run.traffic, lambda each: each.waits)


def _print_costs(
    what: str, unit: str, traffic: Mapping[tuple[str, int], LineTraffic], cost_of: Callable[[LineTraffic], Cost]
) -> None:
    """A table of those lines that take more than the least."""
    costs = {place: cost_of(each) for place, each in traffic.items()}
    total = Cost()
    for each in costs.values():
        total.add(each.requests, each.taken, each.least)
    if not total.requests:
        return
    print(f"{what}: {total.requests:,} requests of warps, {total.taken:,} {unit}, {total.least:,} at least")
    worse = [(place, cost) for place, cost in costs.items() if cost.taken > cost.least]
    for place, cost in sorted(worse, key=lambda item: item[1].least - item[1].taken)[:_LINES]:
        print(f"{cost.taken:>12,} {cost.taken / max(1, cost.least):5.1f} x  {_shown(place)}")


def _print_counts(
    what: str, unit: str, traffic: Mapping[tuple[str, int], LineTraffic], count_of: Callable[[LineTraffic], int]
) -> None:
    counts = {place: count for place, each in traffic.items() if (count := count_of(each))}
    if not counts:
        return
    total = sum(counts.values())
    print(f"{what}: {total:,} {unit}")
    for place, count in sorted(counts.items(), key=lambda item: -item[1])[:_LINES]:
        print(f"{count:>12,} {100 * count / total:5.1f} %  {_shown(place)}")


def _shown(place: tuple[str, int]) -> str:
    path, line = place
    if not line:
        return f"{Path(path).name}: what the compiler adds, which is of no line"
    return f"{Path(path).name}:{line}: {linecache.getline(path, line).strip()}".removesuffix(": ")
