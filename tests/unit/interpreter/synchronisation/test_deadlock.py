"""The report of a deadlock names who is blocked, at what, and every line that could have released it."""

# covers: tlx.barriers

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.interpreter.reports import at, expect_fault, run
from tlx_xdsl.interpreter.faults import Deadlock
from tlx_xdsl.interpreter.scheduler import POLICIES

pytestmark = pytest.mark.quick

every_schedule = pytest.mark.parametrize("schedule", POLICIES)


@tlx_xdsl.jit
def hand_over(COUNT: tl.constexpr, PARITY: tl.constexpr, ARRIVE: tl.constexpr):
    ready = tlx.alloc_barriers(2, arrive_count=COUNT)  # init
    with tlx.async_tasks():
        with tlx.async_task("default"):
            if ARRIVE:
                tlx.barrier_arrive(ready[1])  # arrive
        with tlx.async_task(num_warps=4):
            tlx.barrier_wait(ready[1], PARITY)  # here


def test_the_kernel_itself_ends():
    assert not run(hand_over, 1, 0, True).warnings


@every_schedule
def test_a_missing_arrival(schedule):
    report = expect_fault(
        hand_over, "deadlock: partition 0 waits at 'ready[1]' for parity 0, while its phase 0, of parity 0, lacks 1 of",
        1, 0, False, kind=Deadlock, schedule=schedule,
    )  # fmt: skip
    assert "    no line arrives at 'ready'" in report.notes
    assert any("the default task waits for the end of partition 0" in note for note in report.notes)
    assert any(f"initialised for 1 arrival at {at(hand_over, 'init')}" in note for note in report.notes)


@every_schedule
def test_a_count_that_is_too_high(schedule):
    report = expect_fault(
        hand_over, "while its phase 0, of parity 0, lacks 1 of 2 arrivals", 2, 0, True, kind=Deadlock, schedule=schedule
    )
    place = at(hand_over, "arrive")
    assert f"    'ready[1]' has got {place}, the default task: tlx.barrier_arrive(ready[1])  # arrive" in report.notes
    assert (
        f"    'ready' can be released by {place}, the default task: tlx.barrier_arrive(ready[1])  # arrive"
        in report.notes
    )


@tlx_xdsl.jit
def second_phase():
    ready = tlx.alloc_barriers(1)
    tlx.barrier_arrive(ready[0])  # arrive
    tlx.barrier_wait(ready[0], 0)
    tlx.barrier_wait(ready[0], 1)  # here


def test_a_phase_that_is_never_completed():
    report = expect_fault(
        second_phase, "for parity 1, while its phase 1, of parity 1, lacks 1 of 1 arrivals", kind=Deadlock
    )
    assert any(at(second_phase, "arrive") in note for note in report.notes)
    assert report.notes[-2] == (
        "this is a deadlock of this schedule: nothing is in flight any more that could release a task"
    )
    assert report.notes[-1] == "in program (0, 0, 0), schedule 'round-robin'"


@tlx_xdsl.jit
def too_many_bytes(desc):
    tile = tlx.local_alloc((16, 64), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], 2064)  # expect
    tlx.async_descriptor_load(desc, tile[0], [0, 0], full[0])  # load
    tlx.barrier_wait(full[0], 0)  # here


@every_schedule
def test_more_bytes_are_expected_than_come(schedule):
    desc = tlx_xdsl.TensorDescriptor.from_tensor(np.zeros((16, 64), np.float16), [16, 64])
    report = expect_fault(too_many_bytes, "lacks 16 bytes", desc, kind=Deadlock, schedule=schedule)
    notes = "\n".join(report.notes)
    for mark in ("expect", "load"):
        assert f"'full[0]' has got {at(too_many_bytes, mark)}" in notes
        assert f"'full' can be released by {at(too_many_bytes, mark)}" in notes


