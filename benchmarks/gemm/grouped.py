"""Grouped GEMM in bf16 against `torch._grouped_mm` and a loop of cuBLAS: equal and random groups.

    python benchmarks/gemm/grouped.py --out DIR [--compile 16] [--only random] [--dry]

The rows of x belong to groups, each with a matrix of its own: out[rows of g] = x[rows of g] @ w[g].
"""

# torch has these functions for its users, but does not list them.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gemm import common, program
from benchmarks.gemm.common import OURS, Part

TORCH, LOOP = "torch._grouped_mm", "loop of cuBLAS"

CASES = {
    (8, 8192, 4096, 2048): 1.05,
    (16, 16384, 4096, 4096): 1.02,
    (64, 16384, 2048, 7168): 1.05,
    (4, 32768, 4096, 7168): 1.00,
}
"""(groups, rows of x, n, k): the speed wanted, as a part of the faster rival's."""

KINDS = ("equal, rows", "equal, columns", "random, rows")
"""How large groups are, and how the matrices of w lie."""


def offsets_of(groups: int, rows: int, kind: str) -> list[int]:
    """The ends of the groups. Random ones: each row's group is drawn, the second group stays empty."""
    import numpy as np

    if kind.startswith("equal"):
        return [rows * (group + 1) // groups for group in range(groups)]
    parts = [1.0 / (groups - 1)] * groups
    parts[1] = 0.0
    return np.cumsum(np.random.default_rng(5).multinomial(rows, parts)).tolist()


def launches() -> Iterator[Callable[[], Any]]:
    """Each with what is compiled ahead for it."""
    from tlx_xdsl.kernels.gemm.grouped.call import grouped_gemm_launch

    untouched = common.untouched
    for groups, rows, n, k in CASES:
        for kind in KINDS:

            def make(groups: int = groups, rows: int = rows, n: int = n, k: int = k, kind: str = kind) -> Any:
                by_rows = untouched((groups, k, n), "bf16")
                w = by_rows if kind.endswith("rows") else untouched((groups, n, k), "bf16").swapaxes(1, 2)
                x, out = untouched((rows, k), "bf16"), untouched((rows, n), "bf16")
                return grouped_gemm_launch(x, w, untouched((groups,), "i32"), out)

            yield make


def family(dry: bool) -> Any:
    """The family for `gpu.run`."""
    from benchmarks.gpu.cases import Family

    found = Family("grouped", "Grouped GEMM, bf16", lambda run: iter(()))
    found.cases = [_case(sizes, kind, target, dry) for kind in KINDS for sizes, target in CASES.items()]
    return found


def _case(sizes: tuple[int, int, int, int], kind: str, target: float, dry: bool) -> Any:
    import torch

    from benchmarks.gpu.cases import Case
    from tests.unit.kernels import gpu_checks

    name = f"{sizes[0]} groups {'x'.join(map(str, sizes[1:]))} {kind}"
    case = Case(name, 2 * sizes[1] * sizes[2] * sizes[3], TORCH, target, lambda: make())

    def make():
        groups, rows, n, k = (3, 70, 64, 64) if dry else sizes
        device = "cpu" if dry else "cuda"
        x = gpu_checks.random((rows, k), torch.bfloat16, device, 1)
        shape = (groups, k, n) if kind.endswith("rows") else (groups, n, k)
        w = gpu_checks.random(shape, torch.bfloat16, device, 2)
        w = w if kind.endswith("rows") else w.transpose(-2, -1)
        ends = offsets_of(groups, rows, kind)
        offsets = torch.tensor(ends, dtype=torch.int32, device=device)
        spans = list(zip([0, *ends], ends, strict=False))
        outs = {who: gpu_checks.poisoned((rows, n), torch.bfloat16, device) for who in (LOOP, OURS)}

        def ours() -> Callable[[], Any]:
            from tlx_xdsl.kernels.gemm.grouped.call import grouped_gemm_launch

            made = grouped_gemm_launch(x, w, offsets, outs[OURS])
            case.config = common.described(made)
            return common.bound(made)

        def theirs() -> Callable[[], Any]:
            def launch() -> None:
                outs[TORCH] = torch._grouped_mm(x, w, offs=offsets, out_dtype=torch.bfloat16)

            return launch

        def loop() -> Callable[[], Any]:
            def launch() -> None:
                for group, (first, end) in enumerate(spans):
                    if end > first:
                        torch.mm(x[first:end], w[group], out=outs[LOOP][first:end])

            return launch

        def verify() -> gpu_checks.Check:
            expected = torch.cat([x[first:end].float() @ w[group].float() for group, (first, end) in enumerate(spans)])
            error = gpu_checks.relative_error(outs[OURS], expected)
            return gpu_checks.Check(name, error, gpu_checks.LIMITS["bf16"])

        return {TORCH: theirs, LOOP: loop, OURS: ours}, verify

    return case


def table(record: Mapping[str, Any]) -> str:
    """Rates, and our speed as a part of the faster rival's."""
    lines: list[str] = []
    for name, case in record["cases"].items():
        times = case["cool"]["times"]
        rivals = [times[who] for who in (TORCH, LOOP) if times.get(who)]
        rates = "  ".join(f"{who} {case['flops'] / median(each) * 1e-9:.0f}" for who, each in times.items() if each)
        shown = "-"
        if rivals and times.get(OURS):
            fastest = min(rivals, key=median)
            shown = f"{median(each / mine for each, mine in zip(fastest, times[OURS], strict=True)):.3f}"
        lines.append(f"{name:<46} {shown} (wanted {case['target']:.2f})  {rates}  [{case['config']}]")
    return "\n".join([*lines, common.notes(record)])


PART = Part("grouped", __file__, family, launches, table, limit_s=90.0)

if __name__ == "__main__":
    sys.exit(program.main(PART))
