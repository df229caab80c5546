"""Random protocols of signals: the interpreter says of them what a small simulator of clocks, written apart, says."""

from __future__ import annotations

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit import volume
from tests.unit.interpreter.rank_protocols import (
    COUNTERS,
    FENCE,
    GPU_FENCE,
    GPU_SIGNAL,
    PLACES,
    READ,
    RELAXED_SIGNAL,
    SIGNAL,
    WAIT,
    WRITE,
    Protocol,
    Step,
    random_protocol,
    simulate,
)
from tlx_xdsl.interpreter.faults import Deadlock, Fault

# The kernel is read by the frontend, not run by Python.
# pyright: basic

SEEDS = range(600 if volume.is_full() else 40)


@tlx_xdsl.jit
def follow(x, pads, steps, count, seen):
    """Make the steps of a list: what to do, on whose memory, at which element."""
    for number in range(count):
        kind = tl.load(steps + number * 3)
        who = tl.load(steps + number * 3 + 1)
        at = tl.load(steps + number * 3 + 2)
        if kind == 0:
            tl.store(tlx.peer(x, who) + at, number)
        elif kind == 1:
            tl.store(seen + number, tl.load(tlx.peer(x, who) + at))
        elif kind == 2:
            tlx.signal(tlx.peer(pads, who), at)
        elif kind == 3:
            tlx.signal(tlx.peer(pads, who), at, sem="relaxed")
        elif kind == 4:
            tlx.signal(tlx.peer(pads, who), at, scope="gpu")
        elif kind == 5:
            tlx.wait_signal(tlx.peer(pads, who), at, 1)
        elif kind == 6:
            tlx.wait_signal(tlx.peer(pads, who), at, 1, sem="relaxed")
        elif kind == 7:
            tlx.wait_signal(tlx.peer(pads, who), at, 1, scope="gpu")
        elif kind == 8:
            tlx.fence("sys")
        else:
            tlx.fence("gpu")


def interpreted(protocol: Protocol, **options) -> str:
    """Return the finding of a run of the interpreter."""
    world, longest = len(protocol), max(map(len, protocol)) or 1
    lists = [np.zeros(longest * 3, np.int32) for _ in protocol]
    for steps, listed in zip(protocol, lists, strict=True):
        for number, step in enumerate(steps):
            listed[number * 3 : number * 3 + 3] = step.kind, step.rank, step.at
    # Numbers of steps are no constants of the kernel, which would then be another one.
    counts = [np.int32(len(steps)) for steps in protocol]
    try:
        follow.interpret(
            1,
            tlx_xdsl.symmetric([np.zeros(PLACES, np.int32) for _ in range(world)]),
            tlx_xdsl.symmetric([np.zeros(COUNTERS, np.int32) for _ in range(world)]),
            lists,
            counts,
            [np.zeros(longest, np.int32) for _ in range(world)],
            **options,
        )
    except Deadlock:
        return "deadlock"
    except Fault as fault:
        return "race" if "nothing orders it after" in fault.message else str(fault)
    return "clean"


@pytest.mark.parametrize("first", range(0, len(SEEDS), 20))
def test_protocols_are_judged_as_by_the_simulator(first):
    for seed in SEEDS[first : first + 20]:
        protocol = random_protocol(seed)
        options = [{}] if seed % 3 else [{"schedule": "random", "seed": seed, "overlapping": True}]
        for each in options:
            assert interpreted(protocol, **each) == simulate(protocol).name, (seed, each, protocol)


def test_the_simulator_says_all_three():
    names = [simulate(random_protocol(seed)).name for seed in SEEDS]
    assert min(map(names.count, ("clean", "race", "deadlock"))) >= len(SEEDS) // 12, names


HANDED = [Step(WRITE, 1, 0), Step(SIGNAL, 1, 0)], [Step(WAIT, 1, 0), Step(READ, 1, 0)]


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        (HANDED[0], "clean"),
        (HANDED[0][::-1], "race"),
        (HANDED[0][:1], "race"),
        ([], "deadlock"),
        ([HANDED[0][0], Step(RELAXED_SIGNAL, 1, 0)], "race"),
        ([HANDED[0][0], Step(FENCE), Step(RELAXED_SIGNAL, 1, 0)], "clean"),
        ([HANDED[0][0], Step(GPU_FENCE), Step(RELAXED_SIGNAL, 1, 0)], "race"),
        ([Step(FENCE), HANDED[0][0], Step(RELAXED_SIGNAL, 1, 0)], "race"),
        ([HANDED[0][0], Step(GPU_SIGNAL, 1, 0)], "race"),
    ],
)
def test_a_block_that_is_handed_over(sent, name):
    # Who waits for a signal that never comes reads nothing.
    expected = "deadlock" if sent == HANDED[0][:1] else name
    assert simulate([sent, HANDED[1]]).name == interpreted([sent, HANDED[1]]) == expected
