"""Clocks, footprints and races, by hand."""

# covers: tlx.barriers

import numpy as np
import pytest
from hypothesis import given, strategies as st
from xdsl.dialects.test import TestOp as AnyOp

from tlx_xdsl.interpreter.clocks import Clock
from tlx_xdsl.interpreter.faults import Fault, Race
from tlx_xdsl.interpreter.races import Actor, Footprint, Races

pytestmark = pytest.mark.quick

TASK, OTHER, QUEUE = 1, 2, 3


def actor(agent: int, step: int, *, is_async: bool = False) -> Actor:
    return Actor(agent, step, AnyOp(), f"agent {agent}", is_async)


def knowing(**seen: int) -> Clock:
    names = {"task": TASK, "other": OTHER, "queue": QUEUE}
    return Clock({names[name]: step for name, step in seen.items()})


def footprint(start: int, end: int) -> Footprint:
    return Footprint(((start, end),))


# Clocks --------------------------------------------------------------------------------------------------------------


def test_knowledge_only_grows():
    clock = knowing(task=3, other=1)
    clock.join(knowing(task=2, other=5))
    assert clock.seen == {TASK: 3, OTHER: 5}
    assert clock.knows(OTHER, 5)
    assert not clock.knows(OTHER, 6)
    assert not clock.knows(QUEUE, 1)


def test_a_copy_is_kept():
    clock = knowing(task=1)
    kept = clock.copy()
    clock.observe(TASK, 2)
    assert kept.seen == {TASK: 1}


def test_a_fence_covers_what_is_known_then():
    clock = knowing(task=2)
    clock.fence()
    clock.seen[TASK] = 3
    assert clock.fenced == {TASK: 2}


def test_what_an_asynchronous_operation_writes_needs_no_fence():
    clock = Clock()
    clock.observe(QUEUE, 4)
    assert clock.seen == clock.fenced == {QUEUE: 4}


_CLOCKS = st.dictionaries(st.integers(1, 4), st.integers(1, 9)).map(Clock)


@given(_CLOCKS, _CLOCKS, _CLOCKS)
def test_joins_are_least_upper_bounds(a, b, c):
    def joined(*clocks: Clock) -> dict[int, int]:
        result = Clock()
        for clock in clocks:
            result.join(clock)
        return result.seen

    assert joined(a, b) == joined(b, a)
    assert joined(a, b, c) == joined(c, a, b, a)
    assert all(Clock(joined(a, b)).knows(agent, step) for agent, step in a.seen.items())


# Footprints ----------------------------------------------------------------------------------------------------------


@given(st.sets(st.integers(0, 40), min_size=1), st.sets(st.integers(0, 40), min_size=1), st.sampled_from([1, 2, 4]))
def test_footprints_overlap_where_they_share_a_byte(a, b, size):
    first, second = (Footprint.of(np.array(sorted(starts)) * size, size) for starts in (a, b))
    assert first.overlaps(second) == second.overlaps(first) == bool(a & b)
    covered = {byte for start, end in first.intervals for byte in range(start, end)}
    assert covered == {start * size + byte for start in a for byte in range(size)}


# Races ---------------------------------------------------------------------------------------------------------------


def test_a_read_happens_after_a_write_that_its_clock_has_or_races():
    cell = Races().cell(footprint(0, 16))
    cell.overwrite(actor(TASK, 1), knowing(task=1), "x")
    with pytest.raises(Race, match="agent 2 reads 'x'"):
        cell.read(actor(OTHER, 1), knowing(other=1), "x")
    cell.read(actor(OTHER, 1), knowing(other=1, task=1), "x")


def test_a_write_that_is_not_known_races_with_a_read():
    cell = Races().cell(footprint(0, 16))
    cell.overwrite(actor(TASK, 2), knowing(task=2), "x")
    with pytest.raises(Race, match="agent 2 reads 'x', and nothing orders it after agent 1, by which it is written"):
        cell.read(actor(OTHER, 1), knowing(other=1, task=1), "x")


