"""The softmax of rows and its gradient, in plain `tl`: kernels that stock Triton lowers.

With y the softmax of a row and dy the gradient of the result, dx = y (dy - sum(y dy)).

Rows that registers hold are read once. Longer ones are read twice, block by block: for the maximum and the sum of
exponentials (online softmax), or the sum of products, and for the result. The second time they come from the L2 cache,
where nothing else should stay: what has been read twice may go first, and so may the result. `norm_rows` says what UNIT
is.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false

import tlx_xdsl
import tlx_xdsl.language as tl

from ..attention.scores import LOG2_E
from .edges import (
    body_of,
    edges_of,
    lanes_of,
    load,
    load_parts,
    max_of_rows,
    parts_of,
    span_of,
    store,
    store_parts,
    sum_of_rows,
)


@tlx_xdsl.jit
def block_of_rows(
    ROW_COUNT, COLUMNS, BLOCK: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr, EVEN: tl.constexpr
):  # fmt: skip
    """ROWS rows of a program, their columns, and which are there: all of the BLOCK columns where they are EVEN."""
    columns = tl.arange(0, BLOCK)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = (rows < ROW_COUNT)[:, None]
    if not EVEN:
        inside = inside & (columns < COLUMNS * UNIT)[None, :]
    return rows.to(tl.int64)[:, None], columns, inside


@tlx_xdsl.jit
def softmax_rows(
    x_ptr, out_ptr, x_stride, out_stride, ROW_COUNT, COLUMNS,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """ROWS rows for each program. EVEN says that a row has BLOCK elements."""
    at, columns, inside = block_of_rows(ROW_COUNT, COLUMNS, BLOCK, ROWS, UNIT, EVEN)
    x = tl.load(x_ptr + at * (x_stride * UNIT) + columns[None, :], inside, float("-inf")).to(tl.float32)
    weights = tl.math.exp2((x - tl.max(x, 1)[:, None]) * LOG2_E)
    result = weights / tl.sum(weights, 1)[:, None]
    store(out_ptr + at * (out_stride * UNIT), columns[None, :], result, inside)


@tlx_xdsl.jit
def softmax_backward_rows(
    y_ptr, dout_ptr, dx_ptr, y_stride, dout_stride, dx_stride, ROW_COUNT, COLUMNS,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """The gradient of ROWS rows for each program."""
    at, columns, inside = block_of_rows(ROW_COUNT, COLUMNS, BLOCK, ROWS, UNIT, EVEN)
    y = load(y_ptr + at * (y_stride * UNIT), columns[None, :], inside)
    dy = load(dout_ptr + at * (dout_stride * UNIT), columns[None, :], inside)
    dx = y * (dy - tl.sum(y * dy, 1)[:, None])
    store(dx_ptr + at * (dx_stride * UNIT), columns[None, :], dx, inside)


@tlx_xdsl.jit
def weights_of_rows(x, ROWS: tl.constexpr, LANES: tl.constexpr):
    """The maxima of rows, the sums of exp(x - maximum), and these themselves, of all parts of rows."""
    top = tl.max(x[0].to(tl.float32), 1)
    for part in tl.static_range(1, len(x)):
        top = tl.maximum(top, tl.max(x[part].to(tl.float32), 1))
    top = max_of_rows(top, ROWS, LANES)
    # A product and a sum are one instruction, and how this product is rounded is the same for all elements of a row.
    shift = -top * LOG2_E
    total = tl.zeros((ROWS * LANES,), tl.float32)
    weights = ()
    for part in tl.static_range(len(x)):
        weights += (tl.math.exp2(tl.fma(x[part].to(tl.float32), LOG2_E, shift[:, None])),)
        total += tl.sum(weights[part], 1)
    return top, sum_of_rows(total, ROWS, LANES), weights


@tlx_xdsl.jit
def softmax_unaligned_rows(
    x_ptr, out_ptr, x_stride, out_stride, ROW_COUNT, COLUMNS,
    ROWS: tl.constexpr, LANES: tl.constexpr, PIECES: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """ROWS rows for each program, which begin anywhere (`edges`)."""
    rows, lanes = lanes_of(tl.program_id(0) * ROWS, ROWS, LANES)
    count = tl.where(rows < ROW_COUNT, COLUMNS, 0)
    places, inside = parts_of(rows, lanes, x_stride, count, 0, PIECES, LANES, WIDTH)
    x = load_parts(x_ptr + body_of(rows, x_stride, WIDTH), places, inside, float("-inf"))
    _, total, weights = weights_of_rows(x, ROWS, LANES)
    factor = (1.0 / total)[:, None]
    result = [each * factor for each in weights]
    store_parts(out_ptr + body_of(rows, out_stride, WIDTH), places, inside, result)


@tlx_xdsl.jit
def softmax_backward_unaligned_rows(
    y_ptr, dout_ptr, dx_ptr, y_stride, dout_stride, dx_stride, ROW_COUNT, COLUMNS,
    ROWS: tl.constexpr, LANES: tl.constexpr, PIECES: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The gradient of ROWS rows for each program, which begin anywhere (`edges`)."""
    rows, lanes = lanes_of(tl.program_id(0) * ROWS, ROWS, LANES)
    count = tl.where(rows < ROW_COUNT, COLUMNS, 0)
    places, inside = parts_of(rows, lanes, y_stride, count, 0, PIECES, LANES, WIDTH)
    y = load_parts(y_ptr + body_of(rows, y_stride, WIDTH), places, inside, 0.0)
    dy = load_parts(dout_ptr + body_of(rows, dout_stride, WIDTH), places, inside, 0.0)
    product = tl.zeros((ROWS * LANES,), tl.float32)
    for part in tl.static_range(len(y)):
        product += tl.sum(y[part].to(tl.float32) * dy[part].to(tl.float32), 1)
    product = sum_of_rows(product, ROWS, LANES)[:, None]
    dx = [y[part].to(tl.float32) * (dy[part].to(tl.float32) - product) for part in range(len(y))]
    store_parts(dx_ptr + body_of(rows, dx_stride, WIDTH), places, inside, dx)


