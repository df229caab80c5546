"""All orders of a small program that make a difference, one run for each: stateless depth-first search.

Two steps of different threads are dependent if their order can matter. Each run is looked through for dependent steps
that nothing else orders; for each such pair, a later run lets the second one go first (dynamic partial-order reduction;
C. Flanagan, P. Godefroid, POPL 2005), and sleep sets leave out what would only repeat a run (P. Godefroid, LNCS 1032).

Steps of a circular buffer by its one producer and its one consumer do not depend on each other: each waits for counts
that only grow. So a program whose threads meet at circular buffers alone has a single run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias

from tlx_xdsl.interpreter.faults import Fault

from .machine import CircularBuffer, Machine
from .threads import Thread, Update, deadlock, give_turn, identity
from .translate import Touch

Clock: TypeAlias = dict[int, int]
"""For each agent the last of its steps that comes before."""


@dataclass(frozen=True)
class Exploration:
    """Result of an exploration."""

    runs: int
    complete: bool
    """Whether every order that makes a difference was run; with a fault, those after it were not."""
    fault: Fault | None = None
    choices: tuple[int, ...] = ()
    """The schedule that leads to the fault; `run` follows it with `schedule=choices`."""


@dataclass(eq=False)
class _State:
    """A state on the way of the current run, and what is still to be tried there."""

    touches: dict[int, tuple[Touch, ...]]
    """What each agent that can go on would touch."""
    sleep: set[int]
    chosen: int
    backtrack: set[int]
    done: set[int] = field(default_factory=set[int])

    def left(self) -> set[int]:
        """Choices that are still to be tried."""
        return self.backtrack - self.done - self.sleep


@dataclass(eq=False)
class _Event:
    """A step of the current run."""

    agent: int
    clock: Clock


@dataclass(frozen=True)
class Outcome:
    """End of a run, and the choices that led to it."""

    machine: Machine
    choices: tuple[int, ...]
    repeats: bool
    """Whether the run was given up, since all that could go on was run in another order before."""
    fault: Fault | None


def outcomes(start: Callable[[], Machine], end: Callable[[Any], None]) -> Iterator[Outcome]:
    """Run a program in all orders that make a difference, whatever they lead to.

    `start` gives a machine before its first turn, and `end` checks it after its last one.
    """
    states: list[_State] = []
    while True:
        run = _Run(start(), states)
        fault, whole = None, True
        try:
            whole = run.to_the_end()
            if whole:
                end(run.machine)
        except Fault as found:
            fault = found
            run.consider_waiting()
        yield Outcome(run.machine, tuple(state.chosen for state in states), not whole, fault)
        while states:
            last = states[-1]
            last.done.add(last.chosen)
            if left := last.left():
                last.chosen = min(left, key=lambda agent: (agent < 0, abs(agent)))
                break
            states.pop()
        else:
            return


def explore(start: Callable[[], Machine], end: Callable[[Any], None], budget: int) -> Exploration:
    """Run a program in all orders that make a difference, up to the first fault or `budget` runs."""
    count = 0
    for count, outcome in enumerate(islice(outcomes(start, end), budget + 1), 1):
        if count > budget:
            return Exploration(budget, False)
        if outcome.fault is not None:
            return Exploration(count, False, outcome.fault, outcome.choices)
    return Exploration(count, True)


class _Run:
    """One run: it repeats the choices of the states that there are, and then makes its own."""

    def __init__(self, machine: Machine, states: list[_State]):
        self.machine = machine
        self.states = states
        self._events: list[_Event] = []
        self._clocks: dict[int, Clock] = {}
        self._seen: dict[Any, list[tuple[int, Touch]]] = {}
        """The steps that have touched something."""
        self._counts: dict[tuple[str, Any], list[tuple[int, Clock]]] = {}
        """The counts of a circular buffer after each push, and after each pop."""

    def to_the_end(self) -> bool:
        """Run; False when all that could go on was run in another order before."""
        machine = self.machine
        for thread in machine.threads:
            thread.resume(None)
        depth = 0
        while True:
            ready: dict[int, Thread | Update] = {
                thread.agent: thread for thread in machine.threads if thread.is_ready()
            }
            ready |= {identity(update): update for update in machine.updates}
            if not ready:
                return self._ended()
            if depth == len(self.states) and not self._new_state(ready):
                self.consider_waiting()
                return False
            self._step(depth, ready[self.states[depth].chosen])
            depth += 1

    def _ended(self) -> bool:
        self.consider_waiting()
        blocked = [thread for thread in self.machine.threads if thread.step is not None]
        if blocked:
            raise deadlock(self.machine, blocked)
        return True

    def _new_state(self, ready: dict[int, Thread | Update]) -> bool:
        touches = {agent: _touches(each) for agent, each in ready.items()}
        sleep: set[int] = set()
        if self.states:
            before = self.states[-1]
            done = before.touches[before.chosen]
            sleep = {
                agent
                for agent in before.sleep | before.done
                if agent in touches and not _are_dependent(before.touches[agent], done)
            }
        awake = [agent for agent in touches if agent not in sleep]
        if not awake:
            return False
        self.states.append(_State(touches, sleep, awake[0], {awake[0]}))
        return True

    def _step(self, depth: int, agent: Thread | Update) -> None:
        number = identity(agent)
        touches = _touches(agent)
        clock = self._clocks.get(number, {})
        self._add_backtracks(number, touches, clock)
        clock = dict(clock)
        for touch in touches:
            for other, held in self._seen.get(_key(touch), ()):
                if _depend(held, touch):
                    _join(clock, self._events[other].clock)
        before = len(self.machine.updates)
        if isinstance(agent, Update):
            self.machine.updates.remove(agent)
            agent.apply()
        else:
            give_turn(agent)
        for touch in touches:
            self._order_by_counts(touch, clock)
        clock[number] = depth
        self._clocks[number] = clock
        self._events.append(_Event(number, clock))
        for touch in touches:
            self._seen.setdefault(_key(touch), []).append((depth, touch))
        if len(self.machine.updates) > before:
            for update in self.machine.updates[before:]:
                self._clocks[identity(update)] = dict(clock)

    def _order_by_counts(self, touch: Touch, clock: Clock) -> None:
        """A wait comes after the push that it needs, a reservation after the pop."""
        if touch[0] not in ("push", "pop", "wait", "reserve"):
            return
        kind: str = touch[0]
        buffer: CircularBuffer = touch[1]
        count: int = touch[2]
        if kind == "push":
            self._counts.setdefault(("push", buffer), []).append((buffer.received, clock))
        elif kind == "pop":
            self._counts.setdefault(("pop", buffer), []).append((buffer.acked, clock))
        else:
            other, needed = (
                ("push", buffer.acked + count) if kind == "wait" else ("pop", buffer.received + count - buffer.pages)
            )
            for reached, then in self._counts.get((other, buffer), ()) if needed > 0 else ():
                if reached >= needed:
                    _join(clock, then)
                    break

    def consider_waiting(self) -> None:
        """Consider that what the run leaves undone could have been done earlier."""
        for thread in self.machine.threads:
            if thread.step is not None:
                self._add_backtracks(thread.agent, _touches(thread), self._clocks.get(thread.agent, {}))

    def _add_backtracks(self, agent: int, touches: tuple[Touch, ...], clock: Clock) -> None:
        """Let a step go before each dependent one that nothing orders before it."""
        for touch in touches:
            for depth, held in self._seen.get(_key(touch), ()):
                event = self._events[depth]
                if event.agent == agent or not _depend(held, touch) or clock.get(event.agent, -1) >= depth:
                    continue
                state = self.states[depth]
                ways = [each for each in state.touches if each == agent or clock.get(each, -1) > depth]
                if agent in ways:
                    state.backtrack.add(agent)
                elif not ways:
                    state.backtrack.update(state.touches)
                elif not state.backtrack.intersection(ways):
                    state.backtrack.add(ways[0])


def _touches(agent: Thread | Update) -> tuple[Touch, ...]:
    if isinstance(agent, Update):
        return agent.touches
    assert agent.step is not None
    return agent.step.touches(agent, *agent.operands)


def _join(clock: Clock, other: Clock) -> None:
    for agent, depth in other.items():
        if clock.get(agent, -1) < depth:
            clock[agent] = depth


def _key(touch: Touch) -> Any:
    """Return what is touched."""
    match touch[0]:
        case "semaphore":
            return touch[:3]
        case "share":
            return touch[:2]
        case "dram read" | "dram write":
            return touch[1:]
        case _:
            return touch[1]


def _are_dependent(one: tuple[Touch, ...], two: tuple[Touch, ...]) -> bool:
    return any(_key(a) == _key(b) and _depend(a, b) for a in one for b in two)


_COMMUTE = ({"read"}, {"add"}, {"copied"}, {"read", "copied"})
"""Accesses to a semaphore whose order does not matter."""


def _depend(one: Touch, two: Touch) -> bool:
    """Return whether the order of two accesses to the same thing matters."""
    kinds = {one[0], two[0]}
    if kinds == {"semaphore"}:
        return {one[3], two[3]} not in _COMMUTE
    if kinds == {"share"}:
        # A buffer can be reserved when another one at the same addresses is not in use.
        return one[3] != two[3] and "reserve" in (one[2], two[2])
    if "dram write" in kinds:
        return True
    return "arrive" in kinds and not kinds & {"wait", "pop"}
