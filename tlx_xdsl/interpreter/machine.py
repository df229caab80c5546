"""The machine: a cluster of thread blocks with their memories, barriers, tasks and queues."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from xdsl.ir import Operation

from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.targets import Target

from .budget import Budget
from .clocks import Clock
from .code import Plan
from .dependent_launches import DEPENDENTS, EARLIER
from .descriptor import Descriptor
from .engine import OVER, Queue, TensorCore, Transfer
from .faults import fault_at
from .global_memory import GlobalMemory
from .global_order import GlobalOrder
from .grid import First, Program, Unlaunched, program_text
from .mbarrier import ClusterBarrier, Mbarrier, NamedBarrier, Passage
from .memory import Memory, Placement, View
from .ordered_memory import OrderedMemory
from .races import Actor
from .registry import Coroutine, Waiting
from .unwritten import UninitializedReadPolicy

TMEM_BYTES = 128 * 512 * 4
"""Tensor memory of a multiprocessor: 128 lanes x 512 columns of 32 bits (PTX ISA, "Tensor Memory Addressing")."""


class Observer(Protocol):
    """Receives what happens, for a trace: every turn ends in `ran` or `completed`."""

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


@dataclass
class HostTime:
    """The time of the host and its GPUs, which passes only when nothing can move."""

    now: int = 0
    """In nanoseconds."""


@dataclass(frozen=True)
class Launch:
    """The parts of a launch that all programs share."""

    plan: Plan
    memory: GlobalMemory
    grid: tuple[int, int, int]
    """Programs along each axis."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    """Thread blocks of a cluster along each axis."""
    arguments: Sequence[Any] = ()
    of_ranks: Sequence[Sequence[Sequence[Any]]] = ()
    """The arguments of each GPU in each of its launches, in the place of `arguments`, where several run the kernel."""
    warns_of_unwritten: bool = False
    """True if a read of uninitialized memory is only warned of, instead of a fault."""
    poisons_masked: bool = False
    """True if what a mask hides of a load has every bit set, where it would be 0."""
    target: Target | None = None
    """The GPU that it is for, which says how many programs are resident at once."""
    order: GlobalOrder | None = None
    """The accesses of all programs to global memory, where they are checked against each other."""
    fences_copies: bool = False
    """True if what cp.async writes needs a proxy fence before TMA and tensor cores read it."""
    in_issue_order: bool = False
    """True if all that one task issues to a tensor core of Blackwell counts as ordered (`tensor_core`)."""
    time: HostTime = field(default_factory=HostTime)


@dataclass(eq=False)
class Task:
    """One region of code on its warps."""

    block: ThreadBlock
    name: str
    """`the default task` or `partition 0`."""
    number: int
    """0 for the default task, else the number of the partition, from 1."""
    warps: int
    frame: list[Any]
    """The value of each SSA value of the function that runs, by its slot."""
    clock: Clock
    fenced: Clock = field(default_factory=Clock)
    """The knowledge that its fences have released to the cluster: a relaxed arrival there releases it."""
    fenced_system: Clock = field(default_factory=Clock)
    """The same of fences of scope `sys`, which release to other GPUs, too."""
    coroutine: Coroutine | None = None
    waiting: Waiting | None = None
    op: Operation | None = None
    """The operation that it is at: others have had their turn before it, or inside."""
    ended: bool = False
    left: bool = False
    """True if it has ended before the end of its code."""
    passed: Passage | None = None
    """Its last wait at an mbarrier or a named barrier."""
    turns: int = 0
    """The number of turns that it has had."""
    queues: dict[str, Queue] = field(default_factory=dict[str, Queue])
    tensor_core: TensorCore | None = None
    """Its operations on Blackwell's tensor cores."""
    cluster_phase: int | None = None
    """The phase of the cluster's barrier at which it has arrived, and for which it has not waited yet."""
    init_fences: int = 0
    """Fences so far that release initialised mbarriers to the cluster."""
    notes: int = 0
    """Waits and arrivals at mbarriers so far."""
    active: Array | None = None
    """A bool for each thread: whether it runs in the branch that the task is in; None where they all do."""
    bulk_writes: int = 0
    """The agent that writes global memory by its TMA stores, whose steps are those of their queue; 0 at first."""
    groups: list[int] = field(default_factory=list[int])
    """For each group of cp.async that it has committed, the number of its last copy."""

    def spend(self, loop: Operation, operations: int) -> None:
        """Count a turn of a loop; raises Fault where there are too many."""
        self.cluster.budget.spend(loop, operations)

    def __post_init__(self) -> None:
        cluster = self.cluster = self.block.cluster
        memory, self.order = cluster.launch.memory, cluster.launch.order
        self.global_memory = memory if self.order is None else OrderedMemory(memory, self.order, self)
        self.relaxed = Clock()
        """What has been released at the addresses in global memory that it has read without acquiring it."""
        self.relaxed_system = Clock()
        """The same, released to it by other GPUs: only a fence of scope `sys` acquires that."""
        self.agent = cluster.new_agent()
        """Makes what it does itself to the shared memory of its thread block."""
        self.remote_agent = cluster.new_agent()
        """Makes what it stores to the shared memory of others."""
        self.tensor_agent = cluster.new_agent()
        """Makes what it does to tensor memory, which it waits for itself."""
        self.init_mark = cluster.new_mark()
        """The agent whose steps are `init_fences`."""
        self.mark = cluster.new_mark()
        """The agent whose steps are `notes`: who sees what comes after one knows of it."""
        self.block.agents.update((self.agent, self.remote_agent))
        self.block.remote_agents.add(self.remote_agent)
        self.clock.seen[self.agent] = 1

    @property
    def program(self) -> Program:
        """The program of its thread block."""
        return self.block.program

    @property
    def threads(self) -> int:
        """Threads that run it."""
        return self.warps * 32

    @property
    def label(self) -> str:
        """Return the task's name, with its thread block where there are several."""
        return self.name if len(self.cluster.blocks) == 1 else f"{self.name} of CTA {self.block.rank}"

    # Knowledge -------------------------------------------------------------------------------------------------------

    def actor(self, op: Operation, view: View) -> Actor:
        """Return the agent and step of an access to a buffer that this task makes now."""
        agent = self.agent
        if view.memory is self.block.tensor:
            agent = self.tensor_agent
        elif view.memory.rank != self.block.rank:
            agent = self.remote_agent
        return Actor(agent, self.clock.seen.setdefault(agent, 1), op, self.label)

    def release(self) -> Clock:
        """Return what this task knows, for others to acquire; what it does from now on is not in it."""
        released = self.clock.copy()
        self._step()
        return released

    def release_performed(self) -> Clock:
        """Return what a thread block may rely on after an arrival that releases nothing to it.

        Asynchronous operations that were waited for are over, and so is what other thread blocks have released to this
        one; what the tasks of this one do themselves need not be.
        """
        return self.release().without(self.block.agents)

    def fence_cluster(self, *, shared_only: bool = False, system: bool = False) -> None:
        """Release what is known with the relaxed arrivals from now on; if `shared_only`, not stores to elsewhere.

        Acquires what relaxed reads of global memory have found released, unless `shared_only`. With `system` that holds
        for other GPUs, too.
        """
        if not shared_only:
            self.acquire(self.relaxed)
        if system:
            self.acquire(self.relaxed_system)
        known = self.release()
        self.fenced = known.without(self.block.remote_agents) if shared_only else known
        if system:
            self.fenced_system = known.copy()

    def note(self) -> None:
        """Count a wait or an arrival at an mbarrier."""
        self.notes += 1
        self.clock.observe(self.mark, self.notes)

    def acquire(self, clock: Clock) -> None:
        """Acquire what others have released."""
        self.clock.join(clock)

    def fence(self, *, in_shared: bool = True, in_global: bool = False) -> None:
        """Make all that is known visible to the async proxy; what this task writes from now on is not in it."""
        self.clock.fence(in_shared=in_shared, in_global=in_global)
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
        other = self.cluster.blocks[view.memory.rank]
        if not self.clock.knows(other.presence, 1):
            raise fault_at(
                op,
                f"{self.label} uses '{view.name}', and nothing orders that after the start of CTA {other.rank}",
                ("a tlx.cluster_barrier() before it does",),
            )
        other.visits[agent] = (step, op)

    # Asynchronous operations -----------------------------------------------------------------------------------------

    def queue(self, kind: str, *, in_order: bool, key: str | None = None, over: str = "") -> Queue:
        """The queue for operations of this task of a kind, such as `wgmma`; `over` says what their end is known by."""
        key = key or kind
        if (queue := self.queues.get(key)) is None:
            queue = self.cluster.new_queue(kind, self.label, in_order=in_order, rank=self.block.rank)
            queue.over = over or OVER.get(kind, "")
            self.queues[key] = queue
        return queue

    def issue(self, queue: Queue, op: Operation, finish: Callable[[Transfer], None]) -> Transfer:
        """Start an asynchronous operation."""
        transfer = self.cluster.issue(queue, op, finish, self.clock.only(self.cluster.passed_on))
        transfer.issuer = self
        return transfer

    def wait_for(self, queue: Queue, number: int, op: Operation, *, is_generic: bool = False) -> Coroutine:
        """Wait until the transfers of a queue up to `number` are complete, and acquire that.

        What they have written through the generic proxy (`is_generic`) needs a proxy fence.
        """
        yield Waiting(
            op,
            lambda: queue.done >= number,
            lambda: f"waits for the {queue.kind} number {queue.done + 1} of {queue.owner}",
        )
        queue.waited = max(queue.waited, number)
        queue.wait = op
        (self.clock.see if is_generic else self.clock.observe)(queue.agent, number)


