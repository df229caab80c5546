"""Run all programs of a grid, one cluster after the other."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from . import scheduler
from .budget import Budget
from .clocks import Clock
from .deadlock import deadlock, pass_time, waits
from .endings import check_end
from .faults import Fault
from .grid import First, Firsts, Unlaunched, by_rank, firsts_of
from .limits import MAX_OPERATIONS, MAX_SECONDS, MAX_TURNS, SEEDED
from .machine import Cluster, Launch, Observer


@dataclass(frozen=True)
class Settings:
    """The settings of a run."""

    schedule: str = "round-robin"
    """A policy of `limits.POLICIES`."""
    seed: int = 0
    max_turns: int = MAX_TURNS
    max_operations: int = MAX_OPERATIONS
    max_seconds: float = MAX_SECONDS
    overlapping: bool = False
    """Whether clusters go on in turn at their atomic operations, and start side by side."""

    @property
    def name(self) -> str:
        """Return how to ask for the same schedule again."""
        seed = f", seed {self.seed}" if self.schedule in SEEDED else ""
        return f"schedule '{self.schedule}'{seed}{', overlapping' if self.overlapping else ''}"


def clusters(launch: Launch) -> Firsts:
    """The first program of each cluster of a launch; raises ValueError as `firsts_of` does."""
    return firsts_of(launch.grid, launch.cluster, len(launch.of_ranks))


def run_clusters(
    launch: Launch,
    firsts: Sequence[First],
    settings: Settings,
    observer: Observer | None = None,
    idle: list[Cluster] | None = None,
) -> Generator[int]:
    """Run the clusters that begin at the programs `firsts`; gives the number of turns that each has taken.

    They run one after the other, as far as they can: when one does nothing but repeat a loop or poll, it may wait for
    what a later one writes, and the next ones go on beside it. With `overlapping` they are side by side from the start,
    and each goes as far as its next atomic operation.
    `idle` are clusters of this launch that have run before, to be used again: they know where buffers lie.
    Raises Fault for what a kernel does wrong; what it leaves unfinished is reported as warnings.
    """
    waiting = by_rank(firsts, launches_of(launch))
    idle = [] if idle is None else idle
    running: list[_Running] = []
    stuck = 0
    with np.errstate(all="ignore"):
        while any(waiting) or running:
            if not running and (first := next_gpu(waiting, ())) is not None:
                running.append(_run(*start(launch, first, idle, settings, observer), settings))
            current = running.pop(0)
            written = launch.memory.changes.count
            with noted(current.cluster):
                current.cluster.budget.resume()
                state = next(current.progress, _ENDED)
                current.cluster.budget.pause()
            if state is _ENDED:
                stuck = 0
                with noted(current.cluster):
                    check_end(current.cluster)
                note_end(current.cluster)
                if launch.order is None:  # what a cluster has done is kept by its agents
                    idle.append(current.cluster)
                yield current.cluster.time - current.began
                continue
            running.append(current)
            # Who has written something before it waits may have released another one.
            stuck = stuck + 1 if state and launch.memory.changes.count == written else 0
            if (gpu := next_gpu(waiting, [each.cluster for each in running])) is not None:
                running.insert(0, _run(*start(launch, gpu, idle, settings, observer), settings))
            elif stuck >= len(running):
                # All have been asked in turn, and each waits for another one.
                stuck = 0
                if not pass_time(clusters := [each.cluster for each in running]):
                    raise stuck_launch(clusters, waiting)


def next_gpu(waiting: Sequence[Unlaunched], running: Sequence[Cluster]) -> Unlaunched | None:
    """The GPU that launches its next cluster: of those that have one and a place for it, one that runs the fewest."""
    if not any(waiting):
        return None
    counts = Counter(cluster.gpu for cluster in running)
    most = resident_clusters(running[0]) if running else 1
    earlier = {cluster.gpu: cluster.number for cluster in running}
    able = [
        each for each in waiting
        if each and counts[each.rank] < most and earlier.get(each.rank, each.launch) == each.launch
    ]  # fmt: skip
    return min(able, key=lambda each: counts[each.rank], default=None)


def launches_of(launch: Launch) -> int:
    """The launches of each GPU, one after the other."""
    return len(launch.of_ranks[0]) if launch.of_ranks else 1


def note_end(cluster: Cluster) -> None:
    """Keep what is over when a cluster has ended: the end of a launch makes that visible to the GPU's next one."""
    order = cluster.launch.order
    if order is None or launches_of(cluster.launch) == 1:
        return
    known = order.over.setdefault((cluster.gpu, cluster.number), Clock())
    for block in cluster.blocks:
        assert block.main is not None
        known.join(block.main.clock)
    for queue in cluster.queues:
        known.observe(queue.agent, queue.issued)
        if queue.writes:
            known.observe(queue.writes, queue.issued)
    known.fence(in_global=True)


