"""GEMM of 16-bit types on sixty shapes, and on those with a name, against cuBLAS: checks first, then speed, cool.

    python benchmarks/gemm/every_shape.py --out DIR [--compile 16] [--only NT] [--dry]

The configuration is the model's choice (`gemm_config`); the sixty are drawn by `shapes` and nothing is fitted to
them. Every result is compared with a float32 product, in an output that was NaN before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gemm import common, program
from benchmarks.gemm.common import OURS, Part
from benchmarks.gemm.shapes import TARGETS, Shape, acceptance, named
from benchmarks.gpu import report

WANTED = (0.92, 0.93)
"""Parts of cuBLAS's speed that most problems should reach."""


def shapes() -> list[Shape]:
    """List the named shapes first: they are looked at one by one."""
    return named() + acceptance()


def launches() -> Iterator[Callable[[], Any]]:
    """Each with what is compiled ahead for it."""
    from tlx_xdsl.kernels.gemm.dense import gemm_launch

    for shape in shapes():
        yield lambda shape=shape: gemm_launch(*common.untouched_problem(shape))


def family(dry: bool) -> Any:
    """The family for `gpu.run`."""
    from benchmarks.gpu.cases import Family

    found = Family("shapes", "GEMM of every shape", lambda run: iter(()))
    found.cases = [case_of(shape, dry) for shape in shapes()]
    return found


def case_of(shape: Shape, dry: bool) -> Any:
    """A problem with the configuration that the model chooses, beside cuBLAS."""
    import torch

    from benchmarks.gpu.cases import Case
    from tlx_xdsl.kernels.gemm.dense import gemm_launch

    target = TARGETS.get((shape.m, shape.n, shape.k)) if shape.layout == "NN" else None
    case = Case(str(shape), shape.flops, "cuBLAS", target, lambda: make(), facts={"aligned": shape.aligned})

    def make():
        a, b, poisoned = common.random_problem(shape, dry=dry)
        outs = {name: poisoned() for name in ("cuBLAS", OURS)}

        def ours() -> Callable[[], Any]:
            made = gemm_launch(a, b, outs[OURS])
            case.config = common.described(made)
            return common.bound(made)

        def verify() -> Any:
            return common.compared(shape, {OURS: outs[OURS]}, a, b)

        return {"cuBLAS": lambda: lambda: torch.mm(a, b, out=outs["cuBLAS"]), OURS: ours}, verify

    return case


def table(record: Mapping[str, Any]) -> str:
    """The sixty from the worst to the best, then those with a name, and what it comes to."""
    known = {str(shape) for shape in acceptance()}
    found = {name: report.ratio(case, "cool") for name, case in record["cases"].items()}
    measured = {name: each for name, each in found.items() if each is not None}
    lines: list[str] = []
    for name in sorted(measured, key=lambda name: (name not in known, measured[name])):
        case = record["cases"][name]
        times = common.milliseconds(case)
        wanted = "" if case["target"] is None else f" (wanted {case['target']:.2f})"
        microseconds = f"{times['cuBLAS'] * 1e3:.1f} {times[OURS] * 1e3:.1f} us"
        lines.append(f"{measured[name]:.3f}{wanted} {name:<28} {microseconds:<20} {case['config']}")
    sixty = [each for name, each in measured.items() if name in known]
    for title, aligned in (("aligned", True), ("not aligned", False)):
        alike = {name for name, case in record["cases"].items() if case["facts"]["aligned"] == aligned}
        chosen = [measured[each] for each in known & alike & set(measured)]
        lines.append(f"{title}: {common.summary(chosen, WANTED)}")
    lines.append(f"the sixty: {common.summary(sixty, WANTED)}")
    missing = sorted(set(record["cases"]) - set(measured))
    lines.append(f"without a ratio: {', '.join(missing) or 'none'}")
    return "\n".join([*lines, common.notes(record)])


PART = Part("shapes", __file__, family, launches, table, idle_s=0.06)

if __name__ == "__main__":
    sys.exit(program.main(PART))
