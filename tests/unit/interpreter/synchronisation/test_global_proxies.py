"""The async proxy in global memory, programs side by side, and sums whose order is not that of their issue."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.clocks import Clock

# Kernels are read by the frontend, not run by Python.
# pyright: basic

DESCRIPTOR = tlx_xdsl.TensorDescriptor.from_tensor


def found(kernel, grid, *arguments, **options):
    try:
        result = tlx_xdsl.interpret(kernel, grid, *arguments, **options)
    except CompilationError as error:
        return error.message
    return " ".join(each.message for each in result.warnings)


def test_fences_are_for_one_memory_or_for_both():
    clock = Clock({1: 5, 2: 3})
    clock.fence()
    assert (clock.fenced, clock.fenced_global) == ({1: 5, 2: 3}, {})
    clock.seen[1] = 7
    clock.fence(in_shared=False, in_global=True)
    assert (clock.fenced, clock.fenced_global) == ({1: 5, 2: 3}, {1: 7, 2: 3})
    other = Clock()
    other.join(clock)
    assert other.only({1}).fenced_global == {1: 7} == clock.copy().without({2}).fenced_global


@tlx_xdsl.jit
def handed_over(mid_desc, mid, flag, out, WRITER: tl.constexpr, READER: tl.constexpr):
    """A tile that threads or TMA have written, and that TMA or threads read, in another program."""
    tile = tlx.local_alloc((16, 16), tl.float32, 1)
    full = tlx.alloc_barriers(1)
    offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    if tl.program_id(0) == 0:
        if WRITER == "TMA":
            tlx.local_store(tile[0], offsets.to(tl.float32))
            tlx.fence_async_shared()
            tlx.async_descriptor_store(mid_desc, tile[0], [0, 0])
            tlx.async_descriptor_store_wait(0, read=False)
        else:
            tl.store(mid + offsets, offsets.to(tl.float32))
            if WRITER == "fences":
                tlx.fence("async_global")
        tl.atomic_xchg(flag, 1, sem="release")
    else:
        while tl.atomic_add(flag, 0, sem="acquire") == 0:
            pass
        if READER == "fences":
            tlx.fence("async_global")
        if READER == "fences shared memory":
            tlx.fence_async_shared()
        if READER == "by threads":
            tl.store(out + offsets, tl.load(mid + offsets))
        else:
            tlx.barrier_expect_bytes(full[0], 1024)
            tlx.async_descriptor_load(mid_desc, tile[0], [0, 0], full[0])
            tlx.barrier_wait(full[0], 0)
            tl.store(out + offsets, tlx.local_load(tile[0]))


def hand_over(writer, reader, **options):
    middle, out = np.zeros((16, 16), np.float32), np.zeros(256, np.float32)
    tile = DESCRIPTOR(middle, [16, 16])
    message = found(handed_over, 2, tile, middle, np.zeros(1, np.int32), out, writer, reader, **options)
    return message, out


@pytest.mark.parametrize(
    ("writer", "reader"),
    [("TMA", ""), ("fences", ""), ("threads", "fences"), ("threads", "by threads"), ("TMA", "by threads")],
)
@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
def test_one_proxy_or_a_fence_in_between(writer, reader, stage):
    message, out = hand_over(writer, reader, stage=stage)
    assert not message
    assert (out == np.arange(256)).all()


@pytest.mark.parametrize("reader", ["", "fences shared memory"])
@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
def test_two_proxies_without_a_fence(reader, stage):
    message, _ = hand_over("threads", reader, stage=stage)
    assert message.startswith(
        "the TMA load of the default task of program (1, 0, 0) reads byte 0 of 'mid_desc, mid' in global memory, which "
        "the default task of program (0, 0, 0) has written without a proxy fence in between"
    )


def test_the_end_of_a_launch_is_a_fence():
    middle = np.zeros((16, 16), np.float32)
    tile = DESCRIPTOR(middle, [16, 16])
    for _ in range(2):
        arguments = tile, middle, np.ones(1, np.int32), np.zeros(256, np.float32)
        assert not found(handed_over, 1, *arguments, "threads", "")


@tlx_xdsl.jit
def locked(lock, total, KIND: tl.constexpr):
    if KIND:
        tl.atomic_xchg(lock, 1, sem="acquire")
    else:
        while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
            pass
    tl.store(total, tl.load(total) + 1)
    tl.atomic_xchg(lock, 0, sem="release")


@pytest.mark.parametrize("schedule", ["round-robin", "random", "adversarial"])
def test_programs_side_by_side_meet_a_lock_that_is_taken(schedule):
    """One after the other they never do; an acquire whose result has no use orders nothing all the same."""
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int32)
    for overlapping in (False, True) if schedule == "round-robin" else ():
        message = found(locked, 4, lock, total, 1, overlapping=overlapping)
        assert "reads byte 0 of 'total' in global memory, and nothing orders it after" in message
    total[0] = lock[0] = 0
    assert not found(locked, 4, lock, total, 0, overlapping=True, schedule=schedule)
    assert total[0] == 4


@tlx_xdsl.jit
def summed(x, sum_desc, turn, READ: tl.constexpr):
    tile = tlx.local_alloc((16, 16), x.dtype.element_ty, 1)
    offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tlx.local_store(tile[0], tl.load(x + tl.program_id(0) * 256 + offsets))
    tlx.fence_async_shared()
    while tl.atomic_add(turn, 0, sem="acquire") != tl.program_id(0):
        pass
    tlx.async_descriptor_store(sum_desc, tile[0], [0, 0], store_reduce="add")
    tlx.async_descriptor_store_wait(0, read=READ)
    tl.atomic_add(turn, 1, sem="release")


@pytest.mark.parametrize(("dtype", "read", "warns"), [("f4", True, True), ("f4", False, False), ("i4", True, False)])
def test_sums_of_floats_in_another_order_than_they_are_issued(dtype, read, warns):
    """A reduction that was waited for with `read` only may come after the next program's."""
    total = np.zeros((16, 16), dtype)
    message = found(summed, 3, np.ones(768, dtype), DESCRIPTOR(total, [16, 16]), np.zeros(1, np.int32), read)
    assert ("adds to 'sum_desc' in global memory after that of program (0, 0, 0) is issued" in message) == warns
    assert (total == 3).all()


