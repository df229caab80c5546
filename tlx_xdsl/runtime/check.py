"""Run a kernel in many orders of its tasks, at each stage that matters, and report what is wrong in any of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.interpreter.faults import Deadlock, Fault
from tlx_xdsl.interpreter.scheduler import SEEDED
from tlx_xdsl.runtime.host_values import flattened, is_constant, is_descriptor
from tlx_xdsl.runtime.interpret import Grid, Interpretation, interpret_source, source_of_kernel
from tlx_xdsl.runtime.interpret_options import FRONTEND, TTGIR, Options
from tlx_xdsl.text.diagnostics import Diagnostic

SECONDS = 10.0
"""Time for all orders, by default; the first one at each stage is run whatever it takes."""

STAGES = (FRONTEND, TTGIR)
"""What the frontend makes, where lines are closest to the source, and what stock Triton gets."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, and how to see it again."""

    diagnostic: Diagnostic
    rule: str
    """`deadlock`, `fault` or `warning`."""
    options: Mapping[str, Any]
    """The `stage`, `schedule` and `seed` of the first run that has shown it."""

    def __str__(self) -> str:
        """Return the report, with the options that show it."""
        shown = " ".join(f"--{name} {value}" for name, value in self.options.items())
        return f"{self.diagnostic}\nnote: seen with {shown}"


@dataclass(frozen=True)
class Report:
    """The result of a check."""

    findings: tuple[Finding, ...]
    runs: int
    stages: tuple[str, ...]
    seconds: float

    def __bool__(self) -> bool:
        """True where nothing was found."""
        return not self.findings

    def __str__(self) -> str:
        """Return all findings and a line that sums up."""
        number = len(self.findings)
        found = "nothing found" if not number else f"{number} finding{'' if number == 1 else 's'}"
        orders = (
            f"{self.runs} run{'' if self.runs == 1 else 's'} at {' and '.join(self.stages)} in {self.seconds:.1f} s"
        )
        return "\n".join([*map(str, self.findings), f"{orders}: {found}"])


_OPTIONS = {field.name for field in fields(Options)} - {"stage", "schedule", "seed", "trace"}


def check(
    kernel: Any,
    grid: Grid,
    /,
    *args: Any,
    seconds: float = SECONDS,
    stages: Sequence[str] = STAGES,
    options: Mapping[str, Any] | None = None,
    **named: Any,
) -> Report:
    """Run a kernel on arguments as `interpret` does, in as many orders as `seconds` allow, and report what is wrong.

    Faults, races and deadlocks count, and warnings of what is left unfinished. Programs' accesses to global memory are
    compared, unless `global_order=False` says not to. Arrays are as before afterwards. `named` may have options of
    `interpret`, too, but those that say an order.

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

    return explore(run, arrays_of(bound.arguments), settings, seconds, stages)


def arrays_of(arguments: Mapping[str, Any]) -> list[NDArray[Any]]:
    """The arrays among the arguments, also those of descriptors and in tuples."""
    values = [item for name, value in arguments.items() if not is_constant(value) for _, item in flattened(name, value)]
    found = [value.base if is_descriptor(value) else value for value in values]
    return [each for each in found if isinstance(each, np.ndarray)]


def explore(
    run: Callable[[Mapping[str, Any]], Interpretation],
    arrays: Sequence[NDArray[Any]],
    settings: Options,
    seconds: float,
    stages: Sequence[str],
) -> Report:
    """Call `run` with the options of one order after the other, on the same `arrays`; they are restored each time."""
    before = [each.copy() for each in arrays]
    everywhere = {} if settings.global_order is not None else {"global_order": True}
    found: dict[tuple[str, str], Finding] = {}
    began, runs = time.perf_counter(), 0
    for order in orders(stages):
        if runs >= len(stages) and time.perf_counter() - began > seconds:
            break
        for fault in _faults(run, {**order, **everywhere}):
            rule = "warning" if fault.severity == "warning" else "deadlock" if _is_deadlock(fault) else "fault"
            found.setdefault((rule, str(fault.location)), Finding(fault, rule, order))
        runs += 1
        for each, held in zip(arrays, before, strict=True):
            each[...] = held
    return Report(tuple(found.values()), runs, tuple(stages), time.perf_counter() - began)


def orders(stages: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The options of each order: all stages in turn, first in rounds, then by chance and by what is worst."""
    for stage in stages:
        yield {"stage": stage, "schedule": "round-robin", "seed": 0}
    for seed in count():
        for schedule in SEEDED:
            for stage in stages:
                yield {"stage": stage, "schedule": schedule, "seed": seed}


def _faults(run: Callable[[Mapping[str, Any]], Interpretation], options: Mapping[str, Any]) -> list[Diagnostic]:
    """What a run has found. Raises CompilationError for what is no fault of a run."""
    try:
        result = run(options)
    except Fault as fault:
        message = (
            f"deadlock: {fault.message.removeprefix('deadlock: ')}" if isinstance(fault, Deadlock) else fault.message
        )
        return [Diagnostic("error", message, fault.location, fault.notes)]
    return [each for each in result.warnings if each.severity == "warning"]


def _is_deadlock(fault: Diagnostic) -> bool:
    return fault.message.startswith("deadlock: ")
