"""Normalised rows that registers do not hold, forward and backward: `norm_rows` for any length, block by block.

A program has a row, which it reads several times, from the L2 cache after the first. The sum with a residual is written
first, and read again like any row. Forward, EDGES are as in `norm_rows`. Backward, a program also writes the row's mean
and scale, with which a second kernel adds up the gradients of weight and bias: its programs have some columns of some
rows each. `norm_rows` has the formulas, says what UNIT is, and adds up what the programs have.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false

import tlx_xdsl
import tlx_xdsl.language as tl

from .norm_rows import columns_of_edges


@tlx_xdsl.jit
def row_and_body(pointer, row, stride, EDGES: tl.constexpr):
    """A row, and its body, whose offset the compiler sees to be a multiple of 8."""
    at = row * stride
    return pointer + at, pointer + ((at + 7) // 8 * 8 if EDGES else at)


@tlx_xdsl.jit
def load(pointer, at, inside):
    """Elements in f32, 0 where there are none."""
    return tl.load(pointer + at, inside, 0.0).to(tl.float32)


@tlx_xdsl.jit
def add_residual(x_ptr, residual_ptr, h_ptr, at, inside):
    """Write the sum of elements and their residuals."""
    h = load(x_ptr, at, inside) + load(residual_ptr, at, inside)
    tl.store(h_ptr + at, h.to(h_ptr.dtype.element_ty), inside)


@tlx_xdsl.jit
def mean_and_scale(
    row_ptr, body_ptr, edges, there, length, count, eps, BLOCK: tl.constexpr, CENTRED: tl.constexpr
):  # fmt: skip
    """The mean of a row, or 0, and the scale; the variance is that of the differences from the mean.

    `edges` are columns beside the body, of which some are `there`; both are None where the body is the row.
    """
    columns = tl.arange(0, BLOCK)
    mean = 0.0
    if CENTRED:
        total = tl.zeros((BLOCK,), tl.float32)
        for first in range(0, length, BLOCK):
            total += load(body_ptr, first + columns, first + columns < length)
        mean = tl.sum(total, 0)
        if edges is not None:
            mean += tl.sum(load(row_ptr, edges, there), 0)
        mean = mean / count
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, length, BLOCK):
        inside = first + columns < length
        x = load(body_ptr, first + columns, inside)
        if CENTRED:
            x = tl.where(inside, x - mean, 0.0)
        squares += x * x
    square = tl.sum(squares, 0)
    if edges is not None:
        x = tl.where(there, load(row_ptr, edges, there) - mean, 0.0)
        square += tl.sum(x * x, 0)
    return mean, tl.rsqrt(square / count + eps)


@tlx_xdsl.jit
def normalise(x_ptr, weight_ptr, bias_ptr, out_ptr, at, columns, inside, mean, scale):
    """Write elements of the result."""
    y = (load(x_ptr, at, inside) - mean) * scale
    if weight_ptr is not None:
        y = y * load(weight_ptr, columns, inside)
    if bias_ptr is not None:
        y = y + load(bias_ptr, columns, inside)
    tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), inside)


@tlx_xdsl.jit
def norm_long_rows(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, h_ptr, out_ptr, x_stride, residual_stride, h_stride, out_stride,
    COLUMNS, eps,
    BLOCK: tl.constexpr, UNIT: tl.constexpr, CENTRED: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """One row for each program."""
    count = COLUMNS * UNIT
    columns = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64)
    head = (-row * x_stride & 7).to(tl.int32) if EDGES else 0
    length = (count - head) // 8 * 8 if EDGES else count
    edges = None
    there = None
    if EDGES:
        edges, there = columns_of_edges(tl.arange(0, 16), head, length, count)
    x_ptr, x_body = row_and_body(x_ptr, row, x_stride * UNIT, EDGES)
    out_ptr, out_body = row_and_body(out_ptr, row, out_stride * UNIT, EDGES)
    if residual_ptr is not None:
        residual_ptr, residual_body = row_and_body(residual_ptr, row, residual_stride * UNIT, EDGES)
        h_ptr, h_body = row_and_body(h_ptr, row, h_stride * UNIT, EDGES)
        for first in range(0, length, BLOCK):
            at = first + columns
            add_residual(x_body, residual_body, h_body, at, at < length)
        if EDGES:
            add_residual(x_ptr, residual_ptr, h_ptr, edges, there)
        tl.debug_barrier()  # which threads read an element may differ from which wrote it
        x_ptr = h_ptr
        x_body = h_body
    mean, scale = mean_and_scale(x_ptr, x_body, edges, there, length, count, eps, BLOCK, CENTRED)
    for first in range(0, length, BLOCK):
        at = first + columns
        normalise(x_body, weight_ptr, bias_ptr, out_body, at, head + at, at < length, mean, scale)
    if EDGES:
        normalise(x_ptr, weight_ptr, bias_ptr, out_ptr, edges, edges, there, mean, scale)


@tlx_xdsl.jit
def norm_backward_long_rows(
    x_ptr, weight_ptr, dout_ptr, dh_ptr, dx_ptr, stats_ptr, x_stride, dout_stride, dh_stride, dx_stride, COLUMNS, eps,
    BLOCK: tl.constexpr, UNIT: tl.constexpr, CENTRED: tl.constexpr,
):  # fmt: skip
    """One row of dx for each program; `stats_ptr` gets its mean and scale."""
    count = COLUMNS * UNIT
    columns = tl.arange(0, BLOCK)
    number = tl.program_id(0)
    row = number.to(tl.int64)
    x_ptr += row * (x_stride * UNIT)
    dout_ptr += row * (dout_stride * UNIT)
    dx_ptr += row * (dx_stride * UNIT)
    if dh_ptr is not None:
        dh_ptr += row * (dh_stride * UNIT)
    mean, scale = mean_and_scale(x_ptr, x_ptr, None, None, count, count, eps, BLOCK, CENTRED)
    tl.store(stats_ptr + number * 2, mean)
    tl.store(stats_ptr + number * 2 + 1, scale)
    products = tl.zeros((BLOCK,), tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, count, BLOCK):
        at = first + columns
        inside = at < count
        g = tl.load(dout_ptr + at, inside, 0.0).to(tl.float32)
        if weight_ptr is not None:
            g = g * tl.load(weight_ptr + at, inside, 0.0).to(tl.float32)
        products += g * ((tl.load(x_ptr + at, inside, 0.0).to(tl.float32) - mean) * scale)
        sums += g
    product = tl.sum(products, 0) / count
    shift = tl.sum(sums, 0) / count if CENTRED else 0.0
    for first in range(0, count, BLOCK):
        at = first + columns
        inside = at < count
        g = tl.load(dout_ptr + at, inside, 0.0).to(tl.float32)
        if weight_ptr is not None:
            g = g * tl.load(weight_ptr + at, inside, 0.0).to(tl.float32)
        h = (tl.load(x_ptr + at, inside, 0.0).to(tl.float32) - mean) * scale
        dx = (g - h * product - shift) * scale
        if dh_ptr is not None:
            dx += tl.load(dh_ptr + at, inside, 0.0).to(tl.float32)
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), inside)


@tlx_xdsl.jit
def norm_weight_parts(
    x_ptr, dout_ptr, stats_ptr, parts_ptr, x_stride, dout_stride, ROW_COUNT, COLUMNS,
    LENGTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """Sums of dw and of db: programs are (BLOCK columns, every so many ROWS rows); LENGTH lies between two sums."""
    count = COLUMNS * UNIT
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    dweight = tl.zeros((ROWS, BLOCK), tl.float32)
    dbias = tl.zeros((ROWS, BLOCK), tl.float32)
    for first in range(tl.program_id(1) * ROWS, ROW_COUNT, tl.num_programs(1) * ROWS):
        rows = first + tl.arange(0, ROWS)
        there = rows < ROW_COUNT
        inside = there[:, None] & (columns < count)[None, :]
        mean = tl.load(stats_ptr + rows * 2, there, 0.0)
        scale = tl.load(stats_ptr + rows * 2 + 1, there, 0.0)
        at = rows.to(tl.int64)[:, None]
        x = tl.load(x_ptr + at * (x_stride * UNIT) + columns[None, :], inside, 0.0).to(tl.float32)
        dy = tl.load(dout_ptr + at * (dout_stride * UNIT) + columns[None, :], inside, 0.0).to(tl.float32)
        dweight += dy * ((x - mean[:, None]) * scale[:, None])
        dbias += dy
    parts = parts_ptr + (tl.program_id(1) * 2).to(tl.int64) * LENGTH + columns
    tl.store(parts, tl.sum(dweight, 0), columns < count)
    tl.store(parts + LENGTH, tl.sum(dbias, 0), columns < count)
