"""Normalised rows, forward and backward, in plain `tl`: kernels that stock Triton lowers.

With x a row, w and b the weight and the bias, m its mean (0 for the root mean square) and
s = 1 / sqrt(mean((x - m)^2) + eps):

    h = (x - m) s,  y = h w + b
    dx = s (g - h mean(g h) - mean(g)),  g = dy w     (without mean(g) for the root mean square)
    dw = sum of dy h over rows,  db = sum of dy

With a residual, x is the sum of two rows, rounded to their type and written; backward, what is added to dx is the
gradient `dh` that the sum has from elsewhere.

Rows are read once, in f32 from then on. UNIT is 8 where all rows begin at multiples of 16 bytes and are multiples of 8
elements long and apart: lengths and strides are counted in units, and as the compiler sees that, it moves 16 bytes at a
time. Else it is 1.

Backward (`norm_unaligned_rows`), programs go over rows, each over every so many, and keep their sums of dw and db in
registers; a second kernel adds those up. Both add in one order, so that the same bits come out at each call. The next
rows are loaded to shared memory while some are computed.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def norm_rows(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, h_ptr, out_ptr, x_stride, residual_stride, h_stride, out_stride,
    ROW_COUNT, COLUMNS, eps,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr, EVEN: tl.constexpr, CENTRED: tl.constexpr,
):  # fmt: skip
    """ROWS rows for each program. EVEN says that a row has BLOCK elements, CENTRED that means are subtracted."""
    count = COLUMNS * UNIT
    columns = tl.arange(0, BLOCK)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    of_row = None
    mask = (rows < ROW_COUNT)[:, None]
    if not EVEN:
        of_row = columns < count
        mask = mask & of_row[None, :]
    at = rows.to(tl.int64)[:, None]
    x = tl.load(x_ptr + (at * (x_stride * UNIT) + columns[None, :]), mask, 0.0).to(tl.float32)
    if residual_ptr is not None:
        residual = tl.load(residual_ptr + (at * (residual_stride * UNIT) + columns[None, :]), mask, 0.0)
        h = (x + residual.to(tl.float32)).to(h_ptr.dtype.element_ty)
        tl.store(h_ptr + (at * (h_stride * UNIT) + columns[None, :]), h, mask)
        x = h.to(tl.float32)
    if CENTRED:
        x = x - (tl.sum(x, 1) / count)[:, None]
        x = x if EVEN else tl.where(mask, x, 0.0)
    y = x * tl.rsqrt(tl.sum(x * x, 1) / count + eps)[:, None]
    other: tl.constexpr = None if EVEN else 0.0
    if weight_ptr is not None:
        y = y * tl.load(weight_ptr + columns, of_row, other).to(tl.float32)[None, :]
    if bias_ptr is not None:
        y = y + tl.load(bias_ptr + columns, of_row, other).to(tl.float32)[None, :]
    tl.store(out_ptr + (at * (out_stride * UNIT) + columns[None, :]), y.to(out_ptr.dtype.element_ty), mask)


@tlx_xdsl.jit
def add_parts(
    parts_ptr, dweight_ptr, dbias_ptr, PARTS, COLUMNS, LENGTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    """Add up PARTS sums of dw and of db, of LENGTH each, in their order.

    Programs have BLOCK columns each, of dw those with 0 along y, of db those with 1.
    """
    which = tl.program_id(1) if dweight_ptr is not None else 1
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < COLUMNS
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    tl.extra.cuda.gdc_wait()  # the programs of this launch are there before the other one has ended
    for first in range(0, PARTS, ROWS):
        rows = first + tl.arange(0, ROWS)
        at = parts_ptr + (rows * 2 + which).to(tl.int64)[:, None] * LENGTH + columns[None, :]
        total += tl.load(at, (rows < PARTS)[:, None] & inside[None, :], 0.0)
    sums = tl.sum(total, 0)
    if dweight_ptr is not None and which == 0:
        tl.store(dweight_ptr + columns, sums.to(dweight_ptr.dtype.element_ty), inside)
    if dbias_ptr is not None and which == 1:
        tl.store(dbias_ptr + columns, sums.to(dbias_ptr.dtype.element_ty), inside)
