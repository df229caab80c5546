"""Times of all our GEMM configurations on the problems where the model's choice is slowest beside cuBLAS.

    python benchmarks/gemm/configurations.py --of DIR/aligned.json --out DIR [--worst 10] [--compile 16] [--dry]

Where another configuration is much faster than the chosen one, the model of the time is at fault
(`tlx_xdsl/kernels/gemm/model.py`); where none is, the kernels are. Of each configuration the division of the work that
the model finds best is measured, and every other candidate that it finds up to `NEAR` times slower than its choice.
`fit.py --fit` reads the figures.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gemm import aligned, common, fit, model, program
from benchmarks.gemm.common import Part
from benchmarks.gemm.shapes import Shape

PROBLEMS = "TLX_PROBLEMS"
"""Environment variable that the processes of a run inherit: names of problems, with commas."""

NEAR = 1.2

SHOWN = 8
"""Candidates of a problem in the table, beside the chosen one."""


def shapes() -> list[Shape]:
    """The problems that the command line asks for; without one, the first with a name."""
    names = os.environ.get(PROBLEMS) or str(aligned.aligned()[0])
    found: list[Shape] = []
    for name in names.split(","):
        sizes, layout, dtype = name.split()
        m, n, k = map(int, sizes.split("x"))
        found.append(Shape(m, n, k, layout, dtype))
    return found


def choices_of(shape: Shape) -> dict[str, Any]:
    """The candidates to measure, by name; the model's choice is the first."""
    from tlx_xdsl.kernels.gemm import division

    times = {each: model.predict(each, shape) for each in division.candidates(shape.m, shape.n, shape.k)}
    ordered = sorted(times, key=times.__getitem__)
    best_of_each = {each.config: each for each in reversed(ordered)}
    near = [each for each in ordered if times[each] <= NEAR * times[ordered[0]]]
    return {model.label(each): each for each in (*near, *best_of_each.values())}


def launches() -> Iterator[Callable[[], Any]]:
    """Each with what is compiled ahead for it."""
    for shape in shapes():
        yield from fit.launches_of(shape, choices_of(shape))


def family(dry: bool) -> Any:
    """The family for `gpu.run`."""
    from benchmarks.gpu.cases import Family

    found = Family("configurations", "GEMM, all configurations of some problems", lambda run: iter(()))
    found.cases = [fit.case_of(shape, choices_of, dry) for shape in shapes()]
    return found


def table(record: Mapping[str, Any]) -> str:
    """The chosen one, the fastest ones, and how many times slower the model finds each than what it found best."""
    lines: list[str] = []
    for name, case in record["cases"].items():
        times = common.milliseconds(case)
        peer = times.pop("cuBLAS", None)
        if peer is None or not times:
            continue
        shape = Shape(*case["facts"]["sizes"], case["facts"]["layout"])
        found = {each: model.choice_named(each) for each in times}
        predicted = {each: model.predict(choice, shape) for each, choice in found.items() if choice}
        chosen = min(predicted, key=predicted.__getitem__)
        ordered = sorted(times, key=times.__getitem__)
        lines.append(f"{name}: cuBLAS {peer * 1e3:.1f} us, {len(times)} candidates")
        for each in dict.fromkeys([chosen, *ordered[:SHOWN]]):
            said = f"{times[each] * 1e3:8.1f} us, predicted {predicted[each]:8.1f}, {peer / times[each]:.3f} of cuBLAS"
            lines.append(f"    {said}  {each}{' (chosen)' if each == chosen else ''}")
    return "\n".join([*lines, common.notes(record)])


PART = Part("configurations", __file__, family, launches, table, rounds=2, idle_s=0.01, limit_s=150.0, stall_s=60.0)


def main() -> int:
    """Take the slowest problems of a run, and measure."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--of", type=Path, metavar="FILE")
    parser.add_argument("--worst", type=int, default=aligned.WORST)
    args, rest = parser.parse_known_args()
    if args.of:
        os.environ[PROBLEMS] = ",".join(list(aligned.drawn_ratios(program.read(args.of)))[: args.worst])
    return program.main(PART, rest)


if __name__ == "__main__":
    sys.exit(main())
