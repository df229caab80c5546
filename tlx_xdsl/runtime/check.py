"""Run a kernel in many orders of its tasks, at each stage that matters, and report what is wrong in any of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.errors import InputError, InputTypeError
from tlx_xdsl.interpreter.scheduler import SEEDED
from tlx_xdsl.runtime.check_launches import Arrays, Run, launched
from tlx_xdsl.runtime.check_report import Finding, Report
from tlx_xdsl.runtime.host_values import flattened, is_constant, is_descriptor
from tlx_xdsl.runtime.interpret import Grid, Interpretation, interpret_source, source_of_kernel
from tlx_xdsl.runtime.interpret_options import FRONTEND, TTGIR, Options

SECONDS = 10.0
"""Time for all orders, by default; the first one at each stage is run whatever it takes."""

STAGES = (FRONTEND, TTGIR)
"""What the frontend makes, where lines are closest to the source, and what stock Triton gets."""


_OPTIONS = {field.name for field in fields(Options)} - {"stage", "schedule", "seed", "trace"}


def check(
    kernel: Any,
    grid: Grid,
    /,
    *args: Any,
    seconds: float = SECONDS,
    stages: Sequence[str] = STAGES,
    launches: int | None = None,
    options: Mapping[str, Any] | None = None,
    **named: Any,
) -> Report:
    """Run a kernel on arguments as `interpret` does, in as many orders as `seconds` allow, and report what is wrong.

    Faults, races and deadlocks count, and warnings of what is left unfinished. Programs' accesses to global memory are
    compared, unless `global_order=False` says not to. Arrays are as before afterwards. `named` may have options of
    `interpret`, too, but those that say an order.

    The kernel is launched `launches` times, on arrays as the launch before has left them: what only a later one does
    wrong is a finding, too. By default a kernel with atomic operations or `while` is launched twice, and that is a
    remark, since the host may set back what the kernel does not.

        assert tlx_xdsl.check(kernel, grid, *arguments)

    Raises CompilationError for a kernel that does not compile; TypeError and ValueError for arguments that do not fit.
    """
    source = source_of_kernel(kernel)
    parameters = source.signature.parameters
    chosen = {name: value for name, value in named.items() if name in _OPTIONS and name not in parameters}
    given = {name: value for name, value in named.items() if name not in chosen}
    try:
        bound = source.signature.bind(*args, **given)
    except TypeError as error:
        raise InputTypeError(f"{source.name}: {error}, its parameters are {', '.join(parameters)}") from error
    settings = Options(**chosen, **(options or {}))

    def run(order: Mapping[str, Any]) -> Interpretation:
        return interpret_source(source, grid, bound.arguments, replace(settings, **order))

    return explore(run, arrays_of(bound.arguments), settings, seconds, stages, launches)


def arrays_of(arguments: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The arrays among the arguments, also those of descriptors and in tuples."""
    values = [item for name, value in arguments.items() if not is_constant(value) for item in flattened(name, value)]
    found = {name: value.base if is_descriptor(value) else value for name, value in values}
    return {name: each for name, each in found.items() if isinstance(each, np.ndarray)}


def explore(
    run: Run,
    arrays: Mapping[str, NDArray[Any]],
    settings: Options,
    seconds: float,
    stages: Sequence[str],
    launches: int | None = None,
) -> Report:
    """Call `run` with the options of one order after the other, on the same `arrays`; they are restored each time."""
    if launches is not None and launches < 1:
        raise InputError(f"launches must be at least 1, found {launches}")
    memory = Arrays(arrays)
    before = memory.state()
    everywhere = {} if settings.global_order is not None else {"global_order": True}
    found: dict[tuple[str, str], Finding] = {}
    remarks: dict[tuple[str, str], Finding] = {}
    began, runs = time.perf_counter(), 0
    for order in orders(stages):
        if runs >= len(stages) and time.perf_counter() - began > seconds:
            break
        options = {**order, **everywhere}
        for each in launched(run, memory, options, launches, thorough=not runs):
            if each.launch == 1 or launches is not None:
                rule = each.rule if each.launch == 1 else "relaunch"
                found.setdefault(each.key, Finding(each.diagnostic, rule, order))
            else:
                # Whether the host sets arrays back between launches is not known.
                remarks.setdefault(each.key, Finding(replace(each.diagnostic, severity="remark"), "relaunch", order))
        memory.restore(before)
        runs += 1
    only = tuple(remark for key, remark in remarks.items() if key not in found)
    return Report(tuple(found.values()), runs, tuple(stages), time.perf_counter() - began, only)


def orders(stages: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The options of each order: all stages in turn, first in rounds, then by chance and by what is worst."""
    for stage in stages:
        yield {"stage": stage, "schedule": "round-robin", "seed": 0}
    for seed in count():
        for schedule in SEEDED:
            for stage in stages:
                yield {"stage": stage, "schedule": schedule, "seed": seed}
