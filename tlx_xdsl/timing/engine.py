"""The replay of traces on multiprocessors, in cycles: an event-driven simulation.

A multiprocessor has four sub-partitions. The warps that compute on one at the same time share its issue slots and its
pipes in proportion to what each would take alone, and keep their pace where these suffice. Everything else serves
requests in their order: the tensor core of a sub-partition, the banks of shared memory, TMA, the way to the L2 cache.
So the end of a request is known when it is made, and a phase of a barrier ends with the last of what counts towards it.

Which warp runs when follows from the trace's dependences and these times alone, not from the order of the recording.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Literal, TypeAlias

from .chips import Chip
from .memory import Caching, Memory, Server
from .pieces import BlockCost, Work
from .trace import BYTES_OF_K, Event, Point, Step, Trace, Warp

SUB_PARTITIONS = 4
"""Parts of a multiprocessor; a warp lives on that of its number modulo 4."""
_NEVER = float("inf")

MarkKind: TypeAlias = Literal["work", "wait", "issue", "copy", "product", "store", "phase"]


@dataclass(slots=True)
class Mark:
    """An interval of a replay that took time."""

    kind: MarkKind
    cta: int
    """The place of its CTA in `Replayed.ctas`."""
    unit: int
    """The warp that did it or asked for it; for a phase the place of the `Point` in its trace."""
    start: float
    end: float
    at: int
    """The instruction; -1 for a phase."""
    after: int
    """The mark that let it begin or end, by its place in `Replayed.marks`; -1 for none."""
    event: Event | None = None
    by: int = -1
    """For a wait the instruction that ended it; -1 for none."""


@dataclass(slots=True)
class ReplayedCta:
    """A CTA of a replay."""

    trace: int
    """The place of its trace among the ones that were replayed."""
    number: int
    """Its number in the grid."""
    processor: int
    start: float
    end: float = 0.0


@dataclass(slots=True)
class Replayed:
    """Times and loads of a replay; waits and marks by the numbers of instructions."""

    ctas: list[ReplayedCta] = field(default_factory=list[ReplayedCta])
    end: float = 0.0
    """When the last CTA has ended, with what it stores."""
    processors: int = 1
    tensor: float = 0.0
    """Cycles of work of all tensor cores."""
    issue: float = 0.0
    """Slots that all warps have issued."""
    pipes: list[float] = field(default_factory=list[float])
    """Cycles of work of all pipes of each kind, in the order of `instructions.PIPES`."""
    banks: float = 0.0
    """Cycles of work of the banks of shared memory."""
    dram: float = 0.0
    """Cycles of the multiprocessors' shares of DRAM that were used."""
    l2: float = 0.0
    """As `dram`, of the L2 cache."""
    waits: dict[tuple[int, int, int], float] = field(default_factory=dict[tuple[int, int, int], float])
    """Cycles of waits by the warp, the waiting instruction, and the one that ended the wait (-1: none)."""
    copies: dict[int, tuple[int, float]] = field(default_factory=dict[int, tuple[int, float]])
    """How many copies by TMA each instruction made, and the cycles that they took together."""
    stuck: int = 0
    """Warps that waited for something that is not in their trace."""
    marks: list[Mark] = field(default_factory=list[Mark])
    events: int = 0


class _Demand:
    """A `Work` as a sub-partition takes it: cycles alone, and the share of each resource in each of them."""

    __slots__ = ("amounts", "first", "latency", "more", "shares")

    def __init__(self, amounts: Sequence[float], latency: float, first: int):
        self.amounts = tuple(amounts)
        self.latency = max(latency, *amounts)
        self.first = first
        self.shares = tuple((number, each / self.latency) for number, each in enumerate(amounts) if each)
        self.more: dict[_Demand, _Demand] = {}

    def then(self, other: _Demand) -> _Demand:
        """Return both, one after the other."""
        found = self.more.get(other)
        if found is None:
            amounts = [each + also for each, also in zip(self.amounts, other.amounts, strict=True)]
            found = self.more[other] = _Demand(amounts, self.latency + other.latency, self.first)
        return found


_TINY = 1e-6
_MOST_MERGED = 4_000.0
"""Cycles of work up to which pieces are joined."""


class _Job:
    """A warp at work on its sub-partition."""

    __slots__ = ("demand", "left", "life", "pace")

    def __init__(self, life: _Life, demand: _Demand):
        self.life = life
        self.demand = demand
        self.left = demand.latency
        self.pace = 1.0


