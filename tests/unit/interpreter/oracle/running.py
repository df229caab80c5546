"""Runs kernels of the oracle on arrays."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.oracle import loading, ours
from tests.oracle.cases import Case
from tlx_xdsl.interpreter.arguments import bind
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.launch import Settings, clusters, run_clusters
from tlx_xdsl.interpreter.machine import Launch
from tlx_xdsl.interpreter.plan import Plan, make_plan


@functools.cache
def cases() -> dict[str, Case]:
    """All kernels of the oracle by name, over our objects."""
    return {name: case for path in loading.files() for name, case in loading.load(path, ours=True).items()}


@functools.cache
def plan_of(name: str) -> Plan:
    """A kernel of the oracle behind our frontend, ready to run."""
    return make_plan(ours.build(cases()[name]))


def run_kernel(name: str, arguments: Mapping[str, Any], grid: tuple[int, int, int] = (1, 1, 1)) -> None:
    """Run a kernel of the oracle; its arrays are written in place. A tuple gives an argument for each element."""
    plan, memory = plan_of(name), GlobalMemory()
    names, values = [], []
    for key, value in arguments.items():
        parts = value if isinstance(value, tuple) else (value,)
        names.extend([key] * len(parts))
        values.extend(parts)
    launch = Launch(plan, memory, grid, (1, 1, 1), bind(plan.function, values, names, memory))
    list(run_clusters(launch, list(clusters(launch)), Settings()))


def random_array(rng: np.random.Generator, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
    """Random numbers: integers over their whole range, floats of a normal distribution."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)