def stuck_launch(running: Sequence[Cluster], waiting: Sequence[Unlaunched]) -> Fault:
    """The report of a launch in which all that run wait for something: what the first program waits for, and why.

    Where several GPUs run, the first one is one that has come least far, for which others most likely wait; it also
    says what the first program of each other GPU waits for.
    """
    in_order = sorted(running, key=lambda cluster: (_steps(cluster), cluster.blocks[0].program[::-1]))
    first = in_order[0]
    fault = deadlock(first)
    for other in [next(each for each in in_order if each.gpu == gpu) for gpu in sorted({each.gpu for each in running})]:
        if other is not first:
            fault.notes = (*fault.notes, *waits(other))
    left = next((each for each in waiting if each.rank == first.gpu and each), None)
    if left is not None and left.launch == first.number:
        count = sum(each.gpu == first.gpu for each in running)
        fault.notes = (*fault.notes, *residency(first, count, len(left)))
    fault.notes = (*fault.notes, first.note)
    return fault


def _steps(cluster: Cluster) -> int:
    """Count the releases of a cluster of one of several GPUs, after the launches before: how far it has come."""
    if not cluster.launch.of_ranks:
        return 0
    main = cluster.blocks[0].main
    return (cluster.number << 32) + (0 if main is None else main.clock.seen.get(main.agent, 1))


@contextmanager
def noted(cluster: Cluster) -> Generator[None]:
    """Say with a fault which programs it is of."""
    try:
        yield
    except Fault as fault:
        fault.notes = (*fault.notes, cluster.note)
        raise


_ENDED = object()
RESIDENT = 128
"""Clusters that run side by side at most where no target is known: as many as a GPU has multiprocessors, roughly."""

_CTA_BYTES = 1 << 10
"""Shared memory that a CTA takes beside its own (CUDA C++ Programming Guide, "Shared Memory" of 8.x and later)."""

_MOST_CTAS = 32
"""CTAs of a multiprocessor at most (the same, "Technical Specifications per Compute Capability")."""


def resident_clusters(cluster: Cluster) -> int:
    """Clusters like this one that a GPU runs side by side.

    Threads and shared memory count, the latter as this cluster has used it so far, without buffers over each other;
    registers, which ptxas allots, do not.
    """
    target = cluster.launch.target
    if target is None:
        return RESIDENT
    used = max(block.shared.placement.end for block in cluster.blocks)
    by_memory = (target.shared_bytes + _CTA_BYTES) // (used + _CTA_BYTES)
    by_threads = target.resident_threads // (cluster.plan.most_warps * 32)
    ctas = target.multiprocessors * max(1, min(by_memory, by_threads, _MOST_CTAS))
    return max(1, ctas // len(cluster.blocks))


def residency(cluster: Cluster, running: int, waiting: int) -> list[str]:
    """Notes of a deadlock: how many clusters are resident at once, and how many are not."""
    target = cluster.launch.target
    if target is None:
        return []
    used = max(block.shared.placement.end for block in cluster.blocks)
    what = "programs" if len(cluster.blocks) == 1 else f"clusters of {len(cluster.blocks)} programs"
    size = f"{cluster.plan.most_warps * 32} threads and {used:,} bytes of shared memory"
    return [
        f"{running} {what} of {size} are resident at once on {target.multiprocessors} multiprocessors ({target.name}); "
        f"{waiting} more start when one of them ends"
    ]


@dataclass(frozen=True)
class _Running:
    cluster: Cluster
    progress: Iterator[bool]
    began: int
    """The cluster's time when it began."""


def _run(cluster: Cluster, policy: scheduler.Policy, settings: Settings) -> _Running:
    progress = scheduler.run(cluster, policy, settings.max_turns, pauses=settings.overlapping)
    return _Running(cluster, progress, cluster.time)


def start(
    launch: Launch,
    waiting: Unlaunched,
    idle: list[Cluster],
    settings: Settings,
    observer: Observer | None,
) -> tuple[Cluster, scheduler.Policy]:
    """Launch the next cluster, before its first turn, with what schedules it; one of `idle` where there is any."""
    cluster = idle.pop() if idle else Cluster(launch, observer=observer)
    cluster.waiting_clusters = waiting
    cluster.number, first = waiting.launch, waiting.take()
    cluster.begin(first)
    cluster.budget = Budget(settings.max_operations, settings.max_seconds)
    cluster.schedule = settings.name
    seed = hash((settings.seed, first))
    cluster.chance = None if settings.schedule == "round-robin" else random.Random(seed)
    if observer is not None:
        observer.began(cluster)
    for block in cluster.blocks:
        before = None if launch.order is None else launch.order.over.get((cluster.gpu, cluster.number - 1))
        task = block.start("the default task", 0, launch.plan.warps, [], Clock() if before is None else before.copy())
        numbers = (*block.program[:3], *launch.grid)
        coordinates = [np.int32(number) for number in numbers][: launch.plan.coordinates]
        arguments = launch.of_ranks[cluster.gpu][cluster.number] if launch.of_ranks else launch.arguments
        task.coroutine = launch.plan.kernel.call(task, [*arguments, *coordinates])
    return cluster, scheduler.make_policy(settings.schedule, seed)
