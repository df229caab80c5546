"""Clusters: who has started, who has ended, whose slot is full, and what arrives at whose barrier."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import described, numbers, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic

PAIR = {"cluster": (2, 1, 1), "target": "sm_90a"}
MAY_HAVE_ENDED = "nothing keeps that CTA from ending before"


@tlx_xdsl.jit
def multicast(src, out, TILES: tl.constexpr, SLOTS: tl.constexpr, BUG: tl.constexpr):
    """Each CTA loads one half of a tile for both; threads of both read the whole."""
    rank = tlx.cluster_cta_rank()
    ring = tlx.local_alloc((32, 16), tl.float16, SLOTS)
    full = tlx.alloc_barriers(SLOTS)
    # A slot is written by both CTAs, so both must know that both have read it.
    empty = tlx.alloc_barriers(SLOTS, 1 if BUG == "asks itself only" or BUG == "counts one" else 2)
    if BUG != "right: no entry barrier":
        tlx.fence_mbarrier_init_cluster()
        tlx.cluster_barrier()
    with tlx.async_tasks(no_ending_cluster_sync=BUG == "ends early"):
        with tlx.async_task("default"):
            offsets = tl.arange(0, 32)[:, None] * 16 + tl.arange(0, 16)[None, :]
            total = tl.zeros((32, 16), tl.float16)
            for t in range(TILES):
                slot, phase = tlx.get_bufidx_phase(t, SLOTS)
                tlx.barrier_wait(full[slot], phase)  # at: no mask, mask without itself
                total += tlx.local_load(ring[slot])
                if BUG == "asks itself only":
                    tlx.barrier_arrive(empty[slot])
                elif BUG == "signals itself twice":
                    tlx.barrier_arrive(empty[slot], 2)
                elif BUG == "signals the other only":
                    tlx.barrier_arrive(empty[slot], 1, remote_cta_rank=rank ^ 1)
                else:
                    tlx.barrier_arrive(empty[slot], 1, remote_cta_rank=0)  # at: counts one, ends early
                    tlx.barrier_arrive(empty[slot], 1, remote_cta_rank=1)  # at: counts one, ends early
            tl.store(out + rank * 512 + offsets, total)
        with tlx.async_task(num_warps=1):
            for t in range(TILES):
                slot, phase = tlx.get_bufidx_phase(t, SLOTS)
                # at: signals the other only, counts one
                tlx.barrier_wait(empty[slot], phase ^ 1)
                if BUG == "expects its half":
                    tlx.barrier_expect_bytes(full[slot], 512)
                else:
                    tlx.barrier_expect_bytes(full[slot], 1024)
                half = tlx.local_slice(ring[slot], [rank * 16, 0], [16, 16])
                if BUG == "no mask":
                    tlx.async_descriptor_load(src, half, [t * 32 + rank * 16, 0], full[slot])
                elif BUG == "mask without itself":
                    # For the other one, it is thought, since the own half comes anyway.
                    tlx.async_descriptor_load(
                        src, half, [t * 32 + rank * 16, 0], full[slot], multicast_targets=[rank ^ 1]
                    )
                elif BUG == "both the same half":
                    first = tlx.local_slice(ring[slot], [0, 0], [16, 16])
                    # at: both the same half
                    tlx.async_descriptor_load(src, first, [t * 32, 0], full[slot], multicast_targets=[0, 1])
                else:
                    # at: asks itself only, signals itself twice, expects its half, ends early
                    tlx.async_descriptor_load(src, half, [t * 32 + rank * 16, 0], full[slot], multicast_targets=[0, 1])


OVERWRITES = "the TMA load of partition 0 of CTA . writes 'ring.0..* of CTA .', and nothing orders it after"
MULTICAST = (
    Cage(
        multicast,
        lambda: (described(numbers(5 * 32, 16), 16, 16), zeros(1024)),
        grid=2,
        constants={"TILES": 5, "SLOTS": 2},
        options=PAIR,
    )
    .bug("asks itself only", "multicast into a full slot", OVERWRITES)
    .bug("signals itself twice", "multicast into a full slot", OVERWRITES)
    .bug("signals the other only", "remote count", "deadlock: .*'empty.0..*lacks 1 of 2 arrivals")
    .bug("counts one", "remote count", "'empty.0.")
    .bug("ends early", "peer exits early", MAY_HAVE_ENDED)
    .bug("expects its half", "remote bytes", "512 bytes more arrive on 'full.0..*too few")
    .bug("no mask", "multicast mask", "deadlock: .*'full.0..*lacks 512 bytes")
    .bug("mask without itself", "multicast mask", "deadlock: .*'full.0..*lacks 512 bytes")
    .bug(
        "both the same half", "multicast mask", "writes 'ring.0..* of CTA .', and nothing orders it after the TMA load"
    )
    .clean(BUG="right: no entry barrier")
    .clean(TILES=0)
    .clean(TILES=1)
    .clean(SLOTS=1)
    .clean(SLOTS=3)
    .clean(seconds=0.3)
)


@tlx_xdsl.jit
def exchange(x, out, TURNS: tl.constexpr, BUG: tl.constexpr):
    """The two CTAs exchange a block each turn, by stores of threads to the other's memory."""
    rank = tlx.cluster_cta_rank()
    other = rank ^ 1
    box = tlx.local_alloc((128,), tl.float32, 1)
    there = tlx.alloc_barriers(1)
    room = tlx.alloc_barriers(1)
    if BUG == "right: fence only":
        tlx.fence_mbarrier_init_cluster()
    elif BUG != "right: no entry barrier":
        tlx.cluster_barrier()
    offsets = tl.arange(0, 128)
    value = tl.load(x + rank * 128 + offsets)
    for t in range(TURNS):
        if BUG != "no room":
            tlx.barrier_wait(room[0], t & 1 ^ 1)  # at: never room, room before it is read
        # at: no room, room at home
        tlx.remote_shmem_store(box[0], value, other)
        if BUG == "arrives at home":
            tlx.barrier_arrive(there[0])
        elif BUG != "never there":
            tlx.barrier_arrive(there[0], 1, remote_cta_rank=other)
        if BUG == "room before it is read":
            tlx.barrier_arrive(room[0], 1, remote_cta_rank=other)
        if BUG != "does not wait":
            tlx.barrier_wait(there[0], t & 1)  # at: never there
        value += tlx.local_load(box[0])  # at: arrives at home, does not wait
        if BUG == "room at home":
            tlx.barrier_arrive(room[0])
        elif BUG != "never room" and BUG != "room before it is read":
            tlx.barrier_arrive(room[0], 1, remote_cta_rank=other)
    tl.store(out + rank * 128 + offsets, value)
    if BUG != "right: no barrier at the end":
        tlx.cluster_barrier()


