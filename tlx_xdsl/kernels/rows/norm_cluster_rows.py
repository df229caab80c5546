"""Normalised rows of which each CTA of a cluster has a piece: longer rows, read once.

Clusters go over rows, each over every so many, and load the next ones meanwhile. A CTA's pieces of weight and bias stay
in shared memory. `norm_cluster_sums` has the tasks and what CTAs exchange, `norm_rows` the formulas and what UNIT is.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false, reportOptionalSubscript=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..rings import next_place
from .norm_cluster_sums import (
    PLACES,
    agree_on_rows,
    agreed,
    give_back,
    hand_over,
    inside_of,
    load_factors,
    load_rows,
    mean_of,
    only,
    parts_of,
    read,
    slice_of,
)


@tlx_xdsl.jit
def add_residual(h_ptr, x, residual, skip, WARPS: tl.constexpr):
    """Write the sum of a piece and its residual over the piece, and to h."""
    PARTS: tl.constexpr = parts_of(x.shape[0], WARPS)
    LENGTH: tl.constexpr = x.shape[0] // PARTS
    for part in tl.static_range(PARTS):
        h = read(x, part, PARTS, WARPS) + read(residual, part, PARTS, WARPS)
        h = h.to(h_ptr.dtype.element_ty)
        tlx.local_store(slice_of(x, part, PARTS), h)
        tl.store(h_ptr + part * LENGTH + tl.arange(0, LENGTH), h, inside_of(skip, part, LENGTH))
    tlx.fence_async_shared()


@tlx_xdsl.jit
def sum_rows(
    h_ptr, h_stride, x, residual, received, full, empty, ready, complete, free, start, skip,
    first, ROW_COUNT, clusters, UNIT: tl.constexpr, STAGES: tl.constexpr, RANKS: tl.constexpr, CENTRED: tl.constexpr,
    WARPS: tl.constexpr,
):  # fmt: skip
    """The sums of each piece, for the CTA that makes its row's numbers; with a residual, first h."""
    PARTS: tl.constexpr = parts_of(x[0].shape[0], WARPS)
    LENGTH: tl.constexpr = x[0].shape[0] // PARTS
    stage = 0
    phase = 0
    turn = 0
    for row in range(first, ROW_COUNT, clusters):
        tlx.barrier_wait(full[stage], phase)
        if residual is not None:
            add_residual(h_ptr + row.to(tl.int64) * (h_stride * UNIT) + start, x[stage], residual[stage], skip, WARPS)
        mean = 0.0
        if CENTRED:
            mean = mean_of(x[stage], skip, WARPS)
            tlx.barrier_wait(full[stage], phase)  # so that the piece is read again, not held by registers
        squares = tl.zeros((LENGTH,), tl.float32)
        for part in tl.static_range(PARTS):
            values = read(x[stage], part, PARTS, WARPS)
            if CENTRED:
                values = values - mean
            values = only(values, inside_of(skip, part, LENGTH))
            squares += values * values
        squares = tl.sum(squares, 0)
        hand_over((squares, mean), received, complete, ready[stage], free, turn, RANKS, 2)
        tlx.barrier_arrive(empty[stage])
        turn += 1  # noqa: SIM113
        stage, phase = next_place(stage, phase, STAGES)


@tlx_xdsl.jit
def normalise_rows(
    weight_ptr, bias_ptr, out_ptr, out_stride, x, factors, row_numbers, full, empty, ready, done, loaded, start, skip,
    first, ROW_COUNT, clusters, UNIT: tl.constexpr, STAGES: tl.constexpr, CENTRED: tl.constexpr, WARPS: tl.constexpr,
):  # fmt: skip
    """Write the piece of each row, when its numbers have come."""
    PARTS: tl.constexpr = parts_of(x[0].shape[0], WARPS)
    LENGTH: tl.constexpr = x[0].shape[0] // PARTS
    if factors is not None:
        tlx.barrier_wait(loaded[0], 0)
    stage = 0
    phase = 0
    turn = 0
    for row in range(first, ROW_COUNT, clusters):
        tlx.barrier_wait(full[stage], phase)
        scale, mean = agreed(row_numbers, ready[stage], phase, done, turn, 2)
        pieces = ()
        for part in tl.static_range(PARTS):
            pieces = (*pieces, read(x[stage], part, PARTS, WARPS))
        tlx.barrier_arrive(empty[stage])
        target = out_ptr + row.to(tl.int64) * (out_stride * UNIT) + start
        for part in tl.static_range(PARTS):
            y = pieces[part]
            if CENTRED:
                y = y - mean
            y = y * scale
            if weight_ptr is not None:
                y = y * read(factors[0], part, PARTS, WARPS)
            if bias_ptr is not None:
                y = y + read(factors[0 if weight_ptr is None else 1], part, PARTS, WARPS)
            at = target + part * LENGTH + tl.arange(0, LENGTH)
            tl.store(at, y.to(out_ptr.dtype.element_ty), inside_of(skip, part, LENGTH))
        turn += 1  # noqa: SIM113
        stage, phase = next_place(stage, phase, STAGES)


