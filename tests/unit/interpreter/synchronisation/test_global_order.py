"""Accesses to global memory that no atomic operation, barrier or wait orders: kernels with the fault, and without."""

from dataclasses import replace

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.interpreter.clocks import Clock
from tlx_xdsl.interpreter.faults import Deadlock, Fault
from tlx_xdsl.interpreter.global_access import Access, Strength
from tlx_xdsl.interpreter.races import Actor

# Kernels are read by the frontend, not run by Python.
# pyright: basic


def check(kernel, grid, *arrays, **options):
    """Run a kernel with the check; gives the report of a race, or None."""
    try:
        tlx_xdsl.interpret(kernel, grid, *arrays, **options)
    except Fault as fault:
        if "nothing orders it after" in fault.message:
            return str(fault)
        raise
    return None


def numbers(count, dtype=np.int32):
    return np.zeros(count, dtype)


@tlx_xdsl.jit
def hand_over(x, flag, out, WRITE: tl.constexpr, READ: tl.constexpr, SCOPE: tl.constexpr):
    """Program 0 hands a block to program 1 by a flag."""
    offsets = tl.arange(0, 32)
    if tl.program_id(0) == 0:
        tl.store(x + offsets, offsets)
        tl.atomic_xchg(flag, 1, sem=WRITE, scope=SCOPE)
    else:
        while tl.atomic_add(flag, 0, sem=READ, scope=SCOPE) == 0:
            pass
        tl.store(out + offsets, tl.load(x + offsets))


@pytest.mark.parametrize("write", ["release", "acq_rel", "relaxed", "acquire"])
@pytest.mark.parametrize("read", ["acquire", "acq_rel", "relaxed", "release"])
@pytest.mark.parametrize("scope", ["gpu", "sys", "cta"])
def test_a_release_and_an_acquire_order(write, read, scope):
    out = numbers(32)
    found = check(hand_over, 2, numbers(32), numbers(1), out, write, read, scope)
    is_ordered = write in ("release", "acq_rel") and read in ("acquire", "acq_rel") and scope != "cta"
    assert (found is None) == is_ordered
    if is_ordered:
        assert np.array_equal(out, np.arange(32))


def test_a_report_names_both_lines_and_both_programs():
    found = check(hand_over, 2, numbers(32), numbers(1), numbers(32), "relaxed", "acquire", "gpu")
    assert "the default task of program (1, 0, 0) reads byte 0 of 'x' in global memory" in found
    assert "nothing orders it after the default task of program (0, 0, 0), by which it is written" in found
    assert "tl.store(out + offsets, tl.load(x + offsets))" in found
    assert "note: written at" in found
    assert "sem='release' after that line, by program (0, 0, 0)" in found


@tlx_xdsl.jit
def poll(x, flag, out, VOLATILE: tl.constexpr, PLAIN: tl.constexpr):
    """A flag that is written or read by other than atomic operations."""
    offsets = tl.arange(0, 32)
    if tl.program_id(0) == 0:
        tl.store(x + offsets, offsets)
        if PLAIN:
            tl.store(flag, 1)
        else:
            tl.atomic_xchg(flag, 1)
    else:
        if VOLATILE:
            while tl.load(flag, volatile=True) == 0:
                pass
        else:
            while tl.atomic_add(flag, 0) == 0:
                pass
        tl.store(out + offsets, tl.load(x + offsets))


def test_what_is_volatile_orders_nothing():
    assert "reads byte 0 of 'x'" in check(poll, 2, numbers(32), numbers(1), numbers(32), True, False)
    assert "byte 0 of 'flag' in global memory" in check(poll, 2, numbers(32), numbers(1), numbers(32), False, True)
    assert check(poll, 2, numbers(32), numbers(1), numbers(32), False, False) is None


@tlx_xdsl.jit
def share(out, DISTANCE: tl.constexpr):
    tl.store(out + tl.program_id(0) * DISTANCE + tl.arange(0, 32), tl.program_id(0))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_programs_write_their_own_parts(dtype):
    """Neighbours share words, not bytes. Without atomic operations the check has to be asked for."""
    assert check(share, 4, numbers(128, dtype), 32, global_order=True) is None
    found = check(share, 4, numbers(128, dtype), 31, global_order=True)
    assert f"program (1, 0, 0) writes byte {31 * np.dtype(dtype).itemsize} of 'out'" in found
    assert check(share, 4, numbers(128, dtype), 31) is None