class _SubPartition:
    """Four of these are a multiprocessor: a fluid of jobs, and a tensor core."""

    __slots__ = ("jobs", "loads", "slowdown", "stamp", "tensor", "time")

    def __init__(self, resources: int, slowdown: float):
        self.slowdown = slowdown
        """By how much a job is slower while the tensor core works."""
        self.jobs: list[_Job] = []
        self.loads = [0.0] * resources
        self.stamp = 0
        self.time = 0.0
        self.tensor = Server()

    def progress(self, now: float) -> None:
        """Let the jobs go on to a time."""
        passed = now - self.time
        self.time = now
        if passed > 0.0:
            for job in self.jobs:
                job.left -= passed * job.pace

    def settle(self) -> float:
        """Share the resources anew, and return the cycles until the first job ends or the tensor core does."""
        jobs = self.jobs
        busy = self.tensor.free - self.time
        slowest = self.slowdown if busy > _TINY else 1.0
        if len(jobs) == 1:
            jobs[0].pace = 1.0 / slowest
            first = jobs[0].left * slowest
            return min(first, busy) if busy > _TINY else first
        loads = self.loads
        for number in range(len(loads)):
            loads[number] = 0.0
        for job in jobs:
            for number, share in job.demand.shares:
                loads[number] += share
        first = _NEVER
        for job in jobs:
            most = 1.0
            for number, _ in job.demand.shares:
                if loads[number] > most:
                    most = loads[number]
            most *= slowest
            job.pace = 1.0 / most
            first = min(first, job.left * most)
        return min(first, busy) if busy > _TINY else first


class _Processor:
    """A multiprocessor."""

    __slots__ = (
        "banks",
        "descriptors",
        "memory",
        "operands",
        "parts",
        "product5",
        "remote",
        "starts",
    )

    def __init__(self, memory: Memory, resources: int, slowdown: float):
        self.parts = [_SubPartition(resources, slowdown) for _ in range(SUB_PARTITIONS)]
        self.banks = Server()
        self.operands = Server()
        """The banks once more, as tensor cores see them: threads come first, and what TMA writes costs nothing."""
        self.descriptors: set[int] = set()
        """Instructions of TMA whose descriptor was fetched."""
        self.remote = Server()
        self.starts = Server()
        self.product5 = Server()
        self.memory = memory


_Cause: TypeAlias = tuple[int, int]
"""Why a wait has ended: an instruction, and its mark where marks are kept; -1 for none."""
_Groups: TypeAlias = "deque[tuple[float, float, _Cause]]"
"""Groups of copies or products: when all of one has been read, when it is done, and what was the last to be done."""
_NO_CAUSE: _Cause = (-1, -1)


class _Phase:
    """A `Point` of a cluster that is replayed."""

    __slots__ = ("by", "first", "left", "point", "time", "waiting")

    def __init__(self, point: Point):
        self.point = point
        self.left = point.contributions
        self.time = 0.0
        self.first = _NEVER
        self.by = _NO_CAUSE
        self.waiting: list[_Life] = []


class _Life:
    """A warp on its way through its steps."""

    __slots__ = (
        "arriving", "cluster", "copies", "cta", "last", "open", "part", "processor", "products", "run", "stores",
        "tensor", "under_way", "warp",
    )  # fmt: skip

    def __init__(self, warp: Warp, cluster: _Cluster, cta: int, processor: _Processor):
        self.warp = warp
        self.cluster = cluster
        self.cta = cta
        self.processor = processor
        self.part = processor.parts[warp.number % SUB_PARTITIONS]
        self.last = -1
        """Its latest mark."""
        self.arriving: dict[int, tuple[float, int]] = {}
        """When registers of loads in flight are there, and the instruction that fills them."""
        self.under_way: dict[int, deque[float]] = {}
        """Of a register that several turns of a loop load for: when those are there that nothing waits for yet."""
        self.open: dict[str, tuple[float, float, _Cause]] = {}
        """Of each kind of groups the one that is not closed."""
        self.products: _Groups = deque()
        self.copies: _Groups = deque()
        self.stores: _Groups = deque()
        self.tensor = 0.0
        """When its accesses to tensor memory are done."""
        self.run: Generator[float | _Demand | None, float] | None = None


