"""Atomic operations: elements that share an address, orders, and waiting for others in global memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.interpreter.faults import Deadlock, Fault
from tlx_xdsl.interpreter.ops.atomics import in_turns
from tlx_xdsl.interpreter.scheduler import POLICIES

pytestmark = pytest.mark.quick

N = 256


@tlx_xdsl.jit
def histogram_kernel(x, counts, places, n):
    index = tl.arange(0, 256)
    value = tl.load(x + index)
    tl.store(places + index, tl.atomic_add(counts + value, 1, mask=index < n))


@given(st.integers(0, 2**31), st.integers(1, 40))
def test_elements_of_one_address_take_turns(seed: int, bins: int):
    x = np.random.default_rng(seed).integers(0, bins, N).astype(np.int32)
    counts, places = np.zeros(40, np.int32), np.zeros(N, np.int32)
    tlx_xdsl.interpret(histogram_kernel, (1,), x, counts, places, 200, jobs=1)
    assert counts.tolist() == np.bincount(x[:200], minlength=40).tolist()
    for value in range(bins):
        # Each of them has found another number there.
        assert sorted(places[:200][x[:200] == value]) == list(range(counts[value]))
    assert (places[200:] == 0).all()


@given(st.lists(st.integers(0, 5), max_size=30))
def test_turns_keep_the_order_of_the_elements(addresses: list[int]):
    turns = in_turns(np.array(addresses, np.int64)) if addresses else []
    assert sorted(i for turn in turns for i in turn.tolist()) == list(range(len(addresses)))
    seen: dict[int, int] = {}
    for turn in turns:
        assert len({addresses[i] for i in turn}) == len(turn)
        for i in turn.tolist():
            assert seen.get(addresses[i], -1) < i
            seen[addresses[i]] = i


@tlx_xdsl.jit
def float_kernel(x, out):
    index = tl.arange(0, 64)
    tl.atomic_add(out + index % 4, tl.load(x + index))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_float_additions_round_in_their_type(dtype: type):
    x = np.random.default_rng(0).standard_normal(64).astype(dtype)
    out, expected = np.zeros(4, dtype), np.zeros(4, dtype)
    tlx_xdsl.interpret(float_kernel, (1,), x, out)
    for row in x.reshape(16, 4):
        expected = expected + row
    np.testing.assert_array_equal(out, expected)


@tlx_xdsl.jit
def lock_kernel(lock, total, n):
    """Programs count under a lock."""
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    tl.store(total, tl.load(total) + n)
    tl.atomic_xchg(lock, 0, sem="release")


def test_a_lock_is_taken_and_freed_by_every_program():
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int32)
    tlx_xdsl.interpret(lock_kernel, (20,), lock, total, 3)
    assert (lock[0], total[0]) == (0, 60)


@tlx_xdsl.jit
def poll_kernel(x, n, out):
    tl.store(out, tl.atomic_poll(x, n))


def test_a_poll_that_is_never_answered_is_a_deadlock():
    x, out = np.array([3], np.int32), np.zeros(1, np.int32)
    tlx_xdsl.interpret(poll_kernel, (1,), x, 3, out)
    assert out[0] == 1
    with pytest.raises(Deadlock, match="polls for 4 in global memory") as found:
        tlx_xdsl.interpret(poll_kernel, (1,), x, 4, out)
    assert "tl.atomic_poll" in (found.value.source_line or "")


@tlx_xdsl.jit
def impatient_kernel(x, out, timeout):
    """Poll two elements, one of which is as expected."""
    index = tl.arange(0, 2)
    tl.store(out + index, tl.atomic_poll(x + index, index, timeout_ns=timeout))


def test_a_poll_ends_with_its_time():
    x, out = np.array([0, 7], np.int32), np.full(2, 9, np.int32)
    tlx_xdsl.interpret(impatient_kernel, (1,), x, out, 5000)
    assert out.tolist() == [1, 0]


@tlx_xdsl.jit
def handed_over(flag, x, out, SEM: tl.constexpr):
    """One task fills shared memory and sets a flag in global memory, for which another one spins."""
    buffers = tlx.local_alloc((64,), tl.float32, 1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.local_store(buffers[0], tl.load(x + tl.arange(0, 64)))
            tl.atomic_xchg(flag, 1, sem=SEM)
        with tlx.async_task(num_warps=4):
            while tl.atomic_add(flag, 0, sem=SEM) == 0:
                pass
            tl.store(out + tl.arange(0, 64), tlx.local_load(buffers[0]))


@pytest.mark.parametrize("schedule", POLICIES)
def test_a_release_orders_shared_memory_after_its_acquire(schedule: str):
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    flag, out = np.zeros(1, np.int32), np.zeros(64, np.float32)
    done = tlx_xdsl.interpret(handed_over, (1,), flag, x, out, "acq_rel", schedule=schedule)
    assert not done.warnings
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("schedule", POLICIES)
def test_relaxed_atomics_order_nothing(schedule: str):
    x, flag, out = np.ones(64, np.float32), np.zeros(1, np.int32), np.zeros(64, np.float32)
    with pytest.raises(Fault, match="nothing orders it after"):
        tlx_xdsl.interpret(handed_over, (1,), flag, x, out, "relaxed", schedule=schedule)


@tlx_xdsl.jit
def outside_kernel(x):
    tl.atomic_add(x + tl.arange(0, 16), 1)


def test_atomics_outside_of_the_array_are_reported():
    with pytest.raises(Fault, match="out of bounds: 4 bytes at byte 60 of 'x', which has 60"):
        tlx_xdsl.interpret(outside_kernel, (1,), np.zeros(15, np.int32))


# Compare and swap ----------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def swap(x, expected, new, before, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(before + i, tl.atomic_cas(x + i, tl.load(expected + i), tl.load(new + i)))


@tlx_xdsl.jit
def race_to_swap(x, before, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(before + i, tl.atomic_cas(x + i * 0, tl.zeros([N], x.dtype.element_ty), (i + 1).to(x.dtype.element_ty)))


@pytest.mark.parametrize("dtype", ["i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"])
def test_a_swap_takes_place_where_the_bits_are_those_expected(dtype) -> None:
    """Bits of floats count, too: 0.0 is not -0.0, and a NaN is itself."""
    rng = np.random.default_rng(0)
    x = rng.integers(-3 if dtype[0] != "u" else 0, 4, 64).astype(dtype)
    expected = np.where(rng.random(64) < 0.5, x, rng.integers(0, 4, 64).astype(dtype))
    if dtype[0] == "f":
        x[:4] = expected[:4] = [0.0, -0.0, np.nan, np.inf]
        expected[:2] = [-0.0, -0.0]
    new, before, held = rng.integers(4, 9, 64).astype(dtype), np.zeros(64, dtype), x.copy()
    tlx_xdsl.interpret(swap, 1, x, expected, new, before, 64, jobs=1)
    bits = f"u{x.itemsize}"
    np.testing.assert_array_equal(before.view(bits), held.view(bits))
    equal = held.view(bits) == expected.view(bits)
    np.testing.assert_array_equal(x.view(bits), np.where(equal, new, held).view(bits))


@pytest.mark.parametrize("dtype", ["i4", "i8", "f4"])
def test_one_of_many_swaps_takes_place(dtype) -> None:
    x, before = np.zeros(1, dtype), np.zeros(32, dtype)
    tlx_xdsl.interpret(race_to_swap, 1, x, before, 32, jobs=1)
    winner = int(x[0]) - 1
    assert 0 <= winner < 32
    np.testing.assert_array_equal(before, np.where(np.arange(32) == winner, 0, x[0]))
