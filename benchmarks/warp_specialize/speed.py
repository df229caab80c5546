"""Specialised kernels beside stock Triton's and those written by hand, on a Hopper GPU: values first, then times.

    python benchmarks/warp_specialize/prepare.py --out DIR --pack FILE           (before, where no GPU is needed)
    python benchmarks/warp_specialize/speed.py --prepared FILE --out RESULTS [--families attention,gated] [--only 4096]
    python benchmarks/warp_specialize/speed.py --dry                             (no GPU: small problems, made-up times)
    python benchmarks/warp_specialize/speed.py --render RESULTS                  (the table of an earlier run)

A launch's candidates are checked against a reference in float32, with outputs that were NaN and sentinels beside all
arrays, and timed once; then the fastest of each kind take turns, cool (`benchmarks/gpu/measure.py`). Ours is tuned
over decisions as stock is over its configurations; `ours by rule` is what the compiler decides by itself. Each family
runs in a process of its own, which another one continues where a kernel hangs or faults.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gpu.kernels import supervise
from benchmarks.warp_specialize import candidates, compiled
from benchmarks.warp_specialize.candidates import HAND, OURS, RULE, STOCK, STOCK_WS, Candidate
from benchmarks.warp_specialize.prepare import unpacked
from tests.gallery.plain.families import FAMILIES
from tests.gallery.plain.family import Family, Problem, Shape

KINDS = (STOCK, STOCK_WS, OURS, RULE, HAND)
WANTED: Mapping[str, float] = {
    "attention": 1.35, "attention_two_loops": 1.35, "gated": 1.15, "matmul_gelu": 1.15, "delta_state": 1.3,
    "delta_output": 1.3,
}  # fmt: skip
"""The speed over stock Triton's that a family should have in the mean; 1 for others."""
OF_HAND: Mapping[str, float] = {"attention": 0.92, "attention_two_loops": 0.92, "gated": 0.93}
"""The speed as a part of that of the kernel by hand; 0.95 for products."""
SCREENED = 5
"""Launches of a candidate in the first comparison."""


@dataclass
class Entry:
    """A candidate whose values are right, with the time of the first comparison in ms."""

    label: str
    launch: Callable[[], Any]
    ms: float


