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
    return tlx.local_load(buffer, layout=layout).to(tl.float32)


@tlx_xdsl.jit
def load_factors(factors_ptr, factors, loaded, start):
    """Producer: the CTA's piece of the weight, of the bias."""
    BYTES: tl.constexpr = factors[0].shape[0] * tlx.size_of(tlx.dtype_of(factors))
    for which in tl.static_range(len(factors_ptr)):
        tlx.barrier_expect_bytes(loaded[which], BYTES)
        tlx.async_load(factors_ptr[which] + start, factors[which], bulk=True, barrier=loaded[which])


@tlx_xdsl.jit
def load_row(pointers, strides, rings, full, start, row, stage, UNIT: tl.constexpr):
    """Load the CTA's piece of a row, of all operands, to a stage."""
    BYTES: tl.constexpr = rings[0][0].shape[0] * tlx.size_of(tlx.dtype_of(rings[0]))
    tlx.barrier_expect_bytes(full[stage], len(pointers) * BYTES)
    for which in tl.static_range(len(pointers)):
        source = pointers[which] + row.to(tl.int64) * (strides[which] * UNIT) + start
        tlx.async_load(source, rings[which][stage], bulk=True, barrier=full[stage])


@tlx_xdsl.jit
def load_first_rows(
    pointers, strides, rings, full, start, first, ROW_COUNT, clusters, UNIT: tl.constexpr, STAGES: tl.constexpr
):  # fmt: skip
    """The rows for which there are stages from the beginning."""
    for stage in tl.static_range(STAGES):
        row = first + stage * clusters
        if row < ROW_COUNT:
            load_row(pointers, strides, rings, full, start, row, stage, UNIT)


@tlx_xdsl.jit
def load_rows(
    pointers, strides, rings, full, empty, start, first, ROW_COUNT, clusters, UNIT: tl.constexpr, STAGES: tl.constexpr
):  # fmt: skip
    """Producer: the other rows."""
    stage = 0
    phase = 0
    for row in range(first + STAGES * clusters, ROW_COUNT, clusters):
        tlx.barrier_wait(empty[stage], phase)
        load_row(pointers, strides, rings, full, start, row, stage, UNIT)
        stage, phase = next_place(stage, phase, STAGES)