@tlx_xdsl.jit
def crossed():
    """Let two tasks wait for each other first."""
    there = tlx.alloc_barriers(1)
    back = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.barrier_wait(back[0], 0)  # here
            tlx.barrier_arrive(there[0])  # there
        with tlx.async_task(num_warps=4):
            tlx.barrier_wait(there[0], 0)  # other
            tlx.barrier_arrive(back[0])  # back


@every_schedule
def test_tasks_that_wait_for_each_other(schedule):
    report = expect_fault(crossed, "deadlock: the default task waits at 'back[0]'", kind=Deadlock, schedule=schedule)
    notes = list(report.notes)
    assert notes[0].startswith(f"{at(crossed)}: the default task waits at 'back[0]'")
    assert f"'back' can be released by {at(crossed, 'back')}, partition 0" in notes[2]
    assert notes[3].startswith(f"{at(crossed, 'other')}: partition 0 waits at 'there[0]'")
    assert f"'there' can be released by {at(crossed, 'there')}, the default task" in notes[5]


@tlx_xdsl.jit
def alike():
    """Two tasks of the same code wait for a third arrival."""
    ready = tlx.alloc_barriers(1, arrive_count=3)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            pass
        with tlx.async_task(num_warps=4, replicate=2):
            tlx.barrier_arrive(ready[0])  # arrive
            tlx.barrier_wait(ready[0], 0)  # here


def test_tasks_at_the_same_line_are_reported_together():
    report = expect_fault(alike, "lacks 1 of 3 arrivals", kind=Deadlock)
    [line] = [note for note in report.notes if note.startswith(at(alike))]
    assert "partition 0 and partition 1 wait at 'ready[0]'" in line
    [got] = [note for note in report.notes if "has got" in note]
    assert f"{at(alike, 'arrive')}, partition 0 and partition 1" in got


@tlx_xdsl.jit
def named(ID: tl.constexpr, THREADS: tl.constexpr):
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.named_barrier_arrive(ID, THREADS)  # arrive
        with tlx.async_task(num_warps=4):
            tlx.named_barrier_wait(3, 256)  # here


@every_schedule
def test_a_named_barrier(schedule):
    assert not run(named, 3, 256, schedule=schedule).warnings
    report = expect_fault(
        named, "partition 0 waits at named barrier 3, at which 128 of 256 threads have arrived", 4, 256,
        kind=Deadlock, schedule=schedule,
    )  # fmt: skip
    # Another barrier's arrival is no help.
    assert not any("others arrive" in note for note in report.notes)


def test_a_named_barrier_that_is_used_for_different_numbers_of_threads():
    report = expect_fault(named, "named barrier 3 is used for 256 threads here, and for 384 elsewhere", 3, 384)
    assert any(at(named, "arrive") in note for note in report.notes)


@tlx_xdsl.jit
def through_calls(stage_bars, k):
    tlx.barrier_arrive(stage_bars, pred=k > 5)  # arrive


@tlx_xdsl.jit
def in_a_loop(n):
    bars = tlx.alloc_barriers(2)
    for k in range(n):
        through_calls(bars[k % 2], k)
        tlx.barrier_wait(bars[k % 2], (k // 2) & 1)  # here


def test_an_arrival_in_a_function_that_is_called():
    report = expect_fault(in_a_loop, "waits at 'bars[0]' for parity 0", 3, kind=Deadlock)
    assert any(f"'bars' can be released by {at(through_calls, 'arrive')}" in note for note in report.notes)


@tlx_xdsl.jit
def endless(flag_ptr):
    value = tl.load(flag_ptr)
    while value == 0:  # here
        value = tl.load(flag_ptr)


def test_a_kernel_that_never_ends():
    expect_fault(
        endless,
        "no end after 500 turns: the default task still runs",
        np.zeros(1, np.int32),
        text="while",
        max_turns=500,
        global_order=False,
    )
    expect_fault(
        endless,
        "deadlock: the default task polls global memory in a loop, and no one writes there any more",
        np.zeros(1, np.int32),
        text="while",
        kind=Deadlock,
    )
