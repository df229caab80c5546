"""Barriers by hand: phases, bytes, and what is ordered with what."""

# covers: tlx.barriers, ttng.barrier

import numpy as np
import pytest
from hypothesis import given, strategies as st
from xdsl.dialects.test import TestOp as AnyOp

from tlx_xdsl.interpreter.clocks import Clock
from tlx_xdsl.interpreter.engine import Queue, Transfer
from tlx_xdsl.interpreter.faults import Fault, Race
from tlx_xdsl.interpreter.mbarrier import Mbarrier, NamedBarrier
from tlx_xdsl.text.diagnostics import collected_diagnostics

pytestmark = pytest.mark.quick

OP = AnyOp()
A, B = 1, 2
"""Agents that count the waits and arrivals of two tasks."""


def barrier(count: int = 1) -> Mbarrier:
    return Mbarrier("full[0]", OP, OP, count)


def knows(**steps: int) -> Clock:
    return Clock({{"a": A, "b": B}[name]: step for name, step in steps.items()})


def transfer(queue: Queue) -> Transfer:
    queue.issued += 1
    made = Transfer(queue, queue.issued, OP, "the TMA load", lambda _: None)
    queue.pending.append(made)
    return made


def loads() -> Queue:
    return Queue(3, "TMA load", "the default task", in_order=False)


# Phases --------------------------------------------------------------------------------------------------------------


def test_a_phase_completes_with_its_last_arrival():
    bar = barrier(2)
    assert not bar.arrive(OP, 1, knows(a=1), A)
    assert bar.is_armed
    assert bar.missing == "1 of 2 arrivals"
    assert bar.arrive(OP, 1, knows(b=1), B)
    assert (bar.phase, bar.pending, bar.is_armed) == (1, 2, False)
    assert bar.completed.seen == {A: 1, B: 1}


def test_a_fresh_barrier_lets_a_wait_for_the_odd_parity_pass():
    bar = barrier()
    assert bar.done(1)
    assert not bar.done(0)
    bar.arrive(OP, 1, knows(a=1), A)
    assert bar.done(0)
    assert not bar.done(1)


def test_a_phase_waits_for_its_bytes():
    bar, queue = barrier(), loads()
    bar.expect(48)
    assert not bar.arrive(OP, 1, knows(a=1), A)
    first, second = transfer(queue), transfer(queue)
    assert not bar.deliver(first, 16)
    assert bar.missing == "32 bytes"
    queue.pending.clear()
    assert bar.deliver(second, 32)
    assert bar.data_phase == 0


@given(st.permutations(["expect", "load", "load", "arrive"]))
def test_bytes_may_come_before_they_are_expected(order):
    bar, queue = barrier(2), loads()
    flips = []
    for what in order:
        match what:
            case "expect":
                bar.expect(64)
                flips.append(bar.arrive(OP, 1, knows(a=1), A))
            case "arrive":
                flips.append(bar.arrive(OP, 1, knows(b=1), B))
            case _:
                flips.append(bar.deliver(transfer(queue), 32))
    assert flips == [False, False, False, True]


def test_too_many_arrivals():
    with pytest.raises(Fault, match=r"too many arrivals on 'full\[0\]': 2 where its phase 0 waits for 1 of 1"):
        barrier().arrive(OP, 2, knows(a=1), A)


def test_too_many_bytes():
    bar = barrier()
    bar.deliver(transfer(loads()), 32)
    bar.expect(16)
    with pytest.raises(Fault, match="16 bytes more arrive"):
        bar.arrive(OP, 1, knows(a=1), A)


# Order ---------------------------------------------------------------------------------------------------------------


def test_an_arrival_must_know_the_phase_before():
    bar = barrier(2)
    bar.arrive(OP, 1, knows(a=1), A)
    bar.arrive(OP, 1, knows(b=1), B)
    with pytest.raises(Race, match=r"nothing orders this arrival .* in its phase 1, after phase 0"):
        bar.arrive(OP, 1, knows(a=2), A)
    bar.arrive(OP, 1, knows(a=2, b=1), A)


def test_one_task_may_arrive_as_often_as_it_likes():
    bar = barrier()
    for step in range(1, 6):
        assert bar.arrive(OP, 1, knows(a=step), A)


