"""Run stock Triton's own Python tests with stock's compiler or interpreter, or with ours, one record for each case.

    python -m tests.conformance.stock_python SUITE_ROOT --implementation ours --per-function 8 --json ours.json

SUITE_ROOT is a checkout of Triton's repository. Cases run in child processes. A case that ends its process, or takes
longer than its time, is a record, too, and the others go on. Each record is written at once, into the folder beside
`--json` that ends in `.records`, so a run that is stopped continues where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FILES = (
    "language/test_core.py",
    "language/test_standard.py",
    "language/test_random.py",
    "language/test_conversions.py",
    "language/test_tensor_descriptor.py",
    "language/test_block_pointer.py",
    "language/test_tuple.py",
    "language/test_frontend.py",
    "language/test_compile_errors.py",
    "language/test_mxfp.py",
    "language/test_annotations.py",
    "language/test_decorator.py",
    "language/test_libdevice.py",
    "language/test_line_info.py",
    "language/test_subprocess.py",
    "language/test_reproducer.py",
    "language/test_pipeliner.py",
    "language/test_compile_only.py",
    "language/test_codegen_binop.py",
    "language/test_multi_cta_reduction.py",
    "runtime/test_interpreter.py",
    "cuda/test_libdevice_cuda.py",
    "test_debug.py",
)
"""The tests of the language, below `python/test/unit`; not those of the fork's own passes, knobs and tools."""

_REPOSITORY = Path(__file__).resolve().parents[2]

_CASES_OF_A_CHILD = 400
"""A child is replaced after so many cases: tests leave compiled kernels and tensors."""

_GRACE = 20.0
"""Seconds that a case may take beyond its time, in which the child itself ends it."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """The conditions of a run: what the plugin in the children needs to know."""

    implementation: str
    """`stock` or `ours`."""
    mode: str
    """`interpret` or `native` (both on the CPU), or `jit` (on a GPU)."""
    target: str
    timeout: float
    """Seconds for a case."""


@dataclass(frozen=True)
class Suite:
    """The tests of a checkout of Triton's repository."""

    root: Path

    def command(self, device: str, files: Iterable[str], *more: str) -> list[str]:
        """The command line of a child that collects some files, named from `tests`."""
        return [
            sys.executable, "-m", "pytest", "-q", "--no-header", "--disable-warnings",
            "--continue-on-collection-errors", "-p", "no:cacheprovider",
            "-p", "no:xdist", "-p", "tests.conformance.stock_plugin", "-c", os.devnull,
            "--rootdir", str(self.tests), "--device", device, *more, *files,
        ]  # fmt: skip

    @property
    def tests(self) -> Path:
        """The folder that node ids are relative to."""
        return self.root / "python" / "test"


