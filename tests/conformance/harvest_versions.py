"""Judge the final code that several Tritons make of public kernels: `tlx gate` over recorded launches.

    python -m tests.conformance.harvest_versions SUITES --results harvest.jsonl --triton 3.6.0,3.7.1,3.8.0,3.9.0

SUITES is a folder with checkouts, as of `cpu_kernels`, whose entries launch the kernels, and of suites of scripts;
torch must be importable. A suite runs in a process of its own, each of its entries in the interpreter for a limited
time, and each kernel is judged as it was launched and in drawn configurations of warps and stages. What the file has is
not judged again.
"""

from __future__ import annotations

import argparse
import os
import random
import runpy
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, cast

import numpy as np

from tests.conformance.isolated import run_isolated
from tlx_xdsl.compat.frozen import Recorded
from tlx_xdsl.gate import Manner, Results, Subject, Verdict, gate
from tlx_xdsl.gate.environments import toolchains
from tlx_xdsl.gate.recorded import sampled, subjects_of, varied
from tlx_xdsl.gate.spread import TimeOver
from tlx_xdsl.runtime.driver.host_values import is_descriptor

WARPS, STAGES = (2, 4, 8), (1, 2, 3, 4)
"""Choices of the drawn configurations."""

SCRIPTS = {"tritonbench": "data/TritonBench_G_v1"}
"""Suites of scripts, which hold kernels and launch them on CUDA's tensors: the folder of each in its checkout."""

SMALL_BYTES, TIMES_SMALLEST = 1 << 20, 8
"""Launches with more bytes are left out where the kernel has one with so many times less."""

MOST_SECONDS = 8 * 3600
"""The time of a suite."""


def main(argv: Sequence[str] | None = None) -> int:
    """Judge what is left to judge; the exit status is 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, metavar="SUITES")
    parser.add_argument("--results", type=Path, required=True, metavar="FILE.jsonl")
    parser.add_argument("--triton", default="installed", metavar="VERSION,...")
    parser.add_argument("--triton-path", action="append", default=[], metavar="VERSION=FOLDER")
    parser.add_argument("--only", default="", help="the entries whose names contain this")
    parser.add_argument("--configurations", type=int, default=4, help="of each kernel, drawn (4)")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (0)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a processor, for each run (10)")
    parser.add_argument("--entry-seconds", type=int, default=120, help="for the launches of an entry (120)")
    parser.add_argument("--half", action="store_true", help="judge the launches with fp16 for fp32, and only those")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(argv)
    from tests.conformance.cpu.cpu_kernels import entries

    of_scripts = [f"{suite}/{script.stem}" for suite in SCRIPTS for script in _scripts(options.root, suite)]
    names = [name for name in (*entries(), *of_scripts) if options.only in name]
    for suite in dict.fromkeys(name.partition("/")[0] for name in names):
        (found,) = run_isolated(partial(_judged, options), [suite], 1, batch=1, seconds=MOST_SECONDS)
        print(f"{suite}: {found}", flush=True)
    return int(any(each.is_bad for each in Results(options.results).known.values()))


def _judged(options: argparse.Namespace, suite: str) -> object:
    """Record the launches of a suite here, and judge its kernels."""
    import tlx_xdsl.compat
    from tests.conformance.cpu.cpu_kernels import TARGET, WITH_A_GPU

    signal.alarm(0)
    warnings.simplefilter("ignore")
    if suite in WITH_A_GPU or suite in SCRIPTS:
        # For the rest of the process.
        tlx_xdsl.compat.torch_without_gpu(TARGET).__enter__()
    tlx_xdsl.compat.install(mode="record", target=TARGET)
    from tlx_xdsl.compat.frozen import RECORD

    began = time.monotonic()
    stopped: list[str] = []
    launches: list[Subject] = []
    count = 0
    for name, run in _cases(suite, options.root):
        if options.only not in name:
            continue
        try:
            with redirect_stdout(sys.stderr), _alarm(options.entry_seconds):
                run()
        except (Exception, TimeOver) as error:
            # What it has launched until then is judged all the same.
            stopped.append(f"{name}: {type(error).__name__} {' '.join(str(error).split())[:120]}")
            if os.environ.get("TRACEBACK"):
                traceback.print_exc()
        count += len(RECORD)
        # Only so many are recorded, and each has a copy of its arrays.
        launches = sampled([*launches, *subjects_of(small_ones(RECORD))], options.configurations, options.seed)
        RECORD.clear()
    recorded = time.monotonic() - began
    drawn = drawn_launches(launches, options.configurations, options.seed)
    if options.half:
        # Products of fp32 are none of the instructions that most defects are about.
        drawn = [half for each in drawn if (half := in_half_precision(each)) is not None]
    subjects = [replace(each, name=f"{suite}/{each.name}") for each in drawn]
    folders = {version: Path(folder) for version, _, folder in (each.partition("=") for each in options.triton_path)}
    manner = Manner(toolchains(options.triton.split(","), folders), options.seconds)
    report = gate(
        subjects, manner, jobs=options.jobs, results=Results(options.results), progress=False, on_verdict=_say
    )
    kernels = {each.name for each in subjects}
    return {
        "launches": count, "kernels": len(kernels), "subjects": len(subjects), "verdicts": len(report.verdicts),
        "recorded_s": round(recorded), "judged_s": round(report.seconds), "stopped": stopped,
    }  # fmt: skip


def _cases(suite: str, root: Path) -> list[tuple[str, Callable[[], object]]]:
    """The names of a suite's entries or scripts, and what runs each."""
    if suite in SCRIPTS:
        return [
            (f"{suite}/{each.stem}", partial(runpy.run_path, str(each), run_name="__main__"))
            for each in _scripts(root, suite)
        ]
    from tests.conformance.cpu.cpu_entries import run_entry
    from tests.conformance.cpu.cpu_kernels import entries
    from tests.conformance.cpu.cpu_loading import loader

    load = loader(suite, root)
    return [(name, partial(run_entry, case, load)) for name, case in entries().items() if case.suite == suite]


