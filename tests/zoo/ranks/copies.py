"""Bulk copies to and from other ranks: when they are over, and when threads' data is visible to them."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.bugs import Cage
from tests.zoo.ranks.arrays import arguments, own, shared

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def send_by_bulk(src, buf, pads, out, BUG: tl.constexpr):
    """Each rank stores a block to the next one by a bulk copy, waits for its end, and signals."""
    rank = tlx.rank(buf)
    world: tl.constexpr = tlx.world_size(buf)
    to = (rank + 1) % world
    offsets = tl.arange(0, 128)
    tile = tlx.local_alloc((128,), tl.float32, 1)
    tlx.local_store(tile[0], tl.load(src + offsets))
    tlx.fence_async_shared()
    if BUG == "issued after the signal":
        tlx.signal(tlx.peer(pads, to), 0)
    tlx.async_store(tlx.peer(buf, to), tile[0], 512)
    if BUG == "waits for the reads alone":
        tlx.async_descriptor_store_wait(0)
    elif BUG == "waited for after the signal":
        tlx.signal(tlx.peer(pads, to), 0)
        tlx.async_descriptor_store_wait(0, read=False)
    elif BUG != "not waited for":
        tlx.async_descriptor_store_wait(0, read=False)
    if BUG != "waited for after the signal" and BUG != "issued after the signal":
        tlx.signal(tlx.peer(pads, to), 0)
    tlx.wait_signal(tlx.peer(pads, rank), 0, 1)
    # at: waits for the reads alone, waited for after the signal, not waited for, issued after the signal
    tl.store(out + offsets, tl.load(tlx.peer(buf, rank) + offsets))


BY_BULK = "reads byte 0 of 'buf of rank [0-9]' in global memory, and nothing orders it after the TMA store"
BULK = (
    Cage(send_by_bulk, arguments(own(128), shared(128), shared(1, "int32"), own(128)), ranks=(2, 3, 4))
    .bug("not waited for", "TMA store not written", BY_BULK)
    .bug("waits for the reads alone", "TMA store not written", BY_BULK)
    .bug("waited for after the signal", "TMA store not written", BY_BULK)
    .bug("issued after the signal", "released before the store", BY_BULK)
)


@tlx_xdsl.jit
def load_by_tma(src, buf, pads, out, BUG: tl.constexpr):
    """Threads write a block, and TMA of the next rank loads it: a fence of proxies has to come in between."""
    rank = tlx.rank(buf)
    world: tl.constexpr = tlx.world_size(buf)
    offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(tlx.peer(buf, rank) + offsets, tl.load(src + offsets))
    if BUG == "right: fence of who writes":
        tlx.fence("async_global")
    for r in tl.static_range(world):
        tlx.signal(tlx.peer(pads, r), 0)
    if BUG == "fence before the wait":
        tlx.fence("async_global")
    tlx.wait_signal(tlx.peer(pads, rank), 0, world)
    if BUG == "fence of shared memory":
        tlx.fence_async_shared()
    elif BUG != "no fence" and BUG != "fence before the wait" and BUG != "right: fence of who writes":
        tlx.fence("async_global")
    tile = tlx.local_alloc((16, 16), tl.float32, 1)
    full = tlx.alloc_barriers(1)
    desc = tl.make_tensor_descriptor(tlx.peer(buf, (rank + 1) % world), [16, 16], [16, 1], [16, 16])
    tlx.barrier_expect_bytes(full[0], 1024)
    # at: no fence, fence before the wait, fence of shared memory
    tlx.async_descriptor_load(desc, tile[0], [0, 0], full[0])
    tlx.barrier_wait(full[0], 0)
    tl.store(out + offsets, tlx.local_load(tile[0]))


UNFENCED = "reads byte 0 of 'buf of rank [0-9]' .* without a proxy fence in between"
TMA = (
    Cage(load_by_tma, arguments(own(256), shared(256), shared(1, "int32"), own(256)), ranks=(2, 3))
    .bug("no fence", "proxy fence in global memory", UNFENCED, twin={"BUG": "right: fence of who writes"})
    .bug("fence of shared memory", "proxy fence in global memory", UNFENCED)
    .bug("fence before the wait", "proxy fence in global memory", UNFENCED)
)

CAGES = (BULK, TMA)
