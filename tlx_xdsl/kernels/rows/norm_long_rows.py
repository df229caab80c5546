"""Normalised rows that registers do not hold, forward and backward: `norm_rows` for any length, block by block.

A program has a row, which it reads several times, from the L2 cache after the first. The sum with a residual is written
first, and read again like any row. With a WIDTH above 1 rows begin anywhere (`edges`). Backward, a program also writes
the row's mean and scale, with which a second kernel adds up the gradients of weight and bias: its programs have some
columns of some rows each. `norm_rows` has the formulas, says what UNIT is, and adds up what the programs have.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false

import tlx_xdsl
import tlx_xdsl.language as tl

from .edges import body_of, edges_of, load, span_of, store


@tlx_xdsl.jit
def body_and_edges(row, distance, count, WIDTH: tl.constexpr):
    """Elements before the body and of it, and the edges; all of a row is body where WIDTH is 1."""
    if WIDTH == 1:
        return 0, count, None, None
    before, whole = span_of(row, distance, count, WIDTH)
    edges, there = edges_of(tl.arange(0, 2 * WIDTH), before, whole, count, WIDTH, 2 * WIDTH)
    return before, whole, edges, there


@tlx_xdsl.jit
def add_residual(x_ptr, residual_ptr, h_ptr, at, inside):
    """Write the sum of elements and their residuals."""
    h = load(x_ptr, at, inside) + load(residual_ptr, at, inside)
    store(h_ptr, at, h, inside)


@tlx_xdsl.jit
def mean_and_scale(
    row_ptr, edges, there, length, count, eps, BLOCK: tl.constexpr, CENTRED: tl.constexpr
):  # fmt: skip
    """The mean of a row, or 0, and the scale; the variance is that of the differences from the mean.

    `length` elements are at `row_ptr`, and others beside: `edges`, of which some are `there`, or None.
    """
    columns = tl.arange(0, BLOCK)
    mean = 0.0
    if CENTRED:
        total = tl.zeros((BLOCK,), tl.float32)
        for first in range(0, length, BLOCK):
            total += load(row_ptr, first + columns, first + columns < length)
        mean = tl.sum(total, 0)
        if edges is not None:
            mean += tl.sum(load(row_ptr, edges, there))
        mean = mean / count
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, length, BLOCK):
        inside = first + columns < length
        x = load(row_ptr, first + columns, inside)
        if CENTRED:
            x = tl.where(inside, x - mean, 0.0)
        squares += x * x
    square = tl.sum(squares, 0)
    if edges is not None:
        x = tl.where(there, load(row_ptr, edges, there) - mean, 0.0)
        square += tl.sum(x * x)
    return mean, tl.rsqrt(square / count + eps)


@tlx_xdsl.jit
def normalise(x_ptr, weight_ptr, bias_ptr, out_ptr, at, columns, inside, mean, scale):
    """Write elements of the result."""
    y = (load(x_ptr, at, inside) - mean) * scale
    if weight_ptr is not None:
        y = y * load(weight_ptr, columns, inside)
    if bias_ptr is not None:
        y = y + load(bias_ptr, columns, inside)
    store(out_ptr, at, y, inside)


@tlx_xdsl.jit
def norm_long_rows(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, h_ptr, out_ptr, x_stride, residual_stride, h_stride, out_stride,
    COLUMNS, eps,
    BLOCK: tl.constexpr, UNIT: tl.constexpr, CENTRED: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """One row for each program."""
    count = COLUMNS * UNIT
    columns = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64)
    before, length, edges, there = body_and_edges(tl.program_id(0), x_stride, count, WIDTH)
    x_ptr += body_of(row, x_stride * UNIT, WIDTH)
    out_ptr += body_of(row, out_stride * UNIT, WIDTH)
    if residual_ptr is not None:
        residual_ptr += body_of(row, residual_stride * UNIT, WIDTH)
        h_ptr += body_of(row, h_stride * UNIT, WIDTH)
        for first in range(0, length, BLOCK):
            at = first + columns
            add_residual(x_ptr, residual_ptr, h_ptr, at, at < length)
        if WIDTH > 1:
            add_residual(x_ptr, residual_ptr, h_ptr, edges, there)
        tl.debug_barrier()  # which threads read an element may differ from which wrote it
        x_ptr = h_ptr
    mean, scale = mean_and_scale(x_ptr, edges, there, length, count, eps, BLOCK, CENTRED)
    for first in range(0, length, BLOCK):
        at = first + columns
        normalise(x_ptr, weight_ptr, bias_ptr, out_ptr, at, before + at, at < length, mean, scale)
    if WIDTH > 1:
        normalise(x_ptr, weight_ptr, bias_ptr, out_ptr, edges, before + edges, there, mean, scale)


@tlx_xdsl.jit
def gradient_of(dout_ptr, weight_ptr, at, columns, inside):
    """The gradient of elements of the normalised row: dy w."""
    g = load(dout_ptr, at, inside)
    return g if weight_ptr is None else g * load(weight_ptr, columns, inside)


@tlx_xdsl.jit
def store_gradient(
    x_ptr, weight_ptr, dout_ptr, dh_ptr, dx_ptr, at, columns, inside, mean, scale, slope, shift
):  # fmt: skip
    """Write elements of dx."""
    g = gradient_of(dout_ptr, weight_ptr, at, columns, inside)
    dx = (g - (load(x_ptr, at, inside) - mean) * slope - shift) * scale
    if dh_ptr is not None:
        dx += load(dh_ptr, at, inside)
    store(dx_ptr, at, dx, inside)


@tlx_xdsl.jit
def norm_backward_long_rows(
    x_ptr, weight_ptr, dout_ptr, dh_ptr, dx_ptr, stats_ptr, x_stride, dout_stride, dh_stride, dx_stride, COLUMNS, eps,
    BLOCK: tl.constexpr, UNIT: tl.constexpr, CENTRED: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """One row of dx for each program; `stats_ptr` gets its mean and scale."""
    count = COLUMNS * UNIT
    columns = tl.arange(0, BLOCK)
    number = tl.program_id(0)
    row = number.to(tl.int64)
    before, length, edges, there = body_and_edges(number, x_stride, count, WIDTH)
    x_ptr += body_of(row, x_stride * UNIT, WIDTH)
    dout_ptr += body_of(row, dout_stride * UNIT, WIDTH)
    dx_ptr += body_of(row, dx_stride * UNIT, WIDTH)
    if dh_ptr is not None:
        dh_ptr += body_of(row, dh_stride * UNIT, WIDTH)
    mean, scale = mean_and_scale(x_ptr, edges, there, length, count, eps, BLOCK, CENTRED)
    tl.store(stats_ptr + number * 2, mean)
    tl.store(stats_ptr + number * 2 + 1, scale)
    products = tl.zeros((BLOCK,), tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, length, BLOCK):
        at = first + columns
        g = gradient_of(dout_ptr, weight_ptr, at, before + at, at < length)
        products += g * (load(x_ptr, at, at < length) - mean)
        sums += g
    product = tl.sum(products, 0)
    shift = tl.sum(sums, 0)
    if WIDTH > 1:
        g = gradient_of(dout_ptr, weight_ptr, edges, before + edges, there)
        product += tl.sum(g * (load(x_ptr, edges, there) - mean))
        shift += tl.sum(g)
    slope = product * scale * scale / count
    shift = shift / count if CENTRED else 0.0
    for first in range(0, length, BLOCK):
        at = first + columns
        store_gradient(
            x_ptr, weight_ptr, dout_ptr, dh_ptr, dx_ptr, at, before + at, at < length, mean, scale, slope, shift
        )
    if WIDTH > 1:
        store_gradient(
            x_ptr, weight_ptr, dout_ptr, dh_ptr, dx_ptr, edges, before + edges, there, mean, scale, slope, shift
        )


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
        x = load(x_ptr + at * (x_stride * UNIT), columns[None, :], inside)
        dy = load(dout_ptr + at * (dout_stride * UNIT), columns[None, :], inside)
        dweight += dy * ((x - mean[:, None]) * scale[:, None])
        dbias += dy
    parts = parts_ptr + (tl.program_id(1) * 2).to(tl.int64) * LENGTH + columns
    tl.store(parts, tl.sum(dweight, 0), columns < count)
    tl.store(parts + LENGTH, tl.sum(dbias, 0), columns < count)
