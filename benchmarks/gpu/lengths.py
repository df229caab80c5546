"""Functions of rows at forty drawn lengths, forward and backward, in bf16: GB/s beside a copy and torch.compile.

    python benchmarks/gpu/lengths.py --out DIR [--functions softmax,swiglu] [--budget 300] [--processes 16] [--dry]

Half of the lengths are multiples of 8, and a row of `cross_entropy` has an odd number of classes; each tensor has 64
MiB at least. A rate counts what has to be read and written once, of tensors of whole rows: softmax 2 (gradient 3),
norms 2 (3), norm with a residual 4 (4), cross_entropy 1 (2), swiglu 3 (5). A copy counts 2. torch.compile stands
beside ten of the lengths. Results are compared with torch's in float64, all together and row by row, in tensors that
were NaN before. What is compiled is compiled first, in many processes, into the caches on disk.

`python -m benchmarks.gpu.dashboard --add DIR/lengths.json` takes the figures.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.gpu import measure, report
from benchmarks.gpu.kernels import failures, supervise

FUNCTIONS = ("softmax", "layer-norm", "rms-norm", "rms-norm-residual", "cross-entropy", "swiglu")
DIRECTIONS = {"forward": ("", 0.92), "backward": ("-backward", 0.80)}
"""What the name of the function in `rows.OPERATORS` ends with, and the part of the copy's rate that is wanted."""

COUNT, SEED = 40, 50
SHORTEST, LONGEST = 64, 1 << 17
BYTES = 64 << 20
"""Of a tensor, at least."""

ROUNDS, BURST, IDLE_S = 5, 4, 0.01
"""Kernels that memory limits do not get near the power limit: short rests will do."""

FUNCTION_LIMIT_S = 100.0
PREPARATION = 0.4
"""The part of all time that compiling ahead may take."""

ROW_LIMIT = 0.05
"""Of the error of one row: in bf16, where terms cancel, some of half a million have 0.01."""

COPY, COMPILED = "copy", "torch.compile"


def lengths() -> list[int]:
    """The drawn lengths: one in each fortieth of the range, by turns multiples of 8 and not."""
    numbers = random.Random(SEED)
    found: list[int] = []
    for at in range(COUNT):
        drawn = exp(log(SHORTEST) + (at + numbers.random()) / COUNT * log(LONGEST / SHORTEST))
        found.append(round(drawn / 8) * 8 if at % 2 == 0 else round(drawn) + (round(drawn) % 8 == 0))
    return found


def compared() -> list[int]:
    """The ten lengths at which torch.compile stands beside ours, five of them multiples of 8."""
    return [each for at, each in enumerate(lengths()) if at % 8 in (0, 5)]


