"""Times of the CPU's candidates on one thread and on two, in rounds in which all take turns.

On one thread a time is the CPU time of the calling thread: what other processes take of a shared machine is not in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import tlx_xdsl
from benchmarks.cpu import mlir_rival
from benchmarks.cpu.cases import TOLERANCES, Candidate, Case, cases, product, softmax, torch_or_none

SLOW_S = 0.05
"""What takes longer takes part in the first rounds only, such as torch's product in f16."""
SLOW_ROUNDS = 5

UNTIMED = 3
"""Runs before each that is timed: after one, arrays of 12 MB that others have pushed out of the last cache are not all
back in it."""

Times = dict[str, list[float]]


def check(name: str, candidate: Candidate, case: Case) -> float:
    """Run a candidate on a result that was NaN; returns the largest error, as a part of the largest element.

    Raises ValueError where that is more than rounding explains.
    """
    if candidate.result is not None:
        candidate.result.fill(np.nan)
    returned = candidate.run()
    found = returned.float().numpy() if candidate.result is None else candidate.result
    error = float(np.abs(found.astype(float) - case.reference).max() / np.abs(case.reference).max())
    if not error <= TOLERANCES[case.element]:
        raise ValueError(f"{case.title}: {name} is wrong by {error:.1e} of the largest element")
    return error


def timed(run: Callable[[], Any], clock: Callable[[], float] = time.thread_time) -> float:
    """Seconds of one call."""
    before = clock()
    run()
    return clock() - before


def in_turns(runs: Mapping[str, Callable[[], Any]], rounds: int) -> Times:
    """Milliseconds of each candidate in each round."""
    slow = {name for name, run in runs.items() if min(timed(run), timed(run)) > SLOW_S}
    times: Times = {name: [] for name in runs}
    for number in range(rounds):
        for name, run in runs.items():
            if name not in slow or number < SLOW_ROUNDS:
                for _ in range(0 if name in slow else UNTIMED):
                    run()
                times[name].append(timed(run) * 1e3)
    return times


def one_thread(rounds: int) -> list[dict[str, Any]]:
    """The times of every problem."""
    tlx_xdsl.set_cpu_threads(1)
    found: list[dict[str, Any]] = []
    for case in cases(torch_or_none()):
        candidates = case.candidates()
        # It takes more memory each time, which makes those slower that allocate, so that it comes after the others.
        last: dict[str, Candidate] = {}
        if case.element == "f32" and case.in_upstream and mlir_rival.is_installed():
            for held, name, frees in ((candidates, mlir_rival.FREED, True), (last, mlir_rival.NAME, False)):
                held[name] = Candidate(mlir_rival.compiled(case.launch, frees=frees), case.launch.result)
        times: Times = {}
        errors: dict[str, float] = {}
        for some, turns in ((candidates, rounds), (last, SLOW_ROUNDS)):
            errors |= {name: check(name, candidate, case) for name, candidate in some.items()}
            times |= in_turns({name: each.run for name, each in some.items()}, turns)
        lines = {**case.lines, mlir_rival.NAME: 1 / 4, mlir_rival.FREED: 1 / 4}
        found.append({"title": case.title, "errors": errors, "lines": lines, "times": times})
    return found


def two_threads(rounds: int) -> list[dict[str, Any]]:
    """The times of problems that compute more than they read, on one thread and on two.

    Beside the clock on the wall, which wants an idle machine, stands the CPU time of the thread that had more to do.
    """
    rng = np.random.default_rng(21)
    problems = [(f"matmul, {side} x {side} x {side} {element}", product(element, side, rng)[0])
                for side, element in ((512, "f32"), (1024, "f32"), (1024, "f16"), (1024, "bf16"))]  # fmt: skip
    soft = softmax("f32", None, rng)
    problems.append((soft.title, soft.launch))
    found: list[dict[str, Any]] = []
    for title, launch in problems:
        run = launch.candidate().run
        times: Times = {name: [] for name in ("1", "2", "1, CPU", "2, CPU")}
        for _ in range(rounds):
            for threads in ("1", "2"):
                tlx_xdsl.set_cpu_threads(int(threads))
                # The pool's threads are started then.
                run()
                caller, everyone = time.thread_time(), time.process_time()
                times[threads].append(timed(run, time.perf_counter) * 1e3)
                caller, everyone = time.thread_time() - caller, time.process_time() - everyone
                times[f"{threads}, CPU"].append(max(caller, everyone - caller) * 1e3)
        found.append({"title": title, "times": times})
    tlx_xdsl.set_cpu_threads(None)
    return found
