"""GEMM of bf16 on sixty problems whose sizes are multiples of 64, against cuBLAS: checks first, then speed, cool.

    python benchmarks/gemm/aligned.py --out DIR [--compile 16] [--only 512x512] [--dry]

Beside them are two problems with a name, and an exact product of fp8 against torch's. The configuration is the model's
choice; `configurations.py` times all others on the problems where that is slowest. Every result is compared with a
float32 product (fp8: float64), in an output that was NaN before. `python -m benchmarks.gpu.dashboard --add
DIR/aligned.json` takes the figures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gemm import common, every_shape, fp8, program
from benchmarks.gemm.common import Part
from benchmarks.gemm.shapes import COUNT, aligned
from benchmarks.gpu import report

WANTED = (0.88, 0.97)
"""Parts of cuBLAS's speed: what every problem should reach, and those with a name."""

WORST = 10
"""Problems that the table has with their configurations."""

EXACT_FP8 = (8192, 8192, 8192)
EXACT = fp8.Mode("tensor", False)


def launches() -> Iterator[Callable[[], Any]]:
    """Each with what is compiled ahead for it."""
    from tlx_xdsl.kernels.gemm.dense import gemm_launch

    for shape in aligned():
        yield lambda shape=shape: gemm_launch(*common.untouched_problem(shape))
    yield lambda: fp8.launch_of(EXACT_FP8, EXACT)


def family(dry: bool) -> Any:
    """The family for `gpu.run`."""
    from benchmarks.gpu.cases import Family

    found = Family("gemm-aligned", "GEMM, bf16: drawn multiples of 64, and exact fp8", lambda run: iter(()))
    found.cases = [fp8.case_of(EXACT_FP8, EXACT, 1.0, dry), *(every_shape.case_of(each, dry) for each in aligned())]
    return found


def drawn_ratios(record: Mapping[str, Any]) -> dict[str, float]:
    """Our speed as a part of cuBLAS's on the sixty, the slowest first."""
    drawn = map(str, aligned()[-COUNT:])
    found = {name: report.ratio(record["cases"][name], "cool") for name in drawn if name in record["cases"]}
    return dict(sorted(((name, each) for name, each in found.items() if each is not None), key=lambda each: each[1]))


def table(record: Mapping[str, Any]) -> str:
    """The problems with a name, the slowest of the sixty with their configurations, all ratios, and the mean."""
    ratios = drawn_ratios(record)
    named = [name for name in record["cases"] if name not in ratios]
    lines: list[str] = []
    for name in [*named, *list(ratios)[:WORST]]:
        case = record["cases"][name]
        found = report.ratio(case, "cool")
        shown = "-" if found is None else f"{found:.3f}"
        microseconds = ", ".join(f"{who} {time * 1e3:.1f} us" for who, time in common.milliseconds(case).items())
        lines.append(f"{shown} {name:<26} {microseconds}  [{case['config']}]")
    lines.append("the others: " + ", ".join(f"{name} {ratios[name]:.3f}" for name in list(ratios)[WORST:]))
    lines.append(f"the drawn ones: {common.summary(list(ratios.values()), WANTED)}")
    return "\n".join([*lines, common.notes(record)])


PART = Part("aligned", __file__, family, launches, table, idle_s=0.06, limit_s=120.0)

if __name__ == "__main__":
    sys.exit(program.main(PART))
