"""Schedules: a policy chooses between the tasks that can run and the transfers that can take effect.

All policies are deterministic for a seed. Every schedule that they produce is one that the hardware could produce.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Protocol

from tlx_xdsl.dialects.base import Kind, Space, accesses_of
from tlx_xdsl.errors import InputError

from .causes import explained
from .deadlock import deadlock
from .engine import Transfer
from .faults import Left, Race, UninitializedRead, fault_at
from .limits import POLICIES
from .machine import Cluster, Task

PATIENCE = 1000
"""Turns that the adversarial policy leaves to one task while others can run, too: a task that spins on global memory
must not keep those out that it waits for."""


class Policy(Protocol):
    """Chooses who goes on."""

    def choose(self, tasks: Sequence[Task], transfers: Sequence[Transfer]) -> Task | Transfer:
        """Choose a task that can run or a transfer that can take effect; there is at least one."""
        ...


class RoundRobin:
    """Each task in turn, and after every turn the oldest transfer: everything is as prompt as it can be."""

    def __init__(self) -> None:
        self._last = -1
        self._transfer_due = False

    def choose(self, tasks: Sequence[Task], transfers: Sequence[Transfer]) -> Task | Transfer:
        """The oldest transfer if one is due, else the task after the last one."""
        if transfers and (self._transfer_due or not tasks):
            self._transfer_due = False
            return min(transfers, key=lambda transfer: transfer.serial)
        self._transfer_due = True
        following = [task for task in tasks if task.agent > self._last]
        chosen = min(following or tasks, key=lambda task: task.agent)
        self._last = chosen.agent
        return chosen


class Random:
    """Policy of equal chances for all."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def choose(self, tasks: Sequence[Task], transfers: Sequence[Transfer]) -> Task | Transfer:
        """Choose any of them."""
        number = self._random.randrange(len(tasks) + len(transfers))
        return tasks[number] if number < len(tasks) else transfers[number - len(tasks)]


class Adversarial:
    """One task as far as it gets, and transfers only when no task can run, in random order."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._current: Task | None = None
        self._turns = 0

    def choose(self, tasks: Sequence[Task], transfers: Sequence[Transfer]) -> Task | Transfer:
        """The task that ran last, else the one that has run most."""
        if not tasks:
            return transfers[self._random.randrange(len(transfers))]
        if self._current in tasks and self._turns < PATIENCE:
            self._turns += 1
            return self._current  # pyright: ignore[reportReturnType]
        others = [task for task in tasks if task is not self._current] or tasks
        self._current = max(others, key=lambda task: (task.turns, -task.agent))
        self._turns = 0
        return self._current


def make_policy(name: str, seed: int) -> Policy:
    """The policy of that name.

    Raises ValueError for an unknown name.
    """
    match name:
        case "round-robin":
            return RoundRobin()
        case "random":
            return Random(seed)
        case "adversarial":
            return Adversarial(seed)
        case _:
            raise InputError(f"unknown schedule '{name}', expected one of {', '.join(POLICIES)}")


SPINS = 256
"""Repetitions of loops after which a cluster lets others go on, when no task has waited for anything in between and no
asynchronous operation has ended."""


_PAUSES = 0.5
"""Of the atomic operations at which others may go on, those at which they do in a schedule with a seed."""


def run(cluster: Cluster, policy: Policy, max_turns: int, *, pauses: bool = False) -> Iterator[bool]:
    """Run all tasks of a cluster to their end, and then what outlives them.

    Lets other clusters go on when it does nothing but spin (gives False), and when it can't go on until one of them
    writes something (gives True). If it `pauses`, also before each atomic operation on global memory (gives False).

    Raises Fault for what they do wrong, Deadlock when none can go on, and Fault when they take more than `max_turns`.
    """
    tasks = cluster.tasks
    observer = cluster.observer
    end = cluster.time + max_turns
    spins = 0
    while tasks:
        # Not by way of `is_ready` and `ready_transfers`: every turn passes here.
        ready = [task for task in tasks if task.waiting is None or task.waiting.ready()]
        transfers = [transfer for queue in cluster.busy for transfer in queue.ready] if cluster.busy else []
        if not ready and not transfers:
            if not any(task.waiting is not None and task.waiting.spins for task in tasks):
                raise deadlock(cluster)
            yield True
            continue
        chosen = policy.choose(ready, transfers)
        cluster.time += 1
        if isinstance(chosen, Transfer):
            spins = 0
            complete(cluster, chosen)
            continue
        if cluster.time > end:
            raise fault_at(
                chosen.op or cluster.plan.function, f"no end after {max_turns} turns: {chosen.label} still runs"
            )
        give_turn(chosen)
        if observer is not None:
            observer.ran(chosen)
        if chosen.waiting is not None:
            spins = spins + 1 if chosen.waiting.spins else 0
        is_pause = pauses and _communicates(chosen) and (cluster.chance is None or cluster.chance.random() < _PAUSES)
        if spins > SPINS or is_pause:
            spins = 0
            yield False
    while transfers := [transfer for queue in cluster.busy if queue.outlives for transfer in queue.ready]:
        chosen = policy.choose((), transfers)
        assert isinstance(chosen, Transfer)
        cluster.time += 1
        complete(cluster, chosen)


def _communicates(task: Task) -> bool:
    """Return whether a task that has given its turn back looks at what other programs do, or is about to."""
    if task.waiting is not None:
        return task.waiting.spins
    op = task.op
    return not task.ended and op is not None and any(
        Kind.ATOMIC in access.kind and access.space is Space.GLOBAL for access in accesses_of(op) or ()
    )  # fmt: skip


def is_ready(task: Task) -> bool:
    """Return whether a task can go on."""
    return task.waiting is None or task.waiting.ready()


def ready_transfers(cluster: Cluster) -> list[Transfer]:
    """The asynchronous operations that may take effect next."""
    return [transfer for queue in cluster.busy for transfer in queue.ready]


def complete(cluster: Cluster, transfer: Transfer) -> None:
    """Let an asynchronous operation take effect."""
    try:
        transfer.complete()
    except (Race, UninitializedRead) as fault:
        if transfer.issuer is None:
            raise
        raise explained(fault, transfer.issuer) from None
    if not transfer.queue.pending:
        del cluster.busy[transfer.queue]
    if cluster.observer is not None:
        cluster.observer.completed(cluster, transfer)


def give_turn(task: Task) -> None:
    """Let a task go on until it gives its turn back, and find out why it does."""
    task.waiting = None
    task.turns += 1
    assert task.coroutine is not None
    try:
        task.waiting = next(task.coroutine)
    except (Race, UninitializedRead) as fault:
        raise explained(fault, task) from None
    except (StopIteration, Left) as end:
        task.left = isinstance(end, Left)
        task.cluster.tasks.remove(task)
        task.ended = True
