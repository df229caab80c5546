"""Results that leave by TMA: waits for the store, buffers that are used again, proxy fences, memory that is shared."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import described, numbers, tiles, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def staged(x, dst, TILES: tl.constexpr, BUG: tl.constexpr):
    """Two staging buffers: a store stays in flight while the next tile is written."""
    stage = tlx.local_alloc((16, 16), tl.float16, 2)
    offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    for t in range(TILES):
        values = tl.load(x + t * 256 + offsets) * 2
        if BUG == "two in flight":
            tlx.async_descriptor_store_wait(2)
        elif BUG != "no wait" and BUG != "wait after the write":
            tlx.async_descriptor_store_wait(1)
        if BUG == "fence before the write":
            tlx.fence_async_shared()
        if BUG == "one buffer":
            tlx.local_store(stage[0], values)  # at: one buffer
        else:
            tlx.local_store(stage[t % 2], values)  # at: two in flight, no wait, wait after the write
        if BUG == "wait after the write":
            tlx.async_descriptor_store_wait(1)
        if BUG == "gpu fence":
            tlx.fence("gpu")
        elif BUG != "no fence" and BUG != "fence before the write":
            tlx.fence_async_shared()
        if BUG == "one buffer":
            tlx.async_descriptor_store(dst, stage[0], [t * 16, 0])
        else:
            # at: no fence, fence before the write, gpu fence, not waited for
            tlx.async_descriptor_store(dst, stage[t % 2], [t * 16, 0])
    if BUG != "not waited for":
        tlx.async_descriptor_store_wait(0)


FENCE = "the TMA store of the default task reads 'stage.0.'.*without a proxy fence"
STAGED = (
    Cage(staged, lambda: (numbers(4 * 256), tiles(4)), constants={"TILES": 4})
    .bug("two in flight", "store wait", "writes 'stage.0.', and nothing orders it after the TMA store")
    .bug("no wait", "store wait", "writes 'stage.0.', and nothing orders it after the TMA store")
    .bug("wait after the write", "store wait", "writes 'stage.0.', and nothing orders it after the TMA store")
    .bug("one buffer", "store wait", "writes 'stage.0.', and nothing orders it after the TMA store")
    .bug("not waited for", "store wait at the end", "ends without waiting for [12] of its TMA stores")
    .bug("no fence", "proxy fence", FENCE)
    .bug("fence before the write", "proxy fence", FENCE)
    .bug("gpu fence", "proxy fence", FENCE)
    .clean(TILES=0)
    .clean(TILES=1)
    .clean(TILES=3)
)


@tlx_xdsl.jit
def epilogue_of_two(src, dst, TILES: tl.constexpr, BUG: tl.constexpr):
    """One task writes the staging buffer, another one stores it: both directions need a barrier."""
    stage = tlx.local_alloc((16, 16), tl.float16, 1)
    written, stored = tlx.alloc_barriers(1), tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
            for t in range(TILES):
                values = tl.load(src + t * 256 + offsets)
                tlx.barrier_wait(stored[0], t & 1 ^ 1)
                tlx.local_store(stage[0], values)  # at: signalled before it is read
                if BUG == "fence after the arrival":
                    tlx.barrier_arrive(written[0])
                    tlx.fence_async_shared()
                else:
                    if BUG != "fenced by no one" and BUG != "right: fence by who stores":
                        tlx.fence_async_shared()
                    tlx.barrier_arrive(written[0])
        with tlx.async_task(num_warps=1):
            for t in range(TILES):
                tlx.barrier_wait(written[0], t & 1)
                if BUG == "right: fence by who stores":
                    tlx.fence_async_shared()
                # at: fence after the arrival, fenced by no one, ends in flight
                tlx.async_descriptor_store(dst, stage[0], [t * 16, 0])
                if BUG == "signalled before it is read":
                    tlx.barrier_arrive(stored[0])
                    tlx.async_descriptor_store_wait(0)
                elif BUG == "ends in flight":
                    tlx.async_descriptor_store_wait(0) if t < TILES - 1 else None
                    tlx.barrier_arrive(stored[0])
                else:
                    tlx.async_descriptor_store_wait(0)
                    tlx.barrier_arrive(stored[0])


EPILOGUE_OF_TWO = (
    Cage(epilogue_of_two, lambda: (numbers(4 * 256), tiles(4)), constants={"TILES": 4})
    .bug("signalled before it is read", "early release", "writes 'stage.0.', and nothing orders it after the TMA store")
    .bug("fence after the arrival", "proxy fence", "the TMA store of partition 0 reads 'stage.0.'.*proxy fence")
    .bug(
        "fenced by no one",
        "proxy fence",
        "the TMA store of partition 0 reads 'stage.0.'.*proxy fence",
        twin={"BUG": "right: fence by who stores"},
    )
    .bug("ends in flight", "store wait at the end", "partition 0 ends without waiting for 1 of its TMA stores")
    .clean(TILES=1)
    .clean(seconds=0.2)
)


@tlx_xdsl.jit
def sums(x, dst, BUG: tl.constexpr):
    """Partial sums are added in global memory by TMA."""
    part = tlx.local_alloc((16, 16), tl.float32, 1)
    offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    for t in range(3):
        tlx.local_store(part[0], tl.load(x + t * 256 + offsets))  # at: not waited for in the loop
        if BUG != "no fence":
            tlx.fence_async_shared()
        tlx.async_descriptor_store(dst, part[0], [0, 0], store_reduce="add")  # at: no fence
        if BUG != "not waited for in the loop":
            tlx.async_descriptor_store_wait(0)
    tlx.async_descriptor_store_wait(0)


SUMS = (
    Cage(sums, lambda: (numbers(3 * 256, dtype="float32"), described(zeros(16, 16, dtype="float32"), 16, 16)))
    .bug("no fence", "proxy fence", "reads 'part.0.'.*without a proxy fence")
    .bug("not waited for in the loop", "store wait", "writes 'part.0.', and nothing orders it after the TMA")
)


@tlx_xdsl.jit
def rewritten(src, dst, BUG: tl.constexpr):
    """A buffer that was read by threads, and is then loaded anew by TMA; and one that threads fill after TMA."""
    tile = tlx.local_alloc((16, 16), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    if BUG != "load over a write" and BUG != "right: fenced":
        tlx.barrier_expect_bytes(full[0], 512)
        tlx.async_descriptor_load(src, tile[0], [0, 0], full[0])
        if BUG != "write over a load":
            tlx.barrier_wait(full[0], 0)
        # at: write over a load
        tlx.local_store(
            tile[0], tl.zeros((16, 16), tl.float16) if BUG == "write over a load" else tlx.local_load(tile[0])
        )
        tlx.fence_async_shared()
        tlx.async_descriptor_store(dst, tile[0], [0, 0])
        tlx.async_descriptor_store_wait(0)
        if BUG == "write over a load":
            tlx.barrier_wait(full[0], 0)
    else:
        # The zeros are for rows that no copy fills; TMA writes over them.
        tlx.local_store(tile[0], tl.zeros((16, 16), tl.float16))
        if BUG == "right: fenced":
            tlx.fence_async_shared()
        tlx.barrier_expect_bytes(full[0], 512)
        tlx.async_descriptor_load(src, tile[0], [0, 0], full[0])  # at: load over a write
        tlx.barrier_wait(full[0], 0)
        tlx.async_descriptor_store(dst, tile[0], [0, 0])
        tlx.async_descriptor_store_wait(0)


REWRITTEN = (
    Cage(rewritten, lambda: (tiles(1), tiles(1)))
    .bug("write over a load", "wait missing", "writes 'tile.0.', and nothing orders it after the TMA load")
    .bug(
        "load over a write",
        "proxy fence",
        "the TMA load of the default task writes 'tile.0.'.*proxy fence",
        twin={"BUG": "right: fenced"},
    )
)


@tlx_xdsl.jit
def overlay(src, dst, TILES: tl.constexpr, BUG: tl.constexpr):
    """The result lies where the ring was: that must be dead by then."""
    memory = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    ring = tlx.local_alloc((16, 16), tl.float16, 2, reuse=memory)
    result = tlx.local_alloc((16, 16), tl.float16, 2, reuse=memory)
    memory.set_buffer_overlap(tlx.reuse_group(ring, result, group_type=tlx.reuse_group_type.shared))
    full = tlx.alloc_barriers(2)
    empty = tlx.alloc_barriers(2, arrive_count=2)
    dead = tlx.alloc_barriers(1, arrive_count=2)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(TILES):
                slot, phase = tlx.get_bufidx_phase(t, 2)
                tlx.barrier_wait(empty[slot], phase ^ 1)
                tlx.barrier_expect_bytes(full[slot], 512)
                tlx.async_descriptor_load(src, ring[slot], [t * 16, 0], full[slot])
        with tlx.async_task(num_warps=4, replicate=2):
            me: tl.constexpr = tlx.async_task_replica_id()
            total = tl.zeros((16, 16), tl.float16)
            for t in range(TILES):
                slot, phase = tlx.get_bufidx_phase(t, 2)
                tlx.barrier_wait(full[slot], phase)
                # at: not dead, own slot only
                total += tlx.local_load(ring[slot]) * (me + 1)
                if BUG == "written in the loop":
                    tlx.local_store(result[me], total)  # at: written in the loop
                tlx.barrier_arrive(empty[slot])
            if BUG == "own slot only":
                # Says that this task is done, and waits for no one else.
                tlx.barrier_arrive(dead[0])
            elif BUG != "not dead":
                tlx.barrier_arrive(dead[0])
                tlx.barrier_wait(dead[0], 0)
            tlx.local_store(result[me], total)  # at: not dead, own slot only
            tlx.fence_async_shared()
            tlx.async_descriptor_store(dst, result[me], [me * 16, 0])
            tlx.async_descriptor_store_wait(0)


OVERLAY = (
    Cage(overlay, lambda: (tiles(4), tiles(2)), constants={"TILES": 4})
    .bug("not dead", "storage aliasing", "'(result|ring)...'.*(nothing orders it after|overwritten)")
    .bug("own slot only", "storage aliasing", "'(result|ring)...'.*(nothing orders it after|overwritten)")
    .bug("written in the loop", "storage aliasing", "'(result|ring)...'.*(nothing orders it after|overwritten)")
    .clean(TILES=0)
    .clean(TILES=1)
    .clean(seconds=0.2)
)

CAGES = (STAGED, EPILOGUE_OF_TWO, SUMS, REWRITTEN, OVERLAY)
