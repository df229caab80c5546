"""Measure the problems of the clock on a GPU: microseconds, the clock in hertz, PTX and arguments of each launch.

    python benchmarks/clock/measure.py --out DIR [--seconds 330] [--compile-seconds 130] [--processes 14]
    python benchmarks/clock/measure.py --out DIR --dry [--only NAME] [--most 1]     (needs no GPU: all but the launch)

All configurations are compiled ahead. A problem's configurations take turns, in rounds of bursts after a pause; each
launch finds the L2 cache full of another array that was only read, so that nothing has to be written back. After each
burst a kernel of one CTA counts cycles against `%globaltimer`: the clock at that time. The clock while a launch runs is
noted in more launches (`beside.py`). A process that hangs or dies costs the problem it was at.

Written are `durations.json` (all launches with their arguments and times), `durations-h200.json` and the like (times
alone), `ptx.json.xz` (PTX by key) and `cubins.json.xz` (cubins in base64 by key).
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import itertools
import json
import lzma
import math
import os
import pickle
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.clock import compiled
from benchmarks.clock.arrays import OnGpu, Untouched
from benchmarks.clock.describe import described_arguments
from benchmarks.clock.problems import MULTIPROCESSORS, Problem, Work, problems
from benchmarks.clock.ptx_kernels import is_broken

FLUSH_BYTES = 768 << 20
IDLE_S = 0.04
BURST = 5
ROUNDS = 4
PROFILED = 3
"""Launches of a configuration that the profiler sees."""
STALL_S = 40.0
FORMAT = 1


def on_large_gpu() -> None:
    """Make launches for arrays of the CPU as for a GPU with all of its multiprocessors: to compile them ahead."""
    from tlx_xdsl.kernels.calls import launching

    launching.INTERPRETED_PROGRAMS = MULTIPROCESSORS


def selected(only: str) -> list[Problem]:
    """The problems with some text in their names."""
    return [each for each in problems() if only in each.name]


def works(problem: Problem, arrays: Any, most: int = 99) -> Iterator[tuple[str, Work | str]]:
    """The configurations of a problem, or why one can't be made."""
    for name, make in list(problem.make(arrays).items())[:most]:
        try:
            yield name, make()
        except Exception as error:  # the others are not lost
            yield name, f"{type(error).__name__}: {error}"[:300]


# --- compile ahead ----------------------------------------------------------------------------------------------------


def compile_share(folder: Path, only: str, most: int, share: int, shares: int) -> None:
    """Compile what has this process's turn."""
    on_large_gpu()
    keys: dict[str, Work] = {}
    for problem in selected(only):
        for _, work in works(problem, Untouched(), most):
            if isinstance(work, Work):
                for each in (work, *(Work(launch) for launch in work.before)):
                    keys.setdefault(each.key, each)
    for at, work in enumerate(keys.values()):
        if at % shares == share:
            compiled.stored(folder, work)


def compile_all(folder: Path, only: str, most: int, processes: int, seconds: float) -> None:
    """Compile everything in so many processes, for a limited time."""
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    command = [sys.executable, __file__, "--cache", str(folder), f"--only={only}", f"--most={most}"]
    running = [
        subprocess.Popen([*command, "--share", str(share), "--processes", str(processes)]) for share in range(processes)
    ]
    for each in running:
        try:
            each.wait(timeout=max(0.1, began + seconds - time.monotonic()))
        except subprocess.TimeoutExpired:
            each.kill()
    print(f"compiled {len(list(folder.glob('*.pickle')))} kernels in {time.monotonic() - began:.0f} s", flush=True)


# --- time -------------------------------------------------------------------------------------------------------------


