"""Programs that wait for each other through global memory."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.interpreter.faults import Deadlock, Fault
from tlx_xdsl.interpreter.scheduler import POLICIES

pytestmark = pytest.mark.quick

PROGRAMS = 6


@tlx_xdsl.jit
def spins_for_the_next(flags):
    pid = tl.program_id(0)
    if pid + 1 < tl.num_programs(0):
        while tl.atomic_add(flags + pid + 1, 0) == 0:
            pass
    tl.atomic_xchg(flags + pid, 1)


@tlx_xdsl.jit
def polls_for_the_next(flags):
    pid = tl.program_id(0)
    if pid + 1 < tl.num_programs(0):
        tl.atomic_poll(flags + pid + 1, 1)
    tl.atomic_xchg(flags + pid, 1)


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize("kernel", [spins_for_the_next, polls_for_the_next], ids=["spins", "polls"])
def test_later_programs_begin_beside_one_that_waits(kernel, schedule):
    flags = np.zeros(PROGRAMS, np.int32)
    result = kernel.interpret(PROGRAMS, flags, schedule=schedule, max_turns=20_000)
    assert flags.all()
    assert (result.jobs, result.warnings) == (1, ())


@tlx_xdsl.jit
def spins_for_ever(flag):
    while tl.atomic_add(flag, 0) == 0:
        pass


def test_spinning_for_ever_is_reported():
    """The report comes at once: what the loop reads stays as it is."""
    with pytest.raises(Deadlock, match="polls global memory in a loop, and no one writes there any more") as caught:
        spins_for_ever.interpret(2, np.zeros(1, np.int32))
    assert "tl.atomic_add(flag, 0)" in caught.value.source_line


def test_spinning_for_ever_is_reported_without_order():
    with pytest.raises(Fault, match="no end after 2000 turns: the default task still runs") as caught:
        spins_for_ever.interpret(2, np.zeros(1, np.int32), max_turns=2_000, global_order=False)
    assert "tl.atomic_add(flag, 0)" in caught.value.source_line


@tlx_xdsl.jit
def polls_in_a_circle(flags):
    pid = tl.program_id(0)
    if pid > 0:
        tl.atomic_poll(flags + pid % 3, 1)
    tl.atomic_xchg(flags + pid, 1)


def test_programs_that_poll_for_each_other_are_a_deadlock():
    flags = np.zeros(4, np.int32)
    with pytest.raises(Deadlock, match="the default task polls for 1 in global memory") as caught:
        polls_in_a_circle.interpret(4, flags, max_turns=2_000)
    assert "tl.atomic_poll" in caught.value.source_line
    assert any("program (1, 0, 0)" in note for note in caught.value.notes)
    # Program 3 polls for what program 0 has written.
    assert flags.tolist() == [1, 0, 0, 1]