@tlx_xdsl.jit
def norm_cluster_rows(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, h_ptr, out_ptr, x_stride, residual_stride, h_stride, out_stride,
    ROW_COUNT, COLUMNS, eps,
    BLOCK: tl.constexpr, RANKS: tl.constexpr, STAGES: tl.constexpr, UNIT: tl.constexpr, EVEN: tl.constexpr,
    CENTRED: tl.constexpr, WARPS: tl.constexpr, SUM_WARPS: tl.constexpr, SUM_REGISTERS: tl.constexpr,
):  # fmt: skip
    """Every so many rows for each cluster. EVEN says that pieces of all CTAs are a row."""
    count = COLUMNS * UNIT
    first = tl.program_id(0) // RANKS
    clusters = tl.num_programs(0) // RANKS
    mine = tlx.cluster_cta_rank() * BLOCK
    start = mine if EVEN else tl.minimum(mine, count - BLOCK)
    skip = None if EVEN else mine - start
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    SUMS: tl.constexpr = 2 if CENTRED else 1
    x = tlx.local_alloc((BLOCK,), dtype, STAGES)
    residual = None if residual_ptr is None else tlx.local_alloc((BLOCK,), dtype, STAGES)
    factors_ptr = () if weight_ptr is None else (weight_ptr,)
    factors_ptr = factors_ptr if bias_ptr is None else (*factors_ptr, bias_ptr)
    factors = tlx.local_alloc((BLOCK,), dtype, len(factors_ptr)) if len(factors_ptr) else None
    received = tlx.local_alloc((SUMS,), tl.float32, PLACES)
    row_numbers = tlx.local_alloc((2,), tl.float32, PLACES)
    full = tlx.alloc_barriers(STAGES)
    empty = tlx.alloc_barriers(STAGES, arrive_count=2)
    loaded = tlx.alloc_barriers(1)
    complete = tlx.alloc_barriers(PLACES // RANKS)
    ready = tlx.alloc_barriers(STAGES)
    done = tlx.alloc_barriers(2, arrive_count=2)
    free = tlx.alloc_barriers(2, arrive_count=RANKS)
    rings = (x,) if residual_ptr is None else (residual, x)
    pointers = (x_ptr,) if residual_ptr is None else (residual_ptr, x_ptr)
    strides = (x_stride,) if residual_ptr is None else (residual_stride, x_stride)
    tlx.cluster_barrier()  # the others run, and their barriers are ready
    with tlx.async_tasks():
        with tlx.async_task("default"):
            normalise_rows(
                weight_ptr, bias_ptr, out_ptr, out_stride, x, factors, row_numbers, full, empty, ready, done, loaded,
                start, skip, first, ROW_COUNT, clusters, UNIT, STAGES, CENTRED, WARPS,
            )  # fmt: skip
        with tlx.async_task(num_warps=SUM_WARPS, registers=SUM_REGISTERS):
            sum_rows(
                h_ptr, h_stride, x, residual, received, full, empty, ready, complete, free, start, skip,
                first, ROW_COUNT, clusters, UNIT, STAGES, RANKS, CENTRED, SUM_WARPS,
            )  # fmt: skip
        with tlx.async_task(num_warps=1, registers=40):
            agree_on_rows(
                received, row_numbers, complete, ready, done, free, count, skip, eps, first, ROW_COUNT, clusters,
                BLOCK, STAGES, RANKS, CENTRED, False,
            )  # fmt: skip
        with tlx.async_task(num_warps=1, registers=40):
            give_back(done, free, first, ROW_COUNT, clusters, RANKS)
        with tlx.async_task(num_warps=1, registers=40):
            if factors is not None:
                load_factors(factors_ptr, factors, loaded[0], start)
            load_rows(pointers, strides, rings, full, empty, start, first, ROW_COUNT, clusters, UNIT, STAGES)