class Gpu:
    """Launches on the GPU of this process, and times."""

    def __init__(self, folder: Path, rounds: int):
        import torch

        from benchmarks.gpu import run
        from benchmarks.warp_specialize.arrays import TorchArrays

        torch.backends.cuda.matmul.allow_tf32 = False
        self.torch, self.folder = torch, folder
        self.timer = run.GpuTimer(rounds, hot_rounds=0)
        self.arrays = TorchArrays()
        self.machine = run.machine()
        self.programs = torch.cuda.get_device_properties(0).multi_processor_count
        self.package, self.others = compiled.package_fingerprint(), set[str]()
        self.flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
        self._expected: Any = None

    def begin(self, family: Family, shape: Shape) -> Problem:
        """Make the arrays and the reference of a launch."""
        from benchmarks.warp_specialize.arrays import TorchArrays, expected

        self.arrays = self._expected = None
        self.torch.cuda.empty_cache()
        self.arrays = TorchArrays()
        problem = family.problem(shape, self.arrays)
        self._expected = expected(problem)
        return problem

    def bound(self, each: Candidate) -> Any:
        """The launch of a candidate on the arrays, or why there is none, and the problem that it solves."""
        problem = each.problem(self.arrays.again())
        job = compiled.job_of(each, problem)
        found = self._read(job)
        if isinstance(found, str):
            return found, problem
        if "refused" in found and each.who != STOCK:
            return f"refused: {found['refused']}", problem
        stream = self.torch.cuda.current_stream().cuda_stream
        return compiled.bound(found, problem, each.constexprs, stream, self.programs), problem

    def by_hand(self, family: Family, shape: Shape) -> Any:
        """The launch of the kernel that was written by hand, or why there is none, and its problem."""
        from benchmarks.gemm.common import each_launch

        problem = family.problem(shape, self.arrays.again())
        made = candidates.by_hand(family, shape, self.arrays.again())
        if made is None:
            return "there is none", problem
        launches: list[Any] = []
        for part in each_launch(made[0]):
            found = self._read(compiled.job_by_hand(part, family.name))
            if isinstance(found, str):
                return found, problem
            stream = self.torch.cuda.current_stream().cuda_stream
            launches.append(compiled.launcher(found).bind(part.grid, *part.arguments.values(), stream=stream))
        problem.outputs = tuple(made[2])
        # What the launches refer to lives as long as they do.
        kept = made

        def run() -> None:
            for each in launches:
                each()
            assert kept

        return run, problem

    def _read(self, job: compiled.Job) -> Any:
        path = compiled.path_of(self.folder, job)
        if not path.exists():
            return "not prepared"
        found = compiled.read(path)
        if not found["package"].startswith(self.package) and job.who not in (STOCK, STOCK_WS):
            self.others.add(found["package"])
            self.machine["prepared by another package"] = sorted(self.others)
        return found.get("error", found)

    def wrong(self, problem: Problem, family: Family) -> str:
        """How what was written differs from the reference; empty where it does not."""
        from benchmarks.warp_specialize.arrays import error_of

        if self.arrays.written_beside():
            return "written beside an array"
        wanted = {name: self._expected[name] for name in problem.outputs}
        return error_of(problem, wanted, family.tolerance)

    def poison(self, problem: Problem) -> None:
        """Fill the outputs with NaN."""
        for name in problem.outputs:
            problem.arrays[name].fill_(float("nan"))

    def first(self, launch: Any, label: str) -> None:
        """Launch for the first time; a kernel that hangs ends the process."""
        self.timer.first(launch, label)

    def quick(self, launch: Any) -> float:
        """The median of some launches in ms, each with a cold L2 cache."""
        spans: list[tuple[Any, Any]] = []
        for _ in range(SCREENED):
            begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.flush.zero_()
            begin.record()
            launch()
            end.record()
            spans.append((begin, end))
        self.torch.cuda.synchronize()
        return median(begin.elapsed_time(end) for begin, end in spans)

    def cool(self, launches: Mapping[str, Any]) -> dict[str, Any]:
        """Times in ms of all in turns, and clocks."""
        return self.timer.cool(launches)


class Dry:
    """The same without a GPU: small problems in the interpreter, and times that are made up."""

    def __init__(self, _folder: Path, rounds: int):
        self.rounds = rounds
        self.machine = {"device": "no GPU: times are made up"}

    def begin(self, family: Family, shape: Shape) -> Problem:
        from tests.gallery.plain.numpy_arrays import NumpyArrays

        return family.problem(shape, NumpyArrays())

    def bound(self, each: Candidate) -> Any:
        from tests.gallery.plain.numpy_arrays import NumpyArrays
        from tlx_xdsl.runtime.specialize.specialized import warp_specialized
        from tlx_xdsl.transforms.warp_specialize.specialize import Decisions

        problem = each.problem(NumpyArrays())
        kernel, warps = each.family.kernel, {"num_warps": each.options["num_warps"], "jobs": 1}
        if each.who in (STOCK, STOCK_WS):
            named = {**problem.arguments, **each.constexprs}
            return lambda: kernel.interpret(problem.grid, **named, **warps), problem
        types, constants = compiled.signature_of(kernel, problem, each.constexprs)
        found = warp_specialized(kernel, types, constants, Decisions(**each.decisions), num_warps=warps["num_warps"])
        if found.refused:
            return f"refused: {found.refused.message}", problem
        fitted = found.arguments(problem.grid, **problem.arguments, **each.constexprs)
        if fitted is None:
            return "the launch does not fit", problem
        grid, values = fitted
        return lambda: found.kernel.interpret(grid, *values, num_warps=found.options["num_warps"], jobs=1), problem

    def by_hand(self, family: Family, shape: Shape) -> Any:
        return "not in dry runs", None

    def wrong(self, problem: Problem, family: Family) -> str:
        from tests.gallery.plain.numpy_arrays import check, expected

        try:
            check(problem, expected(problem), family.tolerance)
        except AssertionError as error:
            return str(error)
        return ""

    def poison(self, problem: Problem) -> None:
        for name in problem.outputs:
            problem.arrays[name].fill(float("nan"))

    def first(self, launch: Any, label: str) -> None:
        launch()

    def quick(self, launch: Any) -> float:
        return 1.0

    def cool(self, launches: Mapping[str, Any]) -> dict[str, Any]:
        return {"times": {name: [1.0] * self.rounds for name in launches}, "clocks": [1980]}


