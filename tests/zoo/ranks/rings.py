"""Rings: each rank hands blocks to the next one, through slots that the next one frees."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.bugs import Cage
from tests.zoo.ranks.arrays import arguments, own, shared

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def ring_gather(src, slots, full, free, out, SLOTS: tl.constexpr, BUG: tl.constexpr):
    """Put a block into a slot of the next rank, and take one out of the own slots, in each step.

    Counter `full` of a rank counts blocks that have come, `free` the slots that the next one has emptied.
    """
    rank = tlx.rank(slots)
    world: tl.constexpr = tlx.world_size(slots)
    following = (rank + 1) % world
    before = (rank + world - 1) % world
    offsets = tl.arange(0, 16)
    block = tl.load(src + offsets)
    tl.store(out + rank * 16 + offsets, block)
    for step in range(2 * world):
        slot = step % SLOTS
        if BUG == "waits before it sends":
            tlx.wait_signal(tlx.peer(full, rank), 0, step + 1)  # at: waits before it sends
        if BUG == "waits for a free slot at first":
            tlx.wait_signal(tlx.peer(free, rank), 0, step + 1)  # at: waits for a free slot at first
        elif BUG == "one slot too early":
            tlx.wait_signal(tlx.peer(free, rank), 0, step - SLOTS)
        elif BUG != "no wait for a free slot":
            tlx.wait_signal(tlx.peer(free, rank), 0, step + 1 - SLOTS)  # at: slots are not freed
        if BUG == "signalled before the block":
            tlx.signal(tlx.peer(full, following), 0)
        # at: no wait for a free slot, one slot too early, freed before the read, freed by relaxed signals
        # at: freed for the next one, does not count its steps
        tl.store(tlx.peer(slots, following) + slot * 16 + offsets, block)
        if BUG == "signals the one before":
            tlx.signal(tlx.peer(full, before), 0)
        elif BUG != "signalled before the block":
            tlx.signal(tlx.peer(full, following), 0)
        if BUG == "does not count its steps":
            tlx.wait_signal(tlx.peer(full, rank), 0, 1)
        elif BUG == "counts one step too many":
            tlx.wait_signal(tlx.peer(full, rank), 0, step + 2)  # at: counts one step too many
        elif BUG != "waits before it sends":
            tlx.wait_signal(tlx.peer(full, rank), 0, step + 1)
        if BUG == "freed before the read":
            tlx.signal(tlx.peer(free, before), 0)
        # at: signals the one before, does not count its steps, freed before the read, no wait for a free slot
        # at: one slot too early, freed by relaxed signals, freed for the next one, signalled before the block
        block = tl.load(tlx.peer(slots, rank) + slot * 16 + offsets)
        if BUG == "freed by relaxed signals":
            tlx.signal(tlx.peer(free, before), 0, sem="relaxed")
        elif BUG == "freed for the next one":
            tlx.signal(tlx.peer(free, following), 0)
        elif BUG != "freed before the read" and BUG != "slots are not freed":
            tlx.signal(tlx.peer(free, before), 0)
        tl.store(out + (rank + 2 * world - step - 1) % world * 16 + offsets, block)


OF_SLOTS = "byte [0-9]* of 'slots of rank [0-9]' in global memory, and nothing orders it after"
RING = (
    Cage(
        ring_gather,
        arguments(own(16), shared(32), shared(1, "int32"), shared(1, "int32"), own(0, for_each=16)),
        constants={"SLOTS": 2},
        ranks=(3, 2, 4),
    )
    .bug(
        "waits before it sends",
        "all wait first",
        "deadlock: .*signal 0 of 'full of rank 0' is at least 1, and it stays 0",
    )
    .bug("waits for a free slot at first", "all wait first", "deadlock: .*signal 0 of 'free of rank [0-9]'")
    .bug("no wait for a free slot", "reused before the slowest has read", OF_SLOTS)
    .bug("one slot too early", "reused before the slowest has read", OF_SLOTS)
    .bug(
        "slots are not freed",
        "lost signal",
        "deadlock: .*signal 0 of 'free of rank [0-9]' is at least 1, and it stays 0",
    )
    .bug("freed before the read", "released before the read", OF_SLOTS)
    .bug("freed by relaxed signals", "no release", OF_SLOTS)
    .bug("freed for the next one", "signal to another rank", OF_SLOTS)
    .bug("signalled before the block", "released before the store", OF_SLOTS)
    .bug("signals the one before", "signal to another rank", OF_SLOTS)
    .bug("does not count its steps", "counter not reset", OF_SLOTS)
    .bug(
        "counts one step too many",
        "waits for more than come",
        "deadlock: .*'full of rank [0-9]' is at least 2, and it stays 1",
    )
)

CAGES = (RING,)