UNREAD = "writes 'box.0. of CTA .', and nothing orders it after"
EXCHANGE = (
    Cage(
        exchange,
        lambda: (numbers(256, dtype="float32"), zeros(256, dtype="float32")),
        grid=2,
        constants={"TURNS": 3},
        options=PAIR,
    )
    .bug("no room", "remote release", UNREAD)
    .bug("room before it is read", "remote release", "'room.0.|" + UNREAD)
    .bug("room at home", "remote release", "'room.0.|" + UNREAD)
    .bug("never room", "arrival missing", "deadlock: .*'room.0..*lacks 1 of 1 arrivals")
    .bug("never there", "arrival missing", "deadlock: .*'there.0..*lacks 1 of 1 arrivals")
    .bug("arrives at home", "DSMEM unwritten", "'box.0..*(read before it is written|nothing orders it after)")
    .bug("does not wait", "DSMEM unwritten", "'box.0..*(read before it is written|nothing orders it after)")
    .clean(BUG="right: no entry barrier")
    .clean(BUG="right: fence only")
    .clean(BUG="right: no barrier at the end")
    .clean(TURNS=0)
    .clean(TURNS=1)
    .clean(seconds=0.2)
)


@tlx_xdsl.jit
def reduced(x, out, SIZE: tl.constexpr, BUG: tl.constexpr):
    """All CTAs of a cluster send their part to the first one, whose barrier expects all bytes."""
    rank = tlx.cluster_cta_rank()
    parts = tlx.local_alloc((128,), tl.float32, SIZE)
    full = tlx.alloc_barriers(1)
    if BUG != "right: no entry barrier":
        tlx.fence_mbarrier_init_cluster()
        tlx.cluster_barrier()
    offsets = tl.arange(0, 128)
    value = tl.load(x + rank * 128 + offsets)
    if rank == 0:
        if BUG == "expects those of others":
            tlx.barrier_expect_bytes(full[0], (SIZE - 1) * 512)
        elif BUG != "expects nothing":
            tlx.barrier_expect_bytes(full[0], SIZE * 512)
    if BUG == "all to one slot":
        tlx.async_remote_shmem_store(parts[0], value, 0, full[0])  # at: all to one slot
    elif BUG == "last one returns":
        if rank < SIZE - 1:
            tlx.async_remote_shmem_store(parts[rank], value, 0, full[0])
    else:
        # at: expects those of others
        tlx.async_remote_shmem_store(parts[rank], value, 0, full[0])
    if rank == 0:
        if BUG != "does not wait":
            tlx.barrier_wait(full[0], 0)  # at: expects nothing, last one returns
        total = tl.zeros((128,), tl.float32)
        for r in tl.static_range(SIZE):
            total += tlx.local_load(parts[r])  # at: does not wait
        tl.store(out + offsets, total)
    if BUG == "does not wait" and rank == 0:
        tlx.barrier_wait(full[0], 0)
    # The first one has waited for all bytes: it does not end before they have come, and no one comes to the others.
    if BUG == "right: a barrier at the end":
        tlx.cluster_barrier()