def shape_of(function: str, length: int) -> tuple[int, int]:
    """Rows and columns."""
    columns = length | 1 if function == "cross-entropy" else length
    return -(-BYTES // (2 * columns)), columns


# --- in a process of its own --------------------------------------------------------------------------------------


def child(args: argparse.Namespace) -> int:
    """Prepare a share of all, or run one function."""
    import torch

    from benchmarks.gpu.cases import Family
    from benchmarks.gpu.run import DryTimer, GpuTimer, run_family

    torch.backends.cuda.matmul.allow_tf32 = False
    if args.share is not None:
        prepare_share(args.functions.split(","), args.share, args.processes)
        return 0
    timer = (DryTimer if args.dry else GpuTimer)(ROUNDS, BURST, IDLE_S, 0)
    family = Family(f"lengths-{args.family}", f"{args.family}, bf16, drawn lengths", lambda run: iter(()))
    for length in lengths()[:: COUNT // 3] if args.dry else lengths():
        family.cases += [_case(args.family, direction, length, args.dry) for direction in DIRECTIONS]
    return 0 if run_family(family, args.result, timer, args.only) else 1


def _case(function: str, direction: str, length: int, dry: bool) -> Any:
    import torch

    from benchmarks.gpu import rows
    from benchmarks.gpu.cases import OURS, Case

    shape = shape_of(function, length)
    ending, target = DIRECTIONS[direction]
    operator = rows.OPERATORS[function + ending]
    name = f"{direction} {shape[0]} x {shape[1]}"

    def make():
        problem = operator.make(*((3, 64 + length % 8) if dry else shape), "cpu" if dry else "cuda")

        def copy():
            x, y = problem.inputs[0], torch.empty_like(problem.inputs[0])
            return lambda: y.copy_(x)

        candidates = {COPY: copy, OURS: problem.ours}
        if length in compared():
            candidates[COMPILED] = lambda: rows.compiled(problem, dry=dry)
        return candidates, lambda: _check(problem, f"{function} {name}")

    traffic = {each: float(operator.accesses * 2 * shape[0] * shape[1]) for each in (OURS, COMPILED)}
    traffic[COPY] = 4.0 * shape[0] * shape[1]
    return Case(name, 0, COPY, target, make, traffic=traffic)


def _check(problem: Any, label: str) -> Any:
    """The check of all results, or that of the worst row, whichever is nearer to its limit."""
    from benchmarks.gpu import rows
    from tests.unit.kernels.gpu_checks import LIMITS, Check

    errors: list[tuple[float, float]] = []
    for found, wanted in zip(problem.outs, rows.expected(problem), strict=True):
        difference = found.double() - wanted
        errors.append(((difference.norm() / wanted.norm().clamp_min(1e-30)).item(), LIMITS[rows.DTYPE]))
        if found.dim() == 2:
            of_rows = difference.norm(dim=1) / wanted.norm(dim=1).clamp_min(1e-30)
            errors.append((of_rows.max().item(), ROW_LIMIT))
    # A NaN is no maximum.
    worst = max(errors, key=lambda each: each[0] / each[1] if each[0] == each[0] else float("inf"))
    return Check(label, *worst)


def prepare_share(functions: list[str], share: int, shares: int) -> None:
    """Compile every `shares`-th of what will be launched, ours and torch's, by launching it."""
    from benchmarks.gpu import rows

    for function, direction, length, is_ours in list(_to_prepare(functions))[share::shares]:
        ending, _ = DIRECTIONS[direction]
        with suppress(Exception):  # what fails here fails again in its turn, and is reported there
            problem = rows.OPERATORS[function + ending].make(*shape_of(function, length), "cuda")
            launch = problem.ours() if is_ours else rows.compiled(problem, dry=False)
            measure.watchdog_first_launch(launch)


def _to_prepare(functions: list[str]) -> Iterator[tuple[str, str, int, bool]]:
    """Function, direction, length, and whether it is ours: torch's first, which takes longest."""
    each_direction = [(function, direction) for function in functions for direction in DIRECTIONS]
    for function, direction in each_direction:
        yield from ((function, direction, length, False) for length in compared())
    for function, direction in each_direction:
        # Rows up to the same power of two share their kernels; where they do not, the next process compiles one more.
        alike = {(length.bit_length(), length % 8 == 0): length for length in lengths()}
        yield from ((function, direction, length, True) for length in alike.values())


# --- around them --------------------------------------------------------------------------------------------------


def prepare(functions: str, processes: int, seconds: float) -> None:
    """Compile ahead in so many processes, for a limited time."""
    command = [sys.executable, __file__, "--functions", functions, "--processes", str(processes), "--share"]
    deadline = time.monotonic() + seconds
    running = [
        subprocess.Popen([*command, str(share)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for share in range(processes)
    ]
    for each in running:
        try:
            each.wait(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            each.kill()


def split(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A record for each direction."""
    return [
        {
            **record,
            "family": f"{record['family']}-{direction}",
            "title": f"{record.get('title', record['family'])}, {direction}",
            "cases": {name: each for name, each in record["cases"].items() if name.startswith(direction)},
        }
        for direction in DIRECTIONS
    ]


def table(record: Mapping[str, Any]) -> str:
    """Parts of the copy's rate at each length, and our speed over torch.compile's."""
    lines: list[str] = []
    for each in split(record):
        ratios: list[float] = []
        lines.append(f"== {each['title']}: columns, GB/s, of the copy's rate, over torch.compile's speed")
        for name, case in each["cases"].items():
            found, times = report.ratio(case, "cool"), case["cool"]["times"]
            if found is None:
                continue
            ratios.append(found)
            beside = f"{median(times[COMPILED]) / median(times[report.OURS]):8.2f}" if COMPILED in times else ""
            mark = "" if found >= case["target"] else " <"
            rate = report.rates(case, "cool")[report.OURS]
            lines.append(f"{name.rpartition(' ')[2]:>7} {rate:6.0f} {found:6.3f}{mark:2}{beside}")
        if ratios:
            target = next(iter(each["cases"].values()))["target"]
            good = sum(ratio >= target for ratio in ratios)
            mean = report.geometric_mean(ratios)
            lines.append(f"{good} of {len(ratios)} reach {target}; mean {mean:.3f}, worst {min(ratios):.3f}")
        for name, case in each["cases"].items():
            lines += [f"{name}: {who}: {why}"[:240] for who, why in case["errors"].items()]
    lines += [f"FAILED {each['label']}: {each['error']}" for each in record["checks"] if not each["ok"]]
    return "\n".join(lines)


def main() -> int:
    """Run what the command line asks for; exit status 1 where a check failed or a function did not finish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", default=",".join(FUNCTIONS), help="some of them, with commas")
    parser.add_argument("--only", default="", help="only problems with this in their names, such as 'backward'")
    parser.add_argument("--budget", type=float, default=300.0, help="seconds for everything")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="that compile ahead; 0: none does")
    parser.add_argument("--dry", action="store_true", help="no GPU: three small rows, made-up times")
    parser.add_argument("--out", type=Path, help="folder for the figures, as JSON")
    parser.add_argument("--family", help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--share", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    names = args.functions.split(",")
    if unknown := [name for name in names if name not in FUNCTIONS]:
        parser.error(f"unknown functions {', '.join(unknown)}, expected some of {', '.join(FUNCTIONS)}")
    if args.family or args.share is not None:
        os._exit(child(args))  # a process with a faulted GPU context may not come to its end by itself
    if not args.dry:
        measure.need_hopper(parser.prog)
    # Else each process that compiles would start as many compilers as there are cores.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    started = time.monotonic()
    deadline = started + args.budget
    if args.processes and not args.dry:
        prepare(args.functions, args.processes, PREPARATION * args.budget)
        print(f"compiled ahead in {time.monotonic() - started:.0f} s", flush=True)
    folder = args.out or Path(tempfile.mkdtemp(prefix="gpu-lengths-"))
    folder.mkdir(parents=True, exist_ok=True)
    records: list[dict[str, Any]] = []
    for name in names:
        path = folder / f"lengths-{name}.part.json"
        path.unlink(missing_ok=True)
        options = [f"--only={args.only}", *(["--dry"] if args.dry else [])]
        until = min(deadline, time.monotonic() + FUNCTION_LIMIT_S)
        records.append(supervise(name, path, options, until, program=__file__))
        path.unlink(missing_ok=True)
        print(f"{table(records[-1])}\n-- {time.monotonic() - started:.0f} s", flush=True)
        families = [each for record in records for each in split(record) if each["cases"]]
        figures = {"date": datetime.date.today().isoformat(), "families": families}
        # After each function: what comes later can't lose it.
        (folder / "lengths.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(f"figures in {folder / 'lengths.json'}", flush=True)
    return 1 if failures(records) else 0


if __name__ == "__main__":
    sys.exit(main())
