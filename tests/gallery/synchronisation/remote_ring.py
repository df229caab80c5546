"""A ring of CTAs: each hands its tile to the next one, which adds its own, until every tile has been everywhere.

The tile goes by registers, at once (`HOW` is "store") or asynchronously ("async"), or from buffer to buffer ("copy").
A CTA takes a tile when the one before it has arrived for it, and arrives there when it has read it. `DROP` leaves
something out, for tests.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def ring(
    x_ptr, y_ptr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, SIZE: tl.constexpr, HOW: tl.constexpr, DROP: tl.constexpr = "",
):  # fmt: skip
    rank = tlx.cluster_cta_rank()
    following = (rank + 1) % SIZE
    previous = (rank + SIZE - 1) % SIZE
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    BYTES: tl.constexpr = ROWS * COLUMNS * tlx.size_of(dtype)
    offsets = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mine = tl.load(x_ptr + tl.program_id(0) * ROWS * COLUMNS + offsets)

    sent = tlx.local_alloc((ROWS, COLUMNS), dtype, 1)
    received = tlx.local_alloc((ROWS, COLUMNS), dtype, 1)
    there = tlx.alloc_barriers(1)
    room = tlx.alloc_barriers(1)
    tlx.fence_mbarrier_init_cluster()
    tlx.cluster_barrier()

    total = mine
    value = mine
    for turn in range(SIZE - 1):
        if HOW != "store":
            tlx.barrier_expect_bytes(there[0], BYTES)
        if DROP != "room":
            # The next CTA has read what it got before.
            tlx.barrier_wait(room[0], (turn & 1) ^ 1)
        if HOW == "store":
            tlx.remote_shmem_store(received[0], value, following)
            tlx.barrier_arrive(there[0], 1, remote_cta_rank=following)
        elif HOW == "async":
            tlx.async_remote_shmem_store(received[0], value, following, there[0])
        else:
            tlx.local_store(sent[0], value)
            tlx.fence_async_shared()
            tlx.async_remote_shmem_copy(received[0], sent[0], following, there[0])
        tlx.barrier_wait(there[0], turn & 1)
        value = tlx.local_load(received[0])
        total += value
        # Also releases that the copy of `sent` is over, which the next CTA has waited for.
        if HOW == "copy":
            tlx.fence_async_shared()
        tlx.barrier_arrive(room[0], 1, remote_cta_rank=previous)
    tl.store(y_ptr + tl.program_id(0) * ROWS * COLUMNS + offsets, total)
    if DROP != "ending barrier":
        tlx.cluster_barrier()
