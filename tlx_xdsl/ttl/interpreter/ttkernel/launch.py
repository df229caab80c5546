"""Runs of a kernel in its final form: `run` once, `explore` in every order that makes a difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.text.diagnostics import Diagnostic

from .endings import read_warnings
from .exploration import Exploration, explore as explore_runs
from .machine import CoreThread, Machine
from .plan import Plan, make_plan
from .tensors import write_back
from .threads import Schedule, Trace, make_schedule, run_threads


@dataclass(frozen=True)
class Report:
    """What a run was like."""

    turns: int
    """Turns of threads, and updates of semaphores."""
    choices: tuple[int, ...]
    """Who went on at each of them: a schedule that `run` can follow again."""
    noc_bytes: int
    """Bytes that the network on chip has moved."""
    registers: int
    """Destination registers used on a core, at most."""
    warnings: tuple[Diagnostic, ...] = ()
    """What is strange, but may be meant."""
    unwritten: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Pages that were never written, of tensors of which others were."""


def run(
    module: ModuleOp | Plan,
    arrays: Sequence[Array],
    *,
    schedule: str | Sequence[int] = "round-robin",
    seed: int = 0,
    capacity: int | None = None,
    checks: bool = True,
) -> Report:
    """Run a kernel; arrays whose tensors it writes have the results afterwards.

    `schedule` is the name of a policy, or the choices of an earlier run; `capacity` is the number of destination
    registers, where it is not that of the hardware. Without `checks`, only what the hardware can't do is a fault.

    Raises Fault, Deadlock when no thread can go on, and InputError for arrays that do not fit.
    """
    plan = module if isinstance(module, Plan) else make_plan(module)
    order = order_of_transfers(schedule, seed)
    machine = plan.machine(arrays, capacity=capacity, checks=checks, order=order)
    return run_machine(machine, lambda: plan.end(machine), arrays, make_schedule(schedule, seed))


def order_of_transfers(schedule: str | Sequence[int], seed: int) -> np.random.Generator | None:
    """What shuffles transfers that land together; nothing in the prompt schedule, and where one is repeated."""
    return None if schedule == "round-robin" or not isinstance(schedule, str) else np.random.default_rng(seed)


def run_machine(machine: Machine, end: Callable[[], None], arrays: Sequence[Array], schedule: Schedule) -> Report:
    """Run the threads of a machine, check its `end`, and write what they have written back to the arrays."""
    trace = Trace()
    run_threads(machine, schedule, trace)
    end()
    for tensor, array in zip(machine.tensors, arrays, strict=True):
        if tensor.written:
            write_back(tensor, array)
    return report_of(machine, trace)


def report_of(machine: Machine, trace: Trace) -> Report:
    """What the run of a machine was like."""
    threads = [thread for thread in machine.threads if isinstance(thread, CoreThread)]
    used = max((thread.registers.used for thread in threads if thread.registers is not None), default=0)
    warnings = (*machine.warnings.values(), *read_warnings(machine))
    unwritten = {
        tensor.name: tuple(page for page in range(len(tensor.pages)) if page not in tensor.written)
        for tensor in machine.tensors
        if 0 < len(tensor.written) < len(tensor.pages)
    }
    return Report(len(trace.choices), tuple(trace.choices), machine.noc_bytes, used, warnings, unwritten)


def explore(
    module: ModuleOp | Plan, arrays: Sequence[Array], budget: int = 1000, *, capacity: int | None = None
) -> Exploration:
    """Run a kernel in every order that makes a difference, up to the first fault or `budget` runs.

    The arrays stay as they are. A fault comes with the choices that lead to it, which `run` takes as a schedule.
    """
    plan = module if isinstance(module, Plan) else make_plan(module)
    return explore_runs(lambda: plan.machine(arrays, capacity=capacity), plan.end, budget)
