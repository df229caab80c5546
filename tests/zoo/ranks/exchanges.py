"""All-to-all, several programs on each rank, work that ranks share, and more programs than a GPU holds."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.bugs import Cage
from tests.zoo.ranks.arrays import arguments, epochs, own, shared

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def all_to_all(src, inbox, counts, pads, out, me, epoch, BUG: tl.constexpr):
    """Each rank sends every other one a block, with how many of it count, and gives the inbox back at the end."""
    rank = tlx.rank(inbox)
    world: tl.constexpr = tlx.world_size(inbox)
    offsets = tl.arange(0, 16)
    if BUG == "rank of another table":
        rank = me
    for r in tl.static_range(world):
        # at: rank of another table, inbox not given back, waits for the inbox of one rank
        tl.store(tlx.peer(inbox, r) + rank * 16 + offsets, tl.load(src + r * 16 + offsets))
        if BUG == "count after the signal":
            tlx.signal(tlx.peer(pads, r), rank)
        tl.store(tlx.peer(counts, r) + rank, 7)
        if BUG == "signal of the receiver's number":
            tlx.signal(tlx.peer(pads, r), r)
        elif BUG != "count after the signal":
            tlx.signal(tlx.peer(pads, r), rank)
    for r in tl.static_range(world):
        if BUG == "waits after the count":
            count = tl.load(tlx.peer(counts, rank) + r)  # at: waits after the count
            tlx.wait_signal(tlx.peer(pads, rank), r, epoch)
        else:
            tlx.wait_signal(tlx.peer(pads, rank), r, epoch)  # at: signal of the receiver's number
            count = tl.load(tlx.peer(counts, rank) + r)  # at: count after the signal
        # at: inbox not given back, waits for the inbox of one rank
        tl.store(out + r * 16 + offsets, tl.load(tlx.peer(inbox, rank) + r * 16 + offsets), mask=offsets < count)
    if BUG != "inbox not given back":
        for r in tl.static_range(world):
            tlx.signal(tlx.peer(pads, r), world + rank)
        for r in tl.static_range(1 if BUG == "waits for the inbox of one rank" else world):
            tlx.wait_signal(tlx.peer(pads, rank), world + r, epoch)


def same_for_all(ranks):
    return [0] * ranks


OF_COUNTS = "byte [0-9]* of 'counts of rank [0-9]' in global memory, and nothing orders it after"
OF_INBOX = "byte [0-9]* of '(inbox|counts) of rank [0-9]' in global memory, and nothing orders it after"
ALL_TO_ALL = (
    Cage(
        all_to_all,
        arguments(
            own(0, for_each=16), shared(0, for_each=16), shared(0, "int32", for_each=1),
            shared(0, "int32", for_each=2), own(0, for_each=16), same_for_all, epochs(1, 2),
        ),
        ranks=(2, 3),
    )
    .bug("rank of another table", "wrong rank", f"writes {OF_INBOX}")
    .bug("count after the signal", "released before the store", OF_COUNTS)
    .bug("waits after the count", "wait after the read", OF_COUNTS)
    .bug("signal of the receiver's number", "signal of another number", "deadlock: .* of 'pads of rank [0-9]'")
    .bug("inbox not given back", "reused before the slowest has read", OF_INBOX)
    .bug("waits for the inbox of one rank", "reused before the slowest has read", OF_INBOX)
)  # fmt: skip


@tlx_xdsl.jit
def chunks(src, buf, pads, out, BUG: tl.constexpr):
    """Two programs of each rank write a chunk to the next one; its programs read one each, whichever comes first."""
    rank = tlx.rank(buf)
    world: tl.constexpr = tlx.world_size(buf)
    pid = tl.program_id(0)
    offsets = tl.arange(0, 16)
    to = (rank + 1) % world
    tl.store(tlx.peer(buf, to) + pid * 16 + offsets, tl.load(src + pid * 16 + offsets))
    if BUG == "one counter for all chunks":
        # Chunks come in any order: a count of one does not say which.
        tlx.signal(tlx.peer(pads, to), 0)
        tlx.wait_signal(tlx.peer(pads, rank), 0, pid + 1)
    elif BUG == "only the first program waits":
        tlx.signal(tlx.peer(pads, to), pid)
        if pid == 0:
            tlx.wait_signal(tlx.peer(pads, rank), 0, 1)
            tlx.wait_signal(tlx.peer(pads, rank), 1, 1)
    elif BUG == "only the last program signals":
        if pid == 1:
            tlx.signal(tlx.peer(pads, to), 0)
            tlx.signal(tlx.peer(pads, to), 1)
        tlx.wait_signal(tlx.peer(pads, rank), pid, 1)
    elif BUG == "right: all chunks":
        tlx.signal(tlx.peer(pads, to), 0)
        tlx.wait_signal(tlx.peer(pads, rank), 0, 2)
    else:
        tlx.signal(tlx.peer(pads, to), pid)
        tlx.wait_signal(tlx.peer(pads, rank), pid, 1)
    # at: one counter for all chunks, only the first program waits, only the last program signals
    tl.store(out + pid * 16 + offsets, tl.load(tlx.peer(buf, rank) + pid * 16 + offsets))


OF_BUF = "reads byte [0-9]* of 'buf of rank [0-9]' in global memory, and nothing orders it after"
CHUNKS = (
    Cage(chunks, arguments(own(32), shared(32), shared(2, "int32"), own(32)), grid=2, ranks=(2, 3), seconds=4.0)
    .bug("one counter for all chunks", "count for an identity", OF_BUF, twin={"BUG": "right: all chunks"})
    .bug("only the first program waits", "one program for all", OF_BUF)
    .bug("only the last program signals", "one program for all", OF_BUF)
)


@tlx_xdsl.jit
def shared_work(src, counter, out, TILES: tl.constexpr, BUG: tl.constexpr):
    """Ranks take tiles from one counter, on rank 0, and add to its result."""
    rank = tlx.rank(counter)
    offsets = tl.arange(0, 16)
    owner = rank if BUG == "a counter of each rank" else 0
    if BUG == "counter of one GPU":
        tile = tl.atomic_add(tlx.peer(counter, owner), 1, sem="relaxed", scope="gpu")  # at: counter of one GPU
    else:
        tile = tl.atomic_add(tlx.peer(counter, owner), 1, sem="relaxed", scope="sys")
    while tile < TILES:
        value = tl.load(src + tile * 16 + offsets)
        if BUG == "sums of one GPU":
            tl.atomic_add(tlx.peer(out, 0) + offsets, value, sem="relaxed", scope="gpu")  # at: sums of one GPU
        elif BUG == "sums without atomics":
            # at: sums without atomics
            tl.store(tlx.peer(out, 0) + offsets, tl.load(tlx.peer(out, 0) + offsets) + value)
        elif BUG == "right: sums":
            tl.atomic_add(tlx.peer(out, 0) + offsets, value, sem="relaxed", scope="sys")
        else:
            tl.store(tlx.peer(out, 0) + tile * 16 + offsets, value)  # at: a counter of each rank
        if BUG == "counter of one GPU":
            tile = tl.atomic_add(tlx.peer(counter, owner), 1, sem="relaxed", scope="gpu")  # at: counter of one GPU
        else:
            tile = tl.atomic_add(tlx.peer(counter, owner), 1, sem="relaxed", scope="sys")


OF_OUT = "byte [0-9]* of 'out of rank 0' in global memory, and nothing orders it after"
SHARED_WORK = (
    Cage(
        shared_work,
        arguments(own(48), shared(1, "int32"), shared(64)),
        constants={"TILES": 3},
        ranks=(2, 3),
    )
    .bug("a counter of each rank", "item taken twice", OF_OUT)
    .bug(
        "counter of one GPU",
        "atomic of one GPU",
        "byte 0 of 'counter of rank 0' in global memory, and nothing orders it",
    )
    .bug("sums of one GPU", "atomic of one GPU", OF_OUT, twin={"BUG": "right: sums"}, seconds=0.3)
    .bug("sums without atomics", "duplicate address", OF_OUT, seconds=0.3)
)


@tlx_xdsl.jit
def resident(pads, BUG: tl.constexpr):
    """Program i of a rank waits for a program of the next one: all that signal must run by then."""
    rank = tlx.rank(pads)
    world: tl.constexpr = tlx.world_size(pads)
    last = tl.num_programs(0) - 1
    pid = tl.program_id(0)
    if BUG == "waits for the last programs":
        tlx.wait_signal(tlx.peer(pads, rank), last - pid, 1)  # at: waits for the last programs
        tlx.signal(tlx.peer(pads, (rank + 1) % world), pid)
    else:
        tlx.signal(tlx.peer(pads, (rank + 1) % world), pid)
        if BUG == "waits for all programs":
            for each in range(tl.num_programs(0)):
                tlx.wait_signal(tlx.peer(pads, rank), each, 1)  # at: waits for all programs
        else:
            tlx.wait_signal(tlx.peer(pads, rank), pid, 1)


RESIDENT = (
    Cage(
        resident,
        arguments(shared(17, "int32")),
        grid=17,
        # 16 multiprocessors, each with room for one program of 1,024 threads.
        options={"target": "sm_87", "num_warps": 32},
        ranks=(2,),
    )
    .bug(
        "waits for all programs",
        "residency",
        "deadlock: .*signal 16 of 'pads of rank [01]' is at least 1, and it stays 0",
    )
    .bug("waits for the last programs", "residency", "deadlock: .*'pads of rank [01]' is at least 1, and it stays 0")
)

CAGES = (ALL_TO_ALL, CHUNKS, SHARED_WORK, RESIDENT)