@tlx_xdsl.jit
def described_anew(x, out, WAIT: tl.constexpr):
    """Two tensors, whose descriptor is at one place in memory."""
    room = tlx.allocate_tensor_descriptor(1)
    tile = tlx.local_alloc((16, 16), tl.float32, 2)
    full = tlx.alloc_barriers(2)
    offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    for g in tl.static_range(2):
        source = tlx.make_tensor_descriptor(room[0], x + g * 256, [16, 16], [16, 1], [16, 16])
        tlx.barrier_expect_bytes(full[g], 1024)
        tlx.async_descriptor_load(source, tile[g], [0, 0], full[g])
        if WAIT:
            tlx.barrier_wait(full[g], 0)
    for g in tl.static_range(2):
        if not WAIT:
            tlx.barrier_wait(full[g], 0)
        tl.store(out + g * 256 + offsets, tlx.local_load(tile[g]))


@pytest.mark.parametrize("schedule", ["round-robin", "adversarial"])
@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
def test_a_descriptor_is_read_until_its_copies_are_over(schedule, stage):
    """The copy has read the descriptor already in one schedule; in the other one it reads what is written later."""
    how = {"schedule": schedule, "stage": stage, "global_order": True}
    x, out = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    assert not found(described_anew, 1, x, out, 1, **how)
    assert (x == out).all()
    message = found(described_anew, 1, x, out, 0, **how)
    assert "writes byte 0 of 'the scratch memory of room' in global memory, which holds a tensor descriptor" in message
    assert "nothing orders it after the TMA load of the default task" in message


@tlx_xdsl.jit
def partly(x, out, KIND: tl.constexpr):
    own = tl.arange(0, 64)
    if KIND == "all":
        tl.store(out + own, tl.load(x + own))
    else:
        tl.store(out + own + 1, tl.load(x + own), mask=own < 63)
    if KIND == "read":
        tl.debug_barrier()
        tl.store(x, tl.load(out + 1))


def test_results_that_are_left_uninitialized():
    def check(kind):
        out = tlx_xdsl.uninitialized(64, "fp32")
        return tlx_xdsl.check(partly, 1, np.ones(64, np.float32), out, kind, seconds=0)

    assert check("all")
    assert check("read")  # an array that is read is no mere result
    (finding,) = check("").findings
    message = "'out' is declared uninitialized, and 1 of its 64 elements is left so, element [0] first"
    assert (finding.diagnostic.message, finding.rule) == (message, "warning")
