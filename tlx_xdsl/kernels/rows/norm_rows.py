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

With EDGES, rows of 16-bit elements begin anywhere, at one place in all tensors. Of each, a body of whole vectors of 16
bytes is moved by these, and up to 7 elements before and after it one by one: a thread has one of them for each of
its vectors, so that sums begin with both. Every eighth row begins equally far from a multiple of 16 bytes, and a
program has such rows only: they share the columns of threads, and so weights, biases and the sums of their gradients.

Backward, programs go over rows, each over every so many, and keep their sums of dw and db in registers; a second kernel
adds those up. Both add in one order, so that the same bits come out at each call. The next rows are loaded to shared
memory while some are computed.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false

import tlx_xdsl
import tlx_xdsl.language as tl

from .norm_cluster_backward import add_three, add_two


@tlx_xdsl.jit
def columns_of_edges(edge, head, length, count):
    """The columns of edges 0, 1, ..., and which there are: 8 before a body of `length` elements, then others."""
    edges = tl.where(edge < 8, edge, edge - 8 + head + length)
    return edges, edges < tl.where(edge < 8, head, count)


@tlx_xdsl.jit
def columns_of(first, count, BLOCK: tl.constexpr, EVEN: tl.constexpr, EDGES: tl.constexpr):
    """The columns of a row whose first element is at a multiple of 8 plus `first`, and which of them there are.

    All are tuples: of one block, with EDGES of the body by vectors, and of both edges. Columns are a number and those
    from there on, so that threads have one address for all of theirs.
    """
    columns = tl.arange(0, BLOCK)
    if EDGES:
        head = -first & 7
        length = (count - head) // 8 * 8
        edge = tl.arange(0, BLOCK // 8)
        body = edge[:, None] * 8 + tl.arange(0, 8)[None, :]
        edges, is_edge = columns_of_edges(edge, head, length, count)
        return (head, 0), (body, edges), ((edge * 8 < length)[:, None], is_edge)
    return (0,), (columns,), (None if EVEN else columns < count,)


@tlx_xdsl.jit
def along(rows, block):
    """Numbers of rows, to go with a block of their elements."""
    return rows[:, None, None] if len(block.shape) == 3 else rows[:, None]


@tlx_xdsl.jit
def places_of(rows, stride, columns, EDGES: tl.constexpr):
    """The places of the elements of rows; the compiler sees that the body begins at a multiple of 8."""
    at = rows.to(tl.int64) * stride
    if EDGES:
        return ((at + 7) // 8 * 8)[:, None, None] + columns[0][None, :, :], at[:, None] + columns[1][None, :]
    return (at[:, None] + columns[0][None, :],)


@tlx_xdsl.jit
def masks_of(there, of_row, EDGES: tl.constexpr):
    """The elements that there are: `there` is of rows, and `of_row`, of columns, may be None."""
    if EDGES:
        return there[:, None, None] & of_row[0][None, :, :], there[:, None] & of_row[1][None, :]
    return (there[:, None] if of_row[0] is None else there[:, None] & of_row[0][None, :],)


@tlx_xdsl.jit
def load_all(pointer, places, masks):
    """Load a tuple of blocks; 0 where there is nothing."""
    values = ()
    for part in tl.static_range(len(places)):
        values = (*values, tl.load(pointer + places[part], masks[part], 0.0))
    return values


@tlx_xdsl.jit
def to_f32(x):
    """A tuple of blocks in f32."""
    values = ()
    for part in tl.static_range(len(x)):
        values = (*values, x[part].to(tl.float32))
    return values


@tlx_xdsl.jit
def factors_of(pointer, starts, columns, of_row, EVEN: tl.constexpr):
    """The weights or biases of columns, in f32, as one row."""
    values = ()
    for part in tl.static_range(len(columns)):
        value = tl.load(pointer + starts[part] + columns[part], of_row[part], None if EVEN else 0.0)
        values = (*values, tl.expand_dims(value.to(tl.float32), 0))
    return values


@tlx_xdsl.jit
def zeros_of(ROWS: tl.constexpr, columns):
    """Zeros for columns of ROWS rows."""
    values = ()
    for part in tl.static_range(len(columns)):
        values = (*values, tl.zeros((ROWS, *columns[part].shape), tl.float32))
    return values


@tlx_xdsl.jit
def sum_of(x, y):
    """The sums of two tuples of blocks."""
    values = ()
    for part in tl.static_range(len(x)):
        values = (*values, x[part] + y[part])
    return values


@tlx_xdsl.jit
def scaled(x, scale):
    """A tuple of blocks times numbers of their rows."""
    values = ()
    for part in tl.static_range(len(x)):
        values = (*values, x[part] * along(scale, x[part]))
    return values


@tlx_xdsl.jit
def product_of(x, y):
    """The products of two tuples of blocks; the first where there is no second."""
    values = ()
    for part in tl.static_range(len(x)):
        values = (*values, x[part] if y is None else x[part] * y[part])
    return values


@tlx_xdsl.jit
def terms_of(x, y=None):
    """Terms whose sums are those of rows of tuples of blocks, or of their products."""
    terms = product_of(x, y)
    # One value of a thread goes with each vector.
    return terms[0] if len(x) == 1 else tl.sum(terms[0], 2) + terms[1]


@tlx_xdsl.jit
def centred(x, mean, masks, EVEN: tl.constexpr):
    """A tuple of blocks less the mean of each row; 0 where there is nothing."""
    values = ()
    for part in tl.static_range(len(x)):
        value = x[part] - along(mean, x[part])
        values = (*values, value if EVEN else tl.where(masks[part], value, 0.0))
    return values


@tlx_xdsl.jit
def norm_rows(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, h_ptr, out_ptr, x_stride, residual_stride, h_stride, out_stride,
    ROW_COUNT, COLUMNS, eps,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr, EVEN: tl.constexpr, EDGES: tl.constexpr,
    CENTRED: tl.constexpr,
):  # fmt: skip
    """ROWS rows for each program. EVEN says that a row has BLOCK elements, CENTRED that means are subtracted."""
    count = COLUMNS * UNIT
    if EDGES:
        first = tl.program_id(0) % 8
        rows = first + 8 * (tl.program_id(0) // 8 * ROWS + tl.arange(0, ROWS))
    else:
        first = 0
        rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    starts, columns, of_row = columns_of(first * x_stride, count, BLOCK, EVEN, EDGES)
    masks = masks_of(rows < ROW_COUNT, of_row, EDGES)
    at = places_of(rows, x_stride * UNIT, columns, EDGES)
    x = to_f32(load_all(x_ptr, at, masks))
    if residual_ptr is not None:
        at = at if EDGES else places_of(rows, residual_stride * UNIT, columns, EDGES)
        residual = to_f32(load_all(residual_ptr, at, masks))
        at = at if EDGES else places_of(rows, h_stride * UNIT, columns, EDGES)
        sums = ()
        for part in tl.static_range(len(columns)):
            h = (x[part] + residual[part]).to(h_ptr.dtype.element_ty)
            tl.store(h_ptr + at[part], h, masks[part])
            sums = (*sums, h.to(tl.float32))
        x = sums
    if CENTRED:
        x = centred(x, tl.sum(terms_of(x), 1) / count, masks, EVEN)
    scale = tl.rsqrt(tl.sum(terms_of(x, x), 1) / count + eps)
    y = scaled(x, scale)
    if weight_ptr is not None:
        y = product_of(y, factors_of(weight_ptr, starts, columns, of_row, EVEN))
    if bias_ptr is not None:
        y = sum_of(y, factors_of(bias_ptr, starts, columns, of_row, EVEN))
    at = at if EDGES else places_of(rows, out_stride * UNIT, columns, EDGES)
    for part in tl.static_range(len(columns)):
        tl.store(out_ptr + at[part], y[part].to(out_ptr.dtype.element_ty), masks[part])


@tlx_xdsl.jit
def store_sums(pointer, starts, columns, of_row, sums):
    """Store the sums of columns over rows."""
    for part in tl.static_range(len(columns)):
        tl.store(pointer + starts[part] + columns[part], tl.sum(sums[part], 0), of_row[part])


@tlx_xdsl.jit
def norm_backward_rows(
    x_ptr, weight_ptr, dout_ptr, dh_ptr, dx_ptr, parts_ptr, x_stride, dout_stride, dh_stride, dx_stride,
    ROW_COUNT, COLUMNS, eps,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr, EVEN: tl.constexpr, EDGES: tl.constexpr,
    CENTRED: tl.constexpr, WITH_BIAS: tl.constexpr, LENGTH: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """dx, and this program's sums of dw and db: `parts_ptr` has LENGTH of each for each program."""
    count = COLUMNS * UNIT
    CLASSES: tl.constexpr = 8 if EDGES else 1
    program = tl.program_id(0)
    starts, columns, of_row = columns_of(program % CLASSES * x_stride, count, BLOCK, EVEN, EDGES)
    weight = None if weight_ptr is None else factors_of(weight_ptr, starts, columns, of_row, EVEN)
    dweight = zeros_of(ROWS, columns)
    dbias = zeros_of(ROWS, columns)
    start = program % CLASSES + program // CLASSES * (ROWS * CLASSES)
    step = tl.num_programs(0) * ROWS
    part_of_row = 1.0 / count
    for first in tl.range(start, ROW_COUNT, step, num_stages=STAGES):
        rows = first + CLASSES * tl.arange(0, ROWS)
        there = rows < ROW_COUNT
        masks = masks_of(there, of_row, EDGES)
        at = places_of(rows, x_stride * UNIT, columns, EDGES)
        x = to_f32(load_all(x_ptr, at, masks))
        dy = to_f32(load_all(dout_ptr, at if EDGES else places_of(rows, dout_stride * UNIT, columns, EDGES), masks))
        if dh_ptr is not None:
            dh = load_all(dh_ptr, at if EDGES else places_of(rows, dh_stride * UNIT, columns, EDGES), masks)
        if CENTRED:
            x = centred(x, tl.sum(terms_of(x), 1) * part_of_row, masks, EVEN)
        g = product_of(dy, weight)
        if CENTRED:
            squares, product, shift = tl.reduce((terms_of(x, x), terms_of(g, x), terms_of(g)), 1, add_three)
        else:
            squares, product = tl.reduce((terms_of(x, x), terms_of(g, x)), 1, add_two)
        # Of a row that is not there nothing may be infinite.
        scale = tl.where(there, tl.rsqrt(squares * part_of_row + eps), 0.0)
        product = product * scale * part_of_row
        h = scaled(x, scale)
        at = at if EDGES else places_of(rows, dx_stride * UNIT, columns, EDGES)
        for part in tl.static_range(len(columns)):
            dx = (g[part] - h[part] * along(product, h[part])) * along(scale, h[part])
            if CENTRED:
                dx = dx - along(shift * scale * part_of_row, dx)
            if dh_ptr is not None:
                dx += dh[part].to(tl.float32)
            tl.store(dx_ptr + at[part], dx.to(dx_ptr.dtype.element_ty), masks[part])
        dweight = sum_of(dweight, product_of(dy, h))
        dbias = sum_of(dbias, dy)
    parts_ptr += program.to(tl.int64) * (2 * LENGTH)
    if weight_ptr is not None:
        store_sums(parts_ptr, starts, columns, of_row, dweight)
    if WITH_BIAS:
        store_sums(parts_ptr + LENGTH, starts, columns, of_row, dbias)


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