class ThreadBlock:
    """One thread block: a program."""

    def __init__(self, cluster: Cluster, rank: int):
        self.cluster = cluster
        self.rank = rank
        """In the cluster (PTX: %cluster_ctarank)."""
        self.program: Program = (0, 0, 0)
        reads = cluster.uninitialized_reads
        self.shared = Memory("shared memory", 1 << 16, rank, cluster.shared_placement, reads, grows=True)
        self.tensor = Memory("tensor memory", TMEM_BYTES, rank, cluster.tensor_placement, reads)
        self.named_barriers: dict[int, NamedBarrier] = {}
        self.scratch: dict[Operation, int] = {}
        """Addresses of the global memory that each program here has for itself, by what asks for it."""
        self.descriptors: dict[Operation, Descriptor] = {}
        """What operations that make one descriptor after the other have written there last."""
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
            clock.observe(self.presence, 1)
        task = Task(self, name, number, warps, frame, clock)
        if self.main is None:
            self.main = task
            self.crew = [task]
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
    tensor_cores: list[TensorCore] = field(default_factory=list[TensorCore])
    """The operations of tasks on tensor cores, on Blackwell."""
    marks: set[int] = field(default_factory=set[int])
    """Agents that stand for a fact, and access no memory: even a barrier that orders no memory releases them."""
    passed_on: set[int] = field(default_factory=set[int])
    """The agents of which the end of an asynchronous operation releases what its task knew: those facts, and other
    asynchronous operations. What its task itself has written is not among them."""
    barrier: ClusterBarrier = field(default_factory=ClusterBarrier)
    released: dict[int, Clock] = field(default_factory=dict[int, Clock])
    """For each address in global memory, what those knew who have released something there by an atomic operation."""
    number: int = 0
    """The number of its launch among those of its GPU."""
    waiting_clusters: Unlaunched | None = None
    """The clusters that are not launched yet, which cluster launch control may cancel."""
    requests: Queue | None = None
    """The requests to cluster launch control."""
    chance: random.Random | None = None
    """Decides whether the remaining clusters are launched before this one can take one of them over; None if not."""
    failed_request: int | None = None
    """The first of them that found no cluster."""
    schedule: str = ""
    """The schedule and the seed, for reports."""
    budget: Budget = field(default_factory=Budget)
    time: int = 0
    """Turns so far."""
    clock_reads: int = 0
    """Reads of the cycle counter so far."""
    observer: Observer | None = None
    shared_placement: Placement = field(default_factory=Placement)
    tensor_placement: Placement = field(default_factory=Placement)
    uninitialized_reads: UninitializedReadPolicy = field(default_factory=UninitializedReadPolicy)
    _agents: int = 0
    _serial: int = 0

    def __post_init__(self) -> None:
        if self.launch.warns_of_unwritten:
            self.uninitialized_reads.note = lambda: self.note
        x, y, z = self.launch.cluster
        self.blocks.extend(ThreadBlock(self, rank) for rank in range(x * y * z))

    @property
    def gpu(self) -> int:
        """The rank of the GPU that it runs on; 0 where there is one."""
        return self.blocks[0].program[3] if self.launch.of_ranks else 0

    @property
    def plan(self) -> Plan:
        """The code that runs."""
        return self.launch.plan

    def begin(self, first: First) -> None:
        """Forget the cluster before, and place the thread blocks at the programs from `first` on."""
        self.tasks.clear()
        self.busy.clear()
        self.queues.clear()
        self.marks.clear()
        self.passed_on.clear()
        # Who waits for a copy knows what its issuer has waited for.
        self.passed_on.update((EARLIER, DEPENDENTS))
        self.tensor_cores.clear()
        self.requests = self.failed_request = None
        self.barrier = ClusterBarrier()
        self.released.clear()
        order = self.launch.order
        self._agents = 0 if order is None else order.first_agent(self.number)
        x, y, _ = self.launch.cluster
        for block in self.blocks:
            rank = block.rank
            offset = (rank % x, rank // x % y, rank // (x * y))
            block.program = (first[0] + offset[0], first[1] + offset[1], first[2] + offset[2], *first[3:])
            block.shared.clear()
            block.tensor.clear()
            block.named_barriers.clear()
            block.main = None
            block.crew = []
            block.visits.clear()
            block.agents.clear()
            block.remote_agents.clear()

    @property
    def note(self) -> str:
        """Return which programs it runs, and how: with every report, so that it can be had again."""
        first = self.blocks[0].program
        where = f"program {program_text(first, self.number)}"
        if len(self.blocks) > 1:
            where = f"the cluster of programs {first[:3]} to {program_text(self.blocks[-1].program, self.number)}"
        return f"in {where}, {self.schedule}" if self.schedule else f"in {where}"

    def new_agent(self) -> int:
        """A number for a task or a queue."""
        self._agents += 1
        return self._agents

    def new_mark(self) -> int:
        """A number for a fact that tasks release to each other."""
        self.marks.add(agent := self.new_agent())
        self.passed_on.add(agent)
        return agent

    def new_engine(self) -> int:
        """A number for asynchronous operations, of which later ones release that they are over."""
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
