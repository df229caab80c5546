"""Time a launch in the thread that makes it: a kernel of one program that does next to nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cpu import kernels
from benchmarks.cpu.cases import torch_or_none
from tlx_xdsl.cpu.runtime.pool import Pool

BATCH = 200
"""Launches between two looks at the clock."""


def microseconds(launch: Callable[[], Any], rounds: int) -> list[float]:
    """CPU time of one launch, the mean of a batch, for each round."""
    found: list[float] = []
    for _ in range(rounds):
        before = time.thread_time_ns()
        for _ in range(BATCH):
            launch()
        found.append((time.thread_time_ns() - before) / BATCH / 1e3)
    return found


def launch_costs(rounds: int) -> dict[str, list[float]]:
    """Microseconds of launches with three arrays, a number and a constant, by what they are made with."""
    torch = torch_or_none()
    kernel = kernels.vector_add
    arrays = [np.ones(16, np.float32) for _ in range(3)]
    ways: dict[str, Callable[[], Any]] = {
        "kernel[grid], numpy": lambda: kernel[(1,)](*arrays, 16, BLOCK=16),
        "bound": kernel.bind((1,), *arrays, 16, BLOCK=16),
    }
    if torch is not None:
        tensors = [torch.ones(16) for _ in range(3)]
        ways["kernel[grid], torch"] = lambda: kernel[(1,)](*tensors, 16, BLOCK=16)
        # For comparison: what torch takes to add them.
        ways["torch.add"] = lambda: torch.add(tensors[0], tensors[1], out=tensors[2])
    for launch in ways.values():
        launch()
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, launch in ways.items():
            found[name] += microseconds(launch, 1)
    return found


def wake_up(rounds: int) -> list[float]:
    """Microseconds of wall-clock time until a thread of the pool has taken part in a job that is nothing."""
    found: list[float] = []
    for _ in range(rounds):
        pool = Pool(2)
        found.append(pool.wake_up_ns() / 1e3)
        pool.stop()
    return found
