"""Kernels that look wrong, and are right: order between programs. A report would be a false alarm."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import described, numbers, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic


def integers(*counts):
    return lambda: tuple(zeros(count, dtype="int32") for count in counts)


@tlx_xdsl.jit
def release_sequence(data, flag, out):
    """The third program acquires what the second one made of the flag: a release goes on through read-modify-writes."""
    pid = tl.program_id(0)
    offsets = tl.arange(0, 32)
    if pid == 0:
        tl.store(data + offsets, offsets)
        tl.atomic_add(flag, 1, sem="release")
    elif pid == 1:
        while tl.atomic_cas(flag, 1, 2, sem="relaxed") != 1:
            pass
    else:
        while tl.atomic_add(flag, 0, sem="acquire") != 2:
            pass
        tl.store(out + offsets, tl.load(data + offsets))


SEQUENCE = Cage(release_sequence, integers(32, 1, 32), grid=3).clean(seconds=0.1)


@tlx_xdsl.jit
def tickets(counters, total):
    """A lock by tickets: who draws a number relaxed waits until it is called, and that is what orders."""
    mine = tl.atomic_add(counters, 1, sem="relaxed")
    while tl.atomic_add(counters + 1, 0, sem="acquire") != mine:
        pass
    tl.store(total, tl.load(total) + 1)
    tl.atomic_add(counters + 1, 1, sem="release")


TICKETS = Cage(tickets, integers(2, 1), grid=5).clean(seconds=0.1)


@tlx_xdsl.jit
def bits(data, mask, out):
    """Each program sets its bit; the last one waits for all bits."""
    pid = tl.program_id(0)
    last = tl.num_programs(0) - 1
    if pid < last:
        tl.store(data + pid, pid + 1)
        tl.atomic_or(mask, 1 << pid, sem="release")
    else:
        while tl.atomic_or(mask, 0, sem="acquire") != (1 << last) - 1:
            pass
        offsets = tl.arange(0, 8)
        tl.store(out + offsets, tl.load(data + offsets, mask=offsets < last, other=0), mask=offsets < last)


BITS = Cage(bits, integers(8, 1, 8), grid=6).clean(seconds=0.1)


@tlx_xdsl.jit
def volatile_with_fences(data, flag, out):
    """ld.volatile has the memory semantics of ld.relaxed.sys (PTX ISA): with a fence after it, it acquires."""
    offsets = tl.arange(0, 32)
    if tl.program_id(0) == 0:
        tl.store(data + offsets, offsets)
        tlx.fence("gpu")
        tl.atomic_xchg(flag, 1, sem="relaxed")
    else:
        while tl.load(flag, volatile=True) == 0:
            pass
        tlx.fence("gpu")
        tl.store(out + offsets, tl.load(data + offsets))


VOLATILE = Cage(volatile_with_fences, integers(32, 1, 32), grid=2).clean(
    seconds=0.1,
)


@tlx_xdsl.jit
def sums_by_atomics(x, sums, count, out):
    """Partial sums by relaxed atomic operations, also of scope sys; the last program reads them without any."""
    offsets = tl.arange(0, 32)
    values = tl.load(x + tl.program_id(0) * 32 + offsets)
    tl.atomic_add(sums + offsets, values, sem="relaxed", scope="sys")
    tl.atomic_max(sums + 32 + offsets, values, sem="relaxed")
    if tl.atomic_add(count, 1, sem="acq_rel") == tl.num_programs(0) - 1:
        tl.store(out + offsets, tl.load(sums + offsets) / (1 + tl.load(sums + 32 + offsets)))
        # For the next launch: no one is left who reads them.
        tl.store(sums + offsets, tl.zeros((32,), tl.float32))
        tl.store(sums + 32 + offsets, tl.zeros((32,), tl.float32))
        tl.store(count, 0)


SUMS = Cage(
    sums_by_atomics,
    lambda: (
        numbers(128, dtype="float32"),
        zeros(64, dtype="float32"),
        zeros(1, dtype="int32"),
        zeros(32, dtype="float32"),
    ),
    grid=4,
).clean(seconds=0.1)


@tlx_xdsl.jit
def neighbours(x, out):
    """Programs write bytes that lie next to each other, in words that they share."""
    pid = tl.program_id(0)
    offsets = tl.arange(0, 8)
    mine = offsets < 5
    tl.store(out + pid * 5 + offsets, tl.load(x + pid * 5 + offsets, mask=mine, other=0), mask=mine)
    # All write nothing at one place.
    tl.store(out + offsets, offsets.to(tl.int8), mask=offsets < 0)


NEIGHBOURS = Cage(neighbours, lambda: (numbers(20, dtype="int8"), zeros(20, dtype="int8")), grid=4).clean()


@tlx_xdsl.jit
def reductions_by_tma(src, dst):
    """All programs add a tile to the same place by TMA: such reductions are atomic."""
    tile = tlx.local_alloc((16, 16), tl.float32, 1)
    full = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], 1024)
    tlx.async_descriptor_load(src, tile[0], [tl.program_id(0) * 16, 0], full[0])
    tlx.barrier_wait(full[0], 0)
    tlx.async_descriptor_store(dst, tile[0], [0, 0], store_reduce="add")
    tlx.async_descriptor_store_wait(0)


REDUCTIONS = Cage(
    reductions_by_tma,
    lambda: (
        described(numbers(64, 16, dtype="float32"), 16, 16),
        described(zeros(16, 16, dtype="float32"), 16, 16),
    ),
    grid=4,
).clean()


@tlx_xdsl.jit
def by_another_task(data, flag, out):
    """The task that polls is not the one that reads: an mbarrier passes on what it has acquired."""
    ready = tlx.alloc_barriers(1)
    if tl.program_id(0) == 0:
        tl.store(data + tl.arange(0, 128), tl.arange(0, 128))
        tl.atomic_xchg(flag, 1, sem="release")
    with tlx.async_tasks():
        with tlx.async_task("default"):
            while tl.atomic_add(flag, 0, sem="acquire") == 0:
                pass
            tlx.barrier_arrive(ready[0])
        with tlx.async_task(num_warps=4):
            offsets = tl.arange(0, 128)
            tlx.barrier_wait(ready[0], 0)
            tl.store(out + tl.program_id(0) * 128 + offsets, tl.load(data + offsets))


BY_ANOTHER = Cage(by_another_task, integers(128, 1, 384), grid=3).clean(seconds=0.1)


@tlx_xdsl.jit
def backwards(data, flags):
    """Programs wait for those of higher numbers: each has to start before the ones it waits for."""
    pid = tl.program_id(0)
    if pid < tl.num_programs(0) - 1:
        while tl.atomic_add(flags + pid + 1, 0, sem="acquire") == 0:
            pass
    tl.store(data, tl.load(data) + 1)
    tl.atomic_xchg(flags + pid, 1, sem="release")


BACKWARDS = Cage(backwards, integers(1, 8), grid=8).clean(seconds=0.1)


@tlx_xdsl.jit
def double_buffered(data, turn, out, ROUNDS: tl.constexpr):
    """The writer is ahead by one round, in the other of two buffers; one counter goes up for both sides."""
    me = tl.program_id(0)
    offsets = tl.arange(0, 32)
    for r in range(ROUNDS):
        place = data + r % 2 * 32 + offsets
        if me == 0:
            while tl.atomic_add(turn + 1, 0, sem="acquire") < r - 1:
                pass
            tl.store(place, offsets + r)
            tl.atomic_xchg(turn, r + 1, sem="release")
        else:
            while tl.atomic_add(turn, 0, sem="acquire") < r + 1:
                pass
            tl.store(out + r * 32 + offsets, tl.load(place))
            tl.atomic_xchg(turn + 1, r + 1, sem="release")


DOUBLE = Cage(double_buffered, integers(64, 2, 160), grid=2, constants={"ROUNDS": 5}).clean(seconds=0.1)

CAGES = (
    SEQUENCE,
    TICKETS,
    BITS,
    VOLATILE,
    SUMS,
    NEIGHBOURS,
    REDUCTIONS,
    BY_ANOTHER,
    BACKWARDS,
    DOUBLE,
)
