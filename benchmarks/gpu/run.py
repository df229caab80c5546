"""One family of the GPU benchmark in this process: checks, then timings, written to a file after every step.

The file says what was running when the process died, so that another one can leave that out and go on.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu import cute, measure, nvml
from benchmarks.gpu.cases import OURS, Case, Family
from tlx_xdsl.backend import installed_triton_version
from tlx_xdsl.backend.assemblers import candidates

COOL_ROUNDS = 7
HOT_ROUNDS = 3

FAULTED = 4
"""Exit status of a process in which a kernel has faulted."""

INPUTS, TIMING = "inputs", "timing"
"""What a case does before and after its first launches, where a process may die too."""


class Record:
    """Record of a family so far, in a file."""

    def __init__(self, path: Path, family: str):
        self.path = path
        self.data: dict[str, Any] = {"family": family, "checks": [], "cases": {}, "skipped": {}, "running": None}
        if path.exists():
            self.data = json.loads(path.read_text(encoding="utf-8"))

    def write(self, **changes: Any) -> None:
        """Change entries, and write all to the file at once."""
        self.data.update(changes)
        scratch = self.path.with_suffix(".part")
        scratch.write_text(json.dumps(self.data, indent=1))
        os.replace(scratch, self.path)


class GpuTimer:
    """Times candidates on the GPU, with the SM clock that each burst ended with.

    `rounds` of `burst` launches are cool, each after `idle_s` seconds; `hot_rounds` are hot, and there may be none.
    """

    def __init__(self, rounds: int, burst: int = 5, idle_s: float = 0.1, hot_rounds: int = HOT_ROUNDS):
        self.rounds, self.burst, self.idle_s, self.hot_rounds = rounds, burst, idle_s, hot_rounds
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        self.gpu = nvml.Gpu(int(visible) if visible.isdigit() else 0)

    def first(self, launch: Callable[[], Any], name: str) -> None:
        """Launch a kernel for the first time; a kernel that hangs ends the process."""
        measure.watchdog_first_launch(launch, name=name)

    def usable(self) -> bool:
        """Return whether the GPU still answers this process: after a fault in a kernel it never does."""
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            return False
        return True

    def cool(self, candidates: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
        """Bursts at full clock."""
        clocks: list[int | None] = []
        times = measure.cool_rounds(
            candidates,
            rounds=self.rounds,
            burst=self.burst,
            idle_s=self.idle_s,
            after_burst=lambda: clocks.append(self.gpu.clock_mhz()),
        )
        return {"times": times, "clocks": clocks}

    def hot(self, candidates: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
        """Sustained load."""
        clocks: list[int | None] = []
        times = measure.hot_rounds(
            candidates, rounds=self.hot_rounds, after_burst=lambda: clocks.append(self.gpu.clock_mhz())
        )
        return {"times": times, "clocks": clocks}


class DryTimer:
    """Runs each candidate and makes up the times: the rest of the benchmark can be tried without a GPU."""

    def __init__(self, rounds: int, burst: int = 5, idle_s: float = 0.1, hot_rounds: int = HOT_ROUNDS):
        self.rounds, self.hot_rounds = rounds, hot_rounds

    def first(self, launch: Callable[[], Any], name: str) -> None:
        """Run it."""
        launch()

    def usable(self) -> bool:
        """Always."""
        return True

    def cool(self, candidates: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
        """Times that are as good as any."""
        return self._made_up(candidates, self.rounds, 1980)

    def hot(self, candidates: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
        """The same, slower."""
        return self._made_up(candidates, self.hot_rounds, 1400)

    def _made_up(self, candidates: Mapping[str, Callable[[], Any]], rounds: int, clock: int) -> dict[str, Any]:
        times = {name: [1.0 + 0.1 * at + 0.01 * turn for turn in range(rounds)] for at, name in enumerate(candidates)}
        return {"times": times, "clocks": [clock] * rounds}


def run_family(
    family: Family, path: Path, timer: GpuTimer | DryTimer, only: str = "", *, checks_all: bool = True
) -> bool:
    """Check and time a family, going on where an earlier process stopped; say whether all checks held.

    What fails a check of its own case is not timed; another failed check is reported with the figures. Without
    `checks_all`, only what is timed is checked.
    """
    record = Record(path, family.name)
    record.write(title=family.title, machine=machine())
    if checks_all and not record.data.get("checked"):
        _check(family, record, timer)
    for case in family.cases:
        if case.name not in record.data["cases"] and only in case.name:
            _time_or_say_why_not(case, record, timer)
    record.write(running=None, finished=True)
    return all(check["ok"] for check in record.data["checks"])


def prepare_family(family: Family, timer: GpuTimer | DryTimer, only: str = "", *, checks_all: bool = True) -> None:
    """Launch once all that a family will launch, and time nothing: what is compiled stays in the caches on disk."""
    with suppress(Exception):  # what fails here fails again in its turn, and is reported there
        for _ in family.checks(timer.first) if checks_all else ():
            pass
    for case in (each for each in family.cases if only in each.name):
        makers, _ = case.make()
        for name, maker in makers.items():
            with suppress(Exception):
                timer.first(maker(), f"{case.name}: {name}")


def _check(family: Family, record: Record, timer: GpuTimer | DryTimer) -> None:
    def run(launch: Callable[[], Any], label: str) -> None:
        record.write(running=label)
        timer.first(launch, label)

    found: list[dict[str, Any]] = []
    try:
        for check in family.checks(run):
            print(check, flush=True)
            found.append({"label": check.label, "error": check.error, "limit": check.limit, "ok": check.ok})
            record.write(checks=found)
    except Exception as error:  # what is wrong with our kernel must not hide what is known of the others
        traceback.print_exc()
        found.append({"label": str(record.data["running"]), "error": None, "limit": 0, "ok": False, "why": str(error)})
    record.write(checks=found, checked=True, running=None)


def _time_or_say_why_not(case: Case, record: Record, timer: GpuTimer | DryTimer) -> None:
    stopped = [record.data["skipped"].get(f"{case.name}: {step}") for step in (INPUTS, TIMING)]
    why = next((each for each in stopped if each), "")
    if not why:
        try:
            _time(case, record, timer)
            return
        except Exception as error:  # the other cases are not lost
            traceback.print_exc()
            _end_if_faulted(timer)
            why = f"{type(error).__name__}: {error}"[:300]
    regimes = ("cool", "hot") if timer.hot_rounds else ("cool",)
    entry = {**_entry(case), "errors": {"all": why}, **{each: {"times": {}, "clocks": []} for each in regimes}}
    record.write(cases={**record.data["cases"], case.name: entry}, running=None)


def _end_if_faulted(timer: GpuTimer | DryTimer) -> None:
    """End the process where it can do nothing more: another one goes on after what was running."""
    if not timer.usable():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(FAULTED)


def _entry(case: Case) -> dict[str, Any]:
    return {
        "flops": case.flops, "peer": case.peer, "target": case.target, "config": case.config, "facts": case.facts,
        "traffic": case.traffic,
    }  # fmt: skip


def _time(case: Case, record: Record, timer: GpuTimer | DryTimer) -> None:
    record.write(running=f"{case.name}: {INPUTS}")
    makers, verify = case.make()
    launches: dict[str, Callable[[], Any]] = {}
    errors: dict[str, str] = {}
    for name, maker in makers.items():
        running = f"{case.name}: {name}"
        if running in record.data["skipped"]:
            errors[name] = record.data["skipped"][running]
            continue
        record.write(running=running)
        try:
            launch = maker()
            timer.first(launch, running)
            launches[name] = launch
        except Exception as error:  # a rival that this machine lacks
            errors[name] = f"{type(error).__name__}: {error}"[:300]
            print(f"{running}: {errors[name]}", file=sys.stderr, flush=True)
            _end_if_faulted(timer)
    record.write(running=f"{case.name}: {TIMING}")
    entry = {**_entry(case), "errors": errors}
    found = verify() if case.checks_all or OURS in launches else {}
    for name, check in (found if isinstance(found, Mapping) else {OURS: found}).items():
        print(check, flush=True)
        described = {"label": check.label, "error": check.error, "limit": check.limit, "ok": check.ok}
        entry.setdefault("checks", {})[name] = described
        if not check.ok:
            record.write(checks=[*record.data["checks"], described])
            launches.pop(name, None)
    entry["cool"] = timer.cool(launches)
    if timer.hot_rounds:
        entry["hot"] = timer.hot(launches)
    record.write(cases={**record.data["cases"], case.name: entry}, running=None)


def machine() -> dict[str, Any]:
    """Describe the machine: date, versions, GPU, driver, assembler and commit."""
    found: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "torch": torch.__version__,
        "triton": installed_triton_version(),
        "python": platform.python_version(),
        "device": "no GPU: times are made up",
    }
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        found["device"] = properties.name
        found["multiprocessors"] = properties.multi_processor_count
        found["cuda"] = torch.version.cuda
        found["cudnn"] = torch.backends.cudnn.version()
        found["driver"] = nvml.Gpu(torch.cuda.current_device()).driver()
        newest = int(torch.version.cuda.split(".")[0])
        found["ptxas"] = str(candidates(90, found["triton"], newest_cuda=newest)[0])
        found["commit"] = measure.commit()
        found |= cute.versions()
    return found
