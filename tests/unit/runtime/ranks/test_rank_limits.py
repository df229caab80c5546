"""Limits of waiting on simulated ranks: one is over when nothing else can move; then the program reports and leaves."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.faults import Deadlock
from tlx_xdsl.kernels.comm import all_reduce, check_waits, launches

# Kernels are read by the frontend, not run by Python.
# pyright: basic

STAGES = ("frontend", "ttgir")
LIMIT = 10**9


def pads(ranks, count=8, dtype=np.int32):
    """Return counters, of which the first four are for the report."""
    return tlx_xdsl.symmetric([np.zeros(count, dtype) for _ in range(ranks)])


@tlx_xdsl.jit
def gather(pads, out, COME: tl.constexpr, COMPARE: tl.constexpr, LIMIT: tl.constexpr):
    """Rank 2 waits for a signal of each other rank, of which COME come, after some work."""
    rank = tlx.rank()
    if rank < COME:
        for i in range(50):
            tl.atomic_add(out + 1, i)
        tlx.signal(tlx.peer(pads, 2) + 4, 1)
    if rank == 2:
        tlx.wait_signal(tlx.peer(pads, 2) + 4, 1, 2, compare=COMPARE, limit_ns=LIMIT)
        tl.store(out, 7)


def gathered(come, compare=">=", dtype=np.int32, limit=LIMIT, **options):
    counters, out = pads(3, dtype=dtype), [np.zeros(2, np.int32) for _ in range(3)]
    result = gather.interpret(1, counters, out, come, compare, limit, **options)
    return counters[2].tolist(), out[2][0], [str(each) for each in result.warnings]


@pytest.mark.quick
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("options", [{}, {"overlapping": True}, {"schedule": "random", "seed": 5}])
def test_a_signal_that_comes_late_is_in_time(stage, options):
    """Time stands still while another rank works."""
    counters, out, warnings = gathered(2, stage=stage, **options)
    assert (counters, out, warnings) == ([0, 0, 0, 0, 0, 2, 0, 0], 7, [])


@pytest.mark.quick
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("compare", "dtype"), [(">=", np.int32), ("==", np.int64)])
def test_who_waits_in_vain_reports_and_leaves(stage, compare, dtype):
    counters, out, (warning,) = gathered(1, compare, dtype, stage=stage)
    assert counters == [1, 1, 2, 1, 0, 1, 0, 0]
    assert out == 0
    for said in ("of rank 2", "5 of 'pads of rank 2' is", "its limit is over", "of rank 0 has changed it, at"):
        assert said in warning
    with pytest.raises(Deadlock):
        gathered(1, compare, dtype, limit=None, stage=stage)


def test_a_check_finds_the_lost_signal_in_all_orders():
    def arguments(come):
        return {"pads": pads(3), "out": [np.zeros(2, np.int32) for _ in range(3)], "COME": come}

    constants = {"COMPARE": ">=", "LIMIT": LIMIT}
    clean = gather.check(1, ranks=(3,), arguments=lambda ranks: arguments(2), **constants)
    assert not clean.findings, clean
    found = gather.check(1, ranks=(3,), arguments=lambda ranks: arguments(1), **constants)
    assert "its limit is over" in str(found.findings[0])
    for report in (clean, found):
        assert {each.stage for each in report.cases} == set(STAGES)
        assert not any(each.unexplored for each in report.cases)


@tlx_xdsl.jit
def relieve(pads, out, SHORT: tl.constexpr, LONG: tl.constexpr):
    """Programs of rank 0 wait in vain; the last one has a place when one has left, and signals rank 1."""
    rank = tlx.rank()
    if rank == 0:
        if tl.program_id(0) == tl.num_programs(0) - 1:
            tlx.signal(tlx.peer(pads, 1) + 4, 0)
        else:
            tlx.wait_signal(tlx.peer(pads, 0) + 4, tl.program_id(0), tl.program_id(0) + 1, limit_ns=SHORT)
            tl.store(out, 1)
    elif tl.program_id(0) == 0:
        tlx.wait_signal(tlx.peer(pads, 1) + 4, 0, 1, limit_ns=LONG)
        tl.store(out, 1)


@pytest.mark.parametrize("stage", STAGES)
def test_the_shortest_limit_is_over_first(stage):
    """16 programs are resident; rank 1 goes on after the 17th of rank 0 has run."""
    counters, out = pads(2, 24), [np.zeros(1, np.int32) for _ in range(2)]
    result = relieve.interpret(17, counters, out, LIMIT, 2 * LIMIT, stage=stage, target="sm_87", num_warps=32)
    assert [int(each[0]) for each in out] == [0, 1]
    gave_up, index, expected, found = counters[0][:4].tolist()
    assert (gave_up, expected, found) == (1, index + 1, 0)  # of one program
    assert counters[1][:4].tolist() == [0, 0, 0, 0]
    assert len(result.warnings) == 1 if stage == "frontend" else result.warnings
    assert "15 more programs of its GPU give up there at the same time" in str(result.warnings[0])
    with pytest.raises(Deadlock, match=r"16 programs of 1024 threads .* are resident at once"):
        relieve.interpret(17, pads(2, 24), out, None, None, stage=stage, target="sm_87", num_warps=32)


@tlx_xdsl.jit
def one_of_two(pads, LIMIT: tl.constexpr):
    """Rank 0 waits for ever, and rank 1 with a limit."""
    rank = tlx.rank()
    if rank == 0:
        tlx.wait_signal(tlx.peer(pads, 0) + 4, 0, 1)
    else:
        tlx.wait_signal(tlx.peer(pads, 1) + 4, 1, 1, limit_ns=LIMIT)


@pytest.mark.parametrize("stage", STAGES)
def test_others_without_a_limit_are_a_deadlock(stage, capsys):
    with pytest.raises(Deadlock, match=r"deadlock: the default task of program \(0, 0, 0\) of rank 0"):
        one_of_two.interpret(1, pads(2), LIMIT, stage=stage)
    assert "of rank 1 " in capsys.readouterr().err


@tlx_xdsl.jit
def with_tasks(pads, LIMIT: tl.constexpr):
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.wait_signal(tlx.peer(pads, tlx.rank()) + 4, 0, 1, limit_ns=LIMIT)
        with tlx.async_task(num_warps=4):
            tlx.fence("gpu")


@pytest.mark.parametrize("stage", STAGES)
def test_with_tasks_the_launch_ends(stage):
    with pytest.raises(CompilationError, match=r"gives up: in a kernel with tasks, the launch ends .*PTX: trap"):
        with_tasks.interpret(1, pads(2), LIMIT, stage=stage)


def test_a_rank_that_is_a_launch_ahead_is_named():
    """The counter of launches of rank 1 is wrong, so rank 0 waits for a signal of a launch that has been."""
    ranks = tlx_xdsl.SimulatedRanks(2, limit_ns=LIMIT)
    x = [np.full((4, 8), rank, np.float32) for rank in range(2)]
    all_reduce(x, ranks, algorithm="one_shot")
    check_waits(ranks)
    ((_, counters, _),) = launches._PADS[ranks]
    counters[0][launches.REPORT.value] += 2  # which has the same turn of the memory
    all_reduce(x, ranks, algorithm="one_shot")
    said = "all_reduce_one_shot: rank 0 gave up waiting for rank 1: signal 257 is 2, and was expected to be 4"
    with pytest.raises(RuntimeError, match=said):
        check_waits(ranks)