class _Cluster:
    """CTAs that start together."""

    __slots__ = ("ctas", "drained", "left", "phases")

    def __init__(self, ctas: list[int], phases: list[_Phase], left: dict[int, int]):
        self.ctas = ctas
        """The places of its CTAs in `Replayed.ctas`, in the order of its trace."""
        self.phases = phases
        self.left = left
        """The warps that still run, by the CTA."""
        self.drained = 0.0
        """When all that its CTAs store has arrived."""


_Item: TypeAlias = tuple["_Demand | None", "frozenset[int] | None", int]
"""A piece of work, the registers that it needs, and the place in its step of the event that follows, or -1."""


class Replay:
    """A replay of clusters on as many multiprocessors as a cluster has CTAs."""

    def __init__(
        self,
        chip: Chip,
        costs: Sequence[BlockCost],
        *,
        caching: Caching,
        sharers: int,
        shared_bytes: float = 0.0,
        marks: bool = False,
    ):
        """Prepare a replay, in which so many `sharers` of L2 and DRAM work, and `marks` are kept or not.

        `shared_bytes` are those of shared memory that all CTAs of a multiprocessor take.
        """
        self._chip = chip
        self._costs = costs
        self._caching = caching
        self._sharers = sharers
        self._shared_bytes = shared_bytes
        self._keeps = marks
        self._found = Replayed()
        self._heap: list[tuple[float, int, _SubPartition | _Life, int]] = []
        self._waiting: deque[tuple[int, Trace]] = deque()
        self._serial = 0
        self._dirty: dict[_SubPartition, None] = {}
        self._plans: dict[tuple[int, tuple[int, ...]], list[_Item]] = {}
        self._demands: dict[Work, _Demand] = {}
        self._results = {
            at: (found, cost.lag) for cost in costs for at, found in zip(cost.ats, cost.results, strict=True) if found
        }
        self._resources = 1 + max((len(work.pipes) for cost in costs for work in cost.pieces), default=0)
        self._product_cycles: dict[tuple[tuple[int, int, int], bool], tuple[float, float]] = {}
        self._handlers = {
            "signal": self._signal, "tma_load": self._tma_load, "tma_store": self._tma_store,
            "tma_commit": self._tma_commit, "tma_wait": self._tma_wait, "copy": self._copy,
            "copy_commit": self._copy_commit, "copy_wait": self._copy_wait, "wgmma": self._wgmma,
            "wgmma_commit": self._wgmma_commit, "wgmma_wait": self._wgmma_wait, "load": self._load,
            "store": self._store, "atomic": self._atomic, "shared": self._shared, "remote": self._remote,
            "mma5": self._mma5, "mma5_commit": self._mma5_commit, "tensor_load": self._tensor_access,
            "tensor_store": self._tensor_access, "tensor_copy": self._mma5, "tensor_wait": self._tensor_wait,
            "sleep": self._sleep,
        }  # fmt: skip

    def run(self, traces: Sequence[Trace], *, side_by_side: int = 1, cluster: int = 1) -> Replayed:
        """Replay traces of a cluster each, so many of them at a time; the next starts when one has ended."""
        found = self._found
        processors = [
            _Processor(
                Memory(self._chip, self._caching, self._sharers, self._shared_bytes),
                self._resources,
                self._chip.product_slowdown,
            )
            for _ in range(cluster)
        ]
        found.processors = cluster
        found.pipes = [0.0] * (self._resources - 1)
        self._waiting = deque(enumerate(traces))
        for _ in range(min(side_by_side, len(traces))):
            self._start(processors, 0.0)
        now = self._simulate(processors)
        for cta in found.ctas:
            cta.end = cta.end or now
            found.end = max(found.end, cta.end)
        for processor in processors:
            found.tensor += sum(part.tensor.busy for part in processor.parts) + SUB_PARTITIONS * processor.product5.busy
            found.banks += processor.banks.busy
            found.dram += processor.memory.dram.busy
            found.l2 += processor.memory.l2.busy
        return found

    def _simulate(self, processors: Sequence[_Processor]) -> float:
        """Let all warps run to their ends, and return the time of the last of what they did."""
        heap, dirty = self._heap, self._dirty
        now = 0.0
        while heap:
            now = heap[0][0]
            ready: list[_Life] = []
            while heap and heap[0][0] <= now:
                _, _, what, stamp = heappop(heap)
                if isinstance(what, _Life):
                    ready.append(what)
                elif stamp == what.stamp:
                    what.progress(now)
                    ready.extend(job.life for job in what.jobs if job.left <= _TINY)
                    what.jobs = [job for job in what.jobs if job.left > _TINY]
                    dirty[what] = None
            for life in ready:
                ended = self._go_on(life, now)
                if ended is not None:
                    self._start(processors, ended)
            for part in dirty:
                part.stamp += 1
                if part.jobs:
                    self._push(now + part.settle(), part, part.stamp)
            dirty.clear()
        return now

    # Warps -----------------------------------------------------------------------------------------------------------

    def _push(self, time: float, what: _SubPartition | _Life, stamp: int = 0) -> None:
        self._serial += 1
        heappush(self._heap, (time, self._serial, what, stamp))

    def _start(self, processors: Sequence[_Processor], now: float) -> None:
        """Start the next cluster, if there is one."""
        if not self._waiting:
            return
        number, trace = self._waiting.popleft()
        starts = processors[0].starts
        begin = max(now, starts.take(now, self._chip.cta_interval_cycles) - self._chip.cta_interval_cycles)
        begin += self._chip.cta_start_cycles
        first = len(self._found.ctas)
        places = list(range(first, first + len(trace.ctas)))
        for place, cta in enumerate(trace.ctas):
            self._found.ctas.append(ReplayedCta(number, cta, place % len(processors), begin))
        cluster = _Cluster(places, [_Phase(point) for point in trace.points], dict.fromkeys(places, 0))
        self._found.stuck += len(trace.warps)
        for warp in trace.warps:
            cta = places[warp.cta]
            cluster.left[cta] += 1
            life = _Life(warp, cluster, cta, processors[warp.cta % len(processors)])
            life.run = self._live(life)
            next(life.run)
            self._push(begin, life)
            self._found.events += sum(len(step.events) for step in warp.steps)

    def _go_on(self, life: _Life, now: float) -> float | None:
        """Let a warp go on until it waits; return the time at which its cluster has ended, if it has."""
        run = life.run
        assert run is not None
        try:
            what = run.send(now)
        except StopIteration:
            return self._end(life, now)
        if what is None:
            return None
        if not isinstance(what, _Demand):
            self._push(what, life)
            return None
        part = life.part
        part.progress(now)
        part.jobs.append(_Job(life, what))
        self._dirty[part] = None
        return None

    def _end(self, life: _Life, now: float) -> float | None:
        cluster, found = life.cluster, self._found
        found.stuck -= 1
        cluster.left[life.cta] -= 1
        if cluster.left[life.cta]:
            return None
        found.ctas[life.cta].end = max(now, cluster.drained)
        if any(cluster.left.values()):
            return None
        return now

    def _live(self, life: _Life) -> Generator[float | _Demand | None, float]:
        """Go through the steps of a warp; each value that is yielded says what it needs to go on."""
        now = yield None
        pending: _Demand | None = None
        plans, handlers, arriving = self._plans, self._handlers, life.arriving
        for step in life.warp.steps:
            events = step.events
            key = (step.block, tuple([event.at for event in events]))
            plan = plans.get(key)
            if plan is None:
                plan = plans[key] = self._plan(step)
            for demand, needs, place in plan:
                if needs is not None and arriving and not needs.isdisjoint(arriving):
                    now = yield from self._finish(life, pending, now)
                    pending = None
                    now = yield from self._need(life, demand, needs, now)
                if demand is not None:
                    if pending is not None and pending.latency > _MOST_MERGED:
                        now = yield from self._finish(life, pending, now)
                        pending = None
                    pending = demand if pending is None else pending.then(demand)
                if place >= 0:
                    if pending is not None:
                        now = yield from self._finish(life, pending, now)
                        pending = None
                    event = events[place]
                    if event.kind == "wait":
                        now = yield from self._wait(life, event, now)
                    else:
                        until = handlers[event.kind](life, event, now)
                        if until > now:
                            now = yield until
        yield from self._finish(life, pending, now)

    def _finish(
        self, life: _Life, pending: _Demand | None, now: float
    ) -> Generator[float | _Demand | None, float, float]:
        """Do work that is pending."""
        if pending is None:
            return now
        end = yield pending
        found = self._found
        found.issue += pending.amounts[0]
        for number, _ in pending.shares:
            if number:
                found.pipes[number - 1] += pending.amounts[number]
        if self._keeps:
            life.last = self._mark(Mark("work", life.cta, life.warp.number, now, end, pending.first, life.last))
        return end

    def _need(
        self, life: _Life, demand: _Demand | None, needs: frozenset[int], now: float
    ) -> Generator[float | _Demand | None, float, float]:
        """Wait for registers of loads in flight."""
        latest, by = max([life.arriving.pop(each) for each in needs if each in life.arriving])
        if latest <= now:
            return now
        yield latest
        self._waited(life, by if demand is None else demand.first, now, latest, (by, life.last))
        return latest

    def _wait(self, life: _Life, event: Event, now: float) -> Generator[float | _Demand | None, float, float]:
        """Wait for points."""
        if not event.points:
            return (yield now + self._chip.wait_loop_cycles)
        for number in event.points:
            phase = life.cluster.phases[number]
            start = now
            if phase.left > 0:
                phase.waiting.append(life)
                now = yield None
            else:
                least = self._chip.wait_loop_cycles if phase.point.kind == "mbarrier" else 0.0
                now = yield max(phase.time + self._wake(phase), now + least)
            self._waited(life, event.at, start, now, phase.by, event)
        return now

    def _plan(self, step: Step) -> list[_Item]:
        """Return the work of a step, cut where its events are and where it needs what is loaded."""
        cost = self._costs[step.block]
        places: dict[int, list[int]] = {}
        for place, event in enumerate(step.events):
            places.setdefault(event.at, []).append(place)
        items: list[_Item] = []
        for number, (piece, needs) in enumerate(zip(cost.pieces, cost.needs, strict=True)):
            borne = places.pop(cost.ats[number], []) if number < len(cost.ats) else []
            items.append((self._demand(piece), needs or None, borne[0] if borne else -1))
            items.extend((None, None, place) for place in borne[1:])
        items.extend((None, None, place) for borne in places.values() for place in borne)
        return items

    def _demand(self, work: Work) -> _Demand | None:
        if work.latency <= 0.0 and work.slots <= 0.0:
            return None
        found = self._demands.get(work)
        if found is None:
            pipes = (*work.pipes, *(0.0 for _ in range(self._resources - 1 - len(work.pipes))))
            found = self._demands[work] = _Demand(
                (work.slots, *pipes), work.latency * self._chip.work_factor, work.first
            )
        return found

    def _waited(self, life: _Life, at: int, start: float, end: float, by: _Cause, event: Event | None = None) -> None:
        waits = self._found.waits
        key = (life.warp.number, at, by[0])
        waits[key] = waits.get(key, 0.0) + end - start
        if self._keeps:
            life.last = self._mark(Mark("wait", life.cta, life.warp.number, start, end, at, by[1], event, by[0]))

    def _mark(self, mark: Mark) -> int:
        marks = self._found.marks
        marks.append(mark)
        return len(marks) - 1

    # Barriers --------------------------------------------------------------------------------------------------------

    def _wake(self, phase: _Phase) -> float:
        match phase.point.kind:
            case "mbarrier":
                return self._chip.wake_cycles
            case "named":
                warps = phase.point.contributions
                return self._chip.named_barrier_cycles + self._chip.named_barrier_warp_cycles * warps
            case "cluster":
                return self._chip.cluster_barrier_cycles

    def _count(self, life: _Life, numbers: Sequence[int], time: float, now: float, by: _Cause) -> None:
        """Count something that happens at a time towards points, and wake who waits for those that it ends."""
        for number in numbers:
            phase = life.cluster.phases[number]
            phase.left -= 1
            if time >= phase.time:
                phase.time, phase.by = time, by
            if time < phase.first:
                phase.first = time
            if phase.left:
                continue
            for waiter in phase.waiting:
                self._push(max(phase.time + self._wake(phase), now), waiter)
            phase.waiting.clear()
            if self._keeps:
                cta = life.cluster.ctas[phase.point.cta]
                self._mark(Mark("phase", cta, number, phase.first, phase.time, -1, phase.by[1]))

    def _signal(self, life: _Life, event: Event, now: float) -> float:
        phases, here = life.cluster.phases, life.warp.cta
        by = self._issued(life, event, now)
        for number in event.points:
            point = phases[number].point
            delay = 0.0
            if point.kind == "mbarrier":
                delay = self._chip.arrive_cycles if point.cta == here else self._chip.remote_arrive_cycles
            self._count(life, (number,), now + delay, now, by)
        return now

    def _issued(self, life: _Life, event: Event, now: float) -> _Cause:
        """Return what stands for an instruction as a cause."""
        if self._keeps:
            life.last = self._mark(Mark("issue", life.cta, life.warp.number, now, now, event.at, life.last, event))
        return event.at, life.last

    def _busy(self, kind: MarkKind, life: _Life, event: Event, start: float, end: float) -> _Cause:
        """Return what stands for what a unit does as a cause."""
        by = self._issued(life, event, start)
        if not self._keeps:
            return by
        return event.at, self._mark(Mark(kind, life.cta, life.warp.number, start, end, event.at, by[1], event))

    # TMA -------------------------------------------------------------------------------------------------------------

    def _tma_load(self, life: _Life, event: Event, now: float) -> float:
        chip, memory = self._chip, life.processor.memory
        turn = memory.tma.take(now, max(chip.tma_issue_cycles, event.size / chip.tma_bytes_per_cycle))
        turn = max(now, turn - event.size / chip.tma_bytes_per_cycle)
        if event.at not in life.processor.descriptors:
            life.processor.descriptors.add(event.at)
            turn += chip.descriptor_cycles
        done = memory.copy(turn, event.size)
        by = self._busy("copy", life, event, now, done)
        count, cycles = self._found.copies.get(event.at, (0, 0.0))
        self._found.copies[event.at] = count + 1, cycles + done - now
        self._count(life, event.points, done, now, by)
        return now

    def _tma_store(self, life: _Life, event: Event, now: float) -> float:
        chip, memory = self._chip, life.processor.memory
        turn = memory.tma.take(now, max(chip.tma_issue_cycles, event.size / chip.tma_bytes_per_cycle))
        sent = memory.store(turn, event.size)
        read, done = sent + chip.tma_store_read_latency, sent + chip.tma_store_latency
        life.cluster.drained = max(life.cluster.drained, done)
        self._join(life, "tma", read, done, self._busy("store", life, event, now, done))
        return now

    def _join(self, life: _Life, group: str, read: float, done: float, by: _Cause) -> None:
        """Add something to the group that is open."""
        found = life.open.get(group)
        life.open[group] = (read, done, by) if found is None else (max(found[0], read), max(found[1], done), by)

    @staticmethod
    def _close(life: _Life, group: str, groups: _Groups) -> None:
        groups.append(life.open.pop(group, (0.0, 0.0, _NO_CAUSE)))

    def _wait_groups(
        self, life: _Life, event: Event, now: float, groups: _Groups, late: float, reads: bool = False
    ) -> float:
        """Return when at most `count` groups are left, or have been read if `reads`, and `late` cycles more."""
        until, by = now, _NO_CAUSE
        while len(groups) > event.count:
            read, done, cause = groups.popleft()
            time = (read if reads else done) + late
            if time > until and done:
                until, by = time, cause
        if until > now:
            self._waited(life, event.at, now, until, by, event)
        return until

    def _tma_commit(self, life: _Life, event: Event, now: float) -> float:
        self._close(life, "tma", life.stores)
        return now

    def _tma_wait(self, life: _Life, event: Event, now: float) -> float:
        return self._wait_groups(life, event, now, life.stores, 0.0, event.only_reads)

    # Copies and accesses of threads ----------------------------------------------------------------------------------

    def _moved(self, event: Event) -> float:
        return event.sectors * 32 or event.size

    def _after_queue(self, now: float, free: float) -> float:
        """Return when a warp goes on that has put a request into a queue, which is served at a time."""
        return max(now, free - self._chip.shared_queue_cycles)

    def _copy(self, life: _Life, event: Event, now: float) -> float:
        memory = life.processor.memory
        done = memory.bypass(now, self._moved(event))
        self._join(life, "copy", done, done, (event.at, life.last))
        return self._after_queue(now, memory.way.free)

    def _copy_commit(self, life: _Life, event: Event, now: float) -> float:
        if event.points:
            # An mbarrier counts the end of the copies so far, which stay in their group.
            _, done, by = life.open.get("copy", (now, now, (event.at, life.last)))
            self._count(life, event.points, max(done, now), now, by)
        else:
            self._close(life, "copy", life.copies)
        return now

    def _copy_wait(self, life: _Life, event: Event, now: float) -> float:
        return self._wait_groups(life, event, now, life.copies, 0.0)

    def _fill(self, life: _Life, event: Event, done: float) -> None:
        registers, lag = self._results.get(event.at, ((), 0))
        for register in registers:
            if lag:
                under_way = life.under_way.setdefault(register, deque())
                under_way.append(done)
                if len(under_way) <= lag:
                    continue
                done = under_way.popleft()
            life.arriving[register] = done, event.at

    def _load(self, life: _Life, event: Event, now: float) -> float:
        memory = life.processor.memory
        self._fill(life, event, memory.load(now, event, life.cta))
        return self._after_queue(now, max(memory.way.free, memory.l1.free))

    def _store(self, life: _Life, event: Event, now: float) -> float:
        memory = life.processor.memory
        done = memory.store(now, self._moved(event))
        life.cluster.drained = max(life.cluster.drained, done + self._chip.l2_latency)
        return self._after_queue(now, memory.out.free)

    def _atomic(self, life: _Life, event: Event, now: float) -> float:
        done = life.processor.memory.store(now, self._moved(event)) + self._chip.atomic_latency
        life.cluster.drained = max(life.cluster.drained, done)
        self._fill(life, event, done)
        return now

    def _shared(self, life: _Life, event: Event, now: float) -> float:
        banks = life.processor.banks
        cycles = event.count or event.size / self._chip.shared_bytes_per_cycle
        done = banks.take(now, cycles)
        life.processor.operands.take(now, cycles)
        self._fill(life, event, done + self._chip.shared_latency)
        return self._after_queue(now, done)

    def _remote(self, life: _Life, event: Event, now: float) -> float:
        sent = life.processor.remote.take(now, event.size / self._chip.remote_bytes_per_cycle)
        done = sent + self._chip.remote_latency
        if event.points:
            self._count(life, event.points, done, now, self._issued(life, event, now))
        self._fill(life, event, done)
        return self._after_queue(now, sent)

    # Tensor cores ----------------------------------------------------------------------------------------------------

    def _wgmma(self, life: _Life, event: Event, now: float) -> float:
        key = (event.shape, event.in_registers)
        found = self._product_cycles.get(key)
        if found is None:
            found = product_cycles(self._chip, event.shape[1]), operand_cycles(self._chip, *key)
            self._product_cycles[key] = found
        cycles, part = found[0], life.part
        if part.jobs and part.tensor.free <= now:
            part.progress(now)
            self._dirty[part] = None
        done = max(part.tensor.take(now, cycles), life.processor.operands.take(now, found[1]))
        self._join(life, "wgmma", done, done, self._busy("product", life, event, done - cycles, done))
        return max(now, done - cycles * (1 + self._chip.products_queued))

    def _wgmma_commit(self, life: _Life, event: Event, now: float) -> float:
        self._close(life, "wgmma", life.products)
        return now

    def _wgmma_wait(self, life: _Life, event: Event, now: float) -> float:
        return self._wait_groups(life, event, now, life.products, self._chip.product_latency)

    def _mma5(self, life: _Life, event: Event, now: float) -> float:
        m, n, _ = event.shape
        done = life.processor.product5.take(now, self._chip.product5_cycles * n * max(1.0, m / 128))
        self._join(life, "mma5", done, done, self._busy("product", life, event, now, done))
        return now

    def _mma5_commit(self, life: _Life, event: Event, now: float) -> float:
        _, done, by = life.open.pop("mma5", (now, now, (event.at, life.last)))
        self._count(life, event.points, max(done, now), now, by)
        return now

    def _tensor_access(self, life: _Life, event: Event, now: float) -> float:
        life.tensor = max(life.tensor, now + self._chip.tensor_load_latency)
        self._fill(life, event, life.tensor)
        return now

    def _tensor_wait(self, life: _Life, event: Event, now: float) -> float:
        return max(now, life.tensor)

    def _sleep(self, life: _Life, event: Event, now: float) -> float:
        return now + event.size


def product_cycles(chip: Chip, columns: int) -> float:
    """Return the cycles for which a `wgmma` takes the tensor core of each warp's sub-partition."""
    return max(chip.product_least_cycles, columns * chip.product_column_cycles)


def operand_cycles(chip: Chip, shape: tuple[int, int, int], in_registers: bool) -> float:
    """Return the cycles that a warp's part of a `wgmma` takes of the banks: its rows of A, and a fourth of B."""
    m, n, _ = shape
    rows = (0 if in_registers else m) + n
    return rows * BYTES_OF_K / SUB_PARTITIONS / chip.shared_bytes_per_cycle
