"""A task: the warps of a thread block that run one region of code together, as a coroutine."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.ir import Operation

from tlx_xdsl.interpreter.clocks import Clock
from tlx_xdsl.interpreter.engine import OVER, Queue, Transfer
from tlx_xdsl.interpreter.faults import fault_at, place
from tlx_xdsl.interpreter.mbarrier import Mbarrier
from tlx_xdsl.interpreter.memory import View
from tlx_xdsl.interpreter.races import Actor
from tlx_xdsl.interpreter.users import lines
from tlx_xdsl.numerics.arrays import Array

if TYPE_CHECKING:
    from tlx_xdsl.interpreter.machine import ThreadBlock
    from tlx_xdsl.interpreter.tensor_core import TensorCore


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a task cannot go on."""

    op: Operation
    ready: Callable[[], bool]
    reason: Callable[[], str]
    """What it waits for, and what is missing, for the report of a deadlock."""
    barrier: View | None = None
    """The mbarrier that it waits at."""
    named: int | None = None
    """The named barrier that it waits at."""
    spins: bool = False
    """Whether it may wait for what another program writes: it repeats a loop, or polls."""


Coroutine: TypeAlias = Generator[Waiting | None, None, Any]
"""Yields why it cannot go on, or None where another task may have its turn."""


class Task:
    """One region of code on its warps."""

    def __init__(self, block: ThreadBlock, name: str, number: int, warps: int, frame: list[Any], clock: Clock):
        self.block = block
        self.name = name
        """`the default task` or `partition 0`."""
        self.number = number
        """0 for the default task, else the number of the partition, from 1."""
        self.warps = warps
        self.frame = frame
        """The value of each SSA value of the function that runs, by its slot."""
        self.agent = block.cluster.new_agent()
        """Makes what it does itself to the shared memory of its thread block."""
        self.remote_agent = block.cluster.new_agent()
        """Makes what it stores to the shared memory of others."""
        self.tensor_agent = block.cluster.new_agent()
        """Makes what it does to tensor memory, which it waits for where it stands."""
        block.agents.update((self.agent, self.remote_agent))
        block.remote_agents.add(self.remote_agent)
        self.fenced = Clock()
        """What its fences have released to the cluster: a relaxed arrival there tells of it."""
        self.clock = clock
        self.clock.seen[self.agent] = 1
        self.coroutine: Coroutine | None = None
        self.waiting: Waiting | None = None
        self.op: Operation | None = None
        """The operation that it is at: others have had their turn in front of it, or inside."""
        self.ended = False
        self.passed: tuple[Operation, Mbarrier] | None = None
        """Where it has waited at an mbarrier last."""
        self.turns = 0
        """How often it has run."""
        self.queues: dict[str, Queue] = {}
        self.tensor_core: TensorCore | None = None
        """What it has issued to Blackwell's tensor cores."""
        self.cluster_phase: int | None = None
        """The phase of the cluster's barrier at which it has arrived, and for which it has not waited yet."""
        self.init_fences = 0
        """Fences so far that tell the cluster of initialised mbarriers."""
        self.init_mark = block.cluster.new_mark()
        """The agent whose steps they are."""
        self.notes = 0
        """Waits and arrivals at mbarriers so far."""
        self.mark = block.cluster.new_mark()
        """The agent whose steps they are: who sees what comes behind one knows of it."""
        self.groups: list[int] = []
        """For each group of cp.async that it has committed, the number of its last copy."""

    @property
    def threads(self) -> int:
        """Threads that run it."""
        return self.warps * 32

    @property
    def label(self) -> str:
        """Its name, with its thread block where there are several."""
        return self.name if len(self.block.cluster.blocks) == 1 else f"{self.name} of CTA {self.block.rank}"

    def story(self) -> list[str]:
        """What it has waited for last, for the report of a race."""
        if self.passed is None:
            return [f"{self.label} has waited at no mbarrier so far"]
        op, barrier = self.passed
        told = [f"{self.label} has last waited at '{barrier.name}', at {place(op)}; that phase had got:"]
        return told + [f"    {line}" for line in lines([arrival.op for arrival in barrier.before])]

    # Knowledge -------------------------------------------------------------------------------------------------------

    def actor(self, op: Operation, view: View) -> Actor:
        """Tell who makes an access to a buffer when this task makes one now."""
        agent = self.agent
        if view.memory is self.block.tensor:
            agent = self.tensor_agent
        elif view.memory.rank != self.block.rank:
            agent = self.remote_agent
        return Actor(agent, self.clock.seen.setdefault(agent, 1), op, self.label)

    def release(self) -> Clock:
        """What this task knows, to be told to others; what it does from now on is not in it."""
        told = self.clock.copy()
        self._step()
        return told

    def release_performed(self) -> Clock:
        """What a thread block learns from an arrival that releases nothing to it.

        Asynchronous operations that were waited for are over, and so is what other thread blocks have released to this
        one; what the tasks of this one do themselves need not be.
        """
        return self.release().without(self.block.agents)

    def fence_cluster(self, *, shared_only: bool = False) -> None:
        """Release what is known with the relaxed arrivals from now on; if `shared_only`, not stores to elsewhere."""
        known = self.release()
        self.fenced = known.without(self.block.remote_agents) if shared_only else known

    def note(self) -> None:
        """Count a wait or an arrival at an mbarrier."""
        self.notes += 1
        self.clock.learn(self.mark, self.notes)

    def acquire(self, clock: Clock) -> None:
        """Learn what others have told."""
        self.clock.join(clock)

    def fence(self) -> None:
        """Make all that is known visible to the async proxy; what this task writes from now on is not in it."""
        self.clock.fence()
        self._step()

    def _step(self) -> None:
        for agent in (self.agent, self.remote_agent, self.tensor_agent):
            if agent in self.clock.seen:
                self.clock.seen[agent] += 1

    # Memory ----------------------------------------------------------------------------------------------------------

    def read(self, op: Operation, view: View) -> Array:
        """Read a buffer.

        Raises Fault for a race, and for bytes that were not written.
        """
        view.cell.read(self.actor(op, view), self.clock, view.name)
        return view.read(op)

    def write(self, op: Operation, view: View, values: Array) -> None:
        """Write a buffer.

        Raises Fault for a race.
        """
        view.cell.overwrite(self.actor(op, view), self.clock, view.name)
        view.write(values)

    def reach(self, op: Operation, view: View, agent: int, step: int) -> None:
        """Note that this task, or a transfer that it issues, uses a buffer, which may be another thread block's.

        Raises Fault when nothing says that the other thread block has started.
        """
        if view.memory.rank == self.block.rank:
            return
        other = self.block.cluster.blocks[view.memory.rank]
        if not self.clock.knows(other.presence, 1):
            raise fault_at(
                op,
                f"{self.label} uses '{view.name}', and nothing tells it that CTA {other.rank} has started",
                ("a tlx.cluster_barrier() in front of it does",),
            )
        other.visits[agent] = (step, op)

    # Asynchronous operations -----------------------------------------------------------------------------------------

    def queue(self, kind: str, *, in_order: bool, key: str | None = None, over: str = "") -> Queue:
        """The queue for operations of this task of a kind, such as `wgmma`; `over` says how one learns of their end."""
        key = key or kind
        if (queue := self.queues.get(key)) is None:
            queue = self.block.cluster.new_queue(kind, self.label, in_order=in_order, rank=self.block.rank)
            queue.over = over or OVER.get(kind, "")
            self.queues[key] = queue
        return queue

    def issue(self, queue: Queue, op: Operation, finish: Callable[[Transfer], None]) -> Transfer:
        """Start an asynchronous operation."""
        return self.block.cluster.issue(queue, op, finish, self.clock.only(self.block.cluster.passed_on))

    def wait_for(self, queue: Queue, number: int, op: Operation) -> Coroutine:
        """Wait until the transfers of a queue up to `number` are complete, and learn that they are."""
        yield Waiting(
            op,
            lambda: queue.done >= number,
            lambda: f"waits for the {queue.kind} number {queue.done + 1} of {queue.owner}",
        )
        queue.waited = max(queue.waited, number)
        queue.wait = op
        self.clock.learn(queue.agent, number)
