"""Gradients of normalised rows of which each CTA of a cluster has a piece: longer rows, read once.

The task that writes dx keeps the cluster's sums of dw and db in registers, which `norm_rows.add_parts` adds up.
`norm_cluster_sums` has the other tasks and what CTAs exchange, `norm_rows` the formulas and what UNIT is.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false

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
)


@tlx_xdsl.jit
def add_two(one, two, other_one, other_two):
    """Add two pairs of sums at once."""
    return one + other_one, two + other_two


@tlx_xdsl.jit
def add_three(one, two, three, other_one, other_two, other_three):
    """Add three pairs of sums at once."""
    return one + other_one, two + other_two, three + other_three


@tlx_xdsl.jit
def sum_gradient_rows(
    rings, factors, received, full, empty, loaded, complete, ready, free, skip, first, ROW_COUNT, clusters,
    STAGES: tl.constexpr, RANKS: tl.constexpr, CENTRED: tl.constexpr, WARPS: tl.constexpr,
):  # fmt: skip
    """The sums of each piece, for the CTA that makes its row's numbers."""
    PARTS: tl.constexpr = parts_of(rings[0][0].shape[0], WARPS)
    LENGTH: tl.constexpr = rings[0][0].shape[0] // PARTS
    if factors is not None:
        tlx.barrier_wait(loaded[0], 0)
    stage = 0
    phase = 0
    turn = 0
    for _ in range(first, ROW_COUNT, clusters):
        tlx.barrier_wait(full[stage], phase)
        mean = 0.0
        if CENTRED:
            mean = mean_of(rings[0][stage], skip, WARPS)
            tlx.barrier_wait(full[stage], phase)  # so that the piece is read again, not held by registers
        squares = tl.zeros((LENGTH,), tl.float32)
        products = tl.zeros((LENGTH,), tl.float32)
        total = tl.zeros((LENGTH,), tl.float32)
        for part in tl.static_range(PARTS):
            inside = inside_of(skip, part, LENGTH)
            x = read(rings[0][stage], part, PARTS, WARPS)
            if CENTRED:
                x = x - mean
            x = only(x, inside)
            g = read(rings[1][stage], part, PARTS, WARPS)
            if factors is not None:
                g = g * read(factors[0], part, PARTS, WARPS)
            g = only(g, inside)
            squares += x * x
            products += g * x
            total += g
        if CENTRED:
            squares, products, total = tl.reduce((squares, products, total), 0, add_three)
            hand_over((squares, mean, products, total), received, complete, ready[stage], free, turn, RANKS, 4)
        else:
            squares, products = tl.reduce((squares, products), 0, add_two)
            hand_over((squares, products), received, complete, ready[stage], free, turn, RANKS, 4)
        tlx.barrier_arrive(empty[stage])
        turn += 1  # noqa: SIM113
        stage, phase = next_place(stage, phase, STAGES)


@tlx_xdsl.jit
def write_gradient_rows(
    dx_ptr, parts_ptr, dx_stride, rings, factors, row_numbers, full, empty, ready, done, loaded,
    start, skip, first, ROW_COUNT, clusters, UNIT: tl.constexpr, STAGES: tl.constexpr, RANKS: tl.constexpr,
    CENTRED: tl.constexpr, WITH_BIAS: tl.constexpr, WARPS: tl.constexpr,
):  # fmt: skip
    """Write dx of each piece, when its row's numbers have come; then the cluster's sums of dw and db."""
    BLOCK: tl.constexpr = rings[0][0].shape[0]
    PARTS: tl.constexpr = parts_of(rings[0][0].shape[0], WARPS)
    LENGTH: tl.constexpr = BLOCK // PARTS
    dweight = ()
    dbias = ()
    for _ in tl.static_range(PARTS):
        dweight = (*dweight, tl.zeros((LENGTH,), tl.float32))
        dbias = (*dbias, tl.zeros((LENGTH,), tl.float32))
    if factors is not None:
        tlx.barrier_wait(loaded[0], 0)
    stage = 0
    phase = 0
    turn = 0
    for row in range(first, ROW_COUNT, clusters):
        tlx.barrier_wait(full[stage], phase)
        scale, mean, slope, shift = agreed(row_numbers, ready[stage], phase, done, turn, 4)
        target = dx_ptr + row.to(tl.int64) * (dx_stride * UNIT) + start
        more_dweight = ()
        more_dbias = ()
        for part in tl.static_range(PARTS):
            h = read(rings[0][stage], part, PARTS, WARPS)
            if CENTRED:
                h = h - mean
            h = h * scale
            dy = read(rings[1][stage], part, PARTS, WARPS)
            g = dy if factors is None else dy * read(factors[0], part, PARTS, WARPS)
            dx = g - h * slope
            if CENTRED:
                dx = dx - shift
            dx = dx * scale
            if len(rings) == 3:
                dx += read(rings[2][stage], part, PARTS, WARPS)
            at = target + part * LENGTH + tl.arange(0, LENGTH)
            tl.store(at, dx.to(dx_ptr.dtype.element_ty), inside_of(skip, part, LENGTH))
            more_dweight = (*more_dweight, dweight[part] if factors is None else dweight[part] + dy * h)
            more_dbias = (*more_dbias, dbias[part] + dy if WITH_BIAS else dbias[part])
        tlx.barrier_arrive(empty[stage])
        dweight = more_dweight
        dbias = more_dbias
        turn += 1  # noqa: SIM113
        stage, phase = next_place(stage, phase, STAGES)
    parts = parts_ptr + first.to(tl.int64) * (2 * RANKS * BLOCK) + start
    for part in tl.static_range(PARTS):
        at = parts + part * LENGTH + tl.arange(0, LENGTH)
        inside = inside_of(skip, part, LENGTH)
        if factors is not None:
            tl.store(at, dweight[part], inside)
        if WITH_BIAS:
            tl.store(at + RANKS * BLOCK, dbias[part], inside)