@tlx_xdsl.jit
def hand_over(sums, received, complete, free, turn, RANKS: tl.constexpr):
    """Write a CTA's sums of a row to a place of all CTAs; `received` has RANKS buffers for each place."""
    SUMS: tl.constexpr = received[0].shape[0]
    place = turn % PLACES
    if turn >= PLACES and place % HALF == 0:
        tlx.barrier_wait(free[place // HALF], (turn // PLACES + 1) & 1)
    block = tl.zeros((SUMS,), tl.float32)
    for which in tl.static_range(len(sums)):
        block = tl.where(tl.arange(0, SUMS) == which, sums[which], block)
    tlx.barrier_expect_bytes(complete[place], RANKS * SUMS * 4)
    for other in tl.static_range(RANKS):
        mine = received[place * RANKS + tlx.cluster_cta_rank()]
        tlx.async_remote_shmem_store(mine, block, other, complete[place])


@tlx_xdsl.jit
def handed_over(received, complete, free, turn, COUNT: tl.constexpr, RANKS: tl.constexpr):
    """Wait for the sums of a row; all CTAs' first COUNT sums each, by rank."""
    SUMS: tl.constexpr = received[0].shape[0]
    place = turn % PLACES
    tlx.barrier_wait(complete[place], turn // PLACES & 1)
    single = tlx.local_reinterpret(received, tl.float32, (1,), num=PLACES * RANKS * SUMS)
    found = ()
    for rank in tl.static_range(RANKS):
        of_rank = ()
        for which in tl.static_range(COUNT):
            of_rank = (*of_rank, tl.sum(tlx.local_load(single[(place * RANKS + rank) * SUMS + which]), 0))
        found = (*found, of_rank)
    if place % HALF == HALF - 1:
        for other in tl.static_range(RANKS):
            tlx.barrier_arrive(free[place // HALF], 1, other)
    return found


@tlx_xdsl.jit
def of_rank(rank, count, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """Elements of a row that a CTA has."""
    return BLOCK * 1.0 if EVEN else tl.minimum(tl.maximum(count - rank * BLOCK, 0), BLOCK).to(tl.float32)


@tlx_xdsl.jit
def centre(sums, count, which: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """The mean of a row, of those of its pieces; and the sum of the squares of the differences."""
    mean = 0.0
    for rank in tl.static_range(len(sums)):
        mean += sums[rank][which] * of_rank(rank, count, BLOCK, EVEN)
    mean = mean / count
    squares = 0.0
    for rank in tl.static_range(len(sums)):
        apart = sums[rank][which] - mean
        squares += sums[rank][0] + of_rank(rank, count, BLOCK, EVEN) * apart * apart
    return mean, squares


@tlx_xdsl.jit
def total_of(sums, which: tl.constexpr):
    """The sum of all CTAs."""
    total = 0.0
    for rank in tl.static_range(len(sums)):
        total += sums[rank][which]
    return total


@tlx_xdsl.jit
def differences(x, inside, own, CENTRED: tl.constexpr):
    """The differences of a CTA's elements from their mean, and the mean; `own` are the elements that the row has."""
    if inside is not None:
        x = tl.where(inside, x, 0.0)
    mean = 0.0
    if CENTRED:
        mean = tl.sum(x, 0) / tl.maximum(own, 1)
        x = x - mean
        if inside is not None:
            x = tl.where(inside, x, 0.0)
    return x, mean


@tlx_xdsl.jit
def sum_rows(
    h_ptr, h_stride, x, residual, received, full, empty, written, complete, free, start, mine, own,
    first, ROW_COUNT, clusters,
    UNIT: tl.constexpr, STAGES: tl.constexpr, RANKS: tl.constexpr, CENTRED: tl.constexpr, EVEN: tl.constexpr,
    WARPS: tl.constexpr,
):  # fmt: skip
    """The sums of each piece, for all CTAs of the cluster."""
    columns = start + tl.arange(0, x[0].shape[0])
    inside = None if EVEN else columns >= mine
    stage = 0
    phase = 0
    turn = 0
    for row in range(first, ROW_COUNT, clusters):
        tlx.barrier_wait(full[stage], phase)
        values = piece(x[stage], WARPS)
        if residual is not None:
            h = (values + piece(residual[stage], WARPS)).to(h_ptr.dtype.element_ty)
            tlx.local_store(x[stage], h)
            tlx.fence_async_shared()
            tlx.barrier_arrive(written[stage])
            tl.store(h_ptr + row.to(tl.int64) * (h_stride * UNIT) + columns, h, inside)
            values = h.to(tl.float32)
        values, mean = differences(values, inside, own, CENTRED)
        squares = tl.sum(values * values, 0)
        hand_over((squares, mean) if CENTRED else (squares,), received, complete, free, turn, RANKS)
        tlx.barrier_arrive(empty[stage])
        turn += 1  # noqa: SIM113
        stage, phase = next_place(stage, phase, STAGES)


@tlx_xdsl.jit
def normalise_rows(
    weight_ptr, bias_ptr, out_ptr, out_stride, x, factors, received, full, empty, written, loaded, complete, free,
    count, eps, start, mine, first, ROW_COUNT, clusters,
    UNIT: tl.constexpr, STAGES: tl.constexpr, RANKS: tl.constexpr, CENTRED: tl.constexpr, EVEN: tl.constexpr,
    WARPS: tl.constexpr,
):  # fmt: skip
    """Write the piece of each row, when the sums of all CTAs have come."""
    BLOCK: tl.constexpr = x[0].shape[0]
    columns = start + tl.arange(0, BLOCK)
    inside = None if EVEN else columns >= mine
    if factors is None:
        if weight_ptr is not None:
            weight = tl.load(weight_ptr + columns)
        if bias_ptr is not None:
            bias = tl.load(bias_ptr + columns)
    else:
        tlx.barrier_wait(loaded[0], 0)
        if bias_ptr is not None:
            tlx.barrier_wait(loaded[1], 0)
    stage = 0
    phase = 0
    turn = 0
    for row in range(first, ROW_COUNT, clusters):
        sums = handed_over(received, complete, free, turn, 2 if CENTRED else 1, RANKS)
        mean, squares = centre(sums, count, 1, BLOCK, EVEN) if CENTRED else (0.0, total_of(sums, 0))
        scale = tl.rsqrt(squares / count + eps)
        tlx.barrier_wait(full[stage] if written is None else written[stage], phase)
        y = piece(x[stage], WARPS)
        tlx.barrier_arrive(empty[stage])
        if CENTRED:
            y = y - mean
        y = y * scale
        if factors is None:
            if weight_ptr is not None:
                y = y * weight.to(tl.float32)
            if bias_ptr is not None:
                y = y + bias.to(tl.float32)
        else:
            if weight_ptr is not None:
                y = y * piece(factors[0], WARPS)
            if bias_ptr is not None:
                y = y + piece(factors[1], WARPS)
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
    SHARED: tl.constexpr,
):  # fmt: skip
    """Rows for each cluster."""
    count = COLUMNS * UNIT
    first = tl.program_id(0) // RANKS
    clusters = tl.num_programs(0) // RANKS
    mine = tlx.cluster_cta_rank() * BLOCK
    start = mine if EVEN else tl.minimum(mine, count - BLOCK)
    own = BLOCK if EVEN else tl.minimum(tl.maximum(count - mine, 0), BLOCK)
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    SUMS: tl.constexpr = 2 if CENTRED else 1
    x = tlx.local_alloc((BLOCK,), dtype, STAGES)
    residual = None if residual_ptr is None else tlx.local_alloc((BLOCK,), dtype, STAGES)
    factors_ptr = () if weight_ptr is None else (weight_ptr,)
    factors_ptr = factors_ptr if bias_ptr is None else (*factors_ptr, bias_ptr)
    factors = tlx.local_alloc((BLOCK,), dtype, len(factors_ptr)) if SHARED else None
    loaded = tlx.alloc_barriers(2)
    received = tlx.local_alloc((SUMS,), tl.float32, PLACES * RANKS)
    full = tlx.alloc_barriers(STAGES)
    empty = tlx.alloc_barriers(STAGES, arrive_count=2)
    written = None if residual_ptr is None else tlx.alloc_barriers(STAGES)
    complete = tlx.alloc_barriers(PLACES)
    free = tlx.alloc_barriers(2, arrive_count=RANKS)
    rings = (x,) if residual_ptr is None else (residual, x)
    pointers = (x_ptr,) if residual_ptr is None else (residual_ptr, x_ptr)
    strides = (x_stride,) if residual_ptr is None else (residual_stride, x_stride)
    load_first_rows(pointers, strides, rings, full, start, first, ROW_COUNT, clusters, UNIT, STAGES)
    if SHARED:
        load_factors(factors_ptr, factors, loaded, start)
    tlx.cluster_barrier()  # the others run, and their barriers are ready
    with tlx.async_tasks():
        with tlx.async_task("default"):
            normalise_rows(
                weight_ptr, bias_ptr, out_ptr, out_stride, x, factors, received, full, empty, written, loaded,
                complete, free, count,
                eps, start, mine, first, ROW_COUNT, clusters, UNIT, STAGES, RANKS, CENTRED, EVEN, WARPS,
            )  # fmt: skip
        with tlx.async_task(num_warps=SUM_WARPS, registers=SUM_REGISTERS):
            sum_rows(
                h_ptr, h_stride, x, residual, received, full, empty, written, complete, free, start, mine, own,
                first, ROW_COUNT, clusters, UNIT, STAGES, RANKS, CENTRED, EVEN, SUM_WARPS,
            )  # fmt: skip
        with tlx.async_task(num_warps=1, registers=24):
            load_rows(pointers, strides, rings, full, empty, start, first, ROW_COUNT, clusters, UNIT, STAGES)