class Bench:
    """Times launches on the current GPU."""

    def __init__(self) -> None:
        import torch

        from benchmarks.clock.spin import Spin

        self.torch = torch
        self.flush = torch.ones(FLUSH_BYTES // 4, dtype=torch.float32, device="cuda")
        self.sink = torch.empty((), dtype=torch.float32, device="cuda")
        self.spin = Spin(torch)

    def empty_cache(self) -> None:
        """Fill the L2 cache with what was only read."""
        self.torch.sum(self.flush, dim=0, out=self.sink)

    def burst(self, launch: Any, before: Sequence[Any], count: int = BURST) -> tuple[list[float], float]:
        """Return the microseconds of each launch, and the clock in hertz right after."""
        torch, spans = self.torch, []
        for _ in range(count):
            for each in before:
                each()
            self.empty_cache()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            launch()
            end.record()
            spans.append((start, end))
        self.spin.launch()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e3 for start, end in spans], self.spin.hertz()


def first_launch(torch: Any, launch: Any, seconds: float = 4.0) -> None:
    """Launch a kernel for the first time; end the process if it hangs."""
    done = torch.cuda.Event()
    launch()
    done.record()
    deadline = time.monotonic() + seconds
    while not done.query():
        if time.monotonic() > deadline:
            compiled.said("a kernel hung")
            os._exit(3)
        time.sleep(0.0005)


def record_of(problem: Problem, name: str, work: Work | str, cache: Path) -> dict[str, Any]:
    """Describe a configuration before it is timed."""
    said: dict[str, Any] = {
        "problem": problem.name, "family": problem.family, "shape": problem.shape, "held_out": problem.held_out,
        "config": name,
    }  # fmt: skip
    if isinstance(work, str):
        return {**said, "error": work}
    found = compiled.stored(cache, work)
    if "error" in found:
        return {**said, "error": found["error"]}
    metadata, resources, launch = found["metadata"], found["resources"], work.launch
    return {
        **said, "kernel": metadata.name, "key": work.key, "grid": list(launch.grid),
        "cluster": list(metadata.cluster or launch.cluster), "num_warps": metadata.num_warps, "shared": metadata.shared,
        "static_shared": resources.static_shared_bytes, "scratch": metadata.global_scratch_size,
        "registers": resources.registers, "spills": resources.spill_store_bytes + resources.spill_load_bytes,
        "assembler": found["assembler"], "triton": found["triton"],
        "arguments": described_arguments(work, metadata.tensordesc_meta),
    }  # fmt: skip


def bound(work: Work, cache: Path, torch: Any) -> Any:
    """A launch with its arguments."""
    stream = torch.cuda.current_stream().cuda_stream
    launch = compiled.launcher(work, compiled.stored(cache, work))
    return launch.bind(work.launch.grid, *work.launch.arguments.values(), stream=stream)


def measure_problem(problem: Problem, bench: Bench, cache: Path, rounds: int) -> list[dict[str, Any]]:
    """Time the configurations of a problem in turns."""
    torch = bench.torch
    records, ready = [], []
    for name, work in works(problem, OnGpu()):
        record = record_of(problem, name, work, cache)
        records.append(record)
        if "error" in record:
            continue
        assert isinstance(work, Work)
        try:
            launch = bound(work, cache, torch)
            before = [bound(Work(each), cache, torch) for each in work.before]
        except Exception as error:  # the others are not lost
            record["error"] = f"{type(error).__name__}: {error}"[:300]
            continue
        compiled.said(f"  {problem.name}: {name}")
        for each in before:
            each()
        first_launch(torch, launch)
        if work.out is not None and work.reference is not None:
            expected = work.reference()
            error = float((work.out.double() - expected.double()).norm() / expected.double().norm())
            record["relative_error"] = error if math.isfinite(error) else "not finite"
            work.out.fill_(float("nan"))
        record["microseconds"], record["hertz"] = [], []
        ready.append((record, launch, before))
    for _ in range(rounds):
        for record, launch, before in ready:
            time.sleep(IDLE_S)
            times, hertz = bench.burst(launch, before)
            record["microseconds"].append([round(each, 3) for each in times])
            record["hertz"].append(round(hertz))
    return records