@tlx_xdsl.jit
def powers_of(x, shift):
    """The exponentials of elements less a shift for each thread.

    Of 16-bit types by one instruction for a product and a sum, whose errors are below theirs.
    """
    if x.dtype == tl.float32:
        return tl.math.exp2((x - shift[:, None]) * LOG2_E)
    return tl.math.exp2(tl.fma(x.to(tl.float32), LOG2_E, (-shift * LOG2_E)[:, None]))


@tlx_xdsl.jit
def add_elements(x, top, total):
    """Add elements to the maxima and sums of threads: `x` is a tuple of blocks, of a vector for each thread."""
    higher = top
    for part in tl.static_range(len(x)):
        higher = tl.maximum(higher, tl.max(x[part].to(tl.float32), 1))
    # A thread that has met nothing but minus infinity has no sum yet; the difference would be no number.
    shift = tl.where(higher == float("-inf"), 0.0, higher)
    total *= tl.math.exp2((top - shift) * LOG2_E)
    for part in tl.static_range(len(x)):
        total += tl.sum(powers_of(x[part], shift), 1)
    return higher, total


@tlx_xdsl.jit
def sums_of_threads(
    row_ptr, count, THREADS: tl.constexpr, WITH_PLAIN: tl.constexpr = False, POLICY: tl.constexpr = ""
):  # fmt: skip
    """Reduce the elements of each thread: the maximum, the sum of exp(x - maximum), WITH_PLAIN that of x.

    A thread has two vectors of 16 bytes at a time, whose elements share a maximum, so that what was added up before is
    scaled once for them. More would take registers that let fewer programs be resident.
    """
    WIDTH: tl.constexpr = 128 // row_ptr.dtype.element_ty.primitive_bitwidth
    VECTORS: tl.constexpr = THREADS * WIDTH
    within = tl.arange(0, THREADS)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    top = tl.full((THREADS,), float("-inf"), tl.float32)
    total = tl.zeros((THREADS,), tl.float32)
    plain = tl.zeros((THREADS,), tl.float32)
    whole = count // (2 * VECTORS) * (2 * VECTORS)
    for first in range(0, whole, 2 * VECTORS):
        x = tl.load(row_ptr + (first + within), eviction_policy=POLICY)
        y = tl.load(row_ptr + (first + VECTORS + within), eviction_policy=POLICY)
        top, total = add_elements((x, y), top, total)
        if WITH_PLAIN:
            plain += tl.sum(x.to(tl.float32) + y.to(tl.float32), 1)
    for first in range(whole, count, VECTORS):
        at = first + within
        x = tl.load(row_ptr + at, at < count, float("-inf"), eviction_policy=POLICY)
        top, total = add_elements((x,), top, total)
        if WITH_PLAIN:
            plain += tl.sum(tl.where(at < count, x.to(tl.float32), 0.0), 1)
    return top, total, plain


