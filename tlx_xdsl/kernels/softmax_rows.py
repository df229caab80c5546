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
from tlx_xdsl.kernels.attention_scores import LOG2_E


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
    weights = tl.math.exp2((x - tl.max(x, 1)[:, None]) * LOG2_E)
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
def add_elements(row_ptr, first, count, sums, PARTS: tl.constexpr, WHOLE: tl.constexpr, WITH_PLAIN: tl.constexpr):
    """What `sums_of_groups` has after PARTS * GROUPS * 8 more elements. WHOLE: the row has all of them."""
    top, total, plain = sums
    GROUPS: tl.constexpr = top.shape[0]
    within = tl.arange(0, GROUPS)[:, None] * 8 + tl.arange(0, 8)[None, :]
    parts = ()
    for part in tl.static_range(PARTS):
        at = first + part * (GROUPS * 8) + within
        if WHOLE:
            parts += (tl.load(row_ptr + at),)
        else:
            parts += (tl.load(row_ptr + at, at < count, float("-inf")),)
        if WITH_PLAIN:
            x = parts[part].to(tl.float32)
            plain += tl.sum(x if WHOLE else tl.where(at < count, x, 0.0), 1)
    higher = top
    for part in tl.static_range(PARTS):
        higher = tl.maximum(higher, tl.max(parts[part].to(tl.float32), 1))
    # A group that has met nothing but minus infinity has no sum yet; the difference would be no number.
    shift = tl.where(higher == float("-inf"), 0.0, higher)
    total *= tl.math.exp2((top - shift) * LOG2_E)
    for part in tl.static_range(PARTS):
        total += tl.sum(tl.math.exp2((parts[part].to(tl.float32) - shift[:, None]) * LOG2_E), 1)
    return higher, total, plain


@tlx_xdsl.jit
def sums_of_groups(row_ptr, count, GROUPS: tl.constexpr, WITH_PLAIN: tl.constexpr):
    """For each of GROUPS threads' elements of a row: the maximum, the sum of exp(x - maximum), and WITH_PLAIN of x.

    A thread has 8 elements side by side, twice, at a time: 16 share a maximum, so that what was added up before is
    scaled once for them. More would take registers that let fewer programs be resident.
    """
    zeros = tl.zeros((GROUPS,), tl.float32)
    sums = tl.full((GROUPS,), float("-inf"), tl.float32), zeros, zeros
    whole = count // (GROUPS * 16) * (GROUPS * 16)
    for first in range(0, whole, GROUPS * 16):
        sums = add_elements(row_ptr, first, count, sums, 2, True, WITH_PLAIN)
    for first in range(whole, count, GROUPS * 8):
        sums = add_elements(row_ptr, first, count, sums, 1, False, WITH_PLAIN)
    return sums


@tlx_xdsl.jit
def maximum_and_sum(top, total):
    """The maximum of a row, and the sum of exp(x - maximum), of what `sums_of_groups` has."""
    highest = tl.max(top, 0)
    shift = tl.where(highest == float("-inf"), 0.0, highest)
    return highest, tl.sum(total * tl.math.exp2((top - shift) * LOG2_E), 0)


@tlx_xdsl.jit
def softmax_long_rows(
    x_ptr, out_ptr, x_stride, out_stride, COLUMNS, BLOCK: tl.constexpr, GROUPS: tl.constexpr, UNIT: tl.constexpr
):  # fmt: skip
    """One row for each program."""
    row = tl.program_id(0).to(tl.int64)
    count = COLUMNS * UNIT
    x_ptr += row * (x_stride * UNIT)
    out_ptr += row * (out_stride * UNIT)
    top, total, _ = sums_of_groups(x_ptr, count, GROUPS, False)
    top, total = maximum_and_sum(top, total)
    columns = tl.arange(0, BLOCK)
    for first in range(0, count, BLOCK):
        at = first + columns
        x = tl.load(x_ptr + at, at < count, 0.0).to(tl.float32)
        tl.store(out_ptr + at, (tl.math.exp2((x - top) * LOG2_E) / total).to(out_ptr.dtype.element_ty), at < count)


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
