"""Atomic operations of programs that run on several threads at once."""

# covers: target.cpu

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.cpu.runtime.pool import pool

PROGRAMS, ELEMENTS = 400, 7


@pytest.fixture(autouse=True)
def four_threads(monkeypatch):
    """All threads take part in every launch, however short it is."""
    tlx_xdsl.set_cpu_threads(4)
    monkeypatch.setattr(pool(), "helpers", lambda programs, ns: 3)
    yield
    tlx_xdsl.set_cpu_threads(None)


@tlx_xdsl.jit
def count(x, times):
    index = tl.arange(0, 8)
    for _ in range(times):
        tl.atomic_add(x + index, 1, mask=index < 7)


@tlx_xdsl.jit
def extremes(low, high):
    program = tl.program_id(0)
    tl.atomic_min(low, program - 200)
    tl.atomic_max(high, program - 200)


@tlx_xdsl.jit
def locked(lock, total, times):
    for _ in range(times):
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass
        tl.store(total, tl.load(total) + 1)
        tl.atomic_xchg(lock, 0)


@pytest.mark.parametrize(
    "dtype", [np.int32, np.int64, np.uint32, np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
)
def test_additions(dtype):
    times = 1 if dtype == ml_dtypes.bfloat16 else 5
    # bf16 holds all integers up to 256, f16 up to 2048.
    programs = 250 if dtype == ml_dtypes.bfloat16 else PROGRAMS
    x = np.zeros(ELEMENTS, dtype)
    count[(programs,)](x, times)
    assert (x.astype(int) == programs * times).all()


def test_extremes():
    low, high = np.full(1, 5, np.int32), np.full(1, 5, np.int32)
    extremes[(PROGRAMS,)](low, high)
    assert (low[0], high[0]) == (-200, 199)


def test_what_a_lock_protects():
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int64)
    locked[(PROGRAMS,)](lock, total, 20)
    assert (lock[0], total[0]) == (0, PROGRAMS * 20)
