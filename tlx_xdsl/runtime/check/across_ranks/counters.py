"""Counters that signals raise and waits read, and the signals without which a wait is never over.

A counter only grows, and a wait is for at least a value. So what can run is never stopped by what others do, and how
far programs get without a signal does not depend on their order: one run says it for all. A signal that a wait needs
comes before it in all orders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TypeAlias

import numpy as np

from .events import Access, DeadlockError, Event, Role, Signal, Space, UnprovedError, Wait
from .trace import LaunchTrace
from .values import Growing, Growth

Traces: TypeAlias = Sequence[Sequence[LaunchTrace]]
"""By launch of the period, and rank."""


@dataclass(frozen=True, eq=False)
class Begin:
    """The begin of a launch, when all programs of the one before have ended on this rank."""


@dataclass(frozen=True, eq=False)
class Step:
    """An event of a program in a launch."""

    launch: int
    event: Event | Begin
    value: int = 0
    """The number of a signal or a wait there."""


@dataclass(eq=False)
class Counter:
    """A number that is waited for."""

    address: int
    wait: Wait
    """The first wait for it."""
    first: int
    """Its value before the first launch."""
    signals: list[Signal] = field(default_factory=list[Signal])
    """Those of a period."""
    raised: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    """The steps of each agent that signal."""

    @property
    def adds(self) -> bool:
        """True if signals add to it; else they set it."""
        return all(each.adds for each in self.signals)

    @property
    def most(self) -> int:
        """The largest number that it can have."""
        return (1 << (self.wait.bits - 1)) - 1


@dataclass(eq=False)
class Run:
    """The steps of programs that never stop without need."""

    values: dict[int, int]
    order: list[tuple[int, int]]
    """The agents and their steps."""
    at: list[int]
    """The step that each agent is at; the number of all its steps if it has ended."""


@dataclass(eq=False)
class Protocol:
    """All that the programs of all ranks do in some launches. Agents are programs, those of rank 0 first."""

    ranks: int
    programs: int
    """On each rank."""
    launches: int
    """That are followed."""
    is_all: bool
    """Whether these are all launches, or more follow."""
    shown: int
    """Launches whose order is to be shown: those after them are there for ranks that are ahead."""
    steps: list[list[Step]]
    """Of each agent."""
    counters: dict[int, Counter]
    _seen: dict[tuple[int, int], dict[int, list[int]] | None] = field(
        default_factory=dict[tuple[int, int], "dict[int, list[int]] | None"]
    )

    def rank_of(self, agent: int) -> int:
        """The rank of an agent."""
        return agent // self.programs

    @cached_property
    def turning(self) -> list[list[int]]:
        """The steps of each agent that others can notice, or that wait."""
        return [[at for at, step in enumerate(steps) if self.turns(step)] for steps in self.steps]

    def turns(self, step: Step) -> bool:
        """Return whether others can notice a step, or it waits."""
        event = step.event
        return isinstance(event, Begin | Wait) or (isinstance(event, Signal) and event.address in self.counters)

    def run(self, stops: Mapping[int, int]) -> Run:
        """Let all programs go on as far as they can; those of `stops` end before that step."""
        values = {address: counter.first for address, counter in self.counters.items()}
        order: list[tuple[int, int]] = []
        next_ = [0] * len(self.steps)
        moved = True
        while moved:
            moved = False
            for agent, turning in enumerate(self.turning):
                while next_[agent] < len(turning):
                    at = turning[next_[agent]]
                    if at >= stops.get(agent, at + 1) or not self._is_ready(
                        agent, self.steps[agent][at], next_, values
                    ):
                        break
                    step = self.steps[agent][at]
                    if isinstance(step.event, Signal):
                        values[step.event.address] = step.value + step.event.adds * values[step.event.address]
                    order.append((agent, at))
                    next_[agent] += 1
                    moved = True
        at = [
            turning[each] if each < len(turning) else len(steps)
            for each, turning, steps in zip(next_, self.turning, self.steps, strict=True)
        ]
        return Run(values, order, at)

    def _is_ready(self, agent: int, step: Step, next_: Sequence[int], values: Mapping[int, int]) -> bool:
        match step.event:
            case Begin():
                first = self.rank_of(agent) * self.programs
                return all(
                    self._has_begun(each, step.launch, next_[each]) for each in range(first, first + self.programs)
                )
            case Wait(address=address):
                return values[address] >= step.value
            case _:
                return True

    def _has_begun(self, agent: int, launch: int, next_: int) -> bool:
        """Return whether an agent has ended all launches before one."""
        turning = self.turning[agent]
        return next_ == len(turning) or self.steps[agent][turning[next_]].launch >= launch

    def needed(self, agent: int, at: int) -> tuple[int, int]:
        """The agent that alone raises the counter of a wait, and its last signal that the wait needs, -1 for none."""
        step = self.steps[agent][at]
        assert isinstance(step.event, Wait)
        counter = self.counters[step.event.address]
        ((other, raised),) = counter.raised.items()
        found, last = counter.first, -1
        for each in raised:
            if found >= step.value or other == agent or self.steps[other][each].launch > step.launch:
                break
            found, last = self.steps[other][each].value + counter.adds * found, each
        return other, last

    def seen(self, agent: int, at: int) -> dict[int, list[int]] | None:
        """The signals of each agent that a wait may have seen when it is over; None where later launches have more."""
        if (agent, at) not in self._seen:
            event = self.steps[agent][at].event
            assert isinstance(event, Wait)
            run = self.run({agent: at})
            others = [each for each in range(len(self.steps)) if each != agent]
            runs_out = not self.is_all and any(run.at[each] == len(self.steps[each]) for each in others)
            raised = self.counters[event.address].raised.items()
            self._seen[agent, at] = (
                None
                if runs_out
                else {other: [each for each in steps if each < run.at[other]] for other, steps in raised}
            )
        return self._seen[agent, at]

    def check_ends(self) -> Run:
        """Run all of it in one order. Raises DeadlockError where a wait is never over."""
        run = self.run({})
        for agent, at in enumerate(run.at):
            step = self.steps[agent][at] if at < len(self.steps[agent]) else None
            if step is not None and isinstance(event := step.event, Wait):
                where = f" in launch {step.launch + 1}" if step.launch else ""
                text = (
                    f"rank {self.rank_of(agent)} waits{where} until the counter is at least {step.value}, and it stays "
                    f"{run.values[event.address]}"
                )
                if self.is_all or step.launch < self.shown:
                    raise DeadlockError(event.op, f"deadlock: {text}")
                raise UnprovedError(event.op, f"{text} unless more launches follow")
        return run


def protocol_of(
    traces: Traces, grid: tuple[int, int, int], space: Space, growth: Growth, launches: int, shown: int | None
) -> Protocol:
    """The protocol of the first `launches` launches, of which `shown` are to be shown; None for all.

    Raises UnprovedError where it is no regular one.
    """
    ranks, programs = len(traces[0]), prod(grid)
    steps: list[list[Step]] = [[] for _ in range(ranks * programs)]
    for launch in range(launches):
        period, at = divmod(launch, len(traces))
        for rank, trace in enumerate(traces[at]):
            for program, events in enumerate(trace.programs):
                own = steps[rank * programs + program]
                own.append(Step(launch, Begin()))
                own += [Step(launch, event, _value(event, period)) for event in events]
    counters = _counters(traces, space)
    for agent, each in enumerate(steps):
        for at, step in enumerate(each):
            if isinstance(step.event, Signal) and step.event.address in counters:
                counters[step.event.address].raised.setdefault(agent, []).append(at)
    for counter in counters.values():
        _check_signals(counter, steps)
        if shown is None:
            _check_fits(counter, steps)
        else:
            _check_growth(counter, traces, growth)
    return Protocol(ranks, programs, launches, shown is None, shown or launches, steps, counters)


def _value(event: Event, period: int) -> int:
    match event:
        case Signal(value=value) | Wait(value=value):
            return value.first + value.step * period if isinstance(value, Growing) else value
        case _:
            return 0


def _counters(traces: Traces, space: Space) -> dict[int, Counter]:
    """The counters that are waited for. Raises UnprovedError for those that change otherwise than by signals."""
    events = [event for launch in traces for trace in launch for events in trace.streams for event in events]
    found: dict[int, Counter] = {}
    of_bytes: dict[int, Counter] = {}
    for event in events:
        if isinstance(event, Wait):
            counter = found.get(event.address)
            if counter is None:
                held = space.held(event.op, event.address, np.dtype(f"int{event.bits}"))
                counter = found[event.address] = Counter(event.address, event, int(held))
            for byte in range(event.address, event.address + event.bits // 8):
                if of_bytes.setdefault(byte, counter) is not counter or counter.wait.bits != event.bits:
                    raise UnprovedError(event.op, "a counter is a part of another one")
    for event in events:
        if isinstance(event, Signal) and (counter := found.get(event.address)) is not None:
            counter.signals.append(event)
        if isinstance(event, Access) and event.writes:
            _check_change(event, of_bytes)
    return found


def _check_change(access: Access, of_bytes: Mapping[int, Counter]) -> None:
    base = access.region.base
    counter = next((found for each in access.bytes.tolist() if (found := of_bytes.get(base + each)) is not None), None)
    if counter is None:
        return
    is_whole = int(access.bytes[0]) + base == counter.address and access.size * 8 == counter.wait.bits
    if access.role not in (Role.SIGNAL, Role.LOOK) or not is_whole or len(access.bytes) != access.size:
        notes = (("waited for at", counter.wait.op),)
        raise UnprovedError(access.op, "a counter that is waited for is changed otherwise than by signals", notes)


def _check_signals(counter: Counter, steps: Sequence[Sequence[Step]]) -> None:
    """Refuse a counter that may not grow."""
    if counter.adds:
        for each in counter.signals:
            if isinstance(each.value, Growing) or each.value <= 0:
                raise UnprovedError(each.op, "what is added to a counter is not a positive constant")
        return
    if any(each.adds for each in counter.signals):
        raise UnprovedError(counter.signals[0].op, "a counter is added to, and set")
    if len(counter.raised) > 1:
        raise UnprovedError(counter.signals[0].op, "several programs set a counter that is waited for")
    before = counter.first
    for agent, raised in counter.raised.items():
        for each in raised:
            step = steps[agent][each]
            assert isinstance(step.event, Signal)
            if step.value < before:
                raise UnprovedError(step.event.op, f"a counter that is waited for is set from {before} to {step.value}")
            before = step.value


def _check_fits(counter: Counter, steps: Sequence[Sequence[Step]]) -> None:
    """Refuse a counter that wraps around."""
    added = sum(steps[agent][at].value for agent, raised in counter.raised.items() for at in raised)
    if counter.adds and counter.first + added > counter.most:
        raise UnprovedError(counter.signals[0].op, f"the counter wraps around after {counter.most}")


def _check_growth(counter: Counter, traces: Traces, growth: Growth) -> None:
    """Refuse waits for what does not grow as the counter; notes for how many periods it fits its type."""
    launches = len(traces)
    each_time = "in each launch" if launches == 1 else f"in {launches} launches"
    if counter.adds:
        grows = sum(each.value for each in counter.signals if isinstance(each.value, int))
        if grows:
            growth.limit((counter.most - counter.first) // grows)
    else:
        steps = {each.value.step if isinstance(each.value, Growing) else 0 for each in counter.signals}
        if len(steps) > 1:
            raise UnprovedError(counter.signals[0].op, "a counter is set to numbers that grow differently")
        grows = steps.pop()
    for launch in traces:
        for trace in launch:
            for events in trace.programs:
                for event in events:
                    if isinstance(event, Wait) and event.address == counter.address:
                        waited = event.value.step if isinstance(event.value, Growing) else 0
                        if waited != grows:
                            raise UnprovedError(
                                event.op,
                                f"the counter grows by {grows} {each_time}, and what is waited for by {waited}",
                                tuple(("signalled at", each.op) for each in counter.signals[:1]),
                            )
