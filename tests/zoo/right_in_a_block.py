"""Kernels that look wrong, and are right: a thread block, a cluster, tensor memory. A report would be a false alarm."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import described, numbers, tiles, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def first_round_without_waits(src, out, TILES: tl.constexpr, SLOTS: tl.constexpr):
    """The loader waits from the second round on only, for the phase that counts from there."""
    ring = tlx.local_alloc((16, 16), tl.float16, SLOTS)
    full, empty = tlx.alloc_barriers(SLOTS), tlx.alloc_barriers(SLOTS)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(TILES):
                slot, turn = t % SLOTS, t // SLOTS
                if t >= SLOTS:
                    tlx.barrier_wait(empty[slot], turn - 1 & 1)
                tlx.barrier_expect_bytes(full[slot], 512)
                tlx.async_descriptor_load(src, ring[slot], [t * 16, 0], full[slot])
        with tlx.async_task(num_warps=4):
            offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
            for t in range(TILES):
                slot, turn = t % SLOTS, t // SLOTS
                tlx.barrier_wait(full[slot], turn & 1)
                tl.store(out + t * 256 + offsets, tlx.local_load(ring[slot]))
                tlx.barrier_arrive(empty[slot])


FIRST_ROUND = Cage(
    first_round_without_waits, lambda: (tiles(5), zeros(5 * 256)), constants={"TILES": 5, "SLOTS": 2}
).clean()


@tlx_xdsl.jit
def drained_at_the_end(src, out, TILES: tl.constexpr):
    """The storing task frees a slot one step late, and the last one not at all: no one waits for it."""
    ring = tlx.local_alloc((16, 16), tl.float16, 3)
    full, empty = tlx.alloc_barriers(3), tlx.alloc_barriers(3)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(TILES):
                slot, phase = tlx.get_bufidx_phase(t, 3)
                tlx.barrier_wait(empty[slot], phase ^ 1)
                tlx.barrier_expect_bytes(full[slot], 512)
                tlx.async_descriptor_load(src, ring[slot], [t * 16, 0], full[slot])
        with tlx.async_task(num_warps=1):
            for t in range(TILES):
                slot, phase = tlx.get_bufidx_phase(t, 3)
                tlx.barrier_wait(full[slot], phase)
                tlx.async_descriptor_store(out, ring[slot], [t * 16, 0])
                tlx.async_descriptor_store_wait(1)
                tlx.barrier_arrive(empty[(t + 2) % 3], pred=t > 0)
            tlx.async_descriptor_store_wait(0)


DRAINED = Cage(drained_at_the_end, lambda: (tiles(6), tiles(6)), constants={"TILES": 6}).clean()


@tlx_xdsl.jit
def one_barrier_of_two_kinds(src, x, out, TILES: tl.constexpr):
    """A phase completes by the bytes of TMA and the arrival of threads that fill another part of the slot."""
    ring = tlx.local_alloc((16, 16), tl.float16, 2)
    bias = tlx.local_alloc((16, 16), tl.float16, 2)
    full, empty = tlx.alloc_barriers(2, arrive_count=2), tlx.alloc_barriers(2)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
            for t in range(TILES):
                slot, phase = tlx.get_bufidx_phase(t, 2)
                tlx.barrier_wait(full[slot], phase)
                tl.store(out + t * 256 + offsets, tlx.local_load(ring[slot]) + tlx.local_load(bias[slot]))
                # Once, and both who fill the slot wait for it.
                tlx.barrier_arrive(empty[slot])
        with tlx.async_task(num_warps=1):
            for t in range(TILES):
                slot, phase = tlx.get_bufidx_phase(t, 2)
                tlx.barrier_wait(empty[slot], phase ^ 1)
                tlx.barrier_expect_bytes(full[slot], 512)
                tlx.async_descriptor_load(src, ring[slot], [t * 16, 0], full[slot])
        with tlx.async_task(num_warps=4):
            offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
            for t in range(TILES):
                slot, phase = tlx.get_bufidx_phase(t, 2)
                tlx.barrier_wait(empty[slot], phase ^ 1)
                tlx.local_store(bias[slot], tl.load(x + t * 256 + offsets))
                tlx.barrier_arrive(full[slot])


TWO_KINDS = Cage(
    one_barrier_of_two_kinds, lambda: (tiles(5), numbers(5 * 256), zeros(5 * 256)), constants={"TILES": 5}
).clean()


@tlx_xdsl.jit
def known_by_others(src, out):
    """The third task waits for nothing that TMA completes: the second one has, and signals it."""
    tile = tlx.local_alloc((16, 16), tl.float16, 1)
    full, signalled = tlx.alloc_barriers(1), tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.barrier_expect_bytes(full[0], 512)
            tlx.async_descriptor_load(src, tile[0], [0, 0], full[0])
        with tlx.async_task(num_warps=1):
            tlx.barrier_wait(full[0], 0)
            tlx.barrier_arrive(signalled[0])
        with tlx.async_task(num_warps=4):
            offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
            tlx.barrier_wait(signalled[0], 0)
            tl.store(out + offsets, tlx.local_load(tile[0]))


KNOWN = Cage(known_by_others, lambda: (tiles(1), zeros(256))).clean()


@tlx_xdsl.jit
def fenced_for_all(x, dst):
    """Two tasks write one half each and fence; who stores both has waited for them, and needs no fence of its own."""
    tile = tlx.local_alloc((32, 16), tl.float16, 1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.named_barrier_wait(1, 384)
            tlx.async_descriptor_store(dst, tile[0], [0, 0])
            tlx.async_descriptor_store_wait(0)
        with tlx.async_task(num_warps=4, replicate=2):
            me: tl.constexpr = tlx.async_task_replica_id()
            offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
            tlx.local_store(tlx.local_slice(tile[0], [me * 16, 0], [16, 16]), tl.load(x + me * 256 + offsets))
            tlx.fence_async_shared()
            tlx.named_barrier_arrive(1, 384)


FENCED = Cage(fenced_for_all, lambda: (numbers(512), tiles(1, 32))).clean()


@tlx_xdsl.jit
def parts_of_one_buffer(src, x, out):
    """TMA fills the upper half while threads fill the lower one: they have no byte in common."""
    tile = tlx.local_alloc((32, 16), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tlx.barrier_expect_bytes(full[0], 512)
    tlx.async_descriptor_load(src, tlx.local_slice(tile[0], [0, 0], [16, 16]), [0, 0], full[0])
    lower = tlx.local_slice(tile[0], [16, 0], [16, 16])
    tlx.local_store(lower, tl.load(x + offsets))
    first = tlx.local_load(lower)
    tlx.barrier_wait(full[0], 0)
    whole = tl.arange(0, 32)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(out + whole, tlx.local_load(tile[0]))
    tl.store(out + 512 + offsets, first)


PARTS = Cage(parts_of_one_buffer, lambda: (tiles(1), numbers(256), zeros(768))).clean()


@tlx_xdsl.jit
def optional_tile(src, out, WANTED):
    """An unwanted tile is neither loaded, nor waited for, nor read: by three predicates of the same value."""
    tile = tlx.local_alloc((16, 16), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tlx.barrier_expect_bytes(full[0], 512, pred=WANTED != 0)
    tlx.async_descriptor_load(src, tile[0], [0, 0], full[0], pred=WANTED != 0)
    tlx.barrier_wait(full[0], 0, pred=WANTED != 0)
    if WANTED != 0:
        tl.store(out + offsets, tlx.local_load(tile[0]))


OPTIONAL = (
    Cage(optional_tile, lambda: (tiles(1), zeros(256), 0)).clean().clean(arguments=lambda: (tiles(1), zeros(256), 1))
)


@tlx_xdsl.jit
def accumulators_of_two(a_desc, b_desc, out):
    """Two products are in flight, of different accumulators; the older one is waited for by the number after it."""
    a = tlx.local_alloc((64, 16), tl.float16, 2)
    b = tlx.local_alloc((16, 16), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], (2 * 64 + 16) * 16 * 2)
    tlx.async_descriptor_load(a_desc, a[0], [0, 0], full[0])
    tlx.async_descriptor_load(a_desc, a[1], [64, 0], full[0])
    tlx.async_descriptor_load(b_desc, b[0], [0, 0], full[0])
    tlx.barrier_wait(full[0], 0)
    upper = tlx.async_dot(a[0], b[0])
    lower = tlx.async_dot(a[1], b[0])
    rows = tl.arange(0, 64)[:, None] * 16 + tl.arange(0, 16)[None, :]
    upper = tlx.async_dot_wait(1, upper)
    tl.store(out + rows, upper)
    lower = tlx.async_dot_wait(0, lower)
    tl.store(out + 1024 + rows, lower)


TWO_ACCUMULATORS = Cage(
    accumulators_of_two,
    lambda: (described(numbers(128, 16), 64, 16), described(numbers(16, 16), 16, 16), zeros(2048, dtype="float32")),
).clean()


@tlx_xdsl.jit
def started_by_message(x, out):
    """The first CTA alone waits for the start of all, at a barrier; the last one stays until it has got its data."""
    rank = tlx.cluster_cta_rank()
    box = tlx.local_alloc((128,), tl.float32, 1)
    there = tlx.alloc_barriers(1)
    tlx.cluster_barrier()
    offsets = tl.arange(0, 128)
    if rank == 0:
        tlx.remote_shmem_store(box[0], tl.load(x + offsets), 1)
        tlx.barrier_arrive(there[0], 1, remote_cta_rank=1)
    else:
        # It can't end before the data are there, so no barrier of the cluster follows.
        tlx.barrier_wait(there[0], 0)
        tl.store(out + offsets, tlx.local_load(box[0]))


STARTED = Cage(
    started_by_message,
    lambda: (numbers(128, dtype="float32"), zeros(128, dtype="float32")),
    grid=2,
    options={"cluster": (2, 1, 1)},
).clean(seconds=0.1)


@tlx_xdsl.jit
def passed_along(x, out, SIZE: tl.constexpr):
    """A chain of CTAs: the arrival at the last one stands for all before it."""
    rank = tlx.cluster_cta_rank()
    box = tlx.local_alloc((128,), tl.float32, 1)
    there = tlx.alloc_barriers(1)
    tlx.cluster_barrier()
    offsets = tl.arange(0, 128)
    if rank == 0:
        # The last CTA's box is filled by the first one, and announced by the chain.
        tlx.remote_shmem_store(box[0], tl.load(x + offsets), SIZE - 1)
        tlx.barrier_arrive(there[0], 1, remote_cta_rank=1)
    else:
        tlx.barrier_wait(there[0], 0)
        if rank < SIZE - 1:
            tlx.barrier_arrive(there[0], 1, remote_cta_rank=rank + 1)
        else:
            tl.store(out + offsets, tlx.local_load(box[0]))
    tlx.cluster_barrier()


PASSED = Cage(
    passed_along,
    lambda: (numbers(128, dtype="float32"), zeros(128, dtype="float32")),
    grid=4,
    constants={"SIZE": 4},
    options={"cluster": (4, 1, 1)},
).clean(seconds=0.1)


@tlx_xdsl.jit
def one_commit_for_all(x, y, out):
    """Products of two accumulators; the commit after them is the only one, and no product waits for another."""
    a = tlx.local_alloc((128, 16), tl.float16, 1)
    b = tlx.local_alloc((16, 32), tl.float16, 1)
    acc = tlx.local_alloc((128, 32), tl.float32, 2, tlx.storage_kind.tmem)
    done = tlx.alloc_barriers(1)
    tlx.local_store(a[0], tl.load(x + tl.arange(0, 128)[:, None] * 16 + tl.arange(0, 16)[None, :]))
    tlx.local_store(b[0], tl.load(y + tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]))
    tlx.fence_async_shared()
    tlx.async_dot(a[0], b[0], acc[0], use_acc=False, force_async=True)
    tlx.async_dot(a[0], b[0], acc[1], use_acc=False, force_async=True)
    tlx.async_dot(a[0], b[0], acc[0], force_async=True)
    tlx.tcgen05_commit(done[0])
    tlx.barrier_wait(done[0], 0)
    offsets = tl.arange(0, 128)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(out + offsets, tlx.local_load(acc[0]) + tlx.local_load(acc[1]))
    # Read is done: the memory may be written without another wait.
    tlx.local_store(a[0], tl.zeros((128, 16), tl.float16))
    tlx.local_store(acc[0], tl.zeros((128, 32), tl.float32))


ONE_COMMIT = Cage(
    one_commit_for_all,
    lambda: (numbers(2048), numbers(512), zeros(4096, dtype="float32")),
    options={"target": "sm_100a"},
).clean(seconds=0.1)

CAGES = (
    FIRST_ROUND,
    DRAINED,
    TWO_KINDS,
    KNOWN,
    FENCED,
    PARTS,
    OPTIONAL,
    TWO_ACCUMULATORS,
    STARTED,
    PASSED,
    ONE_COMMIT,
)
