"""The order that all runs of the programs share: clocks, which signals carry, and accesses that nothing orders.

A clock has, for each agent, its last step that is over and visible. After the programs come one agent of each rank for
what the last program of a launch does. An edge between a signal and a wait counts only if the wait needs the signal
(`counters`), the signal releases, and the wait acquires, in each other's scope; fences make relaxed ones do so. Of a
sum that several programs add to, a wait knows what all sums say that are large enough: one program's second signal may
stand for another's first, and carries what its program has waited for. One thread makes a relaxed signal, so what other
threads have done before a fence is in it after a barrier only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import combinations
from typing import TypeAlias

import numpy as np

from tlx_xdsl.dialects.tt import MemSyncScope

from .counters import Begin, Protocol, Run, Traces
from .events import Access, Draw, Fence, Meeting, Signal, Space, UnprovedError, Wait
from .values import Value

Clock: TypeAlias = tuple[int, ...]

_FAR = 1 << 20
"""More than what the last program does has steps."""


@dataclass(frozen=True, eq=False)
class Made:
    """An access in a launch."""

    agent: int
    step: int
    rank: int
    launch: int
    access: Access
    clock: Clock

    def is_before(self, other: Made) -> bool:
        """Return whether it is over and visible where another one is made, in all orders."""
        return self.agent == other.agent or other.clock[self.agent] >= self.step


@dataclass(eq=False)
class _Knowledge:
    """The knowledge of an agent."""

    clock: Clock
    fenced: Clock
    """What its fences have released to its GPU."""
    fenced_system: Clock
    """The same, to all GPUs."""
    met: Clock
    """What is known at the last barrier of the threads."""
    relaxed: Clock
    """What relaxed waits have found, which the next fence acquires."""
    relaxed_system: Clock
    """The same of other GPUs, which a fence of the system acquires."""
    at: int = 0
    """Its next step."""


@dataclass(eq=False)
class Order:
    """All accesses of a protocol, with the clocks of who makes them."""

    protocol: Protocol
    traces: Traces
    made: list[Made] = field(default_factory=list[Made])
    _agents: list[_Knowledge] = field(default_factory=list[_Knowledge])
    _signals: dict[tuple[int, int], tuple[Clock, Clock]] = field(
        default_factory=dict[tuple[int, int], tuple[Clock, Clock]]
    )
    """What each signal releases to its GPU, and to all."""
    _drawn: dict[tuple[int, int], Clock] = field(default_factory=dict[tuple[int, int], Clock])
    """By rank and launch, what programs know that have drawn a ticket."""
    _ends: dict[tuple[int, int], Clock] = field(default_factory=dict[tuple[int, int], Clock])
    """By rank and launch, what is known when all of it has ended."""

    @property
    def _nothing(self) -> Clock:
        return (-1,) * (len(self.protocol.steps) + self.protocol.ranks)

    def follow(self, run: Run) -> None:
        """Give all accesses their clocks.

        A wait may have seen signals that come later in `run`, of agents that are ahead. A first pass lets these know
        everything, and each further pass what the pass before has found, until nothing changes. That holds by induction
        over time: what a wait sees comes before it, so of all that a run contradicts, nothing can be the first.
        """
        before = None
        while before != self._signals:
            before = dict(self._signals)
            self._pass(run)
            if all(len(counter.raised) < 2 for counter in self.protocol.counters.values()):
                return

    def _pass(self, run: Run) -> None:
        nothing = self._nothing
        for each in (self.made, self._drawn, self._ends):
            each.clear()
        self._agents = [_Knowledge(nothing, nothing, nothing, nothing, nothing, nothing) for _ in self.protocol.steps]
        for agent, at in run.order:
            self._flush(agent)
            if isinstance(self.protocol.steps[agent][at].event, Begin):
                self._begin(agent, at)
            self._step(agent)
        for agent in range(len(self._agents)):
            self._flush(agent)
        for rank in range(self.protocol.ranks):
            self._last(rank, self.protocol.launches - 1)

    def _flush(self, agent: int) -> None:
        """Take the steps that no other agent can notice."""
        steps, known = self.protocol.steps[agent], self._agents[agent]
        while known.at < len(steps) and not self.protocol.turns(steps[known.at]):
            self._step(agent)

    def _begin(self, agent: int, at: int) -> None:
        """Let a launch begin after the one before."""
        launch, rank = self.protocol.steps[agent][at].launch, self.protocol.rank_of(agent)
        if launch:
            # The first program that begins finds all others at the end of the launch before.
            if (rank, launch) not in self._ends:
                self._ends[rank, launch] = self._end(rank, launch - 1)
            self._agents[agent].clock = _joined(self._agents[agent].clock, self._ends[rank, launch])

    def _end(self, rank: int, launch: int) -> Clock:
        first = rank * self.protocol.programs
        programs = range(first, first + self.protocol.programs)
        for each in programs:
            self._flush(each)
        clocks = [self._own(each, self._agents[each].at - 1) for each in programs]
        return _joined(*clocks, self._last(rank, launch))

    def _own(self, agent: int, at: int) -> Clock:
        """The clock of an agent whose step `at` is over."""
        clock = self._agents[agent].clock
        return (*clock[:agent], max(clock[agent], at), *clock[agent + 1 :])

    def _step(self, agent: int) -> None:
        known = self._agents[agent]
        at, step = known.at, self.protocol.steps[agent][known.at]
        match step.event:
            case Access():
                rank = self.protocol.rank_of(agent)
                self.made.append(Made(agent, at, rank, step.launch, step.event, known.clock))
            case Fence(system=system):
                known.clock = _joined(known.clock, known.relaxed, known.relaxed_system if system else self._nothing)
                known.fenced = self._own(agent, at)
                if system:
                    known.fenced_system = known.fenced
            case Meeting():
                known.met = self._own(agent, at)
            case Signal():
                self._signals[agent, at] = self._released(agent, at, step.event)
            case Wait():
                self._wait(agent, at, step.event)
            case Draw():
                key = self.protocol.rank_of(agent), step.launch
                self._drawn[key] = _joined(self._own(agent, at), self._drawn.get(key, self._nothing))
            case Begin():
                pass
        known.at += 1

    def _released(self, agent: int, at: int, signal: Signal) -> tuple[Clock, Clock]:
        known, nothing = self._agents[agent], self._nothing
        if signal.scope is MemSyncScope.CTA:
            return nothing, nothing
        if signal.releases:
            fenced = system = self._own(agent, at)
        else:
            fenced = tuple(map(min, known.fenced, known.met))
            system = tuple(map(min, known.fenced_system, known.met))
        return fenced, nothing if signal.scope is MemSyncScope.GPU else system

    def _wait(self, agent: int, at: int, wait: Wait) -> None:
        known, rank = self._agents[agent], self.protocol.rank_of(agent)
        if wait.scope is MemSyncScope.CTA:
            return
        sees_all = wait.scope is MemSyncScope.SYSTEM
        if wait.acquires:
            known.clock = _joined(known.clock, self._found(agent, at, wait, None if sees_all else rank))
            return
        known.relaxed = _joined(known.relaxed, self._found(agent, at, wait, rank))
        if sees_all:
            known.relaxed_system = _joined(known.relaxed_system, self._found(agent, at, wait, None))

    def _found(self, agent: int, at: int, wait: Wait, rank: int | None) -> Clock:
        """The knowledge that a wait has from signals of a rank, or of all, whichever of them it has seen."""
        counter = self.protocol.counters[wait.address]
        if len(counter.raised) == 1:
            other, last = self.protocol.needed(agent, at)
            return self._nothing if last < 0 else self._carried(agent, other, last, rank)
        seen = self.protocol.seen(agent, at)
        if seen is None:
            return self._nothing
        wanted = self.protocol.steps[agent][at].value - counter.first
        values, clocks = list[int](), list[Clock]()
        for other, signals in seen.items():
            clock = self._nothing
            for each in signals:
                # A sum with a signal has those of its agent before it, too.
                clock = _joined(clock, self._carried(agent, other, each, rank))
                values.append(self.protocol.steps[other][each].value)
                clocks.append(clock)
        return tuple(_least(values, each, wanted) for each in zip(*clocks, strict=True)) or self._nothing

    def _carried(self, agent: int, other: int, at: int, rank: int | None) -> Clock:
        """The knowledge that a signal has released to an agent."""
        if other == agent:
            return self._nothing
        if (released := self._signals.get((other, at))) is None:
            everything = (_FAR * self.protocol.launches,) * len(self._nothing)
            released = everything, everything
        of_rank, to_all = released
        if self.protocol.rank_of(other) == self.protocol.rank_of(agent):
            return of_rank
        return to_all if rank is None else self._nothing

    def _last(self, rank: int, launch: int) -> Clock:
        """Take what the last program of a launch does; gives what is known after it."""
        last = self.traces[launch % len(self.traces)][rank].last
        if last is None:
            return self._nothing
        agent = len(self.protocol.steps) + rank
        clock = self._drawn[rank, launch]
        if clock[agent] < launch * _FAR:
            for number, event in enumerate(last.events):
                assert isinstance(event, Access)
                self.made.append(Made(agent, launch * _FAR + number, rank, launch, event, clock))
            clock = self._drawn[rank, launch] = (*clock[:agent], launch * _FAR + _FAR - 1, *clock[agent + 1 :])
        return clock


def _least(values: Sequence[int], known: Sequence[int], wanted: int) -> int:
    """The least that a sum of at least `wanted` says of an agent, where each value added says `known` of it.

    >>> _least([1, 1, 1, 1], [2, 7, 3, 5], 3)
    5
    """
    for value, each in sorted(zip(known, values, strict=True)):
        wanted -= each
        if wanted <= 0:
            return value
    return -1


def _joined(first: Clock, *others: Clock) -> Clock:
    return tuple(map(max, first, *others)) if others else first


# Accesses that nothing orders -----------------------------------------------------------------------------------------


def check_tickets(traces: Traces, space: Space, programs: int) -> None:
    """Refuse what the last program does where it is not known that one program, the last, does it.

    Each program of a rank must draw one ticket in a launch, from 0 on; the last one sets the counter back.
    """
    for rank, of_rank in enumerate(zip(*traces, strict=True)):
        chosen = [trace.last for trace in of_rank]
        first = next((each for each in chosen if each is not None), None)
        for launch, last in zip(traces, chosen, strict=True):
            if first is None:
                break
            if last is None or last.address != first.address:
                raise UnprovedError(first.op, "which program does this is open: some launches do without")
            trace = launch[rank]
            numbers = [[each for each in events if isinstance(each, Draw)] for events in trace.programs]
            draws = [each for events in numbers for each in events]
            is_each = all(len(events) == 1 and events[0].orders for events in numbers)
            if not is_each or any(each.address != last.address for each in draws) or last.number != programs - 1:
                reason = "each program must draw one ticket (acq_rel), and the last one be chosen"
                raise UnprovedError(last.op, f"which program does this is open: {reason}")
            region = space.at(last.op, last.address)
            changes = [
                (each, events is last.events)
                for other in launch
                for events in other.streams
                for each in events
                if isinstance(each, Access) and each.writes and each.region is region
                and np.isin(last.address - region.base, each.bytes)
            ]  # fmt: skip
            resets = [each for each, is_last in changes if is_last]
            width = np.dtype(f"int{resets[0].size * 8}") if len(resets) == 1 else None
            is_reset = width is not None and _is_zero(resets[0].value) and len(resets[0].bytes) == resets[0].size
            if region.rank != rank or width is None or not is_reset or space.held(last.op, last.address, width) != 0:
                raise UnprovedError(
                    last.op, "which program does this is open: the counter must be 0 when a launch begins"
                )
            if len(changes) != programs + 1:
                raise UnprovedError(last.op, "which program does this is open: the counter is changed otherwise, too")


def _is_zero(value: Value) -> bool:
    return isinstance(value, np.integer) and value == 0


@dataclass(eq=False)
class _Group:
    """One access of an agent in all launches."""

    access: Access
    agent: int
    rank: int
    made: dict[int, Made] = field(default_factory=dict[int, Made])


def check_order(order: Order, launches: int | None) -> int:
    """Refuse accesses that conflict, and that nothing orders; gives the number of pairs that are ordered.

    Without `launches`, these are all that there are. Else what a launch of the first `launches` accesses comes before
    what later ones do, up to a period later.
    """
    reads = {id(read.access) for launch in order.traces for trace in launch for read in trace.reads}
    groups: dict[int, dict[tuple[int, int], _Group]] = {}
    for made in order.made:
        of_region = groups.setdefault(made.access.region.number, {})
        key = made.agent, id(made.access)
        group = of_region.setdefault(key, _Group(made.access, made.agent, made.rank))
        group.made[made.launch] = made
    count = 0
    for of_region in groups.values():
        for a, b in combinations(of_region.values(), 2):
            if a.agent == b.agent or not a.access.conflicts(b.access, same_gpu=a.rank == b.rank):
                continue
            for first, second in _pairs(a, b, launches, len(order.traces)):
                count += 1
                _check_pair(first, second, is_all=launches is None, reads=reads)
    return count


def _pairs(a: _Group, b: _Group, launches: int | None, period: int) -> Iterator[tuple[Made, Made]]:
    """The launches of two accesses whose order is to be known, the earlier one first."""
    for first in a.made.values():
        for second in b.made.values():
            early, late = (first, second) if first.launch <= second.launch else (second, first)
            if launches is None or (early.launch < launches and late.launch - early.launch <= period):
                yield early, late


def _check_pair(first: Made, second: Made, *, is_all: bool, reads: Set[int]) -> None:
    known = [each for each in (first, second) if id(each.access) in reads]
    if first.launch == second.launch and len(known) == 1:
        # The value that it is followed with is that of the launches before.
        late = second if known[0] is first else first
        if not known[0].is_before(late):
            notes = (("stored at", late.access.op),)
            raise UnprovedError(known[0].access.op, "what this loads may be what is stored in the same launch", notes)
        return
    may_swap = is_all or first.launch == second.launch
    if not (first.is_before(second) or (may_swap and second.is_before(first))):
        raise UnprovedError(second.access.op, _race(first, second), ((_past(first) + " at", first.access.op),))


def _race(first: Made, second: Made) -> str:
    verb = "writes" if second.access.writes else "reads"
    return (
        f"{_who(second)} {verb} {second.access.region}, and nothing that is followed orders it after {_who(first)}, by "
        f"which it is {_past(first)}"
    )


def _past(made: Made) -> str:
    return "written" if made.access.writes else "read"


def _who(made: Made) -> str:
    return f"rank {made.rank}" + (f" in its launch {made.launch + 1}" if made.launch else "")
