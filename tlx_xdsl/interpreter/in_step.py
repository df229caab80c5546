"""All programs of a launch in step: in each step, whoever can go on does so once, on all GPUs at the same time.

The turns of a run follow each other. Here they lie beside each other, so that a picture shows what runs beside what.
A step is no time: a task takes one from where others may have their turn to the next such place, and of the
asynchronous operations of a queue one is over in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from . import scheduler
from .deadlock import pass_time
from .endings import check_end
from .engine import Transfer
from .faults import fault_at
from .grid import First, by_rank
from .launch import Settings, launches_of, next_gpu, note_end, noted, start, stuck_launch
from .machine import Cluster, Launch, Observer, Task


class StepObserver(Observer, Protocol):
    """Receives what happens, and when."""

    now: int
    """Steps that are over."""


def run_in_step(launch: Launch, firsts: Sequence[First], settings: Settings, observer: StepObserver) -> int:
    """Run the clusters that begin at the programs `firsts`, as many as are resident; gives the number of turns.

    Raises Fault for what the kernel does wrong, and where it takes more steps than a cluster may take turns.
    """
    waiting, running, turns = by_rank(firsts, launches_of(launch)), list[Cluster](), 0
    with np.errstate(all="ignore"):
        while any(waiting) or running:
            while (gpu := next_gpu(waiting, running)) is not None:
                running.append(start(launch, gpu, [], settings, observer)[0])
            # Who can go on is known before anyone does, so that it makes no difference which rank comes first.
            moved = sum(_step(*each) for each in [_able(cluster) for cluster in running])
            turns += moved
            observer.now += 1
            if observer.now > settings.max_turns:
                raise fault_at(launch.plan.function, f"no end after {settings.max_turns} steps")
            if not moved and not pass_time(running):
                raise stuck_launch(running, waiting)
            for cluster in [each for each in running if not each.tasks and not _outliving(each)]:
                with noted(cluster):
                    check_end(cluster)
                note_end(cluster)
                running.remove(cluster)
    return turns


def _able(cluster: Cluster) -> tuple[Cluster, list[Task], list[Transfer]]:
    """The tasks of a cluster that can go on, and of each queue the operation that takes effect next."""
    tasks = [task for task in cluster.tasks if scheduler.is_ready(task)]
    transfers = [queue.ready[0] for queue in cluster.busy if queue.ready and (cluster.tasks or queue.outlives)]
    return cluster, tasks, transfers


def _step(cluster: Cluster, tasks: Sequence[Task], transfers: Sequence[Transfer]) -> int:
    """Let each have its turn; gives how many there were."""
    with noted(cluster):
        cluster.budget.resume()
        for transfer in transfers:
            scheduler.complete(cluster, transfer)
        for task in [each for each in tasks if scheduler.is_ready(each)]:
            scheduler.give_turn(task)
            if cluster.observer is not None:
                cluster.observer.ran(task)
        cluster.budget.pause()
    cluster.time += 1
    return len(tasks) + len(transfers)


def _outliving(cluster: Cluster) -> bool:
    return any(queue.outlives and queue.ready for queue in cluster.busy)