@dataclass
class Record:
    """What is known of a family, in a file, after every step."""

    path: Path
    data: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self.data = {
            "family": self.path.stem,
            "checks": [],
            "checked": True,
            "cases": {},
            "skipped": {},
            "running": None,
        }
        if self.path.exists():
            self.data = json.loads(self.path.read_text(encoding="utf-8"))

    def write(self, **changes: Any) -> None:
        """Change entries, and write all to the file at once."""
        self.data.update(changes)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.data, indent=1, default=str), encoding="utf-8")
        part.replace(self.path)


def named(shape: Shape) -> str:
    """The name of a launch."""
    return " ".join(
        f"{name}={'x'.join(map(str, value)) if isinstance(value, tuple) else value}" for name, value in shape.items()
    )


def run_family(family: Family, machine: Any, record: Record, only: str, most: int) -> None:
    """Compare all candidates of each large launch, then the best of each kind."""
    record.write(machine=machine.machine, wanted=WANTED.get(family.name, 1.0), checked=True)
    dry = isinstance(machine, Dry)
    for shape in family.shapes[:2] if dry else family.large:
        name = named(shape)
        if name in record.data["cases"] or only not in name:
            continue
        found = _screened(family, shape, name, machine, record, most)
        best = {kind: min(entries, key=lambda each: each.ms) for kind, entries in found["entries"].items() if entries}
        record.write(running=f"{name}: timing")
        timed = machine.cool({kind: each.launch for kind, each in best.items()})
        case = {
            "operations": found["operations"], "screen": found["screen"], "errors": found["errors"],
            "best": {kind: each.label for kind, each in best.items()}, "cool": timed,
        }  # fmt: skip
        record.write(cases={**record.data["cases"], name: case}, machine=machine.machine, running=None)
    record.write(finished=True, running=None)


def _screened(family: Family, shape: Shape, name: str, machine: Any, record: Record, most: int) -> dict[str, Any]:
    record.write(running=f"{name}: inputs")
    problem = machine.begin(family, shape)
    entries: dict[str, list[Entry]] = {kind: [] for kind in KINDS}
    screen: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
    errors: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    makers: list[tuple[str, str, Callable[[], Any]]] = []
    for maker in (candidates.stock, candidates.stock_warp_specialized, candidates.ours):
        listed = list(maker(family, shape))[: most or None]
        makers += [(each.who, each.label, lambda each=each: machine.bound(each)) for each in listed]
    makers.append((HAND, "hand", lambda: machine.by_hand(family, shape)))
    for kind, label, make in makers:
        running = f"{name}: {kind}: {label}"
        if running in record.data["skipped"]:
            errors[kind][label] = record.data["skipped"][running]
            continue
        record.write(running=running)
        why, ms, launch = _tried(make, machine, family, running)
        if why:
            errors[kind][label] = why
        else:
            screen[kind][label] = ms
            entries[kind].append(Entry(label, launch, ms))
    # What the compiler decides by itself is one of what can be tuned.
    entries[OURS] += entries[RULE]
    return {"operations": problem.operations, "entries": entries, "screen": screen, "errors": errors}


def _tried(make: Callable[[], Any], machine: Any, family: Family, running: str) -> tuple[str, float, Any]:
    """What is wrong with a candidate, the median of some launches in ms, and its launch."""
    try:
        launch, solved = make()
        if isinstance(launch, str):
            return launch, 0.0, None
        machine.poison(solved)
        machine.first(launch, running)
        if wrong := machine.wrong(solved, family):
            print(f"WRONG {running}: {wrong}", flush=True)
            return f"wrong: {wrong}", 0.0, None
        return "", machine.quick(launch), launch
    except Exception as error:  # the others are not lost
        usable = getattr(getattr(machine, "timer", None), "usable", None)
        if usable is not None and not usable():
            # Another process goes on after what was running.
            print(f"FAULT {running}: {error}", file=sys.stderr, flush=True)
            raise SystemExit(4) from error
        return f"{type(error).__name__}: {error}"[:300], 0.0, None


