"""Random protocols of signals between ranks, and a small simulator that says what is wrong with one.

The simulator is written apart from the interpreter: it knows the order of a rank's own steps, signals and waits, and
fences, and compares all accesses with each other at the end. Each counter is signalled once at most, so which signal a
wait sees does not depend on who runs when.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

WRITE, READ, SIGNAL, RELAXED_SIGNAL, GPU_SIGNAL, WAIT, RELAXED_WAIT, GPU_WAIT, FENCE, GPU_FENCE = range(10)
SIGNALS, WAITS = (SIGNAL, RELAXED_SIGNAL, GPU_SIGNAL), (WAIT, RELAXED_WAIT, GPU_WAIT)
COUNTERS = 16
"""Counters of each rank."""
PLACES = 4
"""Elements of data of each rank."""


@dataclass(frozen=True)
class Step:
    """A step of a rank: what it does, on which rank's memory, and at which element or counter."""

    kind: int
    rank: int = 0
    at: int = 0


Protocol = list[list[Step]]
"""The steps of each rank."""


def random_protocol(seed: int) -> Protocol:
    """Blocks that are handed from rank to rank, most of them in order, with mistakes by chance."""
    chance = random.Random(seed)
    world = chance.randint(2, 4)
    protocol: Protocol = [[] for _ in range(world)]
    for counter in range(chance.randint(1, 6)):
        giver, taker = chance.sample(range(world), 2)
        home, place = chance.randrange(world), chance.randrange(PLACES)
        sent = [Step(WRITE, home, place)]
        if chance.random() < 0.7:
            sent.append(Step(SIGNAL, taker, counter))
        else:
            fences = [Step(chance.choice((FENCE, FENCE, GPU_FENCE)))] if chance.random() < 0.8 else []
            sent += [*fences, Step(chance.choice((RELAXED_SIGNAL, RELAXED_SIGNAL, GPU_SIGNAL)), taker, counter)]
        got = [Step(WAIT, taker, counter)]
        if chance.random() < 0.3:
            fences = [Step(chance.choice((FENCE, FENCE, GPU_FENCE)))] if chance.random() < 0.8 else []
            got = [Step(chance.choice((RELAXED_WAIT, RELAXED_WAIT, GPU_WAIT)), taker, counter), *fences]
        got.append(Step(chance.choice((READ, WRITE)), home, place))
        for steps in (sent, got):
            if chance.random() < 0.12:
                del steps[chance.randrange(len(steps))]
            if chance.random() < 0.08:
                chance.shuffle(steps)
        protocol[giver] += sent
        protocol[taker] += got
    return protocol


@dataclass
class _Rank:
    """A rank: how many of each rank's steps it knows of, and what fences have to do with that."""

    known: list[int]
    released: list[int]
    """Known at its last fence of the system: relaxed signals release that."""
    pending: list[int]
    """Seen by relaxed waits: the next fence of the system acquires it."""
    done: int = 0


@dataclass(frozen=True)
class _Access:
    rank: int
    number: int
    known: tuple[int, ...]
    place: tuple[str, int, int]
    writes: bool
    strength: str


@dataclass
class Outcome:
    """Faults of a protocol: accesses that nothing orders, and ranks that never end."""

    races: list[tuple[_Access, _Access]] = field(default_factory=list)
    stuck: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The first thing that a run says."""
        return "race" if self.races else "deadlock" if self.stuck else "clean"


def simulate(protocol: Protocol) -> Outcome:
    """Run a protocol as far as it goes, and compare all accesses."""
    world = len(protocol)
    ranks = [_Rank([0] * world, [0] * world, [0] * world) for _ in range(world)]
    signals: dict[tuple[int, int], tuple[int, bool, list[int]]] = {}
    accesses: list[_Access] = []
    goes_on = True
    while goes_on:
        goes_on = False
        for me, steps in enumerate(protocol):
            own = ranks[me]
            while own.done < len(steps):
                step = steps[own.done]
                if step.kind in WAITS and (step.rank, step.at) not in signals:
                    break
                own.done += 1
                own.known[me] = own.done
                goes_on = True
                _make(me, step, own, signals, accesses)
    outcome = Outcome(stuck=[me for me, steps in enumerate(protocol) if ranks[me].done < len(steps)])
    # Who is stuck has looked at its counter.
    for me in outcome.stuck:
        step, own = protocol[me][ranks[me].done], ranks[me]
        accesses.append(_access(me, own.done + 1, step, own))
    for at, one in enumerate(accesses):
        for other in accesses[at + 1 :]:
            if _conflict(one, other) and not (_before(one, other) or _before(other, one)):
                outcome.races.append((one, other))
    return outcome


def _make(
    me: int,
    step: Step,
    own: _Rank,
    signals: dict[tuple[int, int], tuple[int, bool, list[int]]],
    accesses: list[_Access],
) -> None:
    if step.kind == FENCE:
        own.known = _joined(own.known, own.pending)
        own.released = [*own.known]
    if step.kind in (FENCE, GPU_FENCE):
        return
    accesses.append(_access(me, own.done, step, own))
    if step.kind in SIGNALS:
        known = own.released if step.kind == RELAXED_SIGNAL else own.known
        signals[step.rank, step.at] = me, step.kind != GPU_SIGNAL, [*known]
    if step.kind in WAITS:
        who, is_wide, known = signals[step.rank, step.at]
        if who != me and is_wide and step.kind == WAIT:
            own.known = _joined(own.known, known)
        if who != me and is_wide and step.kind == RELAXED_WAIT:
            own.pending = _joined(own.pending, known)


def _access(me: int, number: int, step: Step, own: _Rank) -> _Access:
    is_flag = step.kind in (*SIGNALS, *WAITS)
    strength = "plain" if not is_flag else "gpu" if step.kind in (GPU_SIGNAL, GPU_WAIT) else "sys"
    place = ("flag" if is_flag else "data", step.rank, step.at)
    return _Access(me, number, tuple(own.known), place, step.kind in (WRITE, *SIGNALS), strength)


def _joined(one: list[int], other: list[int]) -> list[int]:
    return [max(pair) for pair in zip(one, other, strict=True)]


def _conflict(one: _Access, other: _Access) -> bool:
    if one.place != other.place or one.rank == other.rank or not (one.writes or other.writes):
        return False
    return "plain" in (one.strength, other.strength) or "gpu" in (one.strength, other.strength)


def _before(one: _Access, other: _Access) -> bool:
    return other.known[one.rank] >= one.number
