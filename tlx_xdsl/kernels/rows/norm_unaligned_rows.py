"""Normalised rows in parts, forward and backward, in plain `tl`: `norm_rows`, and rows that begin anywhere (`edges`).

Where UNIT is 1, all tensors have their rows at one distance, or a WIDTH of 1, by which elements are moved one by one.
Else every WIDTH-th row begins equally far from a multiple of 16 bytes, and a program has such rows only, each of its
blocks of ROWS after the other: its lanes have the same columns of all of them, so that weights and biases, which begin
elsewhere and are loaded by elements, are loaded once, and sums of gradients stay in registers.

The next bodies of rows are on their way to shared memory while some are computed (STAGES), the next edges, which are
too small for that, to registers.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false

import tlx_xdsl
import tlx_xdsl.language as tl

from .edges import body_of, lanes_of, load_parts, parts_of, span_of, store_parts, sum_of_rows, to_lanes
from .norm_cluster_backward import add_three, add_two


@tlx_xdsl.constexpr_function
def classes_of(unit, width):
    """Return how many places there are, beside multiples of 16 bytes, at which rows begin."""
    return 1 if unit > 1 else width


@tlx_xdsl.jit
def columns_of(
    first, lanes, distance, count, PIECES: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr, UNIT: tl.constexpr
):  # fmt: skip
    """Where the elements of row `first` are, from its body's first; their columns, and which there are."""
    rows = tl.zeros_like(lanes) + first
    EDGES: tl.constexpr = classes_of(UNIT, WIDTH) > 1
    places, inside = parts_of(rows, lanes, distance, tl.zeros_like(lanes) + count, 0, PIECES, LANES, WIDTH, EDGES)
    before, _ = span_of(first, distance, count, WIDTH)
    columns = ()
    for part in tl.static_range(len(places)):
        columns += (before + places[part],)
    return places, columns, inside


@tlx_xdsl.jit
def body_at(first, numbers, distance, UNIT: tl.constexpr, WIDTH: tl.constexpr):
    """The first element of the bodies of rows by their numbers among those that begin as row `first` does."""
    return body_of(first, distance * UNIT, WIDTH) + numbers.to(tl.int64) * (distance * UNIT) * classes_of(UNIT, WIDTH)


@tlx_xdsl.jit
def masks_of(inside, is_row, PIECES: tl.constexpr):
    """The elements that there are of rows that there are: all of any piece but the last, and some of the edges."""
    masks = ()
    for part in tl.static_range(len(inside)):
        masks += (is_row[:, None] if part < PIECES - 1 else inside[part] & is_row[:, None],)
    return masks


@tlx_xdsl.jit
def load_edges(
    pointer, first, numbers, distance, places, inside, ROW_COUNT, UNIT: tl.constexpr, WIDTH: tl.constexpr
):  # fmt: skip
    """The edges of rows by their numbers; none where all of a row is body."""
    if classes_of(UNIT, WIDTH) == 1:
        return ()
    edge: tl.constexpr = len(places) - 1
    is_row = first + WIDTH * numbers < ROW_COUNT
    at = body_at(first, numbers, distance, UNIT, WIDTH)
    return (tl.load((pointer + at)[:, None] + places[edge], inside[edge] & is_row[:, None], 0.0),)


@tlx_xdsl.jit
def factors_of(pointer, columns, inside):
    """The weights or biases of columns; None where there are none."""
    values = ()
    if pointer is None:
        return None
    for part in tl.static_range(len(columns)):
        values += (tl.load(pointer + columns[part], inside[part], 0.0).to(tl.float32),)
    return values


@tlx_xdsl.jit
def to_f32(x):
    """Parts of rows in f32."""
    values = ()
    for part in tl.static_range(len(x)):
        values += (x[part].to(tl.float32),)
    return values


@tlx_xdsl.jit
def products_of(x, y):
    """The products of parts."""
    values = ()
    for part in tl.static_range(len(x)):
        values += (x[part] * y[part],)
    return values


@tlx_xdsl.jit
def sum_of_lanes(x, y=None):
    """The sums of what each lane has of rows, or of products."""
    total = tl.sum(x[0] if y is None else x[0] * y[0], 1)
    for part in tl.static_range(1, len(x)):
        total += tl.sum(x[part] if y is None else x[part] * y[part], 1)
    return total


@tlx_xdsl.jit
def centred(x, mean, masks, PIECES: tl.constexpr):
    """Parts of rows less their mean; 0 where there is nothing."""
    values = ()
    for part in tl.static_range(len(x)):
        value = x[part] - mean[:, None]
        # A row that is not there has the mean 0.
        values += (value if part < PIECES - 1 else tl.where(masks[part], value, 0.0),)
    return values


