"""Bulk copies: bytes that follow each other, to and from shared memory."""

# covers: tlx.copies

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.interpreter.faults import Deadlock, Fault
from tlx_xdsl.interpreter.scheduler import POLICIES

HOPPER = {"target": "sm_90a", "jobs": 1}


@tlx_xdsl.jit
def double(x_ptr, y_ptr, SIZE, OFFSET: tl.constexpr, EXPECT: tl.constexpr, DROP: tl.constexpr):
    """The first SIZE bytes of x times two."""
    source = tlx.local_alloc((256,), tl.float32, 1)
    target = tlx.local_alloc((256,), tl.float32, 1)
    full = tlx.alloc_barriers(1)
    tlx.local_store(source[0], tl.zeros((256,), tl.float32))
    tlx.fence_async_shared()
    tlx.barrier_expect_bytes(full[0], EXPECT)
    tlx.async_load(x_ptr + OFFSET, source[0], bulk=True, bulk_size=SIZE, barrier=full[0])
    if DROP != "wait":
        tlx.barrier_wait(full[0], 0)
    tlx.local_store(target[0], tlx.local_load(source[0]) * 2)
    if DROP != "fence":
        tlx.fence_async_shared()
    tlx.async_store(y_ptr, target[0], SIZE)
    if DROP != "store wait":
        tlx.async_descriptor_store_wait(0)
    if DROP == "reuse":
        tlx.async_store(y_ptr, target[0], SIZE)
        tlx.local_store(target[0], tl.zeros((256,), tl.float32))
        tlx.async_descriptor_store_wait(0)


def run(size=512, offset=0, expect=None, drop="", schedule="round-robin"):
    x, y = np.arange(256, dtype=np.float32), np.full(256, -1, np.float32)
    expect = size if expect is None else expect
    result = tlx_xdsl.interpret(double, 1, x, y, size, offset, expect, drop, schedule=schedule, **HOPPER)
    return x, y, [warning.message for warning in result.warnings]


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize("size", [16, 512, 1024])
def test_bulk_copy(size, schedule):
    x, y, warnings = run(size, schedule=schedule)
    np.testing.assert_array_equal(y[: size // 4], 2 * x[: size // 4])
    assert (y[size // 4 :] == -1).all()
    assert not warnings


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize(
    ("drop", "message"),
    [
        ("wait", r"reads 'source\[0\]', and nothing orders it after the TMA load"),
        ("fence", r"reads 'target\[0\]', which the default task has written without a proxy fence"),
        ("reuse", r"writes 'target\[0\]', and nothing orders it after the TMA store"),
    ],
)
def test_a_bulk_copy_without_its_order_is_reported(drop, message, schedule):
    with pytest.raises(Fault, match=message):
        run(drop=drop, schedule=schedule)


@pytest.mark.parametrize("schedule", POLICIES)
def test_a_store_that_no_task_waits_for_is_reported_and_written(schedule):
    x, y, warnings = run(drop="store wait", schedule=schedule)
    assert warnings == ["the default task ends without waiting for 1 of its TMA stores"]
    np.testing.assert_array_equal(y[:128], 2 * x[:128])


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"size": 24}, Fault, "the size is 24, no multiple of 16 bytes"),
        ({"offset": 1}, Fault, "misaligned bulk copy: the address is .*, no multiple of 16 bytes"),
        ({"size": 1040}, Fault, "a bulk copy of 1040 bytes, the buffer 'source.*' has 1024"),
        ({"size": 1024, "offset": 4}, Fault, "bulk load out of bounds"),
        ({"expect": 496}, Fault, "16 bytes more arrive on 'full"),
        ({"expect": 528}, Deadlock, "lacks 16 bytes"),
    ],
)
def test_wrong_sizes(arguments, kind, message):
    with pytest.raises(kind, match=message):
        run(**arguments)


@tlx_xdsl.jit
def store_unwritten(y_ptr):
    """A bulk copy of a buffer that is never written."""
    source = tlx.local_alloc((256,), tl.float32, 1)
    tlx.async_store(y_ptr, source[0], 512)
    tlx.async_descriptor_store_wait(0)


def test_a_store_is_no_writer_of_its_source():
    with pytest.raises(Fault, match=r"'source\[0\]' is read before it is written") as reported:
        tlx_xdsl.interpret(store_unwritten, 1, np.zeros(256, np.float32), **HOPPER)
    assert not any("is written at" in note for note in reported.value.notes)
