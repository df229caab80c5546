"""The softmax of rows and its gradient, in plain `tl`: kernels that stock Triton lowers.

With y the softmax of a row and dy the gradient of the result, dx = y (dy - sum(y dy)).

Rows that registers hold are read once. Longer ones are read twice, block by block: for the maximum and the sum of
exponentials (online softmax), or the sum of products, and for the result. `norm_rows` says what UNIT is.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def softmax_rows(
    x_ptr, out_ptr, x_stride, out_stride, ROW_COUNT, COLUMNS,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """ROWS rows for each program. EVEN says that a row has BLOCK elements."""
    columns = tl.arange(0, BLOCK)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = (rows < ROW_COUNT)[:, None]
    if not EVEN:
        inside = inside & (columns < COLUMNS * UNIT)[None, :]
    at = rows.to(tl.int64)[:, None]
    x = tl.load(x_ptr + at * (x_stride * UNIT) + columns[None, :], inside, float("-inf")).to(tl.float32)
    weights = tl.exp(x - tl.max(x, 1)[:, None])
    result = weights / tl.sum(weights, 1)[:, None]
    tl.store(out_ptr + at * (out_stride * UNIT) + columns[None, :], result.to(out_ptr.dtype.element_ty), inside)


@tlx_xdsl.jit
def softmax_backward_rows(
    y_ptr, dout_ptr, dx_ptr, y_stride, dout_stride, dx_stride, ROW_COUNT, COLUMNS,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """The gradient of ROWS rows for each program."""
    columns = tl.arange(0, BLOCK)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = (rows < ROW_COUNT)[:, None]
    if not EVEN:
        inside = inside & (columns < COLUMNS * UNIT)[None, :]
    at = rows.to(tl.int64)[:, None]
    y = tl.load(y_ptr + at * (y_stride * UNIT) + columns[None, :], inside, 0.0).to(tl.float32)
    dy = tl.load(dout_ptr + at * (dout_stride * UNIT) + columns[None, :], inside, 0.0).to(tl.float32)
    dx = y * (dy - tl.sum(y * dy, 1)[:, None])
    tl.store(dx_ptr + at * (dx_stride * UNIT) + columns[None, :], dx.to(dx_ptr.dtype.element_ty), inside)


@tlx_xdsl.jit
def maximum_and_sum(row_ptr, count, GROUPS: tl.constexpr):
    """The maximum of a row of `count` elements, and the sum of exp(x - maximum).

    Groups of 8 elements, which a thread has, share a maximum, so that what was added up before is scaled once for 8.
    """
    within = tl.arange(0, 8)
    starts = tl.arange(0, GROUPS) * 8
    top = tl.full((GROUPS,), float("-inf"), tl.float32)
    total = tl.zeros((GROUPS,), tl.float32)
    for first in range(0, count, GROUPS * 8):
        at = first + starts[:, None] + within[None, :]
        x = tl.load(row_ptr + at, at < count, float("-inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(x, 1))
        # A group that has met nothing but minus infinity has no sum yet; the difference would be no number.
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(top - shift) + tl.sum(tl.exp(x - shift[:, None]), 1)
        top = higher
    highest = tl.max(top, 0)
    return highest, tl.sum(total * tl.exp(top - highest), 0)


@tlx_xdsl.jit
def softmax_long_rows(
    x_ptr, out_ptr, x_stride, out_stride, COLUMNS, BLOCK: tl.constexpr, GROUPS: tl.constexpr, UNIT: tl.constexpr
):  # fmt: skip
    """One row for each program."""
    row = tl.program_id(0).to(tl.int64)
    count = COLUMNS * UNIT
    x_ptr += row * (x_stride * UNIT)
    out_ptr += row * (out_stride * UNIT)
    top, total = maximum_and_sum(x_ptr, count, GROUPS)
    columns = tl.arange(0, BLOCK)
    for first in range(0, count, BLOCK):
        at = first + columns
        x = tl.load(x_ptr + at, at < count, 0.0).to(tl.float32)
        tl.store(out_ptr + at, (tl.exp(x - top) / total).to(out_ptr.dtype.element_ty), at < count)


@tlx_xdsl.jit
def softmax_backward_long_rows(
    y_ptr, dout_ptr, dx_ptr, y_stride, dout_stride, dx_stride, COLUMNS, BLOCK: tl.constexpr, UNIT: tl.constexpr
):  # fmt: skip
    """The gradient of one row for each program."""
    row = tl.program_id(0).to(tl.int64)
    count = COLUMNS * UNIT
    y_ptr += row * (y_stride * UNIT)
    dout_ptr += row * (dout_stride * UNIT)
    dx_ptr += row * (dx_stride * UNIT)
    columns = tl.arange(0, BLOCK)
    products = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, count, BLOCK):
        at = first + columns
        y = tl.load(y_ptr + at, at < count, 0.0).to(tl.float32)
        products += y * tl.load(dout_ptr + at, at < count, 0.0).to(tl.float32)
    product = tl.sum(products, 0)
    for first in range(0, count, BLOCK):
        at = first + columns
        y = tl.load(y_ptr + at, at < count, 0.0).to(tl.float32)
        dx = y * (tl.load(dout_ptr + at, at < count, 0.0).to(tl.float32) - product)
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), at < count)
