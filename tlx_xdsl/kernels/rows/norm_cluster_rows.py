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
from . import norm_cluster_sums as sums
from .norm_cluster_sums import inside_of, only, parts_of, read, slice_of


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
def sum_rows(pieces, h_ptr, h_stride):
    """The sums of each piece, for the CTA that makes its row's numbers; with a residual, first h."""
    form: tl.constexpr = pieces.form
    WARPS: tl.constexpr = form.sum_warps
    PARTS: tl.constexpr = parts_of(form.block, WARPS)
    LENGTH: tl.constexpr = form.block // PARTS
    x, full, skip = pieces.rings[0], pieces.full, pieces.skip
    stage = 0
    phase = 0
    turn = 0
    for row in range(pieces.first, pieces.rows, pieces.clusters):
        tlx.barrier_wait(full[stage], phase)
        if len(pieces.rings) == 2:
            h = h_ptr + row.to(tl.int64) * (h_stride * form.unit) + pieces.start
            add_residual(h, x[stage], pieces.rings[1][stage], skip, WARPS)
        mean = 0.0
        if form.centred:
            mean = sums.mean_of(x[stage], skip, WARPS)
            tlx.barrier_wait(full[stage], phase)  # so that the piece is read again, not held by registers
        squares = tl.zeros((LENGTH,), tl.float32)
        for part in tl.static_range(PARTS):
            values = read(x[stage], part, PARTS, WARPS)
            if form.centred:
                values = values - mean
            values = only(values, inside_of(skip, part, LENGTH))
            squares += values * values
        sums.hand_over(pieces, (tl.sum(squares, 0), mean), stage, turn)
        tlx.barrier_arrive(pieces.empty[stage])
        turn += 1  # noqa: SIM113
        stage, phase = next_place(stage, phase, form.stages)


@tlx_xdsl.jit
def normalise_rows(pieces, weight_ptr, bias_ptr, out_ptr, out_stride):
    """Write the piece of each row, when its numbers have come."""
    form: tl.constexpr = pieces.form
    WARPS: tl.constexpr = form.warps
    PARTS: tl.constexpr = parts_of(form.block, WARPS)
    LENGTH: tl.constexpr = form.block // PARTS
    factors = pieces.factors
    sums.wait_for_factors(pieces)
    stage = 0
    phase = 0
    turn = 0
    for row in range(pieces.first, pieces.rows, pieces.clusters):
        tlx.barrier_wait(pieces.full[stage], phase)
        scale, mean = sums.agreed(pieces, stage, phase, turn)
        values = [read(pieces.rings[0][stage], part, PARTS, WARPS) for part in range(PARTS)]
        tlx.barrier_arrive(pieces.empty[stage])
        target = out_ptr + row.to(tl.int64) * (out_stride * form.unit) + pieces.start
        for part in tl.static_range(PARTS):
            y = values[part]
            if form.centred:
                y = y - mean
            y = y * scale
            if weight_ptr is not None:
                y = y * read(factors[0], part, PARTS, WARPS)
            if bias_ptr is not None:
                y = y + read(factors[0 if weight_ptr is None else 1], part, PARTS, WARPS)
            at = target + part * LENGTH + tl.arange(0, LENGTH)
            tl.store(at, y.to(out_ptr.dtype.element_ty), inside_of(pieces.skip, part, LENGTH))
        turn += 1  # noqa: SIM113
        stage, phase = next_place(stage, phase, form.stages)


@tlx_xdsl.jit
def norm_cluster_rows(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, h_ptr, out_ptr, x_stride, residual_stride, h_stride, out_stride,
    ROW_COUNT, COLUMNS, eps, FORM: tl.constexpr,
):  # fmt: skip
    """Every so many rows for each cluster."""
    factors_ptr = () if weight_ptr is None else (weight_ptr,)
    factors_ptr = factors_ptr if bias_ptr is None else (*factors_ptr, bias_ptr)
    OPERANDS: tl.constexpr = 1 if residual_ptr is None else 2
    pieces = sums.pieces_of(x_ptr.dtype.element_ty, OPERANDS, len(factors_ptr), COLUMNS, ROW_COUNT, eps, FORM)
    x = pieces.rings[0]
    rings = (x,) if residual_ptr is None else (pieces.rings[1], x)
    pointers = (x_ptr,) if residual_ptr is None else (residual_ptr, x_ptr)
    strides = (x_stride,) if residual_ptr is None else (residual_stride, x_stride)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            normalise_rows(pieces, weight_ptr, bias_ptr, out_ptr, out_stride)
        with tlx.async_task(num_warps=FORM.sum_warps, registers=FORM.sum_registers):
            sum_rows(pieces, h_ptr, h_stride)
        with tlx.async_task(num_warps=1, registers=40):
            sums.agree_on_rows(pieces)
        with tlx.async_task(num_warps=1, registers=40):
            sums.give_back(pieces)
        with tlx.async_task(num_warps=1, registers=40):
            sums.load_factors(pieces, factors_ptr)
            sums.load_rows(pieces, pointers, strides, rings)
