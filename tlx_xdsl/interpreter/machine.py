"""The machine: a cluster of thread blocks with their memories, barriers, tasks and queues."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from xdsl.ir import Operation

from tlx_xdsl.interpreter.clocks import Clock
from tlx_xdsl.interpreter.deadlock import barrier_notes
from tlx_xdsl.interpreter.engine import Queue, Transfer
from tlx_xdsl.interpreter.faults import fault_at, place
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.mbarrier import ClusterBarrier, Mbarrier, NamedBarrier
from tlx_xdsl.interpreter.memory import Memory, Placement
from tlx_xdsl.interpreter.task import Task
from tlx_xdsl.interpreter.unwritten import Leniency
from tlx_xdsl.text.diagnostics import report_warning

if TYPE_CHECKING:
    from tlx_xdsl.interpreter.plan import Plan
    from tlx_xdsl.interpreter.tensor_core import TensorCore

TMEM_BYTES = 128 * 512 * 4
"""Tensor memory of a multiprocessor: 128 lanes x 512 columns of 32 bits (PTX ISA, "Tensor Memory Addressing")."""

WAITED_FOR = ("TMA store", "cp.async", "wgmma")
"""Asynchronous operations that a task waits for itself: they read its memory, or write it, until they are done."""


class Observer(Protocol):
    """Is told what happens, for a trace: every turn ends in `ran` or `completed`."""

    def began(self, cluster: Cluster) -> None:
        """The thread blocks of a cluster stand at their programs."""
        ...

    def ran(self, task: Task) -> None:
        """A task had a turn."""
        ...

    def issued(self, cluster: Cluster, transfer: Transfer) -> None:
        """A task has started an asynchronous operation."""
        ...

    def completed(self, cluster: Cluster, transfer: Transfer) -> None:
        """An asynchronous operation has taken effect."""
        ...

    def flipped(self, barrier: Mbarrier, block: ThreadBlock) -> None:
        """A phase of an mbarrier is complete."""
        ...


@dataclass(frozen=True)
class Launch:
    """What all programs of a launch share."""

    plan: Plan
    memory: GlobalMemory
    grid: tuple[int, int, int]
    """Programs along each axis."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    """Thread blocks of a cluster along each axis."""
    arguments: Sequence[Any] = ()
    warns_of_unwritten: bool = False
    """Whether a read of memory that nobody has written is only warned of, instead of a fault."""
    in_issue_order: bool = False
    """Whether all that one task issues to a tensor core of Blackwell counts as ordered (`tensor_core`)."""


class ThreadBlock:
    """One thread block: a program."""

    def __init__(self, cluster: Cluster, rank: int):
        self.cluster = cluster
        self.rank = rank
        """In the cluster (PTX: %cluster_ctarank)."""
        self.program: tuple[int, int, int] = (0, 0, 0)
        leniency = cluster.leniency
        self.shared = Memory(
            "shared memory", 1 << 16, rank, grows=True, placement=cluster.shared_placement, leniency=leniency
        )
        self.tensor = Memory("tensor memory", TMEM_BYTES, rank, placement=cluster.tensor_placement, leniency=leniency)
        self.named_barriers: dict[int, NamedBarrier] = {}
        self.scratch: dict[Operation, int] = {}
        """Addresses of the global memory that each program here has for itself, by what asks for it."""
        self.tasks: list[Task] = []
        """The tasks that have not ended."""
        self.main: Task | None = None
        """The default task."""
        self.crew: list[Task] = []
        """The tasks that meet at the cluster's barrier: the default one, and the partitions while there are any."""
        self.presence = 0
        """The agent whose step 1 is the start of this thread block."""
        self.agents: set[int] = set()
        """The agents that stand for what tasks have done themselves to shared memory."""
        self.remote_agents: set[int] = set()
        """Those of them that stand for stores to other thread blocks' memory."""
        self.visits: dict[int, tuple[int, Operation]] = {}
        """The last accesses of other thread blocks to the memory of this one, by agent."""

    def named_barrier(self, number: int) -> NamedBarrier:
        """The named barrier of that number."""
        return self.named_barriers.setdefault(number, NamedBarrier(number))

    def start(self, name: str, number: int, warps: int, frame: list[Any], clock: Clock) -> Task:
        """A new task, which has no code yet."""
        if self.main is None:
            self.presence = self.cluster.new_mark()
            clock.learn(self.presence, 1)
        task = Task(self, name, number, warps, frame, clock)
        if self.main is None:
            self.main = task
            self.crew = [task]
        self.tasks.append(task)
        self.cluster.tasks.append(task)
        return task