@tlx_xdsl.jit
def maximum_and_sum(top, total):
    """The maximum of a row, and the sum of exp(x - maximum), of what `sums_of_threads` has."""
    highest = tl.max(top, 0)
    shift = tl.where(highest == float("-inf"), 0.0, highest)
    return highest, tl.sum(total * tl.math.exp2((top - shift) * LOG2_E), 0)


@tlx_xdsl.jit
def softmax_long_rows(
    x_ptr, out_ptr, x_stride, out_stride, COLUMNS,
    BLOCK: tl.constexpr, THREADS: tl.constexpr, UNIT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """One row for each program; with a WIDTH above 1 it begins anywhere (`edges`)."""
    row = tl.program_id(0).to(tl.int64)
    count = COLUMNS * UNIT
    if WIDTH > 1:
        before, whole = span_of(row, x_stride, count, WIDTH)
        place, is_edge = edges_of(tl.arange(0, THREADS), before, whole, count, WIDTH, THREADS)
        count = whole
        x_ptr += body_of(row, x_stride, WIDTH)
        out_ptr += body_of(row, out_stride, WIDTH)
        edge = tl.load(x_ptr + place, is_edge, float("-inf"))
    else:
        x_ptr += row * (x_stride * UNIT)
        out_ptr += row * (out_stride * UNIT)
    top, total, _ = sums_of_threads(x_ptr, count, THREADS, POLICY="evict_last")
    if WIDTH > 1:
        top, total = add_elements((edge,), top, total)
    top, total = maximum_and_sum(top, total)
    factor = 1.0 / total
    if WIDTH > 1:
        of_edge = tl.math.exp2((edge.to(tl.float32) - top) * LOG2_E) * factor
        store(out_ptr, place, of_edge, is_edge)
    columns = tl.arange(0, BLOCK)
    for first in range(0, count, BLOCK):
        at = first + columns
        x = tl.load(x_ptr + at, at < count, 0.0, eviction_policy="evict_first").to(tl.float32)
        result = tl.math.exp2((x - top) * LOG2_E) * factor
        tl.store(out_ptr + at, result.to(out_ptr.dtype.element_ty), at < count, cache_modifier=".cs")


@tlx_xdsl.jit
def softmax_backward_long_rows(
    y_ptr, dout_ptr, dx_ptr, y_stride, dout_stride, dx_stride, COLUMNS,
    BLOCK: tl.constexpr, UNIT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The gradient of one row for each program; with a WIDTH above 1 it begins anywhere (`edges`)."""
    row = tl.program_id(0).to(tl.int64)
    count = COLUMNS * UNIT
    if WIDTH > 1:
        before, whole = span_of(row, y_stride, count, WIDTH)
        place, is_edge = edges_of(tl.arange(0, 2 * WIDTH), before, whole, count, WIDTH, 2 * WIDTH)
        count = whole
        y_ptr += body_of(row, y_stride, WIDTH)
        dout_ptr += body_of(row, dout_stride, WIDTH)
        dx_ptr += body_of(row, dx_stride, WIDTH)
        y_edge = load(y_ptr, place, is_edge)
        dy_edge = load(dout_ptr, place, is_edge)
    else:
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
    if WIDTH > 1:
        product += tl.sum(y_edge * dy_edge)
        store(dx_ptr, place, y_edge * (dy_edge - product), is_edge)
    for first in range(0, count, BLOCK):
        at = first + columns
        y = tl.load(y_ptr + at, at < count, 0.0, eviction_policy="evict_first").to(tl.float32)
        dy = tl.load(dout_ptr + at, at < count, 0.0, eviction_policy="evict_first").to(tl.float32)
        dx = y * (dy - product)
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), at < count, cache_modifier=".cs")
