"""One run of a launch in an order: all programs side by side, as many as are resident at once.

Steps that touch nothing others may touch are made as soon as they can, as a schedule has it, since their order makes no
difference. So each time that `Orders` is asked who goes on, all that can are before a step that may touch something.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import Sync, accesses_of, sync_of
from tlx_xdsl.dialects.scf import WhileOp

from .. import scheduler
from ..deadlock import pass_time
from ..endings import check_end
from ..engine import Transfer
from ..faults import fault_at
from ..global_order import GlobalOrder, Strength, strength_of
from ..grid import First, Unlaunched, by_rank
from ..launch import Settings, launches_of, next_gpu, note_end, noted, start, stuck_launch
from ..machine import Cluster, Launch, Observer, Task, ThreadBlock
from ..mbarrier import Mbarrier
from ..ops.clc import is_request
from ..polls import polls
from ..touches import LAUNCHES, Touch
from .reduction import Orders

LAUNCHER = "launch"
"""Who launches programs that another one may cancel."""


def run_in_order(
    launch: Launch, firsts: Sequence[First], settings: Settings, orders: Orders, observer: Observer | None = None
) -> int:
    """Run the clusters that begin at the programs `firsts` in the next order; gives the number of turns.

    Raises Fault for what the kernel does wrong in this order.
    """
    assert launch.order is not None
    whole = True
    try:
        with np.errstate(all="ignore"):
            run = _Run(launch, launch.order, settings, orders, observer, by_rank(firsts, launches_of(launch)))
            whole = run.to_the_end()
            return run.turns
    finally:
        launch.order.touches = None
        orders.end(whole=whole)


@dataclass(eq=False)
class _Running:
    number: int
    cluster: Cluster
    policy: scheduler.Policy
    began: int
    spins: int = 0
    names: Counter[tuple[int, int]] = field(default_factory=Counter[tuple[int, int]])
    """Tasks so far of each number in each thread block."""


@dataclass(eq=False)
class _Run:
    launch: Launch
    order: GlobalOrder
    settings: Settings
    orders: Orders
    observer: Observer | None
    waiting: list[Unlaunched]
    turns: int = 0
    _running: list[_Running] = field(default_factory=list[_Running])
    _started: int = 0
    _names: dict[Task | Transfer, str] = field(default_factory=dict["Task | Transfer", str])
    _issued: Counter[str] = field(default_factory=Counter[str])
    """Asynchronous operations that each agent has issued so far."""
    _now: str = ""
    """The agent that goes on."""
    _steps: dict[int, list[tuple[int, int]]] = field(default_factory=dict[int, list[tuple[int, int]]])
    """For each agent of the clocks, its counts after the steps that it has made, with the numbers of those."""
    _made: int = 0
    _may_touch: dict[Operation, bool] = field(default_factory=dict[Operation, bool])
    _polls: dict[Operation, bool] = field(default_factory=dict[Operation, bool])

    def __post_init__(self) -> None:
        self._may_cancel = any(is_request(op) for op in self.launch.plan.module.walk())

    def to_the_end(self) -> bool:
        """Run; False where the run was given up."""
        while True:
            self._settle()
            agents = self._agents()
            self.orders.see([*agents])
            if not agents:
                if not self._running:
                    return True
                if any(each.spins for each in self._running):
                    continue
                if not pass_time(clusters := [each.cluster for each in self._running]):
                    raise stuck_launch(clusters, self.waiting)
                continue
            chosen = self.orders.choose([*agents], self._polling())
            if chosen is None:
                return False
            if chosen not in agents or not self._step(chosen, agents[chosen]):
                return False

    # What touches nothing --------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Go on with all that touches nothing, until all that is left may touch something, or waits."""
        for each in [*self._running]:
            self._go_on(each)
        while not (self._may_cancel and self._running) and (gpu := self._next_gpu()) is not None:
            self._launch(gpu)

    def _next_gpu(self) -> Unlaunched | None:
        return next_gpu(self.waiting, [each.cluster for each in self._running])

    def _launch(self, gpu: Unlaunched) -> None:
        cluster, policy = start(self.launch, gpu, [], self.settings, self)
        cluster.chance = None
        running = _Running(self._started, cluster, policy, cluster.time)
        self._started += 1
        self._running.append(running)
        self._go_on(running)

    def _go_on(self, running: _Running) -> None:
        cluster = running.cluster
        with noted(cluster):
            cluster.budget.resume()
            running.spins = 0
            while running.spins <= scheduler.SPINS:
                tasks = [task for task in cluster.tasks if scheduler.is_ready(task) and not self._is_visible(task)]
                transfers = [each for each in scheduler.ready_transfers(cluster) if not self._touches(each.op)]
                if not cluster.tasks:
                    transfers = [each for each in transfers if each.queue.outlives]
                if not tasks and not transfers:
                    running.spins = 0
                    break
                chosen = running.policy.choose(tasks, transfers)
                self._now = self._name(running, chosen)
                self.order.touches = touches = []
                if isinstance(chosen, Transfer):
                    running.spins = 0
                    cluster.time += 1
                    scheduler.complete(cluster, chosen)
                else:
                    self._give_turn(running, chosen)
                    if (waiting := chosen.waiting) is not None:
                        running.spins = running.spins + 1 if waiting.spins else 0
                if touches:
                    self.orders.unexplored = f"what '{_op_of(chosen).name}' touches is not known before"
            cluster.budget.pause()
            if not cluster.tasks and not any(queue.outlives and queue.ready for queue in cluster.busy):
                check_end(cluster)
                note_end(cluster)
                self._running.remove(running)
                self.turns += cluster.time - running.began

    def _give_turn(self, running: _Running, task: Task) -> None:
        cluster = running.cluster
        cluster.time += 1
        if cluster.time - running.began > self.settings.max_turns:
            raise fault_at(
                task.op or cluster.plan.function,
                f"no end after {self.settings.max_turns} turns: {task.label} still runs",
            )
        scheduler.give_turn(task)
        if self.observer is not None:
            self.observer.ran(task)

    # What may touch something ----------------------------------------------------------------------------------------

    def _touches(self, op: Operation | None) -> bool:
        if op is None:
            return False
        if (found := self._may_touch.get(op)) is None:
            found = self._may_touch[op] = _touches(op)
        return found

    def _is_visible(self, task: Task) -> bool:
        """Return whether the next turn of a task may touch something: it stands before an operation that does."""
        return (task.waiting is None or isinstance(task.waiting.op, tt.Polls)) and self._touches(task.op)

    def _is_polling(self, task: Task) -> bool:
        op = task.op
        assert op is not None
        if (found := self._polls.get(op)) is None:
            found = self._polls[op] = isinstance(op, tt.Polls) or _is_in_a_poll(op)
        return found

    def _agents(self) -> dict[str, tuple[_Running, Task | Transfer] | None]:
        """Return who can make a step: those that poll first, since one that finds nothing makes none."""
        self.order.touches = None
        tasks: list[tuple[_Running, Task]] = []
        found: dict[str, tuple[_Running, Task | Transfer] | None] = {}
        for running in self._running:
            cluster = running.cluster
            tasks += [(running, task) for task in cluster.tasks if self._is_visible(task) and scheduler.is_ready(task)]
        for running, task in sorted(tasks, key=lambda each: not self._is_polling(each[1])):
            found[self._name(running, task)] = running, task
        for running in self._running:
            for transfer in scheduler.ready_transfers(running.cluster):
                if self._touches(transfer.op) and (running.cluster.tasks or transfer.queue.outlives):
                    found[self._name(running, transfer)] = running, transfer
        if self._may_cancel and self._next_gpu() is not None:
            found[LAUNCHER] = None
        return found

    def _polling(self) -> frozenset[str]:
        """The tasks that have polled in vain, and wait until something changes."""
        return frozenset(
            self._name(running, task)
            for running in self._running
            for task in running.cluster.tasks
            if task.waiting is not None and task.waiting.spins and not task.waiting.ready()
        )

    def _step(self, name: str, agent: tuple[_Running, Task | Transfer] | None) -> bool:
        """Make a step; False where the run is to be given up."""
        self._now = name
        touches: list[Touch] = []
        if agent is None:
            self.orders.made([Touch(LAUNCHES, None)], 0)
            self._made += 1
            gpu = self._next_gpu()
            assert gpu is not None
            self._launch(gpu)
            return True
        running, of = agent
        cluster = running.cluster
        known = self._known(of)
        ended = False
        if isinstance(of, Task):
            of.note()
        try:
            with noted(cluster):
                self.order.touches = touches
                cluster.budget.resume()
                ended = self._make(running, of)
                cluster.budget.pause()
        finally:
            self.order.touches = None
            going_on = self._note(of, touches, known, failed=ended)
        return going_on

    def _make(self, running: _Running, of: Task | Transfer) -> bool:
        """Make a step; True where it was none, since the task polls in vain."""
        if isinstance(of, Transfer):
            running.cluster.time += 1
            scheduler.complete(running.cluster, of)
            return False
        if of.waiting is not None and not of.waiting.ready():
            return True
        self._give_turn(running, of)
        return of.waiting is not None and (of.waiting.in_vain or (of.waiting.spins and not of.waiting.ready()))

    def _note(self, of: Task | Transfer, touches: Sequence[Touch], known: int, *, failed: bool) -> bool:
        if failed:
            return self.orders.failed(touches, known)
        if not touches:
            self.orders.nothing_made()
            return True
        agent, count = (of.mark, of.notes) if isinstance(of, Task) else (of.queue.agent, of.number)
        self._steps.setdefault(agent, []).append((count, self._made))
        self.orders.made(touches, known)
        self._made += 1
        return True

    def _known(self, of: Task | Transfer) -> int:
        """The last step of each other agent that one knows of, as bits."""
        clock = of.clock if isinstance(of, Task) else of.marks
        known = 0
        for agent, steps in self._steps.items():
            count = clock.seen.get(agent, 0)
            number = next((number for reached, number in reversed(steps) if reached <= count), None)
            if number is not None:
                known |= 1 << number
        return known

    def _name(self, running: _Running, of: Task | Transfer) -> str:
        if (name := self._names.get(of)) is None:
            assert isinstance(of, Task)
            key = (of.block.rank, of.number)
            name = self._names[of] = f"{running.number}.{of.block.rank}.{of.number}.{running.names[key]}"
            running.names[key] += 1
        return name

    # Reports to observers --------------------------------------------------------------------------------------------

    def began(self, cluster: Cluster) -> None:
        """See `Observer.began`."""
        if self.observer is not None:
            self.observer.began(cluster)

    def ran(self, task: Task) -> None:
        """See `Observer.ran`."""

    def issued(self, cluster: Cluster, transfer: Transfer) -> None:
        """See `Observer.issued`: an asynchronous operation has the name of who issues it, with a number."""
        self._names[transfer] = f"{self._now}/{self._issued[self._now]}"
        self._issued[self._now] += 1
        if self.observer is not None:
            self.observer.issued(cluster, transfer)

    def completed(self, cluster: Cluster, transfer: Transfer) -> None:
        """See `Observer.completed`."""
        if self.observer is not None:
            self.observer.completed(cluster, transfer)

    def flipped(self, barrier: Mbarrier, block: ThreadBlock) -> None:
        """See `Observer.flipped`."""
        if self.observer is not None:
            self.observer.flipped(barrier, block)


def _op_of(agent: Task | Transfer) -> Operation:
    assert agent.op is not None
    return agent.op


def _is_in_a_poll(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, WhileOp | scf.WhileOp) and polls(parent):
            return True
        parent = parent.parent_op()
    return False


def _touches(op: Operation) -> bool:
    """Return whether a step of an operation may touch something; one that declares nothing may."""
    return (
        is_request(op) or Sync.NAMED in sync_of(op) or accesses_of(op) is None or strength_of(op) is not Strength.WEAK
    )