@dataclass(eq=False)
class Cluster:
    """The thread blocks that run together."""

    launch: Launch
    blocks: list[ThreadBlock] = field(default_factory=list[ThreadBlock])
    tasks: list[Task] = field(default_factory=list[Task])
    """The tasks that have not ended."""
    busy: dict[Queue, None] = field(default_factory=dict[Queue, None])
    """The queues with something in flight."""
    queues: list[Queue] = field(default_factory=list[Queue])
    tensor_cores: list[TensorCore] = field(default_factory=list["TensorCore"])
    """What tasks have issued to tensor cores, on Blackwell."""
    marks: set[int] = field(default_factory=set[int])
    """Agents that stand for a fact, and access no memory: even a barrier that orders no memory tells of them."""
    passed_on: set[int] = field(default_factory=set[int])
    """The agents of which an asynchronous operation tells what its task knew, when it is over: those facts, and other
    asynchronous operations. What its task itself has written is not told."""
    barrier: ClusterBarrier = field(default_factory=ClusterBarrier)
    released: dict[int, Clock] = field(default_factory=dict[int, Clock])
    """For each address in global memory, what those knew who have released something there by an atomic operation."""
    waiting_clusters: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    """First programs of the clusters that are not launched yet, which cluster launch control may cancel."""
    requests: Queue | None = None
    """The requests to cluster launch control."""
    chance: random.Random | None = None
    """Decides whether the remaining clusters are launched before this one can take one of them over; None if not."""
    failed_request: int | None = None
    """The first of them that found no cluster."""
    schedule: str = ""
    """How it is run, for reports."""
    time: int = 0
    """Turns so far."""
    observer: Observer | None = None
    shared_placement: Placement = field(default_factory=Placement)
    tensor_placement: Placement = field(default_factory=Placement)
    leniency: Leniency | None = None
    """What goes on where bytes are read that nobody has written, if the launch wants that."""
    _agents: int = 0
    _serial: int = 0

    def __post_init__(self) -> None:
        if self.launch.warns_of_unwritten:
            self.leniency = Leniency(lambda: self.note)
        x, y, z = self.launch.cluster
        self.blocks.extend(ThreadBlock(self, rank) for rank in range(x * y * z))

    @property
    def plan(self) -> Plan:
        """The code that runs."""
        return self.launch.plan

    def begin(self, first: tuple[int, int, int]) -> None:
        """Forget the cluster before, and place the thread blocks at the programs from `first` on."""
        self.tasks.clear()
        self.busy.clear()
        self.queues.clear()
        self.marks.clear()
        self.passed_on.clear()
        self.tensor_cores.clear()
        self.requests = self.failed_request = None
        self.barrier = ClusterBarrier()
        self.released.clear()
        self._agents = 0
        x, y, _ = self.launch.cluster
        for block in self.blocks:
            rank = block.rank
            offset = (rank % x, rank // x % y, rank // (x * y))
            block.program = (first[0] + offset[0], first[1] + offset[1], first[2] + offset[2])
            block.shared.clear()
            block.tensor.clear()
            block.named_barriers.clear()
            block.tasks.clear()
            block.main = None
            block.crew = []
            block.visits.clear()
            block.agents.clear()
            block.remote_agents.clear()

    @property
    def note(self) -> str:
        """Which programs it runs, and how: with every report, so that it can be had again."""
        first = self.blocks[0].program
        where = f"program {first}"
        if len(self.blocks) > 1:
            where = f"the cluster of programs {first} to {self.blocks[-1].program}"
        return f"in {where}, {self.schedule}" if self.schedule else f"in {where}"

    def finish(self) -> None:
        """Warn of what a run has left behind: barriers with a phase under way, copies in flight, unread results.

        Raises Fault for a use of a thread block's memory that the block need not have lived to see.
        """
        for queue in self.queues:
            if queue.kind in WAITED_FOR and queue.waited < queue.issued and queue.last is not None:
                self._warn(
                    queue.last,
                    f"{queue.owner} ends without waiting for {queue.issued - queue.waited} of its {queue.kind}s",
                )
        for core in self.tensor_cores:
            main = self.blocks[core.rank].main
            assert main is not None
            for agent, (number, op) in core.last.items():
                if not main.clock.knows(agent, number):
                    self._warn(op, f"{core.queue.owner} ends, and nothing has waited for this to be complete")
        for block in self.blocks:
            assert block.main is not None
            for agent, (step, op) in block.visits.items():
                if not block.main.clock.knows(agent, step):
                    raise fault_at(
                        op,
                        f"the memory of CTA {block.rank} is used, and nothing keeps that CTA from ending before",
                        ("a tlx.cluster_barrier() at the end of the kernel does",),
                    )
            self._check_barriers(block)
            for named in block.named_barriers.values():
                if named.arrived:
                    self._warn(
                        op := next(iter(named.ops.values())),
                        f"named barrier {named.number} ends with {named.arrived} of {named.threads} threads arrived",
                        named.others(op),
                    )

    def _check_barriers(self, block: ThreadBlock) -> None:
        """Warn of the mbarriers that a thread block leaves."""
        for barrier in block.shared.barriers.values():
            self.check_barrier(barrier)
            if (ended := block.shared.ended) is not None:
                self._warn(
                    barrier.op,
                    f"nothing ends the life of '{barrier.name}' (mbarrier.inval), as it is done for others: stock "
                    "Triton may give its memory to another buffer while it is in use",
                    (f"such as at {place(ended)}",),
                )

    def check_barrier(self, barrier: Mbarrier) -> None:
        """Warn of a barrier at the end of its life: of a phase under way, and of data that nobody has waited for."""
        if barrier.is_armed:
            self._warn(
                barrier.op,
                f"'{barrier.name}' ends in the middle of its phase {barrier.phase}, which lacks {barrier.missing}",
                barrier_notes(barrier),
            )
        elif barrier.data_phase >= barrier.waited:
            self._warn(
                barrier.op,
                f"nobody has waited for phase {barrier.data_phase} of '{barrier.name}', which asynchronous copies "
                "have completed",
                barrier_notes(barrier),
            )

    def _warn(self, op: Operation, message: str, notes: Sequence[str] = ()) -> None:
        report_warning(op, message, (*notes, self.note))

    def new_agent(self) -> int:
        """A number for a task or a queue."""
        self._agents += 1
        return self._agents

    def new_mark(self) -> int:
        """A number for a fact that tasks tell each other."""
        self.marks.add(agent := self.new_agent())
        self.passed_on.add(agent)
        return agent

    def new_engine(self) -> int:
        """A number for asynchronous operations, of which later ones tell that they are over."""
        self.passed_on.add(agent := self.new_agent())
        return agent

    def new_queue(self, kind: str, owner: str, *, in_order: bool, rank: int = 0) -> Queue:
        """A queue of asynchronous operations of a task, which is of the thread block `rank`."""
        queue = Queue(self.new_engine(), kind, owner, in_order, rank)
        self.queues.append(queue)
        return queue

    def issue(self, queue: Queue, op: Operation, finish: Callable[[Transfer], None], marks: Clock) -> Transfer:
        """Start an asynchronous operation of a task that knows the facts `marks`."""
        queue.issued += 1
        queue.last = op
        self._serial += 1
        transfer = Transfer(queue, queue.issued, op, f"the {queue.kind} of {queue.owner}", finish, marks, self._serial)
        queue.pending.append(transfer)
        self.busy[queue] = None
        if self.observer is not None:
            self.observer.issued(self, transfer)
        return transfer
