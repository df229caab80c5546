"""All programs of a grid: barriers of all, work that is given out by counters, tiles that several programs compute."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import described, numbers, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic

NO_ONE = "deadlock: .*polls global memory in a loop, and no one writes there any more"


def floats(*counts):
    """Numbers, then arrays of zeros, then one integer counter for each of 8."""
    return lambda: (
        numbers(counts[0], dtype="float32"),
        *(zeros(count, dtype="float32") for count in counts[1:]),
        zeros(8, dtype="int32"),
    )


@tlx_xdsl.jit
def grid_barrier(x, middle, out, count, BUG: tl.constexpr):
    """Two phases: each program writes its block, and reads that of its neighbour after a barrier of all."""
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    offsets = tl.arange(0, 32)
    if BUG == "counts before it writes":
        tl.atomic_add(count, 1, sem="release")
    # at: no poll, one less than there are
    tl.store(middle + pid * 32 + offsets, tl.load(x + pid * 32 + offsets) * 2)
    if BUG == "relaxed arrival":
        tl.atomic_add(count, 1, sem="relaxed")
    elif BUG == "some do not arrive":
        if pid != 2:
            tl.atomic_add(count, 1, sem="release")
    elif BUG != "counts before it writes":
        tl.atomic_add(count, 1, sem="release")
    if BUG == "relaxed poll":
        while tl.atomic_add(count, 0, sem="relaxed") < programs:
            pass
    elif BUG == "volatile poll":
        while tl.load(count, volatile=True) < programs:
            pass
    elif BUG == "one more than there are":
        while tl.atomic_add(count, 0, sem="acquire") < programs + 1:  # at: one more than there are
            pass
    elif BUG == "one less than there are":
        while tl.atomic_add(count, 0, sem="acquire") < programs - 1:
            pass
    elif BUG != "no poll":
        while tl.atomic_add(count, 0, sem="acquire") < programs:  # at: some do not arrive
            pass
    neighbour = (pid + 1) % programs
    # at: counts before it writes, relaxed arrival, relaxed poll, volatile poll, one less than there are, no poll
    values = tl.load(middle + neighbour * 32 + offsets)
    if BUG == "in place":
        tl.store(middle + pid * 32 + offsets, values)  # at: in place
    else:
        tl.store(out + pid * 32 + offsets, values)


OF_MIDDLE = "byte [0-9]* of 'middle' in global memory, and nothing orders it after"
GRID_BARRIER = (
    Cage(grid_barrier, floats(128, 128, 128), grid=4)
    .bug("relaxed arrival", "no release", OF_MIDDLE)
    .bug("relaxed poll", "no acquire", OF_MIDDLE)
    .bug("volatile poll", "no acquire", OF_MIDDLE)
    .bug("counts before it writes", "released before the store", OF_MIDDLE)
    .bug("no poll", "no poll", OF_MIDDLE)
    .bug("in place", "read by others", OF_MIDDLE)
    .bug("one less than there are", "counter value", OF_MIDDLE)
    .bug("one more than there are", "polls for no one", NO_ONE)
    .bug("some do not arrive", "polls for no one", NO_ONE)
    .clean(grid=1)
    .clean(grid=2)
    .clean(seconds=0.2)
)


@tlx_xdsl.jit
def reused_barrier(x, count, ROUNDS: tl.constexpr, BUG: tl.constexpr):
    """The barrier of all is used in each round: its counter goes on, or is set to zero by another."""
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    for r in range(ROUNDS):
        # at: same target each round
        value = tl.load(x + (r % 2) * 4 + pid)
        tl.store(x + ((r + 1) % 2) * 4 + (pid + 1) % programs, value)  # at: same target each round
        number = tl.atomic_add(count, 1, sem="acq_rel")
        if BUG == "same target each round":
            while tl.atomic_add(count, 0, sem="acquire") < programs:
                pass
        elif BUG == "the last one resets":
            if number == programs - 1:
                tl.atomic_xchg(count, 0, sem="release")
            else:
                # Who looks too late finds the count of the next round.
                while tl.atomic_add(count, 0, sem="acquire") != 0:  # at: the last one resets
                    pass
        else:
            while tl.atomic_add(count, 0, sem="acquire") < (r + 1) * programs:
                pass


REUSED_BARRIER = (
    Cage(
        reused_barrier,
        lambda: (numbers(8, dtype="int32"), zeros(1, dtype="int32")),
        grid=4,
        constants={"ROUNDS": 3},
        seconds=0.2,
    )
    .bug(
        "same target each round",
        "counter not reset",
        "of 'x' in global memory, and nothing orders it",
    )
    .bug("the last one resets", "counter not reset", NO_ONE)
    .clean(ROUNDS=1)
)


@tlx_xdsl.jit
def resident(count, SHARED: tl.constexpr, BUG: tl.constexpr):
    """A barrier of all programs needs that all of them run at the same time."""
    if BUG == "too much shared memory":
        tile = tlx.local_alloc((SHARED,), tl.int8, 1)
        tlx.local_store(tile[0], tl.zeros((SHARED,), tl.int8))
    tl.atomic_add(count, 1)
    while tl.atomic_add(count, 0) < tl.num_programs(0):  # at: too much shared memory
        pass


RESIDENT = Cage(
    resident,
    lambda: (zeros(1, dtype="int32"),),
    grid=17,
    constants={"SHARED": 131072},
    # 16 multiprocessors, each with room for one program of 128 KiB or for 48 warps of programs without.
    options={"target": "sm_87"},
).bug("too much shared memory", "residency", "deadlock: .*polls global memory in a loop")


@tlx_xdsl.jit
def stream(x, parts, flags, out, BUG: tl.constexpr):
    """Stream-K: each tile has 3 steps, of which 2 programs do 4 each; who ends a tile adds what the other has begun."""
    pid = tl.program_id(0)
    offsets = tl.arange(0, 32)
    # Program 0 has steps 0 to 3: all of tile 0, the first of tile 1. Program 1 has the others of tile 1, and more.
    if pid == 0:
        total = tl.zeros((32,), tl.float32)
        for k in range(3):
            total += tl.load(x + k * 32 + offsets)
        tl.store(out + offsets, total)
        if BUG == "flag before the part":
            tl.atomic_xchg(flags + 1, 1, sem="release")
        if BUG == "part into the result":
            tl.store(out + 32 + offsets, tl.load(x + 96 + offsets))
        else:
            tl.store(parts + 32 + offsets, tl.load(x + 96 + offsets))
        if BUG == "relaxed flag":
            tl.atomic_xchg(flags + 1, 1, sem="relaxed")
        elif BUG == "flag of the other tile":
            tl.atomic_xchg(flags + 0, 1, sem="release")
        elif BUG != "flag before the part" and BUG != "no fixup":
            tl.atomic_xchg(flags + 1, 1, sem="release")
    else:
        total = tl.zeros((32,), tl.float32)
        for k in range(4, 6):
            total += tl.load(x + k * 32 + offsets)
        if BUG != "no fixup" and BUG != "part into the result":
            while tl.atomic_add(flags + 1, 0, sem="acquire") == 0:  # at: flag of the other tile
                pass
        # at: relaxed flag, flag before the part, no fixup
        total += tl.load(parts + 32 + offsets)
        tl.store(out + 32 + offsets, total)  # at: part into the result


OF_PARTS = "reads byte 128 of 'parts' in global memory, and nothing orders it after"
STREAM = (
    Cage(
        stream,
        lambda: (
            numbers(192, dtype="float32"),
            zeros(64, dtype="float32"),
            zeros(2, dtype="int32"),
            zeros(64, dtype="float32"),
        ),
        grid=2,
    )
    .bug("relaxed flag", "no release", OF_PARTS)
    .bug("flag before the part", "released before the store", OF_PARTS)
    .bug("flag of the other tile", "wrong flag", NO_ONE)
    .bug("no fixup", "no poll", OF_PARTS)
    .bug(
        "part into the result", "duplicate address", "writes byte 128 of 'out' in global memory, and nothing orders it"
    )
)


@tlx_xdsl.jit
def queue(x, next_item, out, ITEMS: tl.constexpr, BUG: tl.constexpr):
    """Programs take items from a counter until there are none."""
    offsets = tl.arange(0, 32)
    if BUG == "by a load":
        item = tl.load(next_item, volatile=True)
        tl.atomic_add(next_item, 1, sem="relaxed")
    else:
        item = tl.atomic_add(next_item, 1, sem="relaxed")
    while item < ITEMS:
        if BUG == "one result for all":
            tl.store(out + offsets, tl.load(x + item * 32 + offsets))  # at: one result for all
        elif BUG == "adds without atomics":
            # at: adds without atomics
            tl.store(out + offsets, tl.load(out + offsets) + tl.load(x + item * 32 + offsets))
        elif BUG == "right: atomic sums":
            tl.atomic_add(out + offsets, tl.load(x + item * 32 + offsets), sem="relaxed")
        elif BUG == "neighbour's item":
            # at: neighbour's item
            tl.store(out + (item + 1) // 2 * 32 + offsets, tl.load(x + item * 32 + offsets))
        else:
            tl.store(out + item * 32 + offsets, tl.load(x + item * 32 + offsets))  # at: by a load
        if BUG == "by a load":
            # Between the load and the addition another program may have taken the same item.
            item = tl.load(next_item, volatile=True)
            tl.atomic_add(next_item, 1, sem="relaxed")
        else:
            item = tl.atomic_add(next_item, 1, sem="relaxed")


QUEUE = (
    Cage(
        queue,
        lambda: (numbers(192, dtype="float32"), zeros(1, dtype="int32"), zeros(224, dtype="float32")),
        grid=3,
        constants={"ITEMS": 3},
    )
    .bug("by a load", "item taken twice", "of 'out' in global memory, and nothing orders it")
    .bug("one result for all", "duplicate address", "of 'out' in global memory, and nothing orders it")
    .bug("neighbour's item", "duplicate address", "of 'out' in global memory, and nothing orders it")
    .bug(
        "adds without atomics",
        "duplicate address",
        "of 'out' in global memory, and nothing orders it",
        twin={"BUG": "right: atomic sums"},
    )
    .clean(ITEMS=0)
    .clean(ITEMS=1)
)


@tlx_xdsl.jit
def tma_round_trip(src_desc, mid_desc, out_desc, BUG: tl.constexpr):
    """One program stores a tile by TMA, and loads it again: the store must have written, not only read."""
    tile = tlx.local_alloc((16, 16), tl.float32, 2)
    full = tlx.alloc_barriers(2)
    tlx.barrier_expect_bytes(full[0], 1024)
    tlx.async_descriptor_load(src_desc, tile[0], [0, 0], full[0])
    tlx.barrier_wait(full[0], 0)
    tlx.async_descriptor_store(mid_desc, tile[0], [0, 0])
    if BUG == "reads only":
        tlx.async_descriptor_store_wait(0)
    elif BUG != "no wait":
        tlx.async_descriptor_store_wait(0, read=False)
    tlx.barrier_expect_bytes(full[1], 1024)
    tlx.async_descriptor_load(mid_desc, tile[1], [0, 0], full[1])  # at: reads only, no wait
    tlx.barrier_wait(full[1], 0)
    tlx.async_descriptor_store(out_desc, tile[1], [0, 0])
    tlx.async_descriptor_store_wait(0)


def described_squares(count):
    return lambda: tuple(described(numbers(16, 16, dtype=np.float32), 16, 16) for _ in range(count))


TMA_ROUND_TRIP = (
    Cage(tma_round_trip, described_squares(3))
    .bug("reads only", "TMA store not written", "in global memory, and nothing orders it after the TMA store")
    .bug("no wait", "TMA store not written", "in global memory, and nothing orders it after the TMA store")
)

CAGES = (GRID_BARRIER, REUSED_BARRIER, RESIDENT, STREAM, QUEUE, TMA_ROUND_TRIP)