def test_what_completes_a_phase_must_know_the_waits_for_the_phase_before():
    bar = barrier()
    bar.arrive(OP, 1, knows(a=1), A)
    bar.pass_wait(OP, B, knows(b=1))
    with pytest.raises(Race, match=r"nothing orders this wait for phase 0 .* before phase 1 completes"):
        bar.arrive(OP, 1, knows(a=2), A)


def test_a_wait_that_is_known_is_not_overtaken():
    bar = barrier()
    bar.arrive(OP, 1, knows(a=1), A)
    bar.pass_wait(OP, B, knows(b=1))
    assert bar.arrive(OP, 1, knows(a=2, b=1), A)


def test_a_wait_must_know_the_phase_before_the_one_that_it_waits_for():
    bar = barrier()
    bar.arrive(OP, 1, knows(a=1), A)
    bar.arrive(OP, 1, knows(a=2), A)
    with pytest.raises(Race, match=r"nothing orders this wait for phase 1 .* after phase 0: .* passes at once"):
        bar.pass_wait(OP, B, knows(b=1))
    bar.pass_wait(OP, B, knows(a=1, b=1))


def test_a_wait_acquires_what_the_arrivals_released():
    bar, clock = barrier(), knows(b=1)
    bar.arrive(OP, 1, Clock({A: 4, 7: 2}), A)
    bar.pass_wait(OP, B, clock)
    assert clock.seen == {A: 4, B: 1, 7: 2}


# Named barriers ------------------------------------------------------------------------------------------------------


def test_a_named_barrier_counts_threads():
    bar = NamedBarrier(1)
    bar.arrive(OP, 128, 256, knows(a=1), A)
    assert (bar.phase, bar.arrived) == (0, 128)
    bar.arrive(OP, 128, 256, knows(b=1), B)
    assert (bar.phase, bar.arrived) == (1, 0)
    assert bar.completed.seen == {A: 1, B: 1}


@pytest.mark.parametrize(
    ("threads", "expected", "agent", "message"),
    [
        (128, 384, B, "used for 384 threads here, and for 256 elsewhere"),
        (256, 256, B, "384 threads arrive at named barrier 1, which waits for 256"),
        (128, 256, A, "a task arrives twice in one phase of named barrier 1: 128 of 256 threads have arrived"),
    ],
)
def test_what_goes_wrong_at_a_named_barrier(threads, expected, agent, message):
    bar = NamedBarrier(1)
    bar.arrive(OP, 128, 256, knows(a=1), A)
    with pytest.raises(Fault, match=message):
        bar.arrive(OP, threads, expected, Clock(), agent)


def test_warps_of_one_task_pass_a_named_barrier_for_fewer_threads_alone():
    bar = NamedBarrier(1)
    with collected_diagnostics() as warnings:
        bar.arrive(OP, 128, 32, knows(a=1), A)
    assert (bar.phase, bar.arrived) == (4, 0)
    assert [each.message for each in warnings] == [
        "a task of 128 threads arrives at named barrier 1, which waits for 32: each 32 of them pass alone, and nothing "
        "is ordered"
    ]
    with pytest.raises(Fault, match="128 threads arrive at named barrier 1, which waits for 48"):
        bar.arrive(OP, 128, 48, Clock(), A)


# Queues --------------------------------------------------------------------------------------------------------------


def test_a_queue_that_keeps_order_offers_only_its_oldest_transfer():
    for in_order, offered in ((True, 1), (False, 3)):
        queue = Queue(3, "wgmma", "the default task", in_order)
        for _ in range(3):
            transfer(queue)
        assert len(queue.ready) == offered


@given(st.permutations(range(5)))
def test_done_is_the_number_up_to_which_all_are_complete(order):
    queue = loads()
    made = [transfer(queue) for _ in range(5)]
    complete: set[int] = set()
    for number in order:
        made[number].complete()
        complete.add(number)
        assert queue.done == next(n for n in range(6) if n not in complete)


def test_only_a_queue_that_keeps_order_knows_its_predecessors():
    for in_order in (True, False):
        queue = Queue(3, "wgmma", "the default task", in_order)
        transfer(queue)
        assert queue.knowledge(Clock()).knows(3, 1) == in_order
    assert np.all([queue.actor(OP).step == 2, queue.actor(OP).is_async])
