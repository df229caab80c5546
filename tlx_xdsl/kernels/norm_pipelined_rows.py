"""Normalised rows of which each CTA of a cluster has a piece; clusters go over rows, and never stop to load."""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.rings import next_place

PLACES = tl.constexpr(16)
"""Rows whose sums a CTA has place for, of which half are given back at a time."""

HALF = tl.constexpr(8)


@tlx_xdsl.jit
def piece(buffer, WARPS: tl.constexpr):
    """A buffer in f32 as WARPS warps read it, 16 bytes for a thread at a time."""
    BLOCK: tl.constexpr = buffer.shape[0]
    TOGETHER: tl.constexpr = 16 // tlx.size_of(tlx.dtype_of(buffer))
    layout: tl.constexpr = tlx.layout(
        shape=((WARPS * 32,), (TOGETHER, BLOCK // (TOGETHER * WARPS * 32))),
        stride=((TOGETHER,), (1, TOGETHER * WARPS * 32)),
    )
    return tlx.local_load(buffer, layout=layout)


@tlx_xdsl.jit
def load_rows(
    x_ptr, residual_ptr, x, residual, full, empty, x_stride, residual_stride, start, first, ROW_COUNT, clusters,
    UNIT: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Producer: the CTA's piece of each row of the cluster."""
    BYTES: tl.constexpr = x[0].shape[0] * tlx.size_of(tlx.dtype_of(x))
    stage = 0
    phase = 0
    for row in range(first, ROW_COUNT, clusters):
        tlx.barrier_wait(empty[stage], phase ^ 1)
        at = row.to(tl.int64)
        if residual_ptr is None:
            tlx.barrier_expect_bytes(full[stage], BYTES)
        else:
            tlx.barrier_expect_bytes(full[stage], 2 * BYTES)
            tlx.async_load(
                residual_ptr + at * (residual_stride * UNIT) + start, residual[stage], bulk=True, barrier=full[stage]
            )
        tlx.async_load(x_ptr + at * (x_stride * UNIT) + start, x[stage], bulk=True, barrier=full[stage])
        stage, phase = next_place(stage, phase, STAGES)


@tlx_xdsl.jit
def sum_rows(
    h_ptr, x, residual, received, full, empty, written, complete, free, h_stride, start, mine, own,
    first, ROW_COUNT, clusters,
    UNIT: tl.constexpr, STAGES: tl.constexpr, RANKS: tl.constexpr, CENTRED: tl.constexpr, EVEN: tl.constexpr,
    WARPS: tl.constexpr,
):  # fmt: skip
    """The sums of each piece, for all CTAs of the cluster."""
    BLOCK: tl.constexpr = x[0].shape[0]
    SUMS: tl.constexpr = received[0].shape[0]
    rank = tlx.cluster_cta_rank()
    columns = start + tl.arange(0, BLOCK)
    inside = None if EVEN else columns >= mine
    stage = 0
    phase = 0
    turn = 0
    for row in range(first, ROW_COUNT, clusters):
        tlx.barrier_wait(full[stage], phase)
        values = piece(x[stage], WARPS).to(tl.float32)
        if residual is not None:
            h = (values + piece(residual[stage], WARPS).to(tl.float32)).to(h_ptr.dtype.element_ty)
            tlx.local_store(x[stage], h)
            tlx.fence_async_shared()
            tlx.barrier_arrive(written[stage])
            tl.store(h_ptr + row.to(tl.int64) * (h_stride * UNIT) + columns, h, inside)
            values = h.to(tl.float32)
        if not EVEN:
            values = tl.where(inside, values, 0.0)
        mean = 0.0
        if CENTRED:
            mean = tl.sum(values, 0) / tl.maximum(own, 1)
            values = values - mean
            if not EVEN:
                values = tl.where(inside, values, 0.0)
        squares = tl.sum(values * values, 0)
        tlx.barrier_arrive(empty[stage])
        place = turn % PLACES
        if turn >= PLACES and place % HALF == 0:
            tlx.barrier_wait(free[place // HALF], (turn // PLACES + 1) & 1)
        sums = tl.where(tl.arange(0, SUMS) == 0, squares, mean)
        tlx.barrier_expect_bytes(complete[place], RANKS * SUMS * 4)
        for other in tl.static_range(RANKS):
            tlx.async_remote_shmem_store(received[place * RANKS + rank], sums, other, complete[place])
        turn += 1  # noqa: SIM113
        stage, phase = next_place(stage, phase, STAGES)


@tlx_xdsl.jit
def mean_and_scale(
    received, place, count, eps, RANKS: tl.constexpr, BLOCK: tl.constexpr, CENTRED: tl.constexpr, EVEN: tl.constexpr
):  # fmt: skip
    """The mean of a row, or 0, and the scale."""
    SUMS: tl.constexpr = received[0].shape[0]
    single = tlx.local_reinterpret(received, tl.float32, (1,), num=PLACES * RANKS * SUMS)
    squares = 0.0
    mean = 0.0
    for rank in tl.static_range(RANKS):
        squares += tl.sum(tlx.local_load(single[(place * RANKS + rank) * SUMS]), 0)
        if CENTRED:
            n = BLOCK if EVEN else tl.minimum(tl.maximum(count - rank * BLOCK, 0), BLOCK).to(tl.float32)
            mean += tl.sum(tlx.local_load(single[(place * RANKS + rank) * SUMS + 1]), 0) * n
    if CENTRED:
        mean = mean / count
        for rank in tl.static_range(RANKS):
            n = BLOCK if EVEN else tl.minimum(tl.maximum(count - rank * BLOCK, 0), BLOCK).to(tl.float32)
            apart = tl.sum(tlx.local_load(single[(place * RANKS + rank) * SUMS + 1]), 0) - mean
            squares += n * apart * apart
    return mean, tl.rsqrt(squares / count + eps)


@tlx_xdsl.jit
def normalise_rows(
    weight_ptr, bias_ptr, out_ptr, x, received, full, empty, written, complete, free, out_stride, count, eps,
    start, mine, first, ROW_COUNT, clusters,
    UNIT: tl.constexpr, STAGES: tl.constexpr, RANKS: tl.constexpr, CENTRED: tl.constexpr, EVEN: tl.constexpr,
    WARPS: tl.constexpr,
):  # fmt: skip
    """Write the piece of each row, when the sums of all CTAs have come."""
    BLOCK: tl.constexpr = x[0].shape[0]
    columns = start + tl.arange(0, BLOCK)
    inside = None if EVEN else columns >= mine
    if weight_ptr is not None:
        weight = tl.load(weight_ptr + columns)
    if bias_ptr is not None:
        bias = tl.load(bias_ptr + columns)
    stage = 0
    phase = 0
    turn = 0
    for row in range(first, ROW_COUNT, clusters):
        place = turn % PLACES
        tlx.barrier_wait(complete[place], turn // PLACES & 1)
        mean, scale = mean_and_scale(received, place, count, eps, RANKS, BLOCK, CENTRED, EVEN)
        if place % HALF == HALF - 1:
            for other in tl.static_range(RANKS):
                tlx.barrier_arrive(free[place // HALF], 1, other)
        tlx.barrier_wait(full[stage] if written is None else written[stage], phase)
        y = piece(x[stage], WARPS).to(tl.float32)
        tlx.barrier_arrive(empty[stage])
        if CENTRED:
            y = y - mean
        y = y * scale
        if weight_ptr is not None:
            y = y * weight.to(tl.float32)
        if bias_ptr is not None:
            y = y + bias.to(tl.float32)
        target = out_ptr + row.to(tl.int64) * (out_stride * UNIT) + columns
        tl.store(target, y.to(out_ptr.dtype.element_ty), inside)
        turn += 1  # noqa: SIM113
        stage, phase = next_place(stage, phase, STAGES)


@tlx_xdsl.jit
def norm_pipelined_rows(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, h_ptr, out_ptr, x_stride, residual_stride, h_stride, out_stride,
    ROW_COUNT, COLUMNS, eps,
    BLOCK: tl.constexpr, RANKS: tl.constexpr, STAGES: tl.constexpr, UNIT: tl.constexpr, EVEN: tl.constexpr,
    CENTRED: tl.constexpr, WARPS: tl.constexpr, SUM_WARPS: tl.constexpr, SUM_REGISTERS: tl.constexpr,
):  # fmt: skip
    """Rows for each cluster."""
    count = COLUMNS * UNIT
    rank = tlx.cluster_cta_rank()
    first = tl.program_id(0) // RANKS
    clusters = tl.num_programs(0) // RANKS
    mine = rank * BLOCK
    start = mine if EVEN else tl.minimum(mine, count - BLOCK)
    own = BLOCK if EVEN else tl.minimum(tl.maximum(count - mine, 0), BLOCK)
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    SUMS: tl.constexpr = 2 if CENTRED else 1
    x = tlx.local_alloc((BLOCK,), dtype, STAGES)
    residual = None if residual_ptr is None else tlx.local_alloc((BLOCK,), dtype, STAGES)
    received = tlx.local_alloc((SUMS,), tl.float32, PLACES * RANKS)
    full = tlx.alloc_barriers(STAGES)
    empty = tlx.alloc_barriers(STAGES, arrive_count=2)
    written = None if residual_ptr is None else tlx.alloc_barriers(STAGES)
    complete = tlx.alloc_barriers(PLACES)
    free = tlx.alloc_barriers(2, arrive_count=RANKS)
    tlx.cluster_barrier()  # the others run, and their barriers are ready
    with tlx.async_tasks():
        with tlx.async_task("default"):
            normalise_rows(
                weight_ptr, bias_ptr, out_ptr, x, received, full, empty, written, complete, free, out_stride, count,
                eps, start, mine, first, ROW_COUNT, clusters, UNIT, STAGES, RANKS, CENTRED, EVEN, WARPS,
            )  # fmt: skip
        with tlx.async_task(num_warps=SUM_WARPS, registers=SUM_REGISTERS):
            sum_rows(
                h_ptr, x, residual, received, full, empty, written, complete, free, h_stride, start, mine, own,
                first, ROW_COUNT, clusters, UNIT, STAGES, RANKS, CENTRED, EVEN, SUM_WARPS,
            )  # fmt: skip
        with tlx.async_task(num_warps=1, registers=24):
            load_rows(
                x_ptr, residual_ptr, x, residual, full, empty, x_stride, residual_stride, start, first, ROW_COUNT,
                clusters, UNIT, STAGES,
            )  # fmt: skip
