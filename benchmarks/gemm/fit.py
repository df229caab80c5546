"""Times of GEMM configurations on the fitting set, beside cuBLAS, and the constants of the model that fit them best.

    python benchmarks/gemm/fit.py --out DIR [--compile 16] [--only NAME] [--dry]      (needs a Hopper GPU)
    python benchmarks/gemm/fit.py --fit DIR/fit.json ... [--folds 5]                  (needs none)

Measured is every candidate that the model of today does not find 1.6 times slower than the best one, and its eight best
at most (`--most 12`, `--configs large,192`): few launches each, cool, in turns. `model` fits the constants, and
says how much is lost by choosing with them. The problems are in fp16, and such that TMA reads them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gemm import common, model, program
from benchmarks.gemm.common import Part
from benchmarks.gemm.shapes import Shape, fitting, fitting_small_results

WORST = 1.6
"""How many times the best prediction a candidate's may be."""

MOST = 8
"""Candidates of a problem."""

CONFIGS, CANDIDATES = "TLX_FIT_CONFIGS", "TLX_FIT_MOST"
"""Environment variables that the processes of a run inherit: names of configurations with commas, in the place of all;
and a number in the place of `MOST`."""


def shapes() -> list[Shape]:
    """The fitting set as it is measured."""
    plain = [replace(shape, dtype="fp16") for shape in (*fitting(), *fitting_small_results())]
    return [shape for shape in dict.fromkeys(plain) if shape.aligned]


def measured_choices(shape: Shape) -> dict[str, Any]:
    """The candidates to measure, by name."""
    from tlx_xdsl.kernels.gemm import division as gemm_division, tiles as gemm_tiles

    found = list(gemm_division.candidates(shape.m, shape.n, shape.k, common.MULTIPROCESSORS))
    if names := os.environ.get(CONFIGS):
        wanted = [gemm_tiles.CONFIGS[name] for name in names.split(",")]
        found = [each for each in found if each.config in wanted]
    times = {each: model.predict(each, shape) for each in found}
    best = sorted(times, key=times.__getitem__)[: int(os.environ.get(CANDIDATES, MOST))]
    return {model.label(each): each for each in best if times[each] <= WORST * times[best[0]]}


def launches() -> Iterator[Callable[[], Any]]:
    """Each with what is compiled ahead for it."""
    for shape in shapes():
        yield from launches_of(shape, measured_choices(shape))


def launches_of(shape: Shape, choices: Mapping[str, Any]) -> Iterator[Callable[[], Any]]:
    """The same of one problem."""
    from tlx_xdsl.kernels.gemm.dense import gemm_launch

    problem = common.untouched_problem(shape)
    for choice in choices.values():
        yield lambda choice=choice: gemm_launch(*problem, config=choice)


def family(dry: bool) -> Any:
    """The family for `gpu.run`."""
    from benchmarks.gpu.cases import Family

    found = Family("fit", "GEMM, configurations against each other", lambda run: iter(()))
    found.cases = [case_of(shape, measured_choices, dry) for shape in shapes()]
    return found


def case_of(shape: Shape, choices_of: Callable[[Shape], dict[str, Any]], dry: bool) -> Any:
    """A problem with all candidates that `choices_of` gives for it."""
    import torch

    from benchmarks.gpu.cases import Case
    from tlx_xdsl.kernels.gemm.dense import gemm_launch

    # In a dry run two will do.
    choices = dict(list(choices_of(common.dry_shape(shape)).items())[:2]) if dry else choices_of(shape)

    def make():
        a, b, poisoned = common.random_problem(shape, dry=dry)
        outs: dict[str, Any] = {}

        def ours(name: str) -> Callable[[], Any]:
            outs[name] = poisoned()
            return common.bound(gemm_launch(a, b, outs[name], config=choices[name]))

        def cublas() -> Callable[[], Any]:
            out = poisoned()
            return lambda: torch.mm(a, b, out=out)

        def verify() -> Any:
            return common.compared(shape, outs, a, b)

        return {"cuBLAS": cublas, **{name: lambda name=name: ours(name) for name in choices}}, verify

    facts = {"sizes": [shape.m, shape.n, shape.k], "layout": shape.layout}
    return Case(str(shape), shape.flops, "cuBLAS", None, make, checks_all=True, facts=facts)


def table(record: Mapping[str, Any]) -> str:
    """Tabulate the fastest candidates of each problem, as parts of cuBLAS's speed."""
    lines: list[str] = []
    bests: list[float] = []
    for name, case in record["cases"].items():
        times = common.milliseconds(case)
        peer = times.pop("cuBLAS", None)
        if peer is None or not times:
            continue
        ordered = sorted(times, key=times.__getitem__)
        bests.append(peer / times[ordered[0]])
        shown = ", ".join(f"{peer / times[each]:.3f} {each}" for each in ordered[:4])
        lines.append(f"{name:<28} {peer * 1e3:8.1f} us  {shown}")
    lines.append(f"the best candidates: {common.summary(bests)}")
    return "\n".join([*lines, common.notes(record)])


PART = Part("fit", __file__, family, launches, table, rounds=2, idle_s=0.02)


def main() -> int:
    """Measure, or fit what was measured."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--fit", type=Path, nargs="+")
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--configs")
    parser.add_argument("--most")
    args, rest = parser.parse_known_args()
    if args.fit:
        print(model.report([program.read(path) for path in args.fit], args.folds))
        return 0
    for variable, value in ((CONFIGS, args.configs), (CANDIDATES, args.most)):
        if value:
            os.environ[variable] = value
    return program.main(PART, rest)


if __name__ == "__main__":
    sys.exit(main())
