"""Mistakes that others have published, rebuilt as small kernels: signals that go astray, are lost, or order nothing.

* pytorch #158167: a flag is raised by one kind of operation, and another waits, which looks elsewhere: it hangs.
* pytorch #163194: the signal goes to an address of the wrong rank, and the peer waits forever.
* pytorch #191858: barrier and wait of a backend do nothing, silently.
* pytorch #195761, #196546, DistCA #75: a rank zeroes its flag when the peer may have raised it already.
* vLLM #57059, #8404: a barrier of relaxed or volatile flags, whose data is not ordered.
* vLLM #14125: two barriers in a row on one counter, which is compared with a value that may be passed.
* vLLM #2760: flags of parts of a number that is polled as a whole.
* DeepEP #513: a rank clears the flags of the next buffer, which others may have raised already.
* NVSHMEM #84 is `chunks` in `exchanges.py`: a count for several chunks, which come in any order.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.bugs import Cage
from tests.zoo.ranks.arrays import arguments, epochs, own, shared

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def put_with_signal(src, dst, flags, signals, out, BUG: tl.constexpr):
    """Rank 0 puts a block and a flag to all others; they wait for the flag."""
    rank = tlx.rank(dst)
    world: tl.constexpr = tlx.world_size(dst)
    offsets = tl.arange(0, 16)
    if rank == 0:
        for r in tl.static_range(1, world):
            tl.store(tlx.peer(dst, r) + offsets, tl.load(src + offsets))
            if BUG == "waits for another kind of flag":
                tlx.signal(tlx.peer(signals, r), 0)
            elif BUG == "address of the sender":
                tlx.signal(tlx.peer(flags, rank), 0)
            elif BUG == "flag without a fence":
                tl.atomic_xchg(tlx.peer(flags, r), 1, sem="relaxed", scope="sys")
            elif BUG == "right: fence before the flag":
                tlx.fence("sys")
                tl.atomic_xchg(tlx.peer(flags, r), 1, sem="relaxed", scope="sys")
            else:
                tlx.signal(tlx.peer(flags, r), 0, op="set")  # at: zeroes its flag
    else:
        if BUG == "zeroes its flag":
            tl.store(tlx.peer(flags, rank), 0)
        elif BUG == "zeroes its flag atomically":
            tl.atomic_xchg(tlx.peer(flags, rank), 0, sem="relaxed", scope="sys")
        # at: waits for another kind of flag, address of the sender, zeroes its flag atomically
        tlx.wait_signal(tlx.peer(flags, rank), 0, 1)
        tl.store(out + offsets, tl.load(tlx.peer(dst, rank) + offsets))  # at: flag without a fence


OF_FLAGS = "byte 0 of 'flags of rank [0-9]' in global memory, and nothing orders it after"
PUT = (
    Cage(
        put_with_signal,
        arguments(own(16), shared(16), shared(1, "int32"), shared(1, "int32"), own(16)),
        ranks=(2, 3, 4),
    )
    .bug(
        "waits for another kind of flag",
        "signal elsewhere",
        "deadlock: .*signal 0 of 'flags of rank 1' is at least 1, and it stays 0",
    )
    .bug(
        "address of the sender",
        "signal to another rank",
        "deadlock: .*signal 0 of 'flags of rank 1' is at least 1, and it stays 0",
    )
    .bug("zeroes its flag", "plain signal", OF_FLAGS)
    .bug(
        "zeroes its flag atomically", "lost signal", "deadlock: .*signal 0 of 'flags of rank 1' .*stays 0", seconds=60.0
    )
    .bug(
        "flag without a fence",
        "no release",
        "reads byte 0 of 'dst of rank 1' .* nothing orders it after",
        twin={"BUG": "right: fence before the flag"},
    )
)


@tlx_xdsl.jit
def barrier_of(pads, number, count, WORKS: tl.constexpr, sem: tl.constexpr):
    """Let all ranks meet; one that does not work does nothing."""
    rank = tlx.rank(pads)
    if WORKS:
        for r in tl.static_range(tlx.world_size(pads)):
            tlx.signal(tlx.peer(pads, r), number, sem="relaxed" if sem == "relaxed" else "release")
        tlx.wait_signal(tlx.peer(pads, rank), number, count, sem="relaxed" if sem == "relaxed" else "acquire")


@tlx_xdsl.jit
def staged_sum(src, x, pads, out, epoch, BUG: tl.constexpr):
    """Two barriers of a library around the reads of a sum, for two launches."""
    rank = tlx.rank(x)
    world: tl.constexpr = tlx.world_size(x)
    offsets = tl.arange(0, 16)
    tl.store(tlx.peer(x, rank) + offsets, tl.load(src + offsets))  # at: second barrier does nothing
    if BUG == "relaxed barrier":
        barrier_of(pads, 0, world * epoch, True, "relaxed")
    elif BUG == "volatile flags":
        for r in tl.static_range(world):
            tl.atomic_xchg(tlx.peer(pads, r) + 2 + rank, epoch, sem="relaxed", scope="sys")
        for r in tl.static_range(world):
            while tl.load(tlx.peer(pads, rank) + 2 + r, volatile=True) < epoch:
                pass
    else:
        barrier_of(pads, 0, world * epoch, BUG != "barrier does nothing", "acq_rel")
    total = tl.zeros((16,), tl.float32)
    for r in tl.static_range(world):
        # at: barrier does nothing, relaxed barrier, volatile flags
        total += tl.load(tlx.peer(x, r) + offsets)
    tl.store(out + offsets, total)
    barrier_of(pads, 1, world * epoch, BUG != "second barrier does nothing", "acq_rel")


OF_X = "byte [0-9]* of 'x of rank [0-9]' in global memory, and nothing orders it after"
STAGED = (
    Cage(
        staged_sum,
        arguments(own(16), shared(16), shared(2, "int32", for_each=1), own(16), epochs(1, 2)),
        ranks=(2, 3),
    )
    .bug("barrier does nothing", "no wait", OF_X)
    .bug("second barrier does nothing", "reused before the slowest has read", OF_X)
    .bug("relaxed barrier", "no release", OF_X)
    .bug("volatile flags", "no release", OF_X)
)


@tlx_xdsl.jit
def barriers_in_a_row(x, pads, out, epoch, BUG: tl.constexpr):
    """Two barriers of all ranks with a store between them, and flags that are cleared for the next launch."""
    rank = tlx.rank(pads)
    world: tl.constexpr = tlx.world_size(pads)
    mine = tlx.peer(pads, rank)
    if BUG == "clears the next flags":
        # Launches take turns with two counters, and clear the other one.
        use = epoch % 2
        for r in tl.static_range(world):
            tlx.signal(tlx.peer(pads, r), use)
        tlx.wait_signal(mine, use, world)  # at: clears the next flags
        tlx.signal(mine, 1 - use, 0, op="set")
    elif BUG == "resets its counter":
        for r in tl.static_range(world):
            tlx.signal(tlx.peer(pads, r), 0)
        tlx.wait_signal(mine, 0, world)  # at: resets its counter
        tlx.signal(mine, 0, 0, op="set")
    elif BUG == "right: three counters":
        # Who clears the one after the next knows that all have left the one before.
        use = epoch % 3
        for r in tl.static_range(world):
            tlx.signal(tlx.peer(pads, r), use)
        tlx.wait_signal(mine, use, world)
        tlx.signal(mine, (use + 2) % 3, 0, op="set")
    else:
        for step in tl.static_range(2):
            for r in tl.static_range(world):
                tlx.signal(tlx.peer(pads, r), 0)
            count = world * (2 * (epoch - 1) + step + 1)
            if BUG == "equal on one counter":
                tlx.wait_signal(mine, 0, count, compare="==")  # at: equal on one counter
            else:
                tlx.wait_signal(mine, 0, count)
    tl.store(out, rank)


PASSED = "deadlock: .*signal [0-2] of 'pads of rank [0-9]' is (at least )?[0-9], and it stays [0-9]"
IN_A_ROW = (
    Cage(
        barriers_in_a_row,
        arguments(shared(1), shared(3, "int32"), own(1), epochs(1, 2, 3)),
        ranks=(2, 3),
        seconds=60.0,
    )
    .bug("equal on one counter", "value passed", PASSED)
    .bug("resets its counter", "lost signal", PASSED)
    .bug("clears the next flags", "lost signal", PASSED, twin={"BUG": "right: three counters"})
)


@tlx_xdsl.jit
def halves(src, x, flags, out, BUG: tl.constexpr):
    """Let two ranks raise 32-bit flags on both; they are polled one by one, or as one number of 64 bits."""
    rank = tlx.rank(x)
    offsets = tl.arange(0, 16)
    tl.store(tlx.peer(x, rank) + offsets, tl.load(src + offsets))
    for r in tl.static_range(2):
        # at: polls both flags as one
        tl.atomic_xchg(tlx.peer(flags, r) + rank, 1, sem="release", scope="sys")
    mine = tlx.peer(flags, rank)
    if BUG == "polls both flags as one":
        both = mine.to(tl.pointer_type(tl.int64), bitcast=True)
        while tl.atomic_add(both, 0, sem="acquire", scope="sys") != 0x100000001:  # at: polls both flags as one
            pass
    else:
        tlx.wait_signal(mine, 0, 1)
        tlx.wait_signal(mine, 1, 1)
    for r in tl.static_range(2):
        tl.store(out + r * 16 + offsets, tl.load(tlx.peer(x, r) + offsets))


HALVES = Cage(halves, arguments(own(16), shared(16), shared(2, "int32"), own(32)), ranks=(2,)).bug(
    "polls both flags as one",
    "flags in parts",
    "byte [04] of 'flags of rank [01]' in global memory, and nothing orders it",
)

CAGES = (PUT, STAGED, IN_A_ROW, HALVES)