def profile_problem(problem: Problem, bench: Bench, cache: Path) -> list[dict[str, Any]]:
    """Ask the profiler for the durations of the kernels alone, without what a launch takes around them."""
    from torch.profiler import ProfilerActivity, profile

    torch = bench.torch
    ready, clocks = [], []
    for name, work in works(problem, OnGpu()):
        if isinstance(work, str) or "error" in (found := compiled.stored(cache, work)):
            continue
        before = [bound(Work(each), cache, torch) for each in work.before]
        ready.append((name, found["metadata"].name, bound(work, cache, torch), before))
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _, _, launch, before in ready:
            time.sleep(IDLE_S)
            for _ in range(PROFILED):
                for each in before:
                    each()
                bench.empty_cache()
                launch()
            bench.spin.launch()
            torch.cuda.synchronize()
            clocks.append(bench.spin.hertz())
    kernels = {kernel for _, kernel, _, _ in ready}
    spans = sorted((each.time_range for each in seen.events() if each.name in kernels), key=lambda each: each.start)
    if len(spans) != PROFILED * len(ready):
        raise RuntimeError(f"the profiler saw {len(spans)} launches of {PROFILED * len(ready)}")
    return [
        {
            "problem": problem.name, "config": name, "profiled_hertz": round(clocks[at]),
            "profiled": [round(each.elapsed_us(), 3) for each in spans[PROFILED * at : PROFILED * (at + 1)]],
        }
        for at, (name, *_) in enumerate(ready)
    ]  # fmt: skip


def clock_problem(
    problem: Problem, bench: Bench, cache: Path, known: dict[tuple[str, str], float]
) -> list[dict[str, Any]]:
    """Note the clock while the configurations run; `known` has their microseconds."""
    from benchmarks.clock.beside import Beside

    beside = Beside(bench.torch, PROFILED)
    found = []
    for name, work in works(problem, OnGpu()):
        if (problem.name, name) not in known or isinstance(work, str):
            continue
        before = [bound(Work(each), cache, bench.torch) for each in work.before]
        launch = bound(work, cache, bench.torch)
        for each in (*before, launch):
            each()
        time.sleep(IDLE_S)
        beside.begin()
        for at in range(PROFILED):
            for each in before:
                each()
            bench.empty_cache()
            beside.stamp(at)
            launch()
        beside.end()
        hertz = beside.hertz(known[problem.name, name] * 1e3)
        found.append({"problem": problem.name, "config": name, "running_hertz": [round(each) for each in hertz]})
    return found


