"""Two proxies: what threads write to global memory and TMA reads, and what `cp.async` brings for TMA."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import described, numbers, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic

UNFENCED = "of 'mid.* in global memory, which the default task of program .* has written without a proxy fence"


@tlx_xdsl.jit
def polled_then_loaded(mid_desc, mid, flag, out, BUG: tl.constexpr):
    """Threads of program 0 write a tile and raise a flag; program 1 polls for it, and reads the tile by TMA."""
    tile = tlx.local_alloc((16, 16), tl.float32, 1)
    full = tlx.alloc_barriers(1)
    offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    if tl.program_id(0) == 0:
        tl.store(mid + offsets, offsets.to(tl.float32))
        if BUG == "right: the writer fences":
            tlx.fence("async_global")
        tl.atomic_xchg(flag, 1, sem="release")
    else:
        if BUG == "fence before the acquire":
            tlx.fence("async_global")
        while tl.atomic_add(flag, 0, sem="acquire") == 0:
            pass
        if BUG == "fence of shared memory":
            tlx.fence_async_shared()
        elif BUG == "fence of threads":
            tlx.fence("gpu")
        elif BUG == "":
            tlx.fence("async_global")
        tlx.barrier_expect_bytes(full[0], 1024)
        # at: no fence, fence before the acquire, fence of shared memory, fence of threads
        tlx.async_descriptor_load(mid_desc, tile[0], [0, 0], full[0])
        tlx.barrier_wait(full[0], 0)
        tl.store(out + offsets, tlx.local_load(tile[0]))


def one_square():
    middle = zeros(16, 16, dtype="float32")
    return described(middle, 16, 16), middle, zeros(1, dtype="int32"), zeros(256, dtype="float32")


KIND = "proxy fence in global memory"
POLLED = (
    Cage(polled_then_loaded, one_square, grid=2)
    .bug("no fence", KIND, UNFENCED)
    .bug("fence of shared memory", KIND, UNFENCED, twin={"BUG": "right: the writer fences"})
    .bug("fence before the acquire", KIND, UNFENCED)
    .bug("fence of threads", KIND, UNFENCED)
    .clean(seconds=0.2)
)


@tlx_xdsl.jit
def zeroed_and_reduced(x, mid_desc, mid, BUG: tl.constexpr):
    """A program sets its tile to zero, and TMA adds to it."""
    tile = tlx.local_alloc((16, 16), tl.float32, 1)
    pid = tl.program_id(0)
    offsets = pid * 256 + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(mid + offsets, tl.zeros((16, 16), tl.float32))
    if BUG == "":
        tlx.fence("async_global")
    tlx.local_store(tile[0], tl.load(x + offsets))
    tlx.fence_async_shared()
    tlx.async_descriptor_store(mid_desc, tile[0], [pid * 16, 0], store_reduce="add")  # at: no fence
    tlx.async_descriptor_store_wait(0)


def two_squares():
    middle = zeros(32, 16, dtype="float32")
    return numbers(512, dtype="float32"), described(middle, 16, 16), middle


ZEROED = Cage(zeroed_and_reduced, two_squares, grid=2).bug("no fence", "proxy fence before a reduction", UNFENCED)


@tlx_xdsl.jit
def by_bulk_copies(x, mid, out, BUG: tl.constexpr):
    """Copy back by a bulk copy what the threads of a program have written."""
    row = tlx.local_alloc((256,), tl.float32, 1)
    full = tlx.alloc_barriers(1)
    offsets = tl.arange(0, 256)
    tl.store(mid + offsets, tl.load(x + offsets) * 2)
    if BUG == "":
        tlx.fence("async_global")
    tlx.barrier_expect_bytes(full[0], 1024)
    tlx.async_load(mid, row[0], bulk=True, barrier=full[0])  # at: no fence
    tlx.barrier_wait(full[0], 0)
    tl.store(out + offsets, tlx.local_load(row[0]))


BULK = Cage(by_bulk_copies, lambda: tuple(numbers(256, dtype="float32") for _ in range(3))).bug(
    "no fence", "proxy fence before a bulk copy", UNFENCED
)


@tlx_xdsl.jit
def copied_on(x, dst, BUG: tl.constexpr):
    """`cp.async` brings a tile, TMA stores it: the copies go through the proxy of the threads."""
    tile = tlx.local_alloc((16, 64), tl.float16, 1)
    offsets = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]
    if BUG == "fence before the wait":
        tlx.async_load_commit_group([tlx.async_load(x + offsets, tile[0])])
        tlx.fence_async_shared()
        tlx.async_load_wait_group(0)
    else:
        tlx.async_load_commit_group([tlx.async_load(x + offsets, tile[0])])
        tlx.async_load_wait_group(0)
        if BUG == "":
            tlx.fence_async_shared()
    tlx.async_descriptor_store(dst, tile[0], [0, 0])  # at: no fence, fence before the wait
    tlx.async_descriptor_store_wait(0)


COPIED = "the TMA store of the default task reads 'tile.0.', which the cp.async of the default task has written without"
COPIED_ON = (
    Cage(copied_on, lambda: (numbers(1024), described(zeros(16, 64), 16, 64)))
    .bug("no fence", "proxy fence after cp.async", COPIED)
    .bug("fence before the wait", "proxy fence after cp.async", COPIED)
)


@tlx_xdsl.jit
def summed_in_order(x, sum_desc, turn, BUG: tl.constexpr):
    """Programs add their tiles by TMA one after the other, so that the sum has the same bits in each run."""
    tile = tlx.local_alloc((16, 16), tl.float32, 1)
    pid = tl.program_id(0)
    offsets = pid * 256 + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tlx.local_store(tile[0], tl.load(x + offsets))
    tlx.fence_async_shared()
    while tl.atomic_add(turn, 0, sem="acquire") != pid:
        pass
    tlx.async_descriptor_store(sum_desc, tile[0], [0, 0], store_reduce="add")  # at: waits for reads only, does not wait
    if BUG == "waits for reads only":
        tlx.async_descriptor_store_wait(0)
    elif BUG != "does not wait":
        tlx.async_descriptor_store_wait(0, read=False)
    tl.atomic_add(turn, 1, sem="release")
    if BUG == "does not wait":
        tlx.async_descriptor_store_wait(0)


IN_TURN = "adds to 'sum_desc' in global memory after that of program .* is issued, which need not be over"


def three_squares():
    total = described(zeros(16, 16, dtype="float32"), 16, 16)
    return numbers(768, dtype="float32"), total, zeros(1, dtype="int32")


SUMMED = (
    Cage(summed_in_order, three_squares, grid=3, constants={"launches": 1})
    .bug("waits for reads only", "sums in another order", IN_TURN)
    .bug("does not wait", "sums in another order", IN_TURN)
)

CAGES = (POLLED, ZEROED, BULK, COPIED_ON, SUMMED)
