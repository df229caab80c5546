"""Rings of buffers with mbarriers: parities, counts, arrivals that are missing, too early or at another slot."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import tiles, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def copy_ring(src, out, TILES: tl.constexpr, SLOTS: tl.constexpr, BUG: tl.constexpr):
    """One task loads tiles into a ring, the other one copies them out by registers."""
    ring = tlx.local_alloc((16, 16), tl.float16, SLOTS)
    full = tlx.alloc_barriers(SLOTS, arrive_count=2 if BUG == "full counts two" else 1)
    empty = tlx.alloc_barriers(SLOTS, arrive_count=2 if BUG == "empty counts two" else 1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            steps: tl.constexpr = TILES - 1 if BUG == "loads one less" else TILES
            for t in range(steps):
                slot, phase = t % SLOTS, t // SLOTS & 1
                if BUG == "empty without flip":
                    tlx.barrier_wait(empty[slot], phase)  # at: empty without flip
                elif BUG == "empty parity of step":
                    tlx.barrier_wait(empty[slot], t & 1 ^ 1)  # at: empty parity of step
                elif BUG != "no empty wait":
                    tlx.barrier_wait(empty[slot], phase ^ 1)  # at: no arrive, empty counts two, arrive next slot
                tlx.barrier_expect_bytes(full[slot], 16 * 16 * 2)  # at: no empty wait
                tlx.async_descriptor_load(src, ring[slot], [t * 16, 0], full[slot])  # at: early arrive
        with tlx.async_task(num_warps=4):
            offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
            for t in range(TILES):
                slot, phase = t % SLOTS, t // SLOTS & 1
                if BUG == "full parity of step":
                    tlx.barrier_wait(full[slot], t & 1)  # at: full parity of step
                elif BUG == "full constant parity":
                    tlx.barrier_wait(full[slot], 0)  # at: full constant parity
                elif BUG == "full flipped":
                    tlx.barrier_wait(full[slot], phase ^ 1)  # at: full flipped
                elif BUG == "full next slot":
                    tlx.barrier_wait(full[(t + 1) % SLOTS], phase)
                elif BUG != "no full wait":
                    tlx.barrier_wait(full[slot], phase)  # at: full counts two, loads one less
                if BUG == "early arrive":
                    tlx.barrier_arrive(empty[slot])
                tile = tlx.local_load(ring[slot])  # at: no full wait, full flipped, full next slot
                if BUG == "arrive next slot":
                    tlx.barrier_arrive(empty[(t + 1) % SLOTS])
                elif BUG != "early arrive" and BUG != "no arrive":
                    tlx.barrier_arrive(empty[slot])
                tl.store(out + t * 256 + offsets, tile)


COPY_RING = (
    Cage(copy_ring, lambda: (tiles(5), zeros(5 * 16, 16)), constants={"TILES": 5, "SLOTS": 2})
    .bug("empty without flip", "parity", "deadlock: .* waits at 'empty.0.' for parity 0")
    .bug("empty parity of step", "parity", "'empty.*parity")
    .bug("full parity of step", "parity", "'full.*parity", constants={"SLOTS": 3})
    .bug("full constant parity", "parity", "'full.0.' for parity 0, while its phase 2")
    .bug("full flipped", "parity", "'(full|ring).0.'")
    .bug("full next slot", "wrong slot", "reads 'ring.0.', and nothing orders it after the TMA load")
    .bug("arrive next slot", "wrong slot", "wait for phase -1 of 'empty.1.' before phase 0 completes")
    .bug(
        "no empty wait", "wait missing", "arrival on 'full.0.'.*may count for that phase|writes 'ring.0.', and nothing"
    )
    .bug("no full wait", "wait missing", "'ring.0.'.*(read before it is written|nothing orders it after the TMA load)")
    .bug("no arrive", "arrival missing", "deadlock: .*'empty.0.'.*lacks 1 of 1 arrivals")
    .bug("early arrive", "early release", "writes 'ring.0.', and nothing orders it after partition 0, by which it is")
    .bug("full counts two", "count", "deadlock: .*'full.0.'.*lacks 1 of 2 arrivals")
    .bug("empty counts two", "count", "deadlock: .*'empty.0.'.*lacks 1 of 2 arrivals")
    .bug("loads one less", "trip count", "deadlock: .* waits at 'full.0.'.*lacks 1 of 1 arrivals")
    .clean(TILES=0)
    .clean(TILES=1)
    .clean(SLOTS=1)
    .clean(SLOTS=3)
    .clean(SLOTS=8)
    .clean(seconds=0.2)
)


@tlx_xdsl.jit
def shared_slots(src, out, TILES: tl.constexpr, SLOTS: tl.constexpr, BUG: tl.constexpr):
    """Two tasks read one half each of a slot: it is free when both have."""
    ring = tlx.local_alloc((32, 16), tl.float16, SLOTS)
    full = tlx.alloc_barriers(SLOTS)
    count: tl.constexpr = 1 if BUG == "counts one" else 3 if BUG == "counts three" else 2
    empty = tlx.alloc_barriers(SLOTS, arrive_count=count)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(TILES):
                slot, phase = tlx.get_bufidx_phase(t, SLOTS)
                tlx.barrier_wait(empty[slot], phase ^ 1)  # at: counts three, one arrives
                tlx.barrier_expect_bytes(full[slot], 32 * 16 * 2)
                # at: twice by the first, counts one
                tlx.async_descriptor_load(src, ring[slot], [t * 32, 0], full[slot])
        with tlx.async_task(num_warps=4, replicate=2):
            half: tl.constexpr = tlx.async_task_replica_id()
            offsets = (half * 16 + tl.arange(0, 16))[:, None] * 16 + tl.arange(0, 16)[None, :]
            for t in range(TILES):
                slot, phase = tlx.get_bufidx_phase(t, SLOTS)
                tlx.barrier_wait(full[slot], phase)
                tile = tlx.local_load(tlx.local_slice(ring[slot], [half * 16, 0], [16, 16]))
                if BUG == "one arrives":
                    tlx.barrier_arrive(empty[slot], pred=half == 0)
                elif BUG == "twice by the first":
                    if half == 0:
                        tlx.barrier_arrive(empty[slot], 2)
                else:
                    tlx.barrier_arrive(empty[slot])  # at: counts one
                tl.store(out + t * 512 + offsets, tile)


SHARED_SLOTS = (
    Cage(shared_slots, lambda: (tiles(5, 32), zeros(5 * 32, 16)), constants={"TILES": 5, "SLOTS": 2})
    .bug("counts one", "count", "too many arrivals on 'empty|arrival on 'empty|writes 'ring.0.', and nothing orders it")
    .bug("counts three", "count", "deadlock: .*'empty.0.'.*lacks 1 of 3 arrivals")
    .bug("one arrives", "arrival missing", "deadlock: .*'empty.0.'.*lacks 1 of 2 arrivals")
    .bug("twice by the first", "early release", "writes 'ring.0.', and nothing orders it after partition 1")
    .clean(TILES=1)
    .clean(SLOTS=1)
    .clean(SLOTS=4)
)


@tlx_xdsl.jit
def three_roles(src, dst, TILES: tl.constexpr, SLOTS: tl.constexpr, BUG: tl.constexpr):
    """Load, double in place, store: a slot goes from hand to hand."""
    ring = tlx.local_alloc((16, 16), tl.float16, SLOTS)
    loaded = tlx.alloc_barriers(SLOTS)
    doubled = tlx.alloc_barriers(SLOTS)
    empty = tlx.alloc_barriers(SLOTS)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(TILES):
                slot, phase = tlx.get_bufidx_phase(t, SLOTS)
                tlx.barrier_wait(empty[slot], phase ^ 1)
                tlx.barrier_expect_bytes(loaded[slot], 16 * 16 * 2)
                tlx.async_descriptor_load(src, ring[slot], [t * 16, 0], loaded[slot])  # at: freed by the second
        with tlx.async_task(num_warps=4):
            for t in range(TILES):
                slot, phase = tlx.get_bufidx_phase(t, SLOTS)
                tlx.barrier_wait(loaded[slot], phase)
                if BUG == "signals before it writes":
                    tlx.barrier_arrive(doubled[slot])
                # Here or at the store, whichever of the two comes later in this run.
                # at: third skips the second, signals before it writes
                tlx.local_store(ring[slot], tlx.local_load(ring[slot]) * 2)
                if BUG != "no fence" and BUG != "right: fence by the reader":
                    tlx.fence_async_shared()
                if BUG == "freed by the second":
                    tlx.barrier_arrive(empty[slot])
                if BUG != "signals before it writes":
                    tlx.barrier_arrive(doubled[slot])
        with tlx.async_task(num_warps=1):
            for t in range(TILES):
                slot, phase = tlx.get_bufidx_phase(t, SLOTS)
                if BUG == "third skips the second":
                    tlx.barrier_wait(loaded[slot], phase)
                else:
                    tlx.barrier_wait(doubled[slot], phase)
                if BUG == "right: fence by the reader":
                    tlx.fence_async_shared()
                # at: third skips the second, signals before it writes, no fence
                tlx.async_descriptor_store(dst, ring[slot], [t * 16, 0])
                tlx.async_descriptor_store_wait(0)
                if BUG != "freed by the second":
                    tlx.barrier_arrive(empty[slot])


THREE_ROLES = (
    Cage(three_roles, lambda: (tiles(5), tiles(5)), constants={"TILES": 5, "SLOTS": 2})
    .bug("third skips the second", "wrong barrier", "'ring.0.', and nothing orders it after")
    .bug("signals before it writes", "early release", "'ring.0.', and nothing orders it after")
    .bug(
        "no fence",
        "proxy fence",
        "the TMA store of partition 1 reads 'ring.0.'.*without a proxy fence",
        twin={"BUG": "right: fence by the reader"},
    )
    .bug("freed by the second", "early release", "writes 'ring.0.', and nothing orders it after the TMA store")
    .clean(SLOTS=1)
    .clean(SLOTS=3)
    .clean(TILES=0)
    .clean(seconds=0.2)
)

CAGES = (COPY_RING, SHARED_SLOTS, THREE_ROLES)