@tlx_xdsl.jit
def read_shared(x, out, IN_PLACE: tl.constexpr):
    offsets = tl.arange(0, 32)
    value = tl.load(x + offsets)
    tl.store((x if IN_PLACE else out + tl.program_id(0) * 32) + offsets, value)


def test_many_may_read_what_none_writes():
    assert check(read_shared, 5, numbers(32), numbers(160), False, global_order=True) is None
    assert "by which it is written" in check(read_shared, 5, numbers(32), numbers(160), True, global_order=True)


@tlx_xdsl.jit
def read_then_write(x, out):
    """The last program writes what all have read."""
    offsets = tl.arange(0, 32)
    tl.store(out + tl.program_id(0) * 32 + offsets, tl.load(x + offsets))
    if tl.program_id(0) == tl.num_programs(0) - 1:
        tl.store(x + offsets, offsets)


def test_a_write_is_after_all_reads():
    found = check(read_then_write, 3, numbers(32), numbers(96), global_order=True)
    assert "program (2, 0, 0) writes byte 0 of 'x'" in found
    assert "by which it is read" in found


@tlx_xdsl.jit
def split(x, sums, count, out, SEM: tl.constexpr):
    """Programs add; the last one reads the sums."""
    offsets = tl.arange(0, 32)
    tl.atomic_add(sums + offsets, tl.load(x + tl.program_id(0) * 32 + offsets), sem="relaxed")
    if tl.atomic_add(count, 1, sem=SEM) == tl.num_programs(0) - 1:
        tl.store(out + offsets, tl.load(sums + offsets))


@pytest.mark.parametrize("sem", ["acq_rel", "relaxed", "acquire", "release"])
def test_the_last_program_reads_what_all_have_added(sem):
    """A program's own addition is the last one at each element, and those of others are not forgotten."""
    given = numbers(128, np.float32), numbers(32, np.float32), numbers(1), numbers(32, np.float32)
    found = check(split, 4, *given, sem)
    assert (found is None) == (sem == "acq_rel")


@tlx_xdsl.jit
def locked(lock, total, PLAIN: tl.constexpr, TAKE: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1, sem=TAKE) == 1:
        pass
    tl.store(total, tl.load(total) + 1)
    if PLAIN:
        tl.store(lock, 0)
    else:
        tl.atomic_xchg(lock, 0, sem="release")


def test_a_lock():
    total = numbers(1)
    assert check(locked, 5, numbers(1), total, False, "acquire") is None
    assert total[0] == 5
    assert "'total'" in check(locked, 5, numbers(1), numbers(1), False, "relaxed")
    assert "'lock'" in check(locked, 5, numbers(1), numbers(1), True, "acquire")


@pytest.mark.parametrize("sem", ["acquire", "relaxed"])
def test_each_program_at_a_lock_costs_the_same(monkeypatch, sem):
    """The list of accesses to an address does not grow with the programs, in order or not."""
    looked, knows = [0], Clock.knows

    def counted(self, agent, step):
        looked[0] += 1
        return knows(self, agent, step)

    monkeypatch.setattr(Clock, "knows", counted)
    costs = []
    for programs in (50, 100, 200):
        looked[0] = 0
        if sem == "acquire":
            assert check(locked, programs, numbers(1), numbers(1), False, sem) is None
        else:
            assert check(counted_kernel, programs, numbers(1), numbers(programs)) is None
        costs.append(looked[0] / programs)
    assert costs[2] < costs[0] * 1.5


@tlx_xdsl.jit
def counted_kernel(count, out):
    at = tl.atomic_add(count, 1, sem="relaxed")
    tl.store(out + at, at)


@pytest.mark.parametrize(
    ("scope", "program", "knows", "covered"),
    [
        (Strength.GPU, 1, True, True),
        (Strength.GPU, 1, False, False),
        (Strength.WEAK, 1, True, True),
        # Another task of program 1 may conflict with what program 0 has done, and not with program 1.
        (Strength.CTA, 1, True, False),
        (Strength.CTA, 0, True, True),
    ],
)
def test_an_access_covers_those_that_come_before_it(scope, program, knows, covered):
    before, later = (
        Access(Actor(agent, 3, None, "a task"), (number, 0, 0), scope, False)
        for agent, number in ((1, 0), (2, program))
    )
    clock = Clock({1: 3 if knows else 2})
    assert before.is_covered_by(later, clock) == covered
    assert not before.is_covered_by(replace(later, strength=Strength.WEAK), clock) or scope is Strength.WEAK
    # What one agent does later covers what it did.
    assert before.is_covered_by(replace(before, actor=Actor(1, 4, None, "a task")), Clock())