@tlx_xdsl.jit
def norm_backward_cluster_rows(
    x_ptr, weight_ptr, dout_ptr, dh_ptr, dx_ptr, parts_ptr, x_stride, dout_stride, dh_stride, dx_stride,
    ROW_COUNT, COLUMNS, eps,
    BLOCK: tl.constexpr, RANKS: tl.constexpr, STAGES: tl.constexpr, UNIT: tl.constexpr, EVEN: tl.constexpr,
    CENTRED: tl.constexpr, WITH_BIAS: tl.constexpr, WARPS: tl.constexpr,
    SUM_WARPS: tl.constexpr, SUM_REGISTERS: tl.constexpr,
):  # fmt: skip
    """dx, and each cluster's sums of dw and db: `parts_ptr` has RANKS * BLOCK of each for each cluster."""
    count = COLUMNS * UNIT
    first = tl.program_id(0) // RANKS
    clusters = tl.num_programs(0) // RANKS
    mine = tlx.cluster_cta_rank() * BLOCK
    start = mine if EVEN else tl.minimum(mine, count - BLOCK)
    skip = None if EVEN else mine - start
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    SUMS: tl.constexpr = 4 if CENTRED else 2
    rings = (tlx.local_alloc((BLOCK,), dtype, STAGES), tlx.local_alloc((BLOCK,), dtype, STAGES))
    if dh_ptr is not None:
        rings = (*rings, tlx.local_alloc((BLOCK,), dtype, STAGES))
    factors = None if weight_ptr is None else tlx.local_alloc((BLOCK,), dtype, 1)
    received = tlx.local_alloc((SUMS,), tl.float32, PLACES)
    row_numbers = tlx.local_alloc((4,), tl.float32, PLACES)
    full = tlx.alloc_barriers(STAGES)
    empty = tlx.alloc_barriers(STAGES, arrive_count=2)
    loaded = tlx.alloc_barriers(1)
    complete = tlx.alloc_barriers(PLACES // RANKS)
    ready = tlx.alloc_barriers(STAGES)
    done = tlx.alloc_barriers(2, arrive_count=2)
    free = tlx.alloc_barriers(2, arrive_count=RANKS)
    pointers = (x_ptr, dout_ptr) if dh_ptr is None else (x_ptr, dout_ptr, dh_ptr)
    strides = (x_stride, dout_stride) if dh_ptr is None else (x_stride, dout_stride, dh_stride)
    tlx.cluster_barrier()  # the others run, and their barriers are ready
    with tlx.async_tasks():
        with tlx.async_task("default"):
            write_gradient_rows(
                dx_ptr, parts_ptr, dx_stride, rings, factors, row_numbers, full, empty, ready, done, loaded,
                start, skip, first, ROW_COUNT, clusters, UNIT, STAGES, RANKS, CENTRED, WITH_BIAS, WARPS,
            )  # fmt: skip
        with tlx.async_task(num_warps=SUM_WARPS, registers=SUM_REGISTERS):
            sum_gradient_rows(
                rings, factors, received, full, empty, loaded, complete, ready, free, skip,
                first, ROW_COUNT, clusters, STAGES, RANKS, CENTRED, SUM_WARPS,
            )  # fmt: skip
        with tlx.async_task(num_warps=1, registers=40):
            agree_on_rows(
                received, row_numbers, complete, ready, done, free, count, skip, eps, first, ROW_COUNT, clusters,
                BLOCK, STAGES, RANKS, CENTRED, True,
            )  # fmt: skip
        with tlx.async_task(num_warps=1, registers=40):
            give_back(done, free, first, ROW_COUNT, clusters, RANKS)
        with tlx.async_task(num_warps=1, registers=40):
            if factors is not None:
                load_factors((weight_ptr,), factors, loaded[0], start)
            load_rows(pointers, strides, rings, full, empty, start, first, ROW_COUNT, clusters, UNIT, STAGES)
