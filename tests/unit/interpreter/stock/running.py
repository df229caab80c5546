"""Runs TTGIR that stock Triton has made of a kernel of the corpus, on arrays, and compares with a reference."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.corpus import generate
from tlx_xdsl.interpreter.arguments import bind
from tlx_xdsl.interpreter.code import Plan
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.launch import Settings, clusters, run_clusters
from tlx_xdsl.interpreter.machine import Launch
from tlx_xdsl.interpreter.plan import make_plan
from tlx_xdsl.text.diagnostics import Diagnostic, collected_diagnostics
from tlx_xdsl.text.parser import parse_module


@dataclass(frozen=True)
class Expected:
    """Expected values of an array: `error <= tolerance * (|value| + scale)`; NaN and infinities in the same places."""

    value: np.ndarray
    tolerance: float = 0.0
    scale: float = 0.0

    def check(self, name: str, found: np.ndarray) -> None:
        """Raise AssertionError where an element is off."""
        expected = np.broadcast_to(self.value, found.shape)
        if self.tolerance == 0:
            np.testing.assert_array_equal(found, expected.astype(found.dtype), err_msg=name)
            return
        wide, wanted = found.astype(np.float64), expected.astype(np.float64)
        with np.errstate(invalid="ignore"):
            error = np.abs(wide - wanted)
            wrong = ~(error <= self.tolerance * (np.abs(wanted) + self.scale))
        wrong &= ~((np.isnan(wide) & np.isnan(wanted)) | (wide == wanted))
        if wrong.any():
            at = tuple(np.argwhere(wrong)[0])
            raise AssertionError(
                f"{name}: {int(wrong.sum())} of {wrong.size} elements are off, {at} first: found {wide[at]}, "
                f"expected {wanted[at]}"
            )


@dataclass(frozen=True)
class Run:
    """A launch, and what it must leave in its arrays."""

    arguments: dict[str, Any]
    expected: Mapping[str, Expected | np.ndarray]
    grid: tuple[int, ...] = (1,)


Reference = Callable[[np.random.Generator], Run]
REFERENCES: dict[str, Reference] = {}
"""By the name of the kernel in the corpus."""


def reference(*names: str) -> Callable[[Callable[..., Run]], Callable[..., Run]]:
    """Register what launches kernels of the corpus; of several, the function is given the name."""

    def register(function: Callable[..., Run]) -> Callable[..., Run]:
        for name in names:
            REFERENCES[name] = function if len(names) == 1 else functools.partial(function, name)
        return function

    return register


@functools.cache
def stock_plan(name: str, arch: int) -> Plan:
    """The TTGIR of a kernel for an architecture, ready to run."""
    return make_plan(parse_module(generate.compiled(name, arch)["ttgir"], filename=f"{name}.sm{arch}.ttgir"))


def run_plan(plan: Plan, run: Run, schedule: str = "round-robin", seed: int = 0) -> list[Diagnostic]:
    """Run a launch; its arrays are written in place. Gives the warnings."""
    memory = GlobalMemory()
    names: list[str] = []
    values: list[Any] = []
    for name, value in run.arguments.items():
        parts = value if isinstance(value, tuple) else (value,)
        names.extend([name] * len(parts))
        values.extend(parts)
    grid = (*run.grid, *(1,) * (3 - len(run.grid)))
    with collected_diagnostics() as reported:
        launch = Launch(plan, memory, grid, (1, 1, 1), bind(plan.function, values, names, memory))
        list(run_clusters(launch, list(clusters(launch)), Settings(schedule, seed)))
    return list(reported)


def check(name: str, arch: int, schedule: str, seed: int) -> None:
    """Run a kernel and compare; nothing may be reported."""
    if reason := generate.cases()[name].skipped_reason:
        import pytest

        pytest.skip(reason)
    run = REFERENCES[name](np.random.default_rng(seed))
    reported = run_plan(stock_plan(name, arch), run, schedule, seed)
    assert not reported, [str(diagnostic) for diagnostic in reported]
    for array, expected in run.expected.items():
        found = run.arguments[array]
        if not isinstance(found, np.ndarray):
            found = found[0] if isinstance(found, tuple) else found.base
        (expected if isinstance(expected, Expected) else Expected(expected)).check(array, found)


def nan(shape: int | tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """An array in which every element that is not written is seen."""
    return np.full(shape, np.nan, dtype)
