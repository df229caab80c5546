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
from . import norm_cluster_sums as sums
from .norm_cluster_sums import inside_of, only, parts_of, read


@tlx_xdsl.jit
def add_two(one, two, other_one, other_two):
    """Add two pairs of sums at once."""
    return one + other_one, two + other_two


@tlx_xdsl.jit
def add_three(one, two, three, other_one, other_two, other_three):
    """Add three pairs of sums at once."""
    return one + other_one, two + other_two, three + other_three


@tlx_xdsl.jit
def sum_gradient_rows(pieces):
    """The sums of each piece, for the CTA that makes its row's numbers."""
    form: tl.constexpr = pieces.form
    WARPS: tl.constexpr = form.sum_warps
    PARTS: tl.constexpr = parts_of(form.block, WARPS)
    LENGTH: tl.constexpr = form.block // PARTS
    rings, factors, full, skip = pieces.rings, pieces.factors, pieces.full, pieces.skip
    sums.wait_for_factors(pieces)
    stage = 0
    phase = 0
    turn = 0
    for _ in range(pieces.first, pieces.rows, pieces.clusters):
        tlx.barrier_wait(full[stage], phase)
        mean = 0.0
        if form.centred:
            mean = sums.mean_of(rings[0][stage], skip, WARPS)
            tlx.barrier_wait(full[stage], phase)  # so that the piece is read again, not held by registers
        squares = tl.zeros((LENGTH,), tl.float32)
        products = tl.zeros((LENGTH,), tl.float32)
        total = tl.zeros((LENGTH,), tl.float32)
        for part in tl.static_range(PARTS):
            inside = inside_of(skip, part, LENGTH)
            x = read(rings[0][stage], part, PARTS, WARPS)
            if form.centred:
                x = x - mean
            x = only(x, inside)
            g = read(rings[1][stage], part, PARTS, WARPS)
            if factors is not None:
                g = g * read(factors[0], part, PARTS, WARPS)
            g = only(g, inside)
            squares += x * x
            products += g * x
            total += g
        if form.centred:
            squares, products, total = tl.reduce((squares, products, total), 0, add_three)
            sums.hand_over(pieces, (squares, mean, products, total), stage, turn)
        else:
            squares, products = tl.reduce((squares, products), 0, add_two)
            sums.hand_over(pieces, (squares, products), stage, turn)
        tlx.barrier_arrive(pieces.empty[stage])
        turn += 1  # noqa: SIM113
        stage, phase = next_place(stage, phase, form.stages)


@tlx_xdsl.jit
def write_gradient_rows(pieces, dx_ptr, parts_ptr, dx_stride):
    """Write dx of each piece, when its row's numbers have come; then the cluster's sums of dw and db."""
    form: tl.constexpr = pieces.form
    WARPS: tl.constexpr = form.warps
    BLOCK: tl.constexpr = form.block
    PARTS: tl.constexpr = parts_of(BLOCK, WARPS)
    LENGTH: tl.constexpr = BLOCK // PARTS
    rings, factors, skip = pieces.rings, pieces.factors, pieces.skip
    dweight = [tl.zeros((LENGTH,), tl.float32) for _ in range(PARTS)]
    dbias = dweight
    sums.wait_for_factors(pieces)
    stage = 0
    phase = 0
    turn = 0
    for row in range(pieces.first, pieces.rows, pieces.clusters):
        tlx.barrier_wait(pieces.full[stage], phase)
        scale, mean, slope, shift = sums.agreed(pieces, stage, phase, turn)
        target = dx_ptr + row.to(tl.int64) * (dx_stride * form.unit) + pieces.start
        more_dweight = ()
        more_dbias = ()
        for part in tl.static_range(PARTS):
            h = read(rings[0][stage], part, PARTS, WARPS)
            if form.centred:
                h = h - mean
            h = h * scale
            dy = read(rings[1][stage], part, PARTS, WARPS)
            g = dy if factors is None else dy * read(factors[0], part, PARTS, WARPS)
            dx = g - h * slope
            if form.centred:
                dx = dx - shift
            dx = dx * scale
            if len(rings) == 3:
                dx += read(rings[2][stage], part, PARTS, WARPS)
            at = target + part * LENGTH + tl.arange(0, LENGTH)
            tl.store(at, dx.to(dx_ptr.dtype.element_ty), inside_of(skip, part, LENGTH))
            more_dweight = (*more_dweight, dweight[part] if factors is None else dweight[part] + dy * h)
            more_dbias = (*more_dbias, dbias[part] + dy if form.with_bias else dbias[part])
        tlx.barrier_arrive(pieces.empty[stage])
        dweight = more_dweight
        dbias = more_dbias
        turn += 1  # noqa: SIM113
        stage, phase = next_place(stage, phase, form.stages)
    parts = parts_ptr + pieces.first.to(tl.int64) * (2 * form.ranks * BLOCK) + pieces.start
    for part in tl.static_range(PARTS):
        at = parts + part * LENGTH + tl.arange(0, LENGTH)
        inside = inside_of(skip, part, LENGTH)
        if factors is not None:
            tl.store(at, dweight[part], inside)
        if form.with_bias:
            tl.store(at + form.ranks * BLOCK, dbias[part], inside)


@tlx_xdsl.jit
def norm_backward_cluster_rows(
    x_ptr, weight_ptr, dout_ptr, dh_ptr, dx_ptr, parts_ptr, x_stride, dout_stride, dh_stride, dx_stride,
    ROW_COUNT, COLUMNS, eps, FORM: tl.constexpr,
):  # fmt: skip
    """dx, and each cluster's sums of dw and db: `parts_ptr` has a row's elements of each for each cluster."""
    pointers = (x_ptr, dout_ptr) if dh_ptr is None else (x_ptr, dout_ptr, dh_ptr)
    strides = (x_stride, dout_stride) if dh_ptr is None else (x_stride, dout_stride, dh_stride)
    FACTORS: tl.constexpr = 0 if weight_ptr is None else 1
    pieces = sums.pieces_of(x_ptr.dtype.element_ty, len(pointers), FACTORS, COLUMNS, ROW_COUNT, eps, FORM)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            write_gradient_rows(pieces, dx_ptr, parts_ptr, dx_stride)
        with tlx.async_task(num_warps=FORM.sum_warps, registers=FORM.sum_registers):
            sum_gradient_rows(pieces)
        with tlx.async_task(num_warps=1, registers=40):
            sums.agree_on_rows(pieces)
        with tlx.async_task(num_warps=1, registers=40):
            sums.give_back(pieces)
        with tlx.async_task(num_warps=1, registers=40):
            sums.load_factors(pieces, (weight_ptr,))
            sums.load_rows(pieces, pointers, strides, pieces.rings)