def child(args: argparse.Namespace) -> int:
    """Measure problems from a number on, a line of JSON for each."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    bench = Bench()
    end = time.monotonic() + args.seconds
    with args.lines.open("a", encoding="utf-8") as out:
        for at, problem in enumerate(selected(args.only)):
            if at < args.start:
                continue
            if time.monotonic() > end:
                return 0
            out.write(json.dumps({"begins": at}) + "\n")
            out.flush()
            try:
                if args.profiled:
                    found = profile_problem(problem, bench, args.cache)
                elif args.clocked:
                    found = clock_problem(problem, bench, args.cache, microseconds(args.clocked))
                else:
                    found = measure_problem(problem, bench, args.cache, args.rounds)
            except Exception as error:  # a fault of the GPU ends the process, which the parent starts again
                compiled.said(f"{problem.name}: {type(error).__name__}: {error}"[:300])
                if is_broken(torch):
                    return 4
                found = []
            out.write(json.dumps({"at": at, "records": found}) + "\n")
            out.flush()
            torch.cuda.empty_cache()
    return 0


def supervise(args: argparse.Namespace, seconds: float, *more: str) -> list[dict[str, Any]]:
    """Run children until all problems are done or the time is over; return what they have written."""
    lines: Path = args.lines
    lines.unlink(missing_ok=True)
    deadline = time.monotonic() + seconds
    start, count = 0, len(selected(args.only))
    while start < count and time.monotonic() < deadline - 10:
        left = deadline - time.monotonic()
        command = [
            sys.executable,
            __file__,
            "--child",
            "--cache",
            str(args.cache),
            "--lines",
            str(lines),
            f"--only={args.only}",
            f"--start={start}",
            f"--seconds={left - 4}",
            f"--rounds={args.rounds}",
            *more,
        ]
        process = subprocess.Popen(command)
        last, size = time.monotonic(), -1
        while process.poll() is None:
            time.sleep(0.2)
            now = lines.stat().st_size if lines.exists() else 0
            if now != size:
                last, size = time.monotonic(), now
            if time.monotonic() - last > STALL_S or time.monotonic() > deadline + 5:
                process.kill()
                process.wait()
        begun = [each["begins"] for each in read_lines(lines) if "begins" in each]
        if process.returncode == 0:
            break
        start = (begun[-1] + 1) if begun else count
        compiled.said(f"a child ended with {process.returncode}; on with problem {start} of {count}")
    found = [record for each in read_lines(lines) for record in each.get("records", [])]
    lines.unlink(missing_ok=True)
    return found


def microseconds(path: Path) -> dict[tuple[str, str], float]:
    """The durations that were written before, by problem and configuration."""
    records = json.loads(path.read_text(encoding="utf-8"))["records"]
    return {
        (each["problem"], each["config"]): statistics.median(
            each.get("profiled") or itertools.chain(*each["microseconds"])
        )
        for each in records
        if each.get("microseconds")
    }


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of JSON of a file."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(json.JSONDecodeError):  # a line that was cut off
            found.append(json.loads(line))
    return found


# --- write ------------------------------------------------------------------------------------------------------------


def facts() -> dict[str, Any]:
    """The card, the driver and the date."""
    try:
        import torch

        if not torch.cuda.is_available():
            return {"date": time.strftime("%Y-%m-%d")}
        query = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm", "--format=csv,noheader"]
        said = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
        return {"date": time.strftime("%Y-%m-%d"), "card": torch.cuda.get_device_name(), "nvidia-smi": said}
    except ImportError:
        return {"date": time.strftime("%Y-%m-%d")}


def write_durations(out: Path, records: list[dict[str, Any]], more: dict[str, Any]) -> None:
    """Write what was measured, with the arguments."""
    out.mkdir(parents=True, exist_ok=True)
    document = {"format": FORMAT, **facts(), **more, "records": records}
    (out / "durations.json").write_text(json.dumps(document), encoding="utf-8")


KEPT = ("problem", "family", "held_out", "config", "profiled", "profiled_hertz", "running_hertz")


def compact(document: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the measurements, without what was launched: of launches from event to event the median of each round."""
    rows = [
        {key: each[key] for key in KEPT if key in each}
        | {"microseconds": [[statistics.median(burst)] for burst in each["microseconds"]], "hertz": each["hertz"]}
        for each in document["records"]
        if each.get("microseconds")
    ]
    return {key: value for key, value in document.items() if key != "records"} | {"records": rows}


def write_compact(out: Path) -> None:
    """Write what is to be kept of `durations.json`, a line for each configuration."""
    document = compact(json.loads((out / "durations.json").read_text(encoding="utf-8")))
    card = "".join(re.findall(r"[a-z]+\d+", document.get("card", "").lower())[:1]) or "gpu"
    rows = ",\n".join(json.dumps(each) for each in document.pop("records"))
    head = json.dumps(document).removesuffix("}")
    (out / f"durations-{card}.json").write_text(f'{head}, "records": [\n{rows}\n]}}\n', encoding="utf-8")


def write_code(out: Path, cache: Path, records: list[dict[str, Any]]) -> None:
    """Write PTX and cubins."""
    keys = list(dict.fromkeys(each["key"] for each in records if "key" in each))
    held = {key: pickle.loads((cache / f"{key}.pickle").read_bytes()) for key in keys}
    ptx = {key: each["ptx"] for key, each in held.items()}
    cubins = {key: base64.b64encode(each["cubin"]).decode() for key, each in held.items()}
    for name, content in (("ptx", ptx), ("cubins", cubins)):
        began = time.monotonic()
        data = lzma.compress(json.dumps(content).encode(), preset=4)
        (out / f"{name}.json.xz").write_bytes(data)
        print(f"{name}: {len(content)} in {len(data) / 2**20:.2f} MiB, {time.monotonic() - began:.1f} s", flush=True)