def child_environment(setting: Setting, orders: Path) -> dict[str, str]:
    """The environment of a child that takes its orders from a file."""
    environment = os.environ | {"STOCK_TESTS_ORDERS": str(orders), "TRITON_CACHE_DIR": str(orders.parent / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join([str(_REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment["OPENBLAS_NUM_THREADS"] = environment["OMP_NUM_THREADS"] = "1"
    if setting.mode != "jit":
        # It also says what the tests themselves look at: no assembly of a GPU. Native kernels run as they do anyhow.
        environment["TRITON_INTERPRET"] = "1"
    return environment


def device_of(setting: Setting) -> str:
    """Return where the tests put their tensors."""
    return "cuda" if setting.mode == "jit" else "cpu"


def collect(suite: Suite, setting: Setting, files: Iterable[str], folder: Path) -> list[str]:
    """Node ids of all cases of files below `unit`. They are stock's, so that both implementations get one selection."""
    folder.mkdir(parents=True, exist_ok=True)
    orders, found = folder / "collect.json", folder / "collected.json"
    stock = Setting("stock", setting.mode, setting.target, setting.timeout)
    orders.write_text(json.dumps({**asdict(stock), "collect": str(found)}))
    done = subprocess.run(
        suite.command(device_of(setting), [f"unit/{name}" for name in files], "--collect-only"),
        cwd=suite.tests, env=child_environment(stock, orders), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if not found.is_file():
        raise RuntimeError(f"no test was collected:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return json.loads(found.read_text())


def per_function(cases: Iterable[str], most: int) -> list[str]:
    """Pick up to `most` cases of each test function, evenly spaced."""
    functions: dict[str, list[str]] = {}
    for case in cases:
        functions.setdefault(case.partition("[")[0], []).append(case)
    chosen: list[str] = []
    for group in functions.values():
        count = min(most, len(group))
        chosen += [group[index * len(group) // count] for index in range(count)]
    return chosen


class Shard:
    """Runs some of the cases, one child after the other."""

    def __init__(self, suite: Suite, setting: Setting, cases: Sequence[str], records: Path):
        self._suite = suite
        self._setting = setting
        self._left = list(cases)
        self._records = records

    def run(self) -> None:
        """Run all of them."""
        while self._left:
            self._one_child(self._left[:_CASES_OF_A_CHILD])

    def _one_child(self, cases: Sequence[str]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            orders, log = Path(folder) / "orders.json", Path(folder) / "log.txt"
            progress = self._records / f"{uuid.uuid4()}.jsonl"
            progress.touch()
            orders.write_text(json.dumps({**asdict(self._setting), "cases": cases, "progress": str(progress)}))
            files = dict.fromkeys(case.partition("::")[0] for case in cases)
            with log.open("w") as written:
                child = subprocess.Popen(
                    self._suite.command(device_of(self._setting), files),
                    cwd=self._suite.tests, env=child_environment(self._setting, orders),
                    stdout=written, stderr=subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
                reason = self._watch(child, progress)
            done = {record["case"] for record in _records_of(progress)}
            running = _running(progress)
            with progress.open("a") as file:
                if running is not None:
                    outcome = "timeout" if reason.startswith("killed") else "crash"
                    file.write("\n" + json.dumps(_record(running, outcome, reason)) + "\n")
                    done.add(running)
                elif done != set(cases):
                    # Collection failed, or the rest does not exist under this implementation.
                    said = log.read_text().strip().splitlines()[-1:] or [""]
                    for case in cases:
                        if case not in done:
                            file.write(json.dumps(_record(case, "missing", f"not collected: {said[0]}")) + "\n")
                    done.update(cases)
        self._left = [case for case in self._left if case not in done]

    def _watch(self, child: subprocess.Popen[bytes], progress: Path) -> str:
        """Wait for a child; returns how it ended."""
        seen, since = -1, time.monotonic()
        while child.poll() is None:
            time.sleep(0.5)
            size = progress.stat().st_size
            if size != seen:
                seen, since = size, time.monotonic()
            # Before the first case there are imports and collection.
            allowed = self._setting.timeout + _GRACE + (600 if size == 0 else 0)
            if time.monotonic() - since > allowed:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                return f"killed after {allowed:.0f} s"
        return f"the process ended with status {child.returncode}"


def _record(case: str, outcome: str, error: str = "") -> Record:
    return {"case": case, "outcome": outcome, "error": error, "seconds": 0.0}


def _lines(path: Path) -> list[Record]:
    """The complete lines of a file of records."""
    found: list[Record] = []
    for line in path.read_text().splitlines() if path.is_file() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue  # cut off where a process ended
    return found


def _records_of(progress: Path) -> list[Record]:
    return [line for line in _lines(progress) if "outcome" in line]


def _running(progress: Path) -> str | None:
    """The case that was begun and has no outcome."""
    lines = _lines(progress)
    return lines[-1]["begin"] if lines and "begin" in lines[-1] else None


def run(suite: Suite, setting: Setting, cases: Sequence[str], records: Path, jobs: int) -> dict[str, Record]:
    """Run cases; returns the record of each. What the folder `records` holds already is not run again."""
    records.mkdir(parents=True, exist_ok=True)

    def known() -> dict[str, Record]:
        return {record["case"]: record for path in sorted(records.glob("*.jsonl")) for record in _records_of(path)}

    before = known()
    left = [case for case in cases if case not in before]
    with ThreadPoolExecutor(jobs) as pool:
        shards = [Shard(suite, setting, left[first::jobs], records) for first in range(jobs)]
        for done in [pool.submit(shard.run) for shard in shards]:
            done.result()
    after = known()
    return {case: after[case] for case in cases if case in after}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.stock_python", description=__doc__)
    parser.add_argument("root", type=Path, metavar="SUITE_ROOT")
    parser.add_argument("--implementation", choices=("stock", "ours"), required=True)
    parser.add_argument("--mode", choices=("interpret", "native", "jit"), default="interpret")
    parser.add_argument("--target", default="sm_90a", help="the GPU of our interpreter (sm_90a)")
    parser.add_argument("--file", action="append", metavar="FILE", help="below python/test/unit; all of the list")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--per-function", type=int, metavar="N", help="at most N cases of each test function")
    which.add_argument("--sample", type=int, metavar="N", help="N cases by chance")
    which.add_argument("--nodeids", type=Path, metavar="FILE", help="the cases of a file, one a line")
    parser.add_argument("--seed", type=int, default=0, help="of --sample")
    parser.add_argument("--json", type=Path, default=Path("stock_python.json"), metavar="OUT")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=120.0, metavar="S", help="seconds for a case (120)")
    parsed = parser.parse_args(arguments)
    setting = Setting(parsed.implementation, parsed.mode, parsed.target, parsed.timeout)
    suite = Suite(parsed.root.resolve())
    out: Path = parsed.json.resolve()
    begin = time.monotonic()
    if parsed.nodeids is not None:
        cases = [line.strip() for line in parsed.nodeids.read_text().splitlines() if line.strip()]
    else:
        with tempfile.TemporaryDirectory() as folder:
            cases = collect(suite, setting, parsed.file or FILES, Path(folder))
        if parsed.per_function is not None:
            cases = per_function(cases, parsed.per_function)
        elif parsed.sample is not None:
            chosen = set(random.Random(parsed.seed).sample(cases, min(parsed.sample, len(cases))))
            cases = [case for case in cases if case in chosen]
    found = run(suite, setting, cases, out.with_suffix(".records"), parsed.jobs)
    counts: dict[str, int] = {}
    for record in found.values():
        counts[record["outcome"]] = counts.get(record["outcome"], 0) + 1
    seconds = round(time.monotonic() - begin, 1)
    out.write_text(json.dumps({**asdict(setting), "seconds": seconds, "counts": counts, "cases": found}, indent=1))
    print(f"{len(found)} cases, {setting.implementation}: {counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
