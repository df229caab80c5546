"""The same state in smaller numbers: what differs only in how many turns are over is one state.

What a task does depends on differences of turns and on their remainders by the period. So when all tasks in a loop have
done a period of turns, that many are forgotten. Of clocks only the order of what is still asked for is kept, and
facts of turns that all tasks have left are dropped. That a fact is dropped can make a path possible that is none. It
would hide one where it is the answer to a question that is asked again: then the search begins again, and drops later.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from math import inf
from typing import Any

from xdsl.ir import SSAValue

from .facts import Bounds, Facts, normalised
from .state import Agent, Clock, Event, State, Task, Uses
from .values import Atom, Sum, Value, Values, add


def reduce(state: State, values: Values, most_pending: int) -> Hashable:
    """Bring a state to its smallest form, and return what it is equal to others by."""
    for task in state.tasks:
        live = task.code.live[task.at] if task.has_started else frozenset[SSAValue]()
        task.known = {value: known for value, known in task.known.items() if value in live and known is not None}
    moves = _moves(state)
    if moves:
        _move(state, values, moves)
    _drop_facts(state)
    _rank(state, most_pending)
    return _key(state)


# Turns ---------------------------------------------------------------------------------------------------------------


def _moves(state: State) -> dict[Atom, int]:
    """The turns of each loop that all tasks in it have done, a multiple of the period."""
    least: dict[Atom, int] = {}
    for task in state.tasks:
        for turn in task.turns:
            if turn.origin is not None:
                least[turn.origin] = min(least.get(turn.origin, turn.at), turn.at)
    period, reach = state.facts.questions.period, state.facts.questions.reach
    over = {origin: at - reach for origin, at in least.items()}
    return {origin: turns - turns % period for origin, turns in over.items() if turns >= period}


def _move(state: State, values: Values, moves: Mapping[Atom, int]) -> None:
    """Let the origins of loops be later turns."""
    back = {origin: -by for origin, by in moves.items()}
    made: dict[Any, Any] = {}

    def moved(value: Any) -> Any:
        return values.moved(value, back, made)

    def origin_of(atom: Atom) -> Atom:
        return values.moved_atom(atom, back, made)

    for task in state.tasks:
        for turn in task.turns:
            if turn.origin is not None and turn.origin in moves:
                _note_rest(state.facts, turn.origin, turn.limit)
    for task in state.tasks:
        task.known = {key: moved(known) for key, known in task.known.items()}
        task.turns = tuple(
            replace(
                turn,
                origin=None if turn.origin is None else origin_of(turn.origin),
                at=turn.at - (0 if turn.origin is None else moves.get(turn.origin, 0)),
                base=moved(turn.base), stride=moved(turn.stride), limit=moved(turn.limit),
            )
            for turn in task.turns
        )  # fmt: skip
        task.left = {origin_of(origin): 1 for origin in task.left}
    state.shifted = frozenset(origin_of(origin) for origin in (*state.shifted, *moves))
    facts = state.facts
    facts.remainders = {origin_of(atom): known for atom, known in facts.remainders.items()}
    bounds: dict[Any, Bounds] = {}
    for parts, (low, high) in facts.bounds.items():
        sum_ = moved(Sum(0, parts))
        if isinstance(sum_, int):
            continue
        low, high = low - sum_.constant, high - sum_.constant
        if len(sum_.parts) == 1 and sum_.parts[0][0].kind == "origin" and low > 0:
            # How many turns were forgotten does not matter.
            low, high = facts.questions.period, inf
        rest, divisor, _ = normalised(Sum(0, sum_.parts))
        ends = sorted((low / divisor, high / divisor))
        bounds[rest] = (_whole(ends[0]), _whole(ends[1]))
    facts.bounds = bounds


def _note_rest(facts: Facts, origin: Atom, limit: Value) -> None:
    """Note what is known of the turns that are left, as long as the origin is zero: it follows from the limit alone."""
    rest = add(limit, Sum(0, ((origin, 1),)), -1)
    if isinstance(rest, Sum) and facts.bounds.get(((origin, 1),)) == (0, 0):
        parts, _, _ = normalised(rest)
        facts.bounds.setdefault(parts, facts.known(parts))


def _whole(number: float) -> float:
    return number if number in (inf, -inf) else int(number)


# Facts ---------------------------------------------------------------------------------------------------------------


def _drop_facts(state: State) -> None:
    facts = state.facts
    facts.bounds = {
        parts: known for parts, known in facts.bounds.items() if not any(is_over(state, atom) for atom, _ in parts)
    }  # fmt: skip
    facts.remainders = {atom: known for atom, known in facts.remainders.items() if not is_over(state, atom)}
    for task in state.tasks:
        task.left = {origin: 1 for origin in task.left if not is_over(state, origin)}
    state.shifted = frozenset(origin for origin in state.shifted if not is_over(state, origin))


def is_over(state: State, atom: Atom) -> bool:
    """Return whether an atom is of turns that all tasks have left: facts of it are dropped."""
    return any(_is_passed(state, origin, at) for origin, at in references(atom))


@cache
def references(atom: Atom) -> frozenset[tuple[Atom, int]]:
    """The turns of loops that an atom is of: origins with the number of the turn."""
    return frozenset(_references(atom.arguments))


def _references(value: Any) -> Iterator[tuple[Atom, int]]:
    if isinstance(value, Sum):
        for atom, factor in value.parts:
            if atom.kind == "origin" and factor == 1 and len(value.parts) == 1:
                yield atom, value.constant
            yield from references(atom)
    elif isinstance(value, tuple):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _references(each)


def _is_passed(state: State, origin: Atom, at: int) -> bool:
    """Return whether no task is, or will be, in that turn of a loop."""
    return all(_is_beyond(task, origin, at, state.facts.questions.lag) for task in state.tasks)


def _is_beyond(task: Task, origin: Atom, at: int, lag: int) -> bool:
    for turn in task.turns:
        if turn.origin is origin:
            return turn.at > at + lag
    return origin in task.left or not task.code.loops_after(task.at)


# Clocks --------------------------------------------------------------------------------------------------------------


def _events(state: State) -> Iterator[Event]:
    for barrier in state.barriers.values():
        yield from (*barrier.arrived, *barrier.before, *barrier.earlier, *barrier.passed)
    for named in state.named.values():
        yield from (*named.events, *named.before)
    for uses in state.buffers.values():
        yield from uses.reads
        if uses.write is not None:
            yield uses.write


def _rank(state: State, most_pending: int) -> None:
    """Replace steps by their ranks among those that are asked for."""
    marks: dict[Agent, set[int]] = {}
    for event in _events(state):
        marks.setdefault(_counter(event.agent), set()).add(event.step)
    for task in state.tasks:
        marks.setdefault(_counter(task.marks), set()).add(task.step)
        for agent, issued in task.issued.items():
            kept = {issued - back for back in range(most_pending + 1)}
            marks.setdefault(agent, set()).update(step for step in (*kept, *task.groups) if step > 0)
    ranks = {agent: sorted(steps) for agent, steps in marks.items()}
    places = {agent: {step: rank for rank, step in enumerate(steps, 1)} for agent, steps in ranks.items()}

    def ranked(clock: Clock) -> Clock:
        found = {agent: _count(ranks.get(_counter(agent), ()), step) for agent, step in clock.items()}
        return {agent: step for agent, step in found.items() if step}

    def events(some: Iterable[Event]) -> tuple[Event, ...]:
        return tuple(Event(each.agent, places[_counter(each.agent)][each.step], each.op) for each in some)

    for task in state.tasks:
        task.clock = ranked(task.clock)
        task.step = places[_counter(task.marks)][task.step]
        task.groups = tuple(
            places[agent][step] for agent in task.issued for step in task.groups if agent[2] == "copy" and step
        )
        task.issued = {agent: places[agent][issued] for agent, issued in task.issued.items()}
    for barrier in state.barriers.values():
        barrier.arrived, barrier.before = events(barrier.arrived), events(barrier.before)
        barrier.earlier, barrier.passed = events(barrier.earlier), events(barrier.passed)
        barrier.gathering, barrier.completed = ranked(barrier.gathering), ranked(barrier.completed)
    for named in state.named.values():
        named.events, named.before = events(named.events), events(named.before)
        named.gathering = ranked(named.gathering)
        named.passed = {number: ranked(clock) for number, clock in named.passed.items()}
    state.buffers = {
        view: Uses(None if uses.write is None else events([uses.write])[0], events(uses.reads), uses.lost)
        for view, uses in state.buffers.items()
    }


def _counter(agent: Agent) -> Agent:
    """A task counts its accesses and its marks together."""
    return ("task", agent[1]) if agent[0] in ("accesses", "marks") else agent


def _count(steps: Iterable[int], last: int) -> int:
    return sum(step <= last for step in steps)


# Equality ------------------------------------------------------------------------------------------------------------


def _key(state: State) -> Hashable:
    return (
        tuple(
            (
                task.at, frozenset(task.known.items()), task.turns, _of(task.clock), task.step, _of(task.issued),
                task.groups, frozenset(task.left), task.has_started, task.named,
            )
            for task in state.tasks
        ),
        tuple(
            (
                key, each.pending, each.bytes, each.parity, frozenset(each.arrived), frozenset(each.before),
                frozenset(each.earlier), frozenset(each.passed), _of(each.gathering), _of(each.completed),
            )
            for key, each in sorted(state.barriers.items(), key=lambda item: str(item[0]))
        ),
        tuple(
            (
                key, each.threads, each.arrived, each.waiting, frozenset(each.events), frozenset(each.before),
                _of(each.gathering), frozenset((number, _of(clock)) for number, clock in each.passed.items()),
            )
            for key, each in sorted(state.named.items())
        ),
        frozenset((view, uses.write, frozenset(uses.reads), uses.lost) for view, uses in state.buffers.items()),
        frozenset(state.facts.bounds.items()), frozenset(state.facts.remainders.items()), state.shifted,
    )  # fmt: skip


def _of(clock: Mapping[Agent, int]) -> Hashable:
    return frozenset(clock.items())
