"""Every order that makes a difference is run: hangs that depend on the order are found, and can be run again."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.unit.ttl.interpreter.ttkernel_programs import add, multicast, parse, semaphore_program, two_pipes
from tlx_xdsl.errors import InputError
from tlx_xdsl.interpreter.faults import Deadlock, Fault, location_of
from tlx_xdsl.ttl.interpreter.ttkernel import Plan, explore, make_plan, run
from tlx_xdsl.ttl.interpreter.ttkernel.exploration import outcomes
from tlx_xdsl.ttl.interpreter.ttkernel.machine import Machine
from tlx_xdsl.ttl.interpreter.ttkernel.threads import Schedule, Trace, run_threads


def pipe_arrays() -> list[np.ndarray]:
    return [np.ones((32, 96), np.float32), np.zeros((32, 64), np.float32)]


def test_threads_that_meet_at_circular_buffers_have_one_order():
    arrays = [np.ones((64, 64), np.float32), np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)]
    found = explore(parse(add()), arrays)
    assert (found.runs, found.complete, found.fault) == (1, True, None)
    assert (arrays[2] == 0).all(), "the arrays stay as they are"


@pytest.mark.parametrize("receivers", [2, 3])
def test_a_pipe_is_right_in_every_order(receivers: int):
    arrays = [np.ones((32, 64), np.float32), np.zeros((32 * (receivers + 1), 64), np.float32)]
    found = explore(parse(multicast(receivers, 2)), arrays)
    assert found.complete
    assert found.fault is None
    assert found.runs > 1


def test_a_budget_ends_the_search():
    arrays = [np.ones((32, 64), np.float32), np.zeros((96, 64), np.float32)]
    found = explore(parse(multicast(2, 2)), arrays, budget=2)
    assert (found.runs, found.complete) == (2, False)


# Hangs that have been reported ---------------------------------------------------------------------------------------


def test_an_arrival_at_a_shared_semaphore_is_lost():
    """Two pipes with one receiver and one `valid` (tt-lang, issue 505): the second arrival may be that of the first."""
    plan = make_plan(parse(two_pipes("set")))
    run(plan, pipe_arrays())
    found = explore(plan, pipe_arrays())
    assert found.fault is not None
    assert "over an arrival that was not waited for: it is lost" in found.fault.message
    with pytest.raises(Fault, match="it is lost"):
        run(plan, pipe_arrays(), schedule=found.choices)


def test_a_lost_arrival_hangs():
    """The same on hardware, which knows of no arrivals: the receiver waits for ever."""
    plan = make_plan(parse(two_pipes("set")))
    found = hanging(plan, pipe_arrays())
    assert "thread 'exchange' of core (1, 0) waits for semaphore 1 to be 1, it is 0" in found.message
    assert any("it can be changed at" in note and "which has ended" in note for note in found.notes)


def hanging(plan: Plan, arrays: list[np.ndarray]) -> Deadlock:
    for seed in range(100):
        try:
            run(plan, arrays, schedule="random", seed=seed, checks=False)
        except Deadlock as deadlock:
            return deadlock
    raise AssertionError("no run hangs")


def test_increments_are_not_lost():
    found = explore(parse(two_pipes("inc")), pipe_arrays())
    assert found.complete
    assert found.fault is None


def test_a_write_that_may_come_too_early():
    """Core (2, 0) does not wait until its receiver is ready: most of the time it is."""
    text = two_pipes("inc")
    wait = next(line for line in text.split("\n") if "noc_semaphore_wait(%ready" in line)
    inc = next(line for line in text.split("\n") if "noc_semaphore_inc(%right" in line)
    left = "    %is_left = arith.cmpi eq, %x, %zero : i32\n    scf.if %is_left {\n" + wait + "\n    }"
    plan = make_plan(parse(text.replace(wait, left).replace(inc + "\n", "")))
    run(plan, pipe_arrays())
    found = explore(plan, pipe_arrays())
    assert found.fault is not None
    assert "page 1 of circular buffer 0 is not reserved on core (1, 0)" in found.fault.message
    with pytest.raises(Fault, match="is not reserved on core"):
        run(plan, pipe_arrays(), schedule=found.choices)


def test_a_multicast_to_one_core_is_refused():
    """The barrier of such a multicast may never end (tt-metal's documentation of `noc_async_write_multicast`)."""
    with pytest.raises(Fault, match="multicasts to one core: that may hang") as caught:
        run(parse(multicast(1)), [np.ones((32, 32), np.float32), np.zeros((64, 32), np.float32)])
    assert caught.value.location is not None
    assert caught.value.location.line == line_of(multicast(1), "noc_async_write_multicast")


def test_a_source_that_receives_itself_hangs():
    """A thread that waits for its own receiver before it has said that it is ready."""
    text = semaphore_program([["wait 0 1", "set 0 0", "inc 0 0"]])
    with pytest.raises(Deadlock, match="waits for semaphore 0 to be 1, it is 0") as caught:
        run(parse(text), [])
    assert caught.value.location is not None
    assert caught.value.location.line == line_of(text, "noc_semaphore_wait(")
    assert any(f"kernel.py:{line_of(text, 'noc_semaphore_inc(')}" in note for note in caught.value.notes)


def line_of(text: str, words: str) -> int:
    return next(number for number, line in enumerate(text.split("\n"), 1) if words in line)


# Against all orders --------------------------------------------------------------------------------------------------


class Everything:
    """Chooses along a path, and remembers how many ways there were."""

    def __init__(self, path: Sequence[int]):
        self.path = list(path)
        self.ways: list[int] = []

    def choose(self, tasks: Sequence[Any], transfers: Sequence[Any]) -> Any:
        everything = [*tasks, *transfers]
        at = len(self.ways)
        if at == len(self.path):
            self.path.append(0)
        self.ways.append(len(everything))
        return everything[self.path[at]]


Ending = tuple[str, tuple[int, ...], tuple[str, ...]]


def ending(machine: Machine, fault: Fault | None) -> Ending:
    """Describe the ending of a run: the fault, the values of semaphores, and where threads are."""
    words = tuple(word.value for core in machine.cores.values() for word in core.semaphores)
    places = tuple("" if thread.step is None else location_of(thread.step.op) for thread in machine.threads)
    return type(fault).__name__, words, places


def in_all_orders(plan: Plan, most: int) -> tuple[set[Ending], int]:
    """Run each step of each thread in every order; return all endings, and their number, or 0 for too many."""
    found: set[Ending] = set()
    path: list[int] = []
    for count in range(1, most + 1):
        policy = Everything(path)
        machine = plan.machine([], checks=False)
        fault = None
        try:
            run_threads(machine, Schedule(policy, False), Trace())
        except Fault as caught:
            fault = caught
        found.add(ending(machine, fault))
        path = policy.path[: len(policy.ways)]
        while path and path[-1] + 1 == policy.ways[len(path) - 1]:
            path.pop()
        if not path:
            return found, count
        path[-1] += 1
    return found, 0


def program(number: int) -> list[list[str]]:
    """A program of two or three cores that set, increase and wait for two semaphores."""
    chance = random.Random(number)
    cores = chance.choice([2, 2, 3])

    def step(core: int) -> str:
        word, value = chance.randrange(2), chance.randrange(1, 3)
        kind = chance.choice(["set", "wait", "min", "inc", "inc", "inc"])
        return (
            f"inc {word} {chance.choice([*range(cores), (core + 1) % cores])}"
            if kind == "inc"
            else f"{kind} {word} {value}"
        )

    return [[step(core) for _ in range(chance.randrange(1, 4))] for core in range(cores)]


SEVERAL = (3, 33, 35, 53, 68, 75, 77, 151, 177, 199, 254, 263, 271, 281, 301, 315, 344, 366, 442, 450, 477)
"""Programs that end in several ways, most of them in a hang."""


@pytest.mark.parametrize("number", [1, 23, *SEVERAL])
def test_no_ending_is_left_out(number: int):
    """A program ends in the same ways as in all orders, which are far more runs."""
    plan = make_plan(parse(semaphore_program(program(number))))
    expected, count = in_all_orders(plan, 600)
    assert count
    ways = list(outcomes(lambda: plan.machine([], checks=False), lambda machine: None))
    assert {ending(each.machine, each.fault) for each in ways if not each.repeats} == expected
    assert len(ways) <= count
    assert len(expected) > 1


def test_an_unknown_schedule_is_refused():
    with pytest.raises(InputError, match="unknown schedule 'fair'"):
        run(parse(multicast()), [np.ones((32, 32), np.float32), np.zeros((96, 32), np.float32)], schedule="fair")