# --- the table --------------------------------------------------------------------------------------------------------


def table(record: Mapping[str, Any]) -> str:
    """TFLOP/s of the best of each kind, ours as a part of the others, and what failed."""
    lines = [f"{record['family']} on {record.get('machine', {}).get('device', '?')}"]
    if others := record.get("machine", {}).get("prepared by another package"):
        lines.append(f"  NOT of this package: binaries are of {', '.join(others)}")
    over_stock: list[float] = []
    for name, case in record["cases"].items():
        ms = {kind: median(times) for kind, times in case["cool"]["times"].items()}
        rates = "  ".join(f"{kind} {case['operations'] / each * 1e-9:.0f}" for kind, each in ms.items())
        stock = min((ms[kind] for kind in (STOCK, STOCK_WS) if kind in ms), default=None)
        ratios = ""
        if OURS in ms and stock is not None:
            over_stock.append(stock / ms[OURS])
            ratios = f"over stock {stock / ms[OURS]:.3f}"
            ratios += f", by rule {stock / ms[RULE]:.3f}" if RULE in ms else ""
            ratios += f", of hand {ms[HAND] / ms[OURS]:.3f}" if HAND in ms else ""
        lines.append(f"  {name}: {ratios}")
        lines.append(f"      TFLOP/s: {rates}")
        lines.append("      " + "; ".join(f"{kind}: {label}" for kind, label in case["best"].items()))
        for kind, errors in case["errors"].items():
            whys: dict[str, int] = {}
            for why in errors.values():
                whys[why.splitlines()[0][:110]] = whys.get(why.splitlines()[0][:110], 0) + 1
            lines += [f"      {count} {kind}: {why}" for why, count in whys.items()]
    if over_stock:
        mean = exp(sum(map(log, over_stock)) / len(over_stock))
        lines.append(f"  mean over stock {mean:.3f}, wanted {record.get('wanted', 1.0)}; worst {min(over_stock):.3f}")
    lines += [f"  stopped at {where}: {why}" for where, why in record["skipped"].items()]
    if not record.get("finished"):
        lines.append(f"  not finished, was at {record['running']}")
    return "\n".join(lines)


def main() -> int:
    """Run families, each in a process of its own, and print a table of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prepared", type=Path, help="what prepare.py has packed, or its folder")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--only", default="", help="only launches with this in their names")
    parser.add_argument("--most", type=int, default=0, help="candidates of each kind, the first ones; 0 for all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget", type=float, default=540.0, help="seconds for everything")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds for one family")
    parser.add_argument("--out", type=Path, help="folder for the figures, as JSON")
    parser.add_argument("--dry", action="store_true", help="no GPU")
    parser.add_argument("--render", type=Path, metavar="FOLDER", help="print the tables of an earlier run")
    parser.add_argument("--family", help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.render:
        for path in sorted(args.render.glob("*.json")):
            print(table(json.loads(path.read_text(encoding="utf-8"))))
        return 0
    if args.prepared is None and not args.dry:
        parser.error("--prepared: expected what prepare.py has made, or --dry")
    folder = Path() if args.dry else unpacked(args.prepared)
    if args.family:
        machine = (Dry if args.dry else Gpu)(folder, args.rounds)
        run_family(FAMILIES[args.family], machine, Record(args.result), args.only, args.most)
        return 0
    out = Path(tempfile.mkdtemp(prefix="speed-")) if args.out is None else args.out
    out.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + args.budget
    shared = [f"--rounds={args.rounds}", f"--only={args.only}", f"--most={args.most}"]
    shared += ["--dry"] if args.dry else [f"--prepared={folder}"]
    for name in args.families.split(","):
        limit = min(deadline, time.monotonic() + args.limit)
        record = supervise(name, out / f"{name}.json", shared, limit, program=__file__)
        print(table(record), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
