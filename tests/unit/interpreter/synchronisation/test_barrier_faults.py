"""Mistakes with barriers, and with the lives of buffers and barriers, each reported at its line."""

# covers: tlx.barriers, ttng.barrier

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.interpreter.reports import at, expect_fault, run
from tlx_xdsl.dialects import ttg, ttng
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module
from tlx_xdsl.runtime.simulate.interpret import interpret_module
from tlx_xdsl.runtime.simulate.options import Options

# What the user's language can not express, but a pass could get wrong -------------------------------------------------


def _edited(kernel, types, edit):
    """The kernel's module, edited."""
    module = frontend_module(kernel.source, Specialization(types, {}))
    edit(list(module.walk()))
    return module


@tlx_xdsl.jit
def loads_twice(out_ptr):
    tile = tlx.local_alloc((16, 16), tl.float32, 1)
    tlx.local_store(tile[0], tl.full((16, 16), 3.0, tl.float32))
    value = tlx.local_load(tile[0])
    value += tlx.local_load(tile[0])  # here
    tl.store(out_ptr + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :], value)


def test_a_buffer_that_is_read_when_it_is_dead():
    def edit(ops):
        _, second = (op for op in ops if isinstance(op, ttg.LocalLoadOp))
        alloc = next(op for op in ops if isinstance(op, ttg.LocalAllocOp))
        second.parent.insert_op_before(ttg.LocalDeallocOp(operands=[alloc.result]), second)

    module = _edited(loads_twice, {"out_ptr": "*fp32"}, edit)
    with pytest.raises(Fault) as found:
        interpret_module(module, (1,), [np.zeros((16, 16), np.float32)], Options(jobs=1))
    assert str(found.value).startswith(f"{at(loads_twice)}: error: 'tile[0]' is read before it is written")


@tlx_xdsl.jit
def waits_twice(out_ptr):
    bars = tlx.alloc_barriers(1)
    tlx.barrier_arrive(bars[0])
    tlx.barrier_wait(bars[0], 0)
    tlx.barrier_arrive(bars[0])  # here


def test_a_barrier_that_is_used_when_its_life_has_ended():
    def edit(ops):
        _, second = (op for op in ops if isinstance(op, ttng.ArriveBarrierOp))
        second.parent.insert_op_before(ttng.InvalBarrierOp(operands=[second.alloc]), second)

    module = _edited(waits_twice, {"out_ptr": "*fp32"}, edit)
    with pytest.raises(Fault) as found:
        interpret_module(module, (1,), [np.zeros(1, np.float32)], Options(jobs=1))
    assert str(found.value).startswith(
        f"{at(waits_twice)}: error: 'bars[0]' is used as an mbarrier, but it was not initialised, or its life has ended"
    )


@tlx_xdsl.jit
def two_barriers(out_ptr):
    bars = tlx.alloc_barriers(1)  # first
    more = tlx.alloc_barriers(1)  # second
    tlx.barrier_arrive(bars[0])
    tlx.barrier_arrive(more[0])


def test_memory_is_given_back_under_a_barrier():
    def edit(ops):
        array = next(op for op in ops if isinstance(op, ttg.LocalAllocOp))
        last = [op for op in ops if isinstance(op, ttng.ArriveBarrierOp)][-1]
        last.parent.insert_op_before(dealloc := ttg.LocalDeallocOp(operands=[array.result]), last)
        dealloc.location = array.location

    module = _edited(two_barriers, {"out_ptr": "*fp32"}, edit)
    with pytest.raises(Fault) as found:
        interpret_module(module, (1,), [np.zeros(1, np.float32)], Options(jobs=1))
    assert str(found.value).startswith(
        f"{at(two_barriers, 'first')}: error: 'bars[0]' is still in use as an mbarrier where its memory is given back"
    )


def test_barriers_end_with_the_kernel():
    """The memory of barriers is given back where nothing follows that could use it."""

    def edit(ops):
        end = ops[-1]
        for array in [op for op in ops if isinstance(op, ttg.LocalAllocOp)]:
            end.parent.insert_op_before(ttg.LocalDeallocOp(operands=[array.result]), end)

    module = _edited(two_barriers, {"out_ptr": "*fp32"}, edit)
    assert interpret_module(module, (1,), [np.zeros(1, np.float32)], Options(jobs=1)).warnings == ()


