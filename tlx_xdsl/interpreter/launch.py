"""Run all programs of a grid, one cluster after the other."""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from tlx_xdsl.interpreter import scheduler
from tlx_xdsl.interpreter.budget import MAX_OPERATIONS, MAX_SECONDS, Budget
from tlx_xdsl.interpreter.clocks import Clock
from tlx_xdsl.interpreter.deadlock import deadlock
from tlx_xdsl.interpreter.endings import check_end
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.interpreter.grid import First, Firsts, Unlaunched, firsts_of
from tlx_xdsl.interpreter.machine import Cluster, Launch, Observer

MAX_TURNS = 10_000_000
"""Turns of a cluster after which it counts as one that never ends."""


@dataclass(frozen=True)
class Settings:
    """The settings of a run."""

    schedule: str = "round-robin"
    """A policy of `scheduler.POLICIES`."""
    seed: int = 0
    max_turns: int = MAX_TURNS
    max_operations: int = MAX_OPERATIONS
    max_seconds: float = MAX_SECONDS

    @property
    def name(self) -> str:
        """Return how to ask for the same schedule again."""
        seed = f", seed {self.seed}" if self.schedule in scheduler.SEEDED else ""
        return f"schedule '{self.schedule}'{seed}"


def clusters(launch: Launch) -> Firsts:
    """The first program of each cluster of a launch; raises ValueError as `firsts_of` does."""
    return firsts_of(launch.grid, launch.cluster)


def run_clusters(
    launch: Launch,
    firsts: Sequence[First],
    settings: Settings,
    observer: Observer | None = None,
    idle: list[Cluster] | None = None,
) -> Generator[int]:
    """Run the clusters that begin at the programs `firsts`; gives the number of turns that each has taken.

    They run one after the other, as far as they can: when one does nothing but repeat a loop or poll, it may wait for
    what a later one writes, and the next ones go on beside it.
    `idle` are clusters of this launch that have run before, to be used again: they know where buffers lie.
    Raises Fault for what a kernel does wrong; what it leaves unfinished is reported as warnings.
    """
    waiting = Unlaunched(firsts)
    idle = [] if idle is None else idle
    running: list[_Running] = []
    stuck = 0
    with np.errstate(all="ignore"):
        while waiting or running:
            if not running:
                running.append(_start(launch, waiting, idle, settings, observer))
            current = running.pop(0)
            with _noted(current.cluster):
                current.cluster.budget.resume()
                state = next(current.progress, _ENDED)
                current.cluster.budget.pause()
            if state is _ENDED:
                stuck = 0
                with _noted(current.cluster):
                    check_end(current.cluster)
                if launch.order is None:  # what a cluster has done is kept by its agents
                    idle.append(current.cluster)
                yield current.cluster.time - current.began
                continue
            running.append(current)
            stuck = stuck + 1 if state else 0
            if waiting and len(running) < RESIDENT:
                running.insert(0, _start(launch, waiting, idle, settings, observer))
            elif stuck >= len(running):
                # All have been asked in turn, and each waits for another one.
                first = min((each.cluster for each in running), key=lambda cluster: cluster.blocks[0].program[::-1])
                with _noted(first):
                    raise deadlock(first)


@contextmanager
def _noted(cluster: Cluster) -> Generator[None]:
    """Say with a fault which programs it is of."""
    try:
        yield
    except Fault as fault:
        fault.notes = (*fault.notes, cluster.note)
        raise


_ENDED = object()
RESIDENT = 128
"""Clusters that run side by side at most: as many as a GPU has multiprocessors, roughly."""


@dataclass(frozen=True)
class _Running:
    cluster: Cluster
    progress: Iterator[bool]
    began: int
    """The cluster's time when it began."""


def _start(
    launch: Launch,
    waiting: Unlaunched,
    idle: list[Cluster],
    settings: Settings,
    observer: Observer | None,
) -> _Running:
    cluster = idle.pop() if idle else Cluster(launch, observer=observer)
    cluster.waiting_clusters = waiting
    first = waiting.take()
    cluster.begin(first)
    cluster.budget = Budget(settings.max_operations, settings.max_seconds)
    cluster.schedule = settings.name
    seed = hash((settings.seed, first))
    cluster.chance = None if settings.schedule == "round-robin" else random.Random(seed)
    if observer is not None:
        observer.began(cluster)
    for block in cluster.blocks:
        task = block.start("the default task", 0, launch.plan.warps, [], Clock())
        coordinates = [np.int32(number) for number in (*block.program, *launch.grid)][: launch.plan.coordinates]
        task.coroutine = launch.plan.kernel.call(task, [*launch.arguments, *coordinates])
    policy = scheduler.make_policy(settings.schedule, seed)
    return _Running(cluster, scheduler.run(cluster, policy, settings.max_turns), cluster.time)