def _scripts(root: Path, suite: str) -> list[Path]:
    return sorted((root / suite / SCRIPTS[suite]).glob("*.py"))


def small_ones(launches: Sequence[Recorded]) -> list[Recorded]:
    """The launches but those of many bytes of a kernel that has much smaller ones: large ones only take long."""
    smallest: dict[object, int] = {}
    for each in launches:
        smallest[each.source.fn] = min(each.size, smallest.get(each.source.fn, each.size))
    return [
        each for each in launches if each.size <= max(SMALL_BYTES, TIMES_SMALLEST * smallest[each.source.fn])
    ]  # fmt: skip


def drawn_launches(launches: Sequence[Subject], count: int, seed: int) -> list[Subject]:
    """Draw `count` launches of each kernel, where it has them; else those that it has, with other warps and stages."""
    found: list[Subject] = []
    kernels: dict[str, list[Subject]] = {}
    for each in sampled(launches, count, seed):
        kernels.setdefault(each.name, []).append(each)
    for name, own in kernels.items():
        random_ = random.Random(f"{seed} {name}")
        choices = [{"num_warps": warps, "num_stages": stages} for warps in WARPS for stages in STAGES]
        random_.shuffle(choices)
        known = {(each.options.get("num_warps", 4), each.options.get("num_stages", 3)) for each in own}
        fresh = [each for each in choices if (each["num_warps"], each["num_stages"]) not in known]
        more = [varied(random_.choice(own), each) for each in fresh[: count - len(own)]]
        found += [*own, *more]
    return found


def in_half_precision(launch: Subject) -> Subject | None:
    """The launch with arrays of fp16 in the place of fp32; None where it has none, or tensor descriptors."""
    given = launch.arguments()
    of_fp32 = {
        name for name, value in given.items()
        if isinstance(value, np.ndarray) and np.float32 == cast("Any", value).dtype
    }  # fmt: skip
    if not of_fp32 or any(is_descriptor(value) for value in given.values()):
        return None

    def arguments() -> Mapping[str, Any]:
        return {
            name: value.astype(np.float16) if name in of_fp32 else value for name, value in launch.arguments().items()
        }

    return replace(
        launch, arguments=arguments, identity=f"{launch.identity} in fp16",
        configuration={**launch.configuration, "fp32": "fp16"},
    )  # fmt: skip


@contextmanager
def _alarm(seconds: int) -> Generator[None]:
    def over(_signal: int, _frame: FrameType | None) -> None:
        raise TimeOver

    signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def _say(verdict: Verdict) -> None:
    what = f"{verdict.message[:110]} {verdict.location or ''}"
    print(f"{verdict.kernel} {verdict.triton} {verdict.outcome} {verdict.seconds} {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    raise SystemExit(main())