@tlx_xdsl.jit
def norm_unaligned_rows(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, h_ptr, out_ptr, x_stride, residual_stride, h_stride, out_stride,
    ROW_COUNT, COLUMNS, eps,
    ROWS: tl.constexpr, LANES: tl.constexpr, PIECES: tl.constexpr, WIDTH: tl.constexpr, UNIT: tl.constexpr,
    CENTRED: tl.constexpr, STAGES: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    """The result, and with a residual the sum.

    CENTRED says that means are subtracted, HELD that registers have room for weights and biases.
    """
    CLASSES: tl.constexpr = classes_of(UNIT, WIDTH)
    count = COLUMNS * UNIT
    first = tl.program_id(0) % CLASSES
    own, lanes = lanes_of(0, ROWS, LANES)
    places, columns, inside = columns_of(first, lanes, x_stride * UNIT, count, PIECES, LANES, WIDTH, UNIT)
    if HELD:
        weight = factors_of(weight_ptr, columns, inside)
        bias = factors_of(bias_ptr, columns, inside)
    part_of_row = 1.0 / count
    start = tl.program_id(0) // CLASSES * ROWS
    step = tl.num_programs(0) // CLASSES * ROWS
    x_edge = load_edges(x_ptr, first, start + own, x_stride, places, inside, ROW_COUNT, UNIT, WIDTH)
    if residual_ptr is not None:
        edge = load_edges(residual_ptr, first, start + own, residual_stride, places, inside, ROW_COUNT, UNIT, WIDTH)
    for number in tl.range(start, (ROW_COUNT - first + CLASSES - 1) // CLASSES, step, num_stages=STAGES):
        numbers = number + own
        later = numbers + step
        masks = masks_of(inside, first + CLASSES * numbers < ROW_COUNT, PIECES)
        at = body_at(first, numbers, x_stride, UNIT, WIDTH)
        x = to_f32((*load_parts(x_ptr + at, places, masks, 0.0, PIECES), *x_edge))
        x_edge = load_edges(x_ptr, first, later, x_stride, places, inside, ROW_COUNT, UNIT, WIDTH)
        if residual_ptr is not None:
            at = body_at(first, numbers, residual_stride, UNIT, WIDTH)
            residual = (*load_parts(residual_ptr + at, places, masks, 0.0, PIECES), *edge)
            edge = load_edges(residual_ptr, first, later, residual_stride, places, inside, ROW_COUNT, UNIT, WIDTH)
            h = ()
            for part in tl.static_range(len(x)):
                h += ((x[part] + residual[part].to(tl.float32)).to(h_ptr.dtype.element_ty),)
            store_parts(h_ptr + body_at(first, numbers, h_stride, UNIT, WIDTH), places, masks, h)
            x = to_f32(h)
        if CENTRED:
            x = centred(x, sum_of_rows(sum_of_lanes(x), ROWS, LANES) * part_of_row, masks, PIECES)
        scale = tl.rsqrt(sum_of_rows(sum_of_lanes(x, x), ROWS, LANES) * part_of_row + eps)[:, None]
        if not HELD:
            weight = factors_of(weight_ptr, columns, inside)
            bias = factors_of(bias_ptr, columns, inside)
        y = ()
        for part in tl.static_range(len(x)):
            value = x[part] * scale
            if weight is not None:
                value = value * weight[part]
            if bias is not None:
                value = value + bias[part]
            y += (value,)
        store_parts(out_ptr + body_at(first, numbers, out_stride, UNIT, WIDTH), places, masks, y)


@tlx_xdsl.jit
def zeros_of(x, ROWS: tl.constexpr, LANES: tl.constexpr):
    """Zeros for the parts of rows."""
    values = ()
    for part in tl.static_range(len(x)):
        values += (tl.zeros((ROWS * LANES, x[part].shape[1]), tl.float32),)
    return values


@tlx_xdsl.jit
def store_sums(pointer, columns, inside, sums, ROWS: tl.constexpr, LANES: tl.constexpr):
    """Store the sums of columns over rows."""
    for part in tl.static_range(len(sums)):
        total = tl.sum(tl.reshape(sums[part], (ROWS, LANES, sums[part].shape[1])), 0)
        tl.store(pointer + columns[part], total, inside[part])


@tlx_xdsl.jit
def norm_backward_rows(
    x_ptr, weight_ptr, dout_ptr, dh_ptr, dx_ptr, parts_ptr, x_stride, dout_stride, dh_stride, dx_stride,
    ROW_COUNT, COLUMNS, eps,
    ROWS: tl.constexpr, LANES: tl.constexpr, PIECES: tl.constexpr, WIDTH: tl.constexpr, UNIT: tl.constexpr,
    CENTRED: tl.constexpr, STAGES: tl.constexpr, WITH_BIAS: tl.constexpr, LENGTH: tl.constexpr,
):  # fmt: skip
    """dx, and this program's sums of dw and db: `parts_ptr` has LENGTH of each for each program."""
    CLASSES: tl.constexpr = classes_of(UNIT, WIDTH)
    count = COLUMNS * UNIT
    first = tl.program_id(0) % CLASSES
    own, lanes = lanes_of(0, ROWS, LANES)
    places, columns, inside = columns_of(first, lanes, x_stride * UNIT, count, PIECES, LANES, WIDTH, UNIT)
    weight = factors_of(weight_ptr, columns, inside)
    dweight = zeros_of(places, ROWS, LANES)
    dbias = zeros_of(places, ROWS, LANES)
    part_of_row = 1.0 / count
    start = tl.program_id(0) // CLASSES * ROWS
    step = tl.num_programs(0) // CLASSES * ROWS
    x_edge = load_edges(x_ptr, first, start + own, x_stride, places, inside, ROW_COUNT, UNIT, WIDTH)
    dy_edge = load_edges(dout_ptr, first, start + own, dout_stride, places, inside, ROW_COUNT, UNIT, WIDTH)
    if dh_ptr is not None:
        edge = load_edges(dh_ptr, first, start + own, dh_stride, places, inside, ROW_COUNT, UNIT, WIDTH)
    for number in tl.range(start, (ROW_COUNT - first + CLASSES - 1) // CLASSES, step, num_stages=STAGES):
        numbers = number + own
        later = numbers + step
        is_row = first + CLASSES * numbers < ROW_COUNT
        masks = masks_of(inside, is_row, PIECES)
        at = body_at(first, numbers, x_stride, UNIT, WIDTH)
        x = to_f32((*load_parts(x_ptr + at, places, masks, 0.0, PIECES), *x_edge))
        x_edge = load_edges(x_ptr, first, later, x_stride, places, inside, ROW_COUNT, UNIT, WIDTH)
        at = body_at(first, numbers, dout_stride, UNIT, WIDTH)
        dy = to_f32((*load_parts(dout_ptr + at, places, masks, 0.0, PIECES), *dy_edge))
        dy_edge = load_edges(dout_ptr, first, later, dout_stride, places, inside, ROW_COUNT, UNIT, WIDTH)
        if dh_ptr is not None:
            at = body_at(first, numbers, dh_stride, UNIT, WIDTH)
            dh = (*load_parts(dh_ptr + at, places, masks, 0.0, PIECES), *edge)
            edge = load_edges(dh_ptr, first, later, dh_stride, places, inside, ROW_COUNT, UNIT, WIDTH)
        if CENTRED:
            x = centred(x, sum_of_rows(sum_of_lanes(x), ROWS, LANES) * part_of_row, masks, PIECES)
        g = dy if weight is None else products_of(dy, weight)
        squares = tl.reshape(sum_of_lanes(x, x), (ROWS, LANES))
        slope = tl.reshape(sum_of_lanes(g, x), (ROWS, LANES))
        if CENTRED:
            total = tl.reshape(sum_of_lanes(g), (ROWS, LANES))
            squares, slope, total = tl.reduce((squares, slope, total), 1, add_three)
            shift = to_lanes(total * part_of_row, ROWS, LANES)
        else:
            squares, slope = tl.reduce((squares, slope), 1, add_two)
        # Of a row that is not there nothing may be infinite.
        scale = tl.where(is_row, tl.rsqrt(to_lanes(squares, ROWS, LANES) * part_of_row + eps), 0.0)
        slope = to_lanes(slope * part_of_row, ROWS, LANES) * scale * scale
        if CENTRED:
            shift = shift * scale
        dx = ()
        sums = ()
        sums_of_bias = ()
        for part in tl.static_range(len(x)):
            value = (g[part] - x[part] * slope[:, None]) * scale[:, None]
            if CENTRED:
                value = value - shift[:, None]
            if dh_ptr is not None:
                value += dh[part].to(tl.float32)
            dx += (value,)
            sums += (dweight[part] + dy[part] * (x[part] * scale[:, None]),)
            sums_of_bias += (dbias[part] + dy[part],)
        dweight = sums
        dbias = sums_of_bias
        store_parts(dx_ptr + body_at(first, numbers, dx_stride, UNIT, WIDTH), places, masks, dx)
    own = tl.arange(0, LANES)
    _, columns, inside = columns_of(first, own, x_stride * UNIT, count, PIECES, LANES, WIDTH, UNIT)
    parts_ptr += tl.program_id(0).to(tl.int64) * (2 * LENGTH)
    if weight_ptr is not None:
        store_sums(parts_ptr, columns, inside, dweight, ROWS, LANES)
    if WITH_BIAS:
        store_sums(parts_ptr + LENGTH, columns, inside, dbias, ROWS, LANES)
