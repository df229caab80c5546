"""All-reduces: in one step, where each rank reads all, and in two, where each sums a part for the others."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.bugs import Cage
from tests.zoo.ranks.arrays import arguments, epochs, own, shared

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def one_shot(src, x, pads, out, epoch, BUG: tl.constexpr):
    """Counter 0 of a rank counts who has written, counter 1 who has read; both only grow from launch to launch."""
    rank = tlx.rank(x)
    world: tl.constexpr = tlx.world_size(x)
    offsets = tl.arange(0, 16)
    # at: no end, the end waits for nothing, end before the reads, end of relaxed signals, same epoch
    # at: one counter for both, count of one launch, counter wraps
    tl.store(tlx.peer(x, rank) + offsets, tl.load(src + offsets))
    for r in tl.static_range(world):
        if BUG == "signal lost":
            if r != 1:
                tlx.signal(tlx.peer(pads, r), 0)
        elif BUG == "signalled twice":
            tlx.signal(tlx.peer(pads, r), 0, 2)
        else:
            tlx.signal(tlx.peer(pads, r), 0)
    mine = tlx.peer(pads, rank)
    if BUG == "one less":
        tlx.wait_signal(mine, 0, world * epoch - 1)
    elif BUG == "one more":
        tlx.wait_signal(mine, 0, world * epoch + 1)  # at: one more
    elif BUG == "count of one launch":
        tlx.wait_signal(mine, 0, world)
    elif BUG == "equal to the count of one launch":
        tlx.wait_signal(mine, 0, world, compare="==")  # at: equal to the count of one launch
    elif BUG == "the epoch alone":
        tlx.wait_signal(mine, 0, epoch)
    else:
        tlx.wait_signal(mine, 0, world * epoch)  # at: signal lost
    total = tl.zeros((16,), tl.float32)
    if BUG == "end before the reads":
        for r in tl.static_range(world):
            tlx.signal(tlx.peer(pads, r), 1)
    for r in tl.static_range(world):
        # at: signalled twice, one less, the epoch alone, count of one launch, same epoch, in place, counter wraps
        # at: one counter for both
        total += tl.load(tlx.peer(x, r) + offsets)
    if BUG == "in place":
        tl.store(tlx.peer(x, rank) + offsets, total)  # at: in place
    else:
        tl.store(out + offsets, total)
    if BUG == "one counter for both":
        for r in tl.static_range(world):
            tlx.signal(tlx.peer(pads, r), 0)
        tlx.wait_signal(mine, 0, world * epoch)
    elif BUG == "end of relaxed signals":
        for r in tl.static_range(world):
            tlx.signal(tlx.peer(pads, r), 1, sem="relaxed")
        tlx.wait_signal(mine, 1, world * epoch)
    elif BUG == "the end waits for nothing":
        for r in tl.static_range(world):
            tlx.signal(tlx.peer(pads, r), 1)
    elif BUG == "end before the reads":
        tlx.wait_signal(mine, 1, world * epoch)
    elif BUG != "no end":
        for r in tl.static_range(world):
            tlx.signal(tlx.peer(pads, r), 1)
        tlx.wait_signal(mine, 1, world * epoch)


OF_X = "(reads|writes) byte [0-9]* of 'x of rank [0-9]' in global memory, and nothing orders it after"
REUSED = f"in its launch 2 {OF_X}|{OF_X} .* in its launch 2"


def one_shot_arguments(*launches, start=0):
    return arguments(own(16), shared(16), shared(2, "int32", start), own(16), epochs(*launches))


ONE_SHOT = (
    Cage(one_shot, one_shot_arguments(1, 2), ranks=(2, 3, 4))
    .bug("signal lost", "lost signal", "deadlock: .*signal 0 of 'pads of rank 1' is at least 2, and it stays 0")
    .bug("signalled twice", "doubled signal", OF_X)
    .bug("one less", "wait for too few", OF_X)
    .bug(
        "one more",
        "waits for more than come",
        "deadlock: .*signal 0 of 'pads of rank [01]' is at least 3, and it stays 2",
    )
    .bug("the epoch alone", "wait for too few", OF_X)
    .bug("count of one launch", "counter not reset", REUSED)
    .bug("equal to the count of one launch", "counter not reset", "deadlock: .*signal 0 of .* is 2, and it stays [34]")
    .bug("in place", "written while others read", OF_X)
    .bug("end before the reads", "released before the read", REUSED)
    .bug("end of relaxed signals", "no release", REUSED)
    .bug("the end waits for nothing", "reused before the slowest has read", REUSED)
    .bug("no end", "reused before the slowest has read", REUSED)
    .bug("one counter for both", "doubled signal", OF_X)
)
LAST = (1 << 30) - 1
HOSTS = (
    Cage(one_shot, one_shot_arguments(1, 2), ranks=(2, 3, 4))
    .bug("same epoch", "the same epoch twice", OF_X,
         arguments=one_shot_arguments(1, 1), twin_arguments=one_shot_arguments(1, 2))
    # The counters of two ranks have counted two for each launch so far.
    .bug("counter wraps", "counter overflows", OF_X, ranks=(2,),
         arguments=one_shot_arguments(LAST, LAST + 1, start=2 * LAST - 2),
         twin_arguments=one_shot_arguments(LAST - 1, LAST, start=2 * LAST - 4))
)  # fmt: skip


@tlx_xdsl.jit
def two_shot(src, x, parts, pads, out, BUG: tl.constexpr):
    """Each rank sums part `rank` of all, writes it to all, and reads what the others have summed."""
    rank = tlx.rank(x)
    world: tl.constexpr = tlx.world_size(x)
    offsets = tl.arange(0, 8)
    for p in tl.static_range(world):
        tl.store(tlx.peer(x, rank) + p * 8 + offsets, tl.load(src + p * 8 + offsets))
    for r in tl.static_range(world):
        tlx.signal(tlx.peer(pads, r), 0)
    tlx.wait_signal(tlx.peer(pads, rank), 0, world)
    part = 0 if BUG == "all sum the same part" else rank
    total = tl.zeros((8,), tl.float32)
    for r in tl.static_range(world):
        total += tl.load(tlx.peer(x, r) + part * 8 + offsets)
    if BUG == "signalled before the sums are there":
        for r in tl.static_range(world):
            tlx.signal(tlx.peer(pads, r), 1)
    for r in tl.static_range(world):
        if BUG == "right: over the inputs":
            # No one else reads this part.
            tl.store(tlx.peer(x, r) + part * 8 + offsets, total)
        else:
            tl.store(tlx.peer(parts, r) + part * 8 + offsets, total)  # at: all sum the same part
    if BUG == "signals the next rank alone":
        tlx.signal(tlx.peer(pads, (rank + 1) % world), 1)
    elif BUG != "signalled before the sums are there" and BUG != "no second signal":
        for r in tl.static_range(world):
            tlx.signal(tlx.peer(pads, r), 1)
    if BUG == "second wait at the first counter":
        tlx.wait_signal(tlx.peer(pads, rank), 0, world)
    elif BUG != "no second wait":
        tlx.wait_signal(tlx.peer(pads, rank), 1, world)  # at: signals the next rank alone, no second signal
    for p in tl.static_range(world):
        # at: signalled before the sums are there, second wait at the first counter, no second wait
        sums = tl.load(
            (tlx.peer(x, rank) if BUG == "right: over the inputs" else tlx.peer(parts, rank)) + p * 8 + offsets
        )
        tl.store(out + p * 8 + offsets, sums)


OF_PARTS = "reads byte [0-9]* of 'parts of rank [0-9]' in global memory, and nothing orders it after"
LOST = "deadlock: .*signal 1 of 'pads of rank [0-9]' is at least [0-9], and it stays [01]"
TWO_SHOT = (
    Cage(
        two_shot,
        arguments(
            own(0, for_each=8), shared(0, for_each=8), shared(0, for_each=8), shared(2, "int32"), own(0, for_each=8)
        ),
        ranks=(2, 3, 4),
    )
    .bug(
        "all sum the same part",
        "duplicate address",
        "writes byte 0 of 'parts of rank [0-9]' .* nothing orders it after",
    )
    .bug("signalled before the sums are there", "released before the store", OF_PARTS)
    .bug("signals the next rank alone", "lost signal", LOST)
    .bug("no second signal", "lost signal", LOST)
    .bug("second wait at the first counter", "wait for another counter", OF_PARTS)
    .bug("no second wait", "no wait", OF_PARTS, twin={"BUG": "right: over the inputs"})
)

CAGES = (ONE_SHOT, HOSTS, TWO_SHOT)
