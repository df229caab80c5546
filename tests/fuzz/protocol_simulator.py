"""All schedules of a small protocol, by brute force: whether one of them goes wrong.

Tasks do one event at a time, and a load writes its block at any time after it was issued. Wrong is: a deadlock; two
accesses of which one writes, to one block, that may come next at the same time; a read of what is not there; more
arrivals than a phase waits for; an arrival or a wait that is for one phase in one schedule and for another in another;
and at the end a load in flight, or a phase that has begun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from tests.fuzz.protocol_model import Event, OutOfRangeError, Protocol, events_of

T = TypeVar("T")

MOST_STATES = 60_000
"""States that are tried at most."""


class TooLargeError(Exception):
    """Raised for a protocol with too many states."""


class _Phase(NamedTuple):
    done: int
    """Phases that are complete."""
    pending: int
    loads: int
    """Loads that are expected, less those that are over."""


class _State(NamedTuple):
    at: tuple[int, ...]
    barriers: tuple[_Phase, ...]
    blocks: tuple[str, ...]
    """The array that has written each place last; empty for none."""
    flying: frozenset[tuple[int, int]]
    """Loads in flight, by task and number of their event."""


@dataclass
class _Search:
    tasks: Sequence[Sequence[Event]]
    counts: Sequence[int]
    barriers: Mapping[tuple[str, int], int]
    places: Mapping[tuple[str, int], int]
    phases: dict[tuple[object, ...], int]
    """The phase that an event was for."""

    def wrong(self) -> str:
        first = _State(
            (0,) * len(self.tasks),
            tuple(_Phase(0, count, 0) for count in self.counts),
            ("",) * len(set(self.places.values())),
            frozenset(),
        )
        seen, todo = {first}, [first]
        while todo:
            state = todo.pop()
            if len(seen) > MOST_STATES:
                raise TooLargeError
            if found := self.conflict(state):
                return found
            following: list[_State] = []
            for step in (*range(len(self.tasks)), *state.flying):
                after = self.after(state, step)
                if isinstance(after, str):
                    return after
                if after is not None:
                    following.append(after)
            if found := self.at_the_end(state) if self.is_over(state) else "" if following else "deadlock":
                return found
            for after in following:
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
        return ""

    def is_over(self, state: _State) -> bool:
        return all(at == len(task) for at, task in zip(state.at, self.tasks, strict=True))

    def at_the_end(self, state: _State) -> str:
        if state.flying:
            return "a load in flight at the end"
        has_begun = any(phase[1:] != (count, 0) for phase, count in zip(state.barriers, self.counts, strict=True))
        return "a phase that is not complete" if has_begun else ""

    def conflict(self, state: _State) -> str:
        """Two accesses that may come next."""
        accesses = [(self.places[self.tasks[task][number].at], True) for task, number in state.flying]
        for at, task in zip(state.at, self.tasks, strict=True):
            if at < len(task) and task[at].what in ("read", "write"):
                accesses.append((self.places[task[at].at], task[at].what == "write"))
        for number, (place, writes) in enumerate(accesses):
            if any(place == other and (writes or also) for other, also in accesses[:number]):
                return "a race"
        return ""

    def after(self, state: _State, step: int | tuple[int, int]) -> _State | str | None:
        """The state after a step of a task, or of a load; what is wrong; or None where it must wait."""
        if isinstance(step, tuple):
            event = self.tasks[step[0]][step[1]]
            assert event.barrier is not None
            blocks = _set(state.blocks, self.places[event.at], event.at[0])
            moved = state._replace(blocks=blocks, flying=state.flying - {step})
            return self.arrived(moved, ("end", *step), event.barrier, 0, -1)
        if state.at[step] == len(self.tasks[step]):
            return None
        number = state.at[step]
        event = self.tasks[step][number]
        moved = state._replace(at=_set(state.at, step, number + 1))
        match event.what:
            case "wait":
                phase = state.barriers[self.barriers[event.at]]
                if event.parity not in (0, 1):
                    return "a parity that is none"
                if phase.done % 2 == event.parity:
                    return None
                return self.same((step, number), phase.done) or moved
            case "arrive" | "expect":
                return self.arrived(moved, (step, number), event.at, 1, int(event.what == "expect"))
            case "load":
                return moved._replace(flying=state.flying | {(step, number)})
            case "read":
                is_there = state.blocks[self.places[event.at]] == event.at[0]
                return moved if is_there else "a read of what is not there"
            case _:
                return moved._replace(blocks=_set(state.blocks, self.places[event.at], event.at[0]))

    def same(self, key: tuple[object, ...], phase: int) -> str:
        return "" if self.phases.setdefault(key, phase) == phase else "one phase or another"

    def arrived(
        self, state: _State, key: tuple[object, ...], at: tuple[str, int], count: int, loads: int
    ) -> _State | str:
        number = self.barriers[at]
        done, pending, expected = state.barriers[number]
        if found := self.same(key, done):
            return found
        pending, expected = pending - count, expected + loads
        if pending < 0:
            return "too many arrivals"
        if pending == 0 and expected < 0:
            return "too many bytes"
        if pending == 0 and expected == 0:
            done, pending = done + 1, self.counts[number]
        return state._replace(barriers=_set(state.barriers, number, _Phase(done, pending, expected)))


def _set(items: tuple[T, ...], number: int, value: T) -> tuple[T, ...]:
    return (*items[:number], value, *items[number + 1 :])


def wrong(protocol: Protocol, arguments: Mapping[str, int]) -> tuple[str, bool]:
    """Find what goes wrong with these arguments, or nothing; and whether all loops turn. Raises TooLargeError."""
    try:
        tasks, turn = events_of(protocol, arguments)
    except OutOfRangeError:
        return "an index outside", True
    barriers = [((each.name, slot), each.count) for each in protocol.barriers for slot in range(each.slots)]
    places: dict[tuple[str, int], int] = {}
    numbers: dict[tuple[str, int], int] = {}
    for each in protocol.buffers:
        for slot in range(each.slots):
            places[each.name, slot] = numbers.setdefault((each.memory or each.name, slot), len(numbers))
    indices = {name: number for number, (name, _) in enumerate(barriers)}
    return _Search(tasks, [count for _, count in barriers], indices, places, {}).wrong(), turn