REDUCED = (
    Cage(
        reduced,
        lambda: (numbers(512, dtype="float32"), zeros(128, dtype="float32")),
        grid=4,
        constants={"SIZE": 4},
        options={"cluster": (4, 1, 1), "target": "sm_90a"},
    )
    .bug("expects those of others", "remote bytes", "512 bytes more arrive on 'full.0..*too few")
    .bug("expects nothing", "remote bytes", "'full.0..*not expected")
    .bug("all to one slot", "DSMEM overwritten", "writes 'parts.0. of CTA 0', and nothing orders it after")
    .bug("last one returns", "remote bytes", "deadlock: .*'full.0..*lacks 512 bytes")
    .bug(
        "does not wait",
        "DSMEM unwritten",
        "'parts.[0-3].*(read before it is written|nothing orders it after)",
        twin={"BUG": "right: a barrier at the end"},
    )
    .clean(BUG="right: no entry barrier")
)


@tlx_xdsl.jit
def meets(x, out, BUG: tl.constexpr):
    """A table that the first CTA fills for both; barriers of the cluster order it."""
    rank = tlx.cluster_cta_rank()
    table = tlx.local_alloc((128,), tl.float32, 1)
    offsets = tl.arange(0, 128)
    tlx.cluster_barrier()
    if BUG == "right: one side meets":
        if rank == 0:
            tlx.remote_shmem_store(table[0], tl.load(x + offsets), 1)
            tlx.cluster_barrier()
    elif BUG == "right: one side returns":
        if rank == 1:
            return
        tlx.remote_shmem_store(table[0], tl.load(x + offsets), 1)
        tlx.cluster_barrier()
    else:
        if rank == 0:
            tlx.remote_shmem_store(table[0], tl.load(x + offsets), 1)
        if BUG != "not met":
            tlx.cluster_barrier()
        if rank == 1:
            tl.store(out + offsets, tlx.local_load(table[0]))  # at: not met
    if BUG == "not met":
        tlx.cluster_barrier()


MEETS = (
    Cage(
        meets,
        lambda: (numbers(128, dtype="float32"), zeros(128, dtype="float32")),
        grid=2,
        options=PAIR,
    )
    .bug("not met", "DSMEM unwritten", "'table.0..*(read before it is written|nothing orders it after)")
    # The compiler has the other one wait before it ends, for the barrier that it meets.
    .clean(BUG="right: one side meets")
    .clean(BUG="right: one side returns")
)


@tlx_xdsl.jit
def kept(x, out):
    """A block that each CTA stores to its own memory as it would to another's, and loads transposed, twice."""
    rank = tlx.cluster_cta_rank()
    box = tlx.local_alloc((32, 32), tl.float32, 1)
    at = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    value = tl.load(x + at)
    for _ in range(2):
        # The threads meet in between: the compiler sees to that.
        tlx.remote_shmem_store(box[0], value, rank)
        value = tlx.local_load(tlx.local_trans(box[0]))
    tl.store(out + rank * 1024 + at, value)


KEPT = Cage(
    kept,
    lambda: (numbers(1024, dtype="float32"), zeros(2048, dtype="float32")),
    grid=2,
    options=PAIR,
).clean()

CAGES = (MULTICAST, EXCHANGE, REDUCED, MEETS, KEPT)