@tlx_xdsl.jit
def chain(x, flags, READ: tl.constexpr):
    """Each program adds to what the one before has left: order is passed on."""
    pid = tl.program_id(0)
    if pid > 0:
        while tl.atomic_add(flags + pid - 1, 0, sem=READ) == 0:
            pass
    tl.store(x, tl.load(x) + 1)
    tl.atomic_xchg(flags + pid, 1, sem="release")


def test_order_is_passed_on():
    x = numbers(1)
    assert check(chain, 6, x, numbers(6), "acquire") is None
    assert x[0] == 6
    assert check(chain, 6, numbers(1), numbers(6), "relaxed") is not None


@tlx_xdsl.jit
def through_tma(x_desc, y_desc, flag, out, READ_ONLY: tl.constexpr):
    """Program 0 stores a tile by TMA, and hands it over."""
    offsets = tl.arange(0, 64)
    if tl.program_id(0) == 0:
        tile = tlx.local_alloc((8, 8), tl.float32, 1)
        full = tlx.alloc_barriers(1)
        tlx.barrier_expect_bytes(full[0], 256)
        tlx.async_descriptor_load(x_desc, tile[0], [0, 0], full[0])
        tlx.barrier_wait(full[0], 0)
        tlx.async_descriptor_store(y_desc, tile[0], [0, 0])
        tlx.async_descriptor_store_wait(0, read=READ_ONLY)
        tl.atomic_xchg(flag, 1)
    else:
        while tl.atomic_add(flag, 0) == 0:
            pass
        y = tl.load(tl.cast(out, tl.pointer_type(tl.float32)) + offsets)
        tl.store(out + 64 + offsets, y)


def test_a_bulk_store_has_written_when_it_was_waited_for():
    x, out = np.ones((8, 8), np.float32), np.zeros((16, 8), np.float32)
    given = [tlx_xdsl.TensorDescriptor.from_tensor(each, [8, 8]) for each in (x, out[:8])]
    assert check(through_tma, 2, *given, numbers(1), out, False) is None
    found = check(through_tma, 2, *given, numbers(1), out, True)
    assert "nothing orders it after the TMA store of the default task of program (0, 0, 0)" in found
    assert "tlx.async_descriptor_store_wait(0, read=False)" in found


@tlx_xdsl.jit
def wait_for_none(flag, HOW: tl.constexpr):
    if tl.program_id(0) == 0:
        if HOW == "volatile":
            while tl.load(flag, volatile=True) == 0:
                pass
        elif HOW == "atomic":
            while tl.atomic_add(flag, 0) == 0:
                pass
        else:
            while tl.atomic_cas(flag, 1, 2) != 1:
                pass


@pytest.mark.parametrize("how", ["volatile", "atomic", "swap"])
def test_a_loop_that_polls_what_none_writes_is_a_deadlock(how):
    with pytest.raises(Deadlock, match="polls global memory in a loop, and no one writes there any more"):
        tlx_xdsl.interpret(wait_for_none, 3, numbers(1), how, max_operations=10_000)


@tlx_xdsl.jit
def ping_pong(turn, count):
    """Two programs take turns."""
    me = tl.program_id(0)
    for _ in range(20):
        while tl.atomic_add(turn, 0, sem="acquire") % 2 != me:
            pass
        tl.store(count, tl.load(count) + 1)
        tl.atomic_add(turn, 1, sem="release")


def test_programs_that_wait_for_each_other_in_turn_are_no_deadlock():
    count = numbers(1)
    assert check(ping_pong, 2, numbers(1), count) is None
    assert count[0] == 40


@tlx_xdsl.jit
def meet(arrived, SHARED: tl.constexpr):
    """A barrier of all programs."""
    if SHARED:
        tile = tlx.local_alloc((SHARED,), tl.int8, 1)
        tlx.local_store(tile[0], tl.zeros((SHARED,), tl.int8))
    tl.atomic_add(arrived, 1)
    while tl.atomic_add(arrived, 0) < tl.num_programs(0):
        pass


@pytest.mark.parametrize(
    ("target", "shared", "most"),
    [("sm_87", 131072, 16), ("sm_87", 65536, 32)],
)
def test_a_barrier_of_all_programs_needs_that_all_are_resident(target, shared, most):
    tlx_xdsl.interpret(meet, most, numbers(1), shared, target=target)
    with pytest.raises(Deadlock) as found:
        tlx_xdsl.interpret(meet, most + 1, numbers(1), shared, target=target)
    assert f"{most} programs of 128 threads and {shared:,} bytes of shared memory are resident" in str(found.value)
    assert "1 more start" in str(found.value)
