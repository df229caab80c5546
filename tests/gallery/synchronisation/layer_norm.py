"""Layer normalisation of rows that are spread over the CTAs of a cluster, each of which has some of the columns.

Every CTA sends the sums of its columns to all others, which wait for the bytes of all. `DROP` leaves something out.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def send(values, partial, barrier, rank, SIZE: tl.constexpr):
    """Put the block `values` into buffer `rank` of every CTA."""
    tlx.local_store(partial[rank], values)
    for other in range(SIZE):
        if other != rank:
            tlx.async_remote_shmem_store(partial[rank], values, other, barrier)


@tlx_xdsl.jit
def total(partial, SIZE: tl.constexpr):
    """The sum of what all CTAs have sent."""
    result = tlx.local_load(partial[0])
    for other in tl.static_range(1, SIZE):
        result += tlx.local_load(partial[other])
    return result


@tlx_xdsl.jit
def layer_norm(
    x_ptr, y_ptr, M, N, eps,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SIZE: tl.constexpr, DROP: tl.constexpr = "",
):  # fmt: skip
    rank = tlx.cluster_cta_rank()
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = rank * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (rows < M) & (columns < N)
    BYTES: tl.constexpr = (SIZE - 1) * BLOCK_M * 4

    sums = tlx.local_alloc((BLOCK_M,), tl.float32, SIZE)
    squares = tlx.local_alloc((BLOCK_M,), tl.float32, SIZE)
    full = tlx.alloc_barriers(2)
    if DROP != "expect":
        tlx.barrier_expect_bytes(full[0], BYTES)
    tlx.barrier_expect_bytes(full[1], BYTES)
    if DROP == "fence":
        tlx.cluster_barrier()
    elif DROP != "barrier":
        tlx.fence_mbarrier_init_cluster()
        tlx.cluster_barrier()

    x = tl.load(x_ptr + rows * N + columns, mask=inside, other=0.0).to(tl.float32)
    send(tl.sum(x, 1), sums, full[0], rank, SIZE)
    if DROP != "wait":
        tlx.barrier_wait(full[0], 0)
    mean = total(sums, SIZE) / N
    centred = tl.where(inside, x - mean[:, None], 0.0)
    send(tl.sum(centred * centred, 1), squares, full[1], rank, SIZE)
    if DROP != "last wait":
        tlx.barrier_wait(full[1], 0)
    variance = total(squares, SIZE) / N
    y = centred * tl.rsqrt(variance + eps)[:, None]
    tl.store(y_ptr + rows * N + columns, y, mask=inside)
