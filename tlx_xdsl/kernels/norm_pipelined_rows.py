"""Normalised rows of which each CTA of a cluster has a piece; clusters go over rows, and never stop to load."""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.norm_cluster_sums import (
    PLACES,
    agree_on_rows,
    differences,
    hand_over,
    load_factors,
    load_first_rows,
    load_rows,
    numbers_at,
    piece,
    place_after,
)
from tlx_xdsl.kernels.rings import next_place


@tlx_xdsl.jit
def sum_rows(
    h_ptr, h_stride, x, residual, received, full, empty, ready, complete, free, start, mine, own,
    first, ROW_COUNT, clusters, UNIT: tl.constexpr, STAGES: tl.constexpr, RANKS: tl.constexpr, CENTRED: tl.constexpr,
    EVEN: tl.constexpr, WARPS: tl.constexpr, TASKS: tl.constexpr,
):  # fmt: skip
    """The sums of each piece, for all CTAs of the cluster; of TASKS tasks, each has every so many rows."""
    columns = start + tl.arange(0, x[0].shape[0])
    inside = None if EVEN else columns >= mine
    number: tl.constexpr = tlx.async_task_replica_id()
    stage, phase = place_after(0, 0, number, STAGES)
    turn = number
    for row in range(first + number * clusters, ROW_COUNT, clusters * TASKS):
        tlx.barrier_wait(full[stage], phase)
        if residual is not None:
            h = (piece(x[stage], WARPS) + piece(residual[stage], WARPS)).to(h_ptr.dtype.element_ty)
            tlx.local_store(x[stage], h)
            tlx.fence_async_shared()
            tlx.barrier_arrive(ready[stage])
            tl.store(h_ptr + row.to(tl.int64) * (h_stride * UNIT) + columns, h, inside)
        values, mean = differences(x[stage], inside, own, CENTRED, WARPS)
        squares = tl.sum(values * values, 0)
        hand_over((squares, mean) if CENTRED else (squares,), received, complete, free, turn, RANKS, TASKS)
        tlx.barrier_arrive(empty[stage])
        turn += TASKS
        stage, phase = place_after(stage, phase, TASKS, STAGES)


@tlx_xdsl.jit
def normalise_rows(
    weight_ptr, bias_ptr, out_ptr, out_stride, x, factors, row_numbers, full, empty, ready, loaded,
    start, mine, first, ROW_COUNT, clusters,
    UNIT: tl.constexpr, STAGES: tl.constexpr, CENTRED: tl.constexpr, EVEN: tl.constexpr,
    WARPS: tl.constexpr,
):  # fmt: skip
    """Write the piece of each row, when the sums of all CTAs have come."""
    columns = start + tl.arange(0, x[0].shape[0])
    inside = None if EVEN else columns >= mine
    if factors is not None:
        tlx.barrier_wait(loaded[0], 0)
    stage = 0
    phase = 0
    for row in range(first, ROW_COUNT, clusters):
        tlx.barrier_wait(full[stage], phase)
        tlx.barrier_wait(ready[stage], phase)
        numbers = numbers_at(row_numbers, stage, 2, STAGES)
        y = piece(x[stage], WARPS)
        if CENTRED:
            y = y - numbers[1]
        y = y * numbers[0]
        tlx.barrier_arrive(empty[stage])
        if weight_ptr is not None:
            y = y * piece(factors[0], WARPS)
        if bias_ptr is not None:
            y = y + piece(factors[0 if weight_ptr is None else 1], WARPS)
        target = out_ptr + row.to(tl.int64) * (out_stride * UNIT) + columns
        tl.store(target, y.to(out_ptr.dtype.element_ty), inside)
        stage, phase = next_place(stage, phase, STAGES)


@tlx_xdsl.jit
def norm_pipelined_rows(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, h_ptr, out_ptr, x_stride, residual_stride, h_stride, out_stride,
    ROW_COUNT, COLUMNS, eps,
    BLOCK: tl.constexpr, RANKS: tl.constexpr, STAGES: tl.constexpr, UNIT: tl.constexpr, EVEN: tl.constexpr,
    CENTRED: tl.constexpr, WARPS: tl.constexpr, SUM_TASKS: tl.constexpr, SUM_WARPS: tl.constexpr,
    SUM_REGISTERS: tl.constexpr,
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
    factors = tlx.local_alloc((BLOCK,), dtype, len(factors_ptr)) if len(factors_ptr) else None
    received = tlx.local_alloc((SUMS,), tl.float32, PLACES * RANKS)
    row_numbers = tlx.local_alloc((2,), tl.float32, STAGES)
    full = tlx.alloc_barriers(STAGES)
    empty = tlx.alloc_barriers(STAGES, arrive_count=2)
    ready = tlx.alloc_barriers(STAGES, arrive_count=1 if residual_ptr is None else 2)
    loaded = tlx.alloc_barriers(1)
    complete = tlx.alloc_barriers(PLACES)
    free = tlx.alloc_barriers(2, arrive_count=RANKS)
    rings = (x,) if residual_ptr is None else (residual, x)
    pointers = (x_ptr,) if residual_ptr is None else (residual_ptr, x_ptr)
    strides = (x_stride,) if residual_ptr is None else (residual_stride, x_stride)
    load_first_rows(pointers, strides, rings, full, start, first, ROW_COUNT, clusters, UNIT, STAGES)
    if factors is not None:
        load_factors(factors_ptr, factors, loaded[0], start)
    tlx.cluster_barrier()  # the others run, and their barriers are ready
    with tlx.async_tasks():
        with tlx.async_task("default"):
            normalise_rows(
                weight_ptr, bias_ptr, out_ptr, out_stride, x, factors, row_numbers, full, empty, ready, loaded,
                start, mine, first, ROW_COUNT, clusters, UNIT, STAGES, CENTRED, EVEN, WARPS,
            )  # fmt: skip
        with tlx.async_task(num_warps=SUM_WARPS, registers=SUM_REGISTERS, replicate=SUM_TASKS):
            sum_rows(
                h_ptr, h_stride, x, residual, received, full, empty, ready, complete, free, start, mine, own,
                first, ROW_COUNT, clusters, UNIT, STAGES, RANKS, CENTRED, EVEN, SUM_WARPS, SUM_TASKS,
            )  # fmt: skip
        with tlx.async_task(num_warps=1, registers=40):
            agree_on_rows(
                received, row_numbers, complete, free, empty, ready, count, eps, first, ROW_COUNT, clusters,
                BLOCK, STAGES, RANKS, CENTRED, False, EVEN,
            )  # fmt: skip
        with tlx.async_task(num_warps=1, registers=40):
            load_rows(pointers, strides, rings, full, empty, start, first, ROW_COUNT, clusters, UNIT, STAGES)
