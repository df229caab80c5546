"""Run all programs of a grid, one cluster after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tlx_xdsl.interpreter import scheduler
from tlx_xdsl.interpreter.clocks import Clock
from tlx_xdsl.interpreter.machine import Cluster, Launch, Observer
from tlx_xdsl.interpreter.task import Coroutine, Task

MAX_TURNS = 50_000_000
"""Turns of a cluster after which it counts as one that never ends."""


@dataclass(frozen=True)
class Settings:
    """How programs are run."""

    schedule: str = "round-robin"
    """A policy of `scheduler.POLICIES`."""
    seed: int = 0
    max_turns: int = MAX_TURNS


def clusters(launch: Launch) -> Iterator[tuple[int, int, int]]:
    """The first program of each cluster, the x axis fastest.

    Raises ValueError where clusters do not fill the grid.
    """
    for axis, (programs, blocks) in zip("xyz", zip(launch.grid, launch.cluster, strict=True), strict=True):
        if programs < 0 or blocks < 1 or programs % blocks:
            raise ValueError(f"the grid has {programs} programs along {axis}, no multiple of the cluster's {blocks}")
    x, y, z = (range(0, size, part) for size, part in zip(launch.grid, launch.cluster, strict=True))
    return ((i, j, k) for k in z for j in y for i in x)


def run_clusters(
    launch: Launch,
    firsts: Sequence[tuple[int, int, int]],
    settings: Settings,
    observer: Observer | None = None,
) -> Iterator[int]:
    """Run the clusters that begin at the programs `firsts`; gives the number of turns that each has taken.

    Raises Fault for what a kernel does wrong; what it leaves behind is reported as warnings.
    """
    cluster = Cluster(launch, observer=observer)
    cluster.waiting_clusters = list(firsts)
    with np.errstate(all="ignore"):
        while cluster.waiting_clusters:
            first = cluster.waiting_clusters.pop(0)
            cluster.begin(first)
            for block in cluster.blocks:
                task = block.start("the default task", 0, launch.plan.warps, [], Clock())
                task.coroutine = _kernel(task, launch)
            before = cluster.time
            policy = scheduler.make_policy(settings.schedule, hash((settings.seed, first)))
            scheduler.run(cluster, policy, settings.max_turns)
            cluster.finish()
            yield cluster.time - before


def _kernel(task: Task, launch: Launch) -> Coroutine:
    return launch.plan.kernel.call(task, launch.arguments)