def test_a_barrier_whose_life_is_not_ended_where_others_are():
    def edit(ops):
        last = [op for op in ops if isinstance(op, ttng.ArriveBarrierOp)][-1]
        last.parent.insert_op_after(ttng.InvalBarrierOp(operands=[last.alloc]), last)

    module = _edited(two_barriers, {"out_ptr": "*fp32"}, edit)
    [warning] = interpret_module(module, (1,), [np.zeros(1, np.float32)], Options(jobs=1)).warnings
    assert str(warning).startswith(f"{at(two_barriers, 'first')}: warning: the lifetime of 'bars[0]' does not end")


# mbarriers -----------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def arrivals(COUNT: tl.constexpr, ARRIVED: tl.constexpr):
    bars = tlx.alloc_barriers(2, arrive_count=COUNT)  # init
    tlx.barrier_arrive(bars[1], ARRIVED)  # here


def test_more_arrivals_than_a_phase_waits_for():
    report = expect_fault(arrivals, "too many arrivals on 'bars[1]': 3 where its phase 0 waits for 2 of 2", 2, 3)
    assert any("initialised for 2 arrivals" in note and at(arrivals, "init") in note for note in report.notes)


def test_a_phase_that_is_never_completed_is_warned_of():
    [warning] = run(arrivals, 3, 1).warnings
    assert str(warning).startswith(
        f"{at(arrivals, 'init')}: warning: 'bars[1]' ends in the middle of its phase 0, which lacks 2 of 3 arrivals"
    )
    assert any("has got" in note and at(arrivals) in note for note in warning.notes)


@tlx_xdsl.jit
def unread(desc):
    tiles = tlx.local_alloc((16, 64), tl.float16, 2)
    first = tlx.alloc_barriers(1)  # init
    second = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(first[0], 2048)
    tlx.async_descriptor_load(desc, tiles[0], [0, 0], first[0])
    tlx.barrier_expect_bytes(second[0], 2048)
    tlx.async_descriptor_load(desc, tiles[1], [0, 0], second[0])
    tlx.barrier_wait(second[0], 0)


def test_data_that_no_task_waits_for_is_warned_of():
    [warning] = run(unread, tlx_xdsl.TensorDescriptor.from_tensor(np.ones((16, 64), np.float16), [16, 64])).warnings
    assert str(warning).startswith(
        f"{at(unread, 'init')}: warning: no task has waited for phase 0 of 'first[0]', which asynchronous copies have "
        "completed"
    )


@tlx_xdsl.jit
def two_inits(n):
    for _ in range(n):
        bars = tlx.alloc_barriers(1, arrive_count=2)  # here
        tlx.barrier_arrive(bars[0])


def test_a_barrier_that_is_initialised_anew_in_the_middle_of_a_phase():
    expect_fault(two_inits, "'bars[0]' is initialised anew while its phase 0 is under way", 2)


@tlx_xdsl.jit
def overtaken(n):
    """The second task may arrive for two phases before the first one has looked for the first."""
    bars = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for k in range(n):
                tlx.barrier_wait(bars[0], k & 1)  # here
        with tlx.async_task(num_warps=4):
            for _ in range(n):
                tlx.barrier_arrive(bars[0])  # arrive


@pytest.mark.parametrize("schedule", ["round-robin", "random"])
def test_a_wait_that_the_next_phase_may_overtake(schedule):
    # Some schedules run into the deadlock that the others report.
    report = expect_fault(overtaken, "bars[0]'", 2, schedule=schedule)
    assert "nothing orders this wait for phase 0" in report.message or "deadlock" in report.message
    assert any(at(overtaken, "arrive") in note for note in report.notes)


@tlx_xdsl.jit
def uncounted(n):
    """Two tasks arrive, round by round, but nothing keeps one of them from being a round ahead."""
    bars = tlx.alloc_barriers(1, arrive_count=2)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for _ in range(n):
                tlx.barrier_arrive(bars[0])  # here
        with tlx.async_task(num_warps=4):
            for _ in range(n):
                tlx.barrier_arrive(bars[0])


def test_an_arrival_that_may_count_for_the_phase_before():
    report = expect_fault(uncounted, "nothing orders this arrival on 'bars[0]', in its phase 1, after phase 0", 2)
    assert "it may count for that phase instead" in report.message
