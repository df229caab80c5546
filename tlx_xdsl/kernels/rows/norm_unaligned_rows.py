"""Normalised rows in parts, forward and backward, in plain `tl`: `norm_rows`, and rows that begin anywhere (`edges`).

Where UNIT is 1, all tensors have their rows at one distance, or a WIDTH of 1, by which elements are moved one by one.
Else every WIDTH-th row begins equally far from a multiple of 16 bytes, and a program has such rows only, each of its
blocks of ROWS after the other: its lanes have the same columns of all of them, so that weights and biases, which begin
elsewhere and are loaded by elements, are loaded once, and sums of gradients stay in registers.

The next bodies of rows are on their way to shared memory while some are computed (STAGES), the next edges, which are
too small for that, to registers (AHEAD).
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false

from dataclasses import dataclass
from typing import Any, NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl

from .edges import body_of, lanes_of, load, load_parts, parts_of, span_of, store_parts, sum_of_rows, to_lanes
from .norm_cluster_backward import add_three, add_two
from .norm_cluster_sums import only


@dataclass(frozen=True)
class Form:
    """Constants of these kernels: those of `edges`, and of how many rows each begins at another place."""

    rows: int
    lanes: int
    pieces: int
    width: int
    classes: int


class Blocks(NamedTuple):
    """The parts of a program of each block of rows: every so many from `first` on, by their `numbers`.

    `places` are from the bodies' first elements, `columns` from the rows'; of some parts not all are `inside`.
    """

    places: Any
    columns: Any
    inside: Any
    first: Any
    numbers: Any
    rows: Any
    form: Any


@tlx_xdsl.jit
def blocks_of(numbers, lanes, distance, count, rows, form: tl.constexpr):
    """The blocks of this program, whose lanes have the `numbers` of rows; `rows` are all that there are."""
    first = tl.program_id(0) % form.classes
    of_lanes = tl.zeros_like(lanes)
    places, inside = parts_of(
        of_lanes + first, lanes, distance, of_lanes + count, 0, form.pieces, form.lanes, form.width, form.classes > 1
    )
    before, _ = span_of(first, distance, count, form.width)
    return Blocks(places, [before + each for each in places], inside, first, numbers, rows, form)


@tlx_xdsl.jit
def are_rows(blocks, number):
    """The mask of the rows that there are of the block whose first has this number."""
    return blocks.first + blocks.form.classes * (number + blocks.numbers) < blocks.rows


@tlx_xdsl.jit
def masks_of(blocks, is_row):
    """The elements that there are of rows that there are: all of any piece but the last, and some of the edges."""
    last: tl.constexpr = blocks.form.pieces - 1
    return [
        is_row[:, None] if part < last else blocks.inside[part] & is_row[:, None] for part in range(len(blocks.inside))
    ]


@tlx_xdsl.jit
def bodies_at(blocks, pointer, number, distance):
    """The pointers to the bodies of a block."""
    numbers = (number + blocks.numbers).to(tl.int64)
    return pointer + (body_of(blocks.first, distance, blocks.form.width) + numbers * distance * blocks.form.classes)


@tlx_xdsl.jit
def load_edges(blocks, pointer, number, distance):
    """The edges of a block; none where all of a row is body."""
    if blocks.form.classes == 1:
        return ()
    edge: tl.constexpr = len(blocks.places) - 1
    mask = blocks.inside[edge] & are_rows(blocks, number)[:, None]
    return (tl.load(bodies_at(blocks, pointer, number, distance)[:, None] + blocks.places[edge], mask, 0.0),)


@tlx_xdsl.jit
def load_block(blocks, pointer, number, distance, masks, edges, later):
    """A block in f32, of which the edges are there, and the edges of a `later` one; without one, all of a block."""
    if later is None:
        return to_f32(load_parts(bodies_at(blocks, pointer, number, distance), blocks.places, masks, 0.0)), edges
    values = load_parts(bodies_at(blocks, pointer, number, distance), blocks.places, masks, 0.0, blocks.form.pieces)
    return to_f32((*values, *edges)), load_edges(blocks, pointer, later, distance)


@tlx_xdsl.jit
def store_block(blocks, pointer, number, distance, masks, values):
    """Store a block."""
    store_parts(bodies_at(blocks, pointer, number, distance), blocks.places, masks, values)


@tlx_xdsl.jit
def factors_of(blocks, pointer):
    """The weights or biases of columns; None where there are none."""
    if pointer is None:
        return None
    return [load(pointer, blocks.columns[part], blocks.inside[part]) for part in range(len(blocks.columns))]


@tlx_xdsl.jit
def to_f32(x):
    """Parts of rows in f32."""
    return [each.to(tl.float32) for each in x]


@tlx_xdsl.jit
def products_of(x, y):
    """The products of parts."""
    return [x[part] * y[part] for part in range(len(x))]


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
    # A row that is not there has the mean 0.
    return [only(x[part] - mean[:, None], None if part < PIECES - 1 else masks[part]) for part in range(len(x))]


@tlx_xdsl.jit
def norm_unaligned_rows(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, h_ptr, out_ptr, x_stride, residual_stride, h_stride, out_stride,
    ROW_COUNT, COLUMNS, eps,
    FORM: tl.constexpr, UNIT: tl.constexpr, CENTRED: tl.constexpr, STAGES: tl.constexpr, HELD: tl.constexpr,
    AHEAD: tl.constexpr = True,
):  # fmt: skip
    """The result, and with a residual the sum.

    CENTRED says that means are subtracted, HELD that registers have room for weights and biases, AHEAD that edges are
    loaded a block before they are used.
    """
    ROWS: tl.constexpr = FORM.rows
    LANES: tl.constexpr = FORM.lanes
    CLASSES: tl.constexpr = FORM.classes
    count = COLUMNS * UNIT
    numbers, lanes = lanes_of(0, ROWS, LANES)
    blocks = blocks_of(numbers, lanes, x_stride * UNIT, count, ROW_COUNT, FORM)
    if HELD:
        weight = factors_of(blocks, weight_ptr)
        bias = factors_of(blocks, bias_ptr)
    part_of_row = 1.0 / count
    start = tl.program_id(0) // CLASSES * ROWS
    step = tl.num_programs(0) // CLASSES * ROWS
    edges = load_edges(blocks, x_ptr, start, x_stride * UNIT) if AHEAD else ()
    if residual_ptr is not None:
        added_edges = load_edges(blocks, residual_ptr, start, residual_stride * UNIT) if AHEAD else ()
    rows = ROW_COUNT if AHEAD else ROW_COUNT - blocks.first
    for number in tl.range(start, tl.cdiv(rows, CLASSES), step, num_stages=STAGES):
        later = number + step if AHEAD else None
        masks = masks_of(blocks, are_rows(blocks, number))
        x, edges = load_block(blocks, x_ptr, number, x_stride * UNIT, masks, edges, later)
        if residual_ptr is not None:
            added, added_edges = load_block(
                blocks, residual_ptr, number, residual_stride * UNIT, masks, added_edges, later
            )
            h = [(x[part] + added[part]).to(h_ptr.dtype.element_ty) for part in range(len(x))]
            store_block(blocks, h_ptr, number, h_stride * UNIT, masks, h)
            x = to_f32(h)
        if CENTRED:
            x = centred(x, sum_of_rows(sum_of_lanes(x), ROWS, LANES) * part_of_row, masks, FORM.pieces)
        scale = tl.rsqrt(sum_of_rows(sum_of_lanes(x, x), ROWS, LANES) * part_of_row + eps)[:, None]
        if not HELD:
            weight = factors_of(blocks, weight_ptr)
            bias = factors_of(blocks, bias_ptr)
        y = ()
        for part in tl.static_range(len(x)):
            value = x[part] * scale
            if weight is not None:
                value = value * weight[part]
            if bias is not None:
                value = value + bias[part]
            y += (value,)
        store_block(blocks, out_ptr, number, out_stride * UNIT, masks, y)


@tlx_xdsl.jit
def zeros_of(x, ROWS: tl.constexpr, LANES: tl.constexpr):
    """Zeros for the parts of rows."""
    return [tl.zeros((ROWS * LANES, each.shape[1]), tl.float32) for each in x]


@tlx_xdsl.jit
def store_sums(blocks, pointer, sums, ROWS: tl.constexpr, LANES: tl.constexpr):
    """Store the sums of columns over rows."""
    for part in tl.static_range(len(sums)):
        total = tl.sum(tl.reshape(sums[part], (ROWS, LANES, sums[part].shape[1])), 0)
        tl.store(pointer + blocks.columns[part], total, blocks.inside[part])


@tlx_xdsl.jit
def norm_backward_rows(
    x_ptr, weight_ptr, dout_ptr, dh_ptr, dx_ptr, parts_ptr, x_stride, dout_stride, dh_stride, dx_stride,
    ROW_COUNT, COLUMNS, eps,
    FORM: tl.constexpr, UNIT: tl.constexpr, CENTRED: tl.constexpr, STAGES: tl.constexpr, WITH_BIAS: tl.constexpr,
    LENGTH: tl.constexpr,
):  # fmt: skip
    """dx, and this program's sums of dw and db: `parts_ptr` has LENGTH of each for each program."""
    ROWS: tl.constexpr = FORM.rows
    LANES: tl.constexpr = FORM.lanes
    CLASSES: tl.constexpr = FORM.classes
    count = COLUMNS * UNIT
    numbers, lanes = lanes_of(0, ROWS, LANES)
    blocks = blocks_of(numbers, lanes, x_stride * UNIT, count, ROW_COUNT, FORM)
    weight = factors_of(blocks, weight_ptr)
    dweight = zeros_of(blocks.places, ROWS, LANES)
    dbias = dweight
    part_of_row = 1.0 / count
    start = tl.program_id(0) // CLASSES * ROWS
    step = tl.num_programs(0) // CLASSES * ROWS
    edges = load_edges(blocks, x_ptr, start, x_stride * UNIT)
    dout_edges = load_edges(blocks, dout_ptr, start, dout_stride * UNIT)
    if dh_ptr is not None:
        dh_edges = load_edges(blocks, dh_ptr, start, dh_stride * UNIT)
    for number in tl.range(start, tl.cdiv(ROW_COUNT, CLASSES), step, num_stages=STAGES):
        later = number + step
        is_row = are_rows(blocks, number)
        masks = masks_of(blocks, is_row)
        x, edges = load_block(blocks, x_ptr, number, x_stride * UNIT, masks, edges, later)
        dy, dout_edges = load_block(blocks, dout_ptr, number, dout_stride * UNIT, masks, dout_edges, later)
        if dh_ptr is not None:
            dh, dh_edges = load_block(blocks, dh_ptr, number, dh_stride * UNIT, masks, dh_edges, later)
        if CENTRED:
            x = centred(x, sum_of_rows(sum_of_lanes(x), ROWS, LANES) * part_of_row, masks, FORM.pieces)
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
                value += dh[part]
            dx += (value,)
            sums += (dweight[part] + dy[part] * (x[part] * scale[:, None]),)
            sums_of_bias += (dbias[part] + dy[part],)
        dweight = sums
        dbias = sums_of_bias
        store_block(blocks, dx_ptr, number, dx_stride * UNIT, masks, dx)
    own = tl.arange(0, LANES)
    blocks = blocks_of(own, own, x_stride * UNIT, count, ROW_COUNT, FORM)
    parts_ptr += tl.program_id(0).to(tl.int64) * (2 * LENGTH)
    if weight_ptr is not None:
        store_sums(blocks, parts_ptr, dweight, ROWS, LANES)
    if WITH_BIAS:
        store_sums(blocks, parts_ptr + LENGTH, dbias, ROWS, LANES)
