"""An all-gather that pushes: each rank writes its block into every rank's buffer, and signals that it has."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.bugs import Cage
from tests.zoo.ranks.arrays import arguments, own, shared

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def push_all_gather(src, buf, pads, out, BUG: tl.constexpr):
    """Signal r of a rank says that rank r has written there."""
    rank = tlx.rank(buf)
    world: tl.constexpr = tlx.world_size(buf)
    offsets = tl.arange(0, 32)
    block = tl.load(src + offsets)
    for r in tl.static_range(world):
        if BUG == "signalled first":
            tlx.signal(tlx.peer(pads, r), rank)
        place = 0 if BUG == "same place for all" else rank * 32
        tl.store(tlx.peer(buf, r) + place + offsets, block)  # at: same place for all
        if BUG == "relaxed signal":
            tlx.signal(tlx.peer(pads, r), rank, sem="relaxed")
        elif BUG == "fence of the GPU":
            tlx.fence("gpu")
            tlx.signal(tlx.peer(pads, r), rank, sem="relaxed")
        elif BUG == "right: fence of the system":
            tlx.fence("sys")
            tlx.signal(tlx.peer(pads, r), rank, sem="relaxed")
        elif BUG == "signal within the GPU":
            tlx.signal(tlx.peer(pads, r), rank, scope="gpu")
        elif BUG == "plain signal":
            tl.store(tlx.peer(pads, r) + rank, 1)
        elif BUG == "signals itself":
            tlx.signal(tlx.peer(pads, rank), rank)
        elif BUG == "signal of its own number":
            tlx.signal(tlx.peer(pads, r), r)
        elif BUG == "no signal to the last rank":
            if r != world - 1:
                tlx.signal(tlx.peer(pads, r), rank)
        elif BUG == "out of the world":
            tlx.signal(tlx.peer(pads, r + 1), rank)  # at: out of the world
        elif BUG != "signalled first":
            tlx.signal(tlx.peer(pads, r), rank)
    for r in tl.static_range(world):
        if BUG == "relaxed wait":
            tlx.wait_signal(tlx.peer(pads, rank), r, 1, sem="relaxed")
        elif BUG == "wait within the GPU":
            tlx.wait_signal(tlx.peer(pads, rank), r, 1, scope="gpu")  # at: wait within the GPU
        elif BUG == "volatile wait":
            while tl.load(tlx.peer(pads, rank) + r, volatile=True) < 1:
                pass
        elif BUG == "waits at the peer":
            tlx.wait_signal(tlx.peer(pads, r), rank, 1)
        elif BUG == "waits for itself":
            tlx.wait_signal(tlx.peer(pads, rank), rank, 1)
        elif BUG == "waits for all but one":
            if r != world - 1:
                tlx.wait_signal(tlx.peer(pads, rank), r, 1)
        elif BUG == "waits for another value":
            tlx.wait_signal(tlx.peer(pads, rank), r, 2, compare="==")  # at: waits for another value
        elif BUG != "no wait":
            # at: no signal to the last rank, signals itself, signal of its own number
            # at: plain signal, signal within the GPU
            tlx.wait_signal(tlx.peer(pads, rank), r, 1)
    for r in tl.static_range(world):
        # at: signalled first, relaxed signal, fence of the GPU, relaxed wait, wait within the GPU, volatile wait
        # at: waits at the peer, waits for itself, waits for all but one, no wait, signal within the GPU
        tl.store(out + r * 32 + offsets, tl.load(tlx.peer(buf, rank) + r * 32 + offsets))


OF_BUF = "reads byte [0-9]* of 'buf of rank [0-9]' in global memory, and nothing orders it after"
OF_PADS = "byte [0-9]* of '(pads|buf) of rank [0-9]' in global memory, and nothing orders it after"
PUSH = (
    Cage(
        push_all_gather,
        arguments(own(32), shared(0, for_each=32), shared(0, "int32", for_each=1), own(0, for_each=32)),
        ranks=(2, 3, 4),
    )
    .bug("signalled first", "released before the store", OF_BUF)
    .bug("same place for all", "duplicate address", "writes byte 0 of 'buf of rank [0-9]' .* nothing orders it after")
    .bug("relaxed signal", "no release", OF_BUF)
    .bug("fence of the GPU", "fence of one GPU", OF_BUF, twin={"BUG": "right: fence of the system"})
    .bug("signal within the GPU", "signal of one GPU", OF_PADS)
    .bug("plain signal", "plain signal", OF_PADS)
    .bug(
        "signals itself",
        "lost signal",
        "deadlock: .*signal [0-9] of 'pads of rank [0-9]' is at least 1, and it stays 0",
    )
    .bug("signal of its own number", "signal of another number", "deadlock: .*signal [0-9] of 'pads of rank .*stays 0")
    .bug("no signal to the last rank", "lost signal", "deadlock: .*'pads of rank [1-3]' is at least 1, and it stays 0")
    .bug(
        "out of the world", "rank out of the world", "out of bounds .* of a peer of 'pads': a rank outside of the world"
    )
    .bug("relaxed wait", "no acquire", OF_BUF)
    .bug("wait within the GPU", "wait of one GPU", OF_PADS)
    .bug("volatile wait", "no acquire", OF_BUF)
    .bug("waits at the peer", "wait at another rank", OF_BUF)
    .bug("waits for itself", "wait for itself", OF_BUF)
    .bug("waits for all but one", "wait for too few", OF_BUF)
    .bug("waits for another value", "waits for another value", "deadlock: .*pads of rank [0-9]' is 2, and it stays 1")
    .bug("no wait", "no wait", OF_BUF)
)

CAGES = (PUSH,)