def summary(records: list[dict[str, Any]]) -> None:
    """Print a line for each problem, and what failed."""
    by_problem: dict[str, list[dict[str, Any]]] = {}
    for each in records:
        by_problem.setdefault(each["problem"], []).append(each)
    for name, found in by_problem.items():
        times = [
            statistics.median(itertools.chain(*each["microseconds"])) for each in found if each.get("microseconds")
        ]
        wrong = [
            f"{each['config']}: {each['relative_error']}"
            for each in found
            if "relative_error" in each
            and not (isinstance(each["relative_error"], float) and each["relative_error"] < 0.02)
        ]
        failed = [f"{each['config']}: {each['error'][:90]}" for each in found if "error" in each]
        shown = " ".join(f"{each:.1f}" for each in times)
        print(f"{'held' if found[0]['held_out'] else 'train'} {name}: {shown}{' WRONG ' + str(wrong) if wrong else ''}")
        for each in failed:
            print(f"    {each}".replace("\n", " "))


def main() -> int:
    """Compile, measure, write; or be one of the processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--cache", type=Path, default=Path("/tmp/clock-cache"))
    parser.add_argument("--seconds", type=float, default=330.0, help="for measuring")
    parser.add_argument("--profile-seconds", type=float, default=70.0, help="for the profiler's durations; 0 for none")
    parser.add_argument("--clock-seconds", type=float, default=70.0, help="for the clock beside launches; 0 for none")
    parser.add_argument("--compile-seconds", type=float, default=130.0)
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", default="", help="only problems with this in their names")
    parser.add_argument("--most", type=int, default=99, help="configurations of a problem, in a dry run")
    parser.add_argument("--dry", action="store_true", help="no GPU: all but the launches")
    parser.add_argument("--list", action="store_true", help="print the problems")
    for name in ("--share", "--start"):
        parser.add_argument(name, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--profiled", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--clocked", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--lines", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.list:
        on_large_gpu()
        for each in selected(args.only):
            made = list(works(each, Untouched()))
            bad = [f"{name}: {work}" for name, work in made if isinstance(work, str)]
            print("held" if each.held_out else "train", each.name, len(made), *bad)
        return 0
    if args.share is not None:
        compile_share(args.cache, args.only, args.most, args.share, args.processes)
        return 0
    if args.child:
        sys.stdout.flush()
        os._exit(child(args))  # a process with a faulted GPU context may not come to its end by itself
    compile_all(args.cache, args.only, args.most, args.processes, args.compile_seconds)
    if args.dry:
        on_large_gpu()
        records = [
            record_of(each, name, work, args.cache)
            for each in selected(args.only)
            for name, work in works(each, Untouched(), args.most)
        ]
        write_durations(args.out, records, {"dry": True})
        write_code(args.out, args.cache, records)
        summary(records)
        return 0
    args.lines = args.out / "lines.jsonl"
    args.out.mkdir(parents=True, exist_ok=True)
    records = supervise(args, args.seconds)
    said = {"flush": FLUSH_BYTES, "burst": BURST, "idle_s": IDLE_S}
    write_durations(args.out, records, said)
    write_code(args.out, args.cache, records)
    by_name = {(each["problem"], each["config"]): each for each in records}
    for each in supervise(args, args.profile_seconds, "--profiled") if args.profile_seconds else ():
        by_name.get((each["problem"], each["config"]), {}).update(each)
    write_durations(args.out, records, said)
    before = f"--clocked={args.out / 'durations.json'}"
    for each in supervise(args, args.clock_seconds, before) if args.clock_seconds else ():
        by_name.get((each["problem"], each["config"]), {}).update(each)
    write_durations(args.out, records, said)
    write_compact(args.out)
    summary(records)
    return 0


if __name__ == "__main__":
    sys.exit(main())