def test_a_write_must_know_every_reader():
    cell = Races().cell(footprint(0, 16))
    cell.read(actor(OTHER, 1), knowing(other=1), "x")
    cell.read(actor(QUEUE, 1, is_async=True), knowing(queue=1), "x")
    with pytest.raises(Race, match="agent 1 writes 'x', and nothing orders it after agent 3, by which it is read"):
        cell.overwrite(actor(TASK, 1), knowing(task=1, other=1), "x")
    cell.overwrite(actor(TASK, 1), knowing(task=1, other=1, queue=1), "x")


@pytest.mark.parametrize("agent", [TASK, OTHER])
def test_reads_do_not_race_with_each_other_but_with_a_write(agent):
    cell = Races().cell(footprint(0, 16))
    for reader in (TASK, OTHER, QUEUE):
        cell.read(actor(reader, 1), Clock({reader: 1}), "x")
    with pytest.raises(Race, match=f"agent {agent} writes 'x'"):
        cell.overwrite(actor(agent, 2), Clock({agent: 2}), "x")


@pytest.mark.parametrize(("other", "races"), [((8, 24), True), ((15, 16), True), ((16, 32), False)])
def test_accesses_to_a_part_of_the_bytes(other, races):
    memory = Races()
    memory.cell(footprint(0, 16)).overwrite(actor(TASK, 1), knowing(task=1), "x")
    cell = memory.cell(footprint(*other))
    if races:
        with pytest.raises(Race):
            cell.read(actor(OTHER, 1), knowing(other=1), "y")
    else:
        cell.read(actor(OTHER, 1), knowing(other=1), "y")


def test_two_operations_of_one_queue_race_unless_it_keeps_order():
    cell = Races().cell(footprint(0, 16))
    cell.overwrite(actor(QUEUE, 1, is_async=True), knowing(task=1), "x")
    with pytest.raises(Race, match="agent 3 writes 'x' while an earlier one may still be in flight"):
        cell.overwrite(actor(QUEUE, 2, is_async=True), knowing(task=1), "x")
    cell.overwrite(actor(QUEUE, 2, is_async=True), knowing(task=1, queue=1), "x")


def test_the_async_proxy_needs_a_fence_after_a_write():
    cell = Races().cell(footprint(0, 16))
    clock = knowing(task=1)
    cell.overwrite(actor(TASK, 1), clock, "x")
    with pytest.raises(Fault, match="which agent 1 has written without a proxy fence in between"):
        cell.read(actor(QUEUE, 1, is_async=True), clock, "x")
    clock.fence()
    cell.read(actor(QUEUE, 1, is_async=True), clock, "x")


def test_the_async_proxy_needs_no_fence_after_a_read():
    cell = Races().cell(footprint(0, 16))
    cell.read(actor(TASK, 1), knowing(task=1), "x")
    cell.overwrite(actor(QUEUE, 1, is_async=True), knowing(task=1), "x")
    # The same after a write does need one, and after a read the order.
    written, unordered = Races().cell(footprint(0, 16)), Races().cell(footprint(0, 16))
    written.overwrite(actor(TASK, 1), knowing(task=1), "x")
    with pytest.raises(Fault, match="without a proxy fence in between"):
        written.overwrite(actor(QUEUE, 1, is_async=True), knowing(task=1), "x")
    unordered.read(actor(TASK, 1), knowing(task=1), "x")
    with pytest.raises(Race, match="agent 3 writes 'x'"):
        unordered.overwrite(actor(QUEUE, 1, is_async=True), knowing(queue=1), "x")


def test_a_new_lifetime_forgets_the_accesses_before():
    memory = Races()
    cell = memory.cell(footprint(0, 16))
    cell.overwrite(actor(TASK, 5), knowing(task=5), "x")
    with pytest.raises(Race, match="agent 2 reads 'x'"):
        cell.read(actor(OTHER, 1), knowing(other=1), "x")
    memory.clear()
    cell.read(actor(OTHER, 1), knowing(other=1), "x")
