"""The cross-entropy of rows of logits and its gradient, in plain `tl`: kernels that stock Triton lowers.

With x a row of C logits, t its class, s the smoothing and l = log(sum(exp(x))):

    loss = l - (1 - s) x_t - s mean(x)
    dx = dloss (exp(x - l) - (1 - s) [column is t] - s / C)

The logits are read once forward, and once backward where dx is written; rows have any length. `norm_rows` says what
UNIT is. Each program adds up the losses of its rows, and the last one to be done those sums, always in the same order.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false

import tlx_xdsl
import tlx_xdsl.language as tl

from ..attention.scores import LOG2_E
from .edges import body_of, edges_of, lanes_of, load_parts, parts_of, span_of, store_parts, sum_of_rows
from .softmax_rows import add_elements, maximum_and_sum, sums_of_threads, weights_of_rows

PROGRAM_DONE = tl.constexpr(1 << 32)
"""What a program that is done adds to the counter, beside its rows that count: a launch has fewer."""


@tlx_xdsl.jit
def cross_entropy_rows(
    x_ptr, target_ptr, loss_ptr, lse_ptr, total_ptr, scale_ptr, counter_ptr, x_stride, ROW_COUNT, COLUMNS,
    ignore_index, smoothing,
    THREADS: tl.constexpr, UNIT: tl.constexpr, WIDTH: tl.constexpr, IS_SMOOTHED: tl.constexpr, SUM_BLOCK: tl.constexpr,
    IS_MEAN: tl.constexpr,
):  # fmt: skip
    """The losses of rows, and l; a program has every `num_programs`-th row. With a WIDTH above 1 they begin anywhere.

    A class that a row does not have makes its loss no number. With `total_ptr` the losses of each program are added up,
    and then those of all: their sum, or their mean, and then at `scale_ptr` 1 over the rows that count.
    """
    count = COLUMNS * UNIT
    losses = 0.0
    rows = 0
    for row in range(tl.program_id(0), ROW_COUNT, tl.num_programs(0)):
        row_ptr = x_ptr + row.to(tl.int64) * (x_stride * UNIT)
        target = tl.load(target_ptr + row)
        if WIDTH > 1:
            before, whole = span_of(row, x_stride, count, WIDTH)
            place, inside = edges_of(tl.arange(0, THREADS), before, whole, count, WIDTH, THREADS)
            body_ptr = x_ptr + body_of(row, x_stride, WIDTH)
            edge = tl.load(body_ptr + place, inside, float("-inf"))
            top, total, plain = sums_of_threads(body_ptr, whole, THREADS, WITH_PLAIN=IS_SMOOTHED)
            top, total = add_elements((edge,), top, total)
            if IS_SMOOTHED:
                plain += tl.sum(tl.where(inside, edge.to(tl.float32), 0.0), 1)
        else:
            top, total, plain = sums_of_threads(row_ptr, count, THREADS, WITH_PLAIN=IS_SMOOTHED)
        # Here it does not wait for the target, and is there when the threads have added up their sums.
        of_target = tl.load(row_ptr + target, (target >= 0) & (target < count), float("nan")).to(tl.float32)
        top, total = maximum_and_sum(top, total)
        lse = top + tl.log(total)
        if lse_ptr is not None:
            tl.store(lse_ptr + row, lse)
        loss = lse - of_target
        if IS_SMOOTHED:
            loss = (1.0 - smoothing) * loss + smoothing * (lse - tl.sum(plain, 0) / count)
        is_counted = target != ignore_index
        loss = tl.where(is_counted, loss, 0.0)
        if total_ptr is None:
            tl.store(loss_ptr + row, loss)
        else:
            losses += loss
            rows += is_counted.to(tl.int32)
    if total_ptr is not None:
        finish(losses, rows, loss_ptr, total_ptr, scale_ptr, counter_ptr, SUM_BLOCK, IS_MEAN)


@tlx_xdsl.jit
def cross_entropy_short_rows(
    x_ptr, target_ptr, loss_ptr, lse_ptr, total_ptr, scale_ptr, counter_ptr, x_stride, ROW_COUNT, COLUMNS,
    ignore_index, smoothing,
    ROWS: tl.constexpr, LANES: tl.constexpr, PIECES: tl.constexpr, WIDTH: tl.constexpr, IS_SMOOTHED: tl.constexpr,
    SUM_BLOCK: tl.constexpr, IS_MEAN: tl.constexpr,
):  # fmt: skip
    """`cross_entropy_rows` for ROWS rows at a time, which begin anywhere (`edges`): all lanes of one have its loss."""
    losses = tl.zeros((ROWS * LANES,), tl.float32)
    counted = tl.zeros((ROWS * LANES,), tl.int32)
    for first in range(tl.program_id(0) * ROWS, ROW_COUNT, tl.num_programs(0) * ROWS):
        rows, lanes = lanes_of(first, ROWS, LANES)
        is_first = lanes == 0
        is_row = rows < ROW_COUNT
        target = tl.load(target_ptr + rows, is_row, ignore_index)
        count = tl.where(is_row, COLUMNS, 0)
        places, inside = parts_of(rows, lanes, x_stride, count, 0, PIECES, LANES, WIDTH)
        x = load_parts(x_ptr + body_of(rows, x_stride, WIDTH), places, inside, float("-inf"))
        of_target = tl.load(
            x_ptr + rows.to(tl.int64) * x_stride + target, is_row & (target >= 0) & (target < COLUMNS), float("nan")
        )
        top, total, _ = weights_of_rows(x, ROWS, LANES)
        lse = top + tl.log(total)
        loss = lse - of_target.to(tl.float32)
        if IS_SMOOTHED:
            plain = tl.zeros((ROWS * LANES,), tl.float32)
            for part in tl.static_range(len(x)):
                plain += tl.sum(tl.where(inside[part], x[part].to(tl.float32), 0.0), 1)
            loss = (1.0 - smoothing) * loss + smoothing * (lse - sum_of_rows(plain, ROWS, LANES) / COLUMNS)
        is_counted = target != ignore_index
        loss = tl.where(is_counted, loss, 0.0)
        is_written = is_row & is_first
        if lse_ptr is not None:
            tl.store(lse_ptr + rows, lse, is_written)
        if total_ptr is None:
            tl.store(loss_ptr + rows, loss, is_written)
        else:
            losses += tl.where(is_first, loss, 0.0)
            counted += (is_counted & is_first).to(tl.int32)
    if total_ptr is not None:
        finish(tl.sum(losses), tl.sum(counted), loss_ptr, total_ptr, scale_ptr, counter_ptr, SUM_BLOCK, IS_MEAN)


@tlx_xdsl.jit
def finish(
    losses, rows, loss_ptr, total_ptr, scale_ptr, counter_ptr, SUM_BLOCK: tl.constexpr, IS_MEAN: tl.constexpr
):  # fmt: skip
    """Store the sum of a program, whose `rows` count; the last one to be done adds up all."""
    tl.store(loss_ptr + tl.program_id(0), losses)
    # Releases what was stored, and acquires what the other programs have stored before they counted.
    before = tl.atomic_add(counter_ptr, PROGRAM_DONE + rows.to(tl.int64), sem="acq_rel")
    if before // PROGRAM_DONE == tl.num_programs(0) - 1:
        tl.store(counter_ptr, 0)
        add_losses(loss_ptr, total_ptr, scale_ptr, (before % PROGRAM_DONE + rows).to(tl.float32), SUM_BLOCK, IS_MEAN)


@tlx_xdsl.jit
def add_losses(loss_ptr, total_ptr, scale_ptr, rows, BLOCK: tl.constexpr, IS_MEAN: tl.constexpr):
    """Add up the sums of all programs; `rows` are those that count."""
    places = tl.arange(0, BLOCK)
    losses = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, tl.num_programs(0), BLOCK):
        at = first + places
        losses += tl.load(loss_ptr + at, at < tl.num_programs(0), 0.0)
    total = tl.sum(losses, 0)
    if IS_MEAN:
        total = total / rows
        if scale_ptr is not None:
            tl.store(scale_ptr, 1.0 / rows)
    tl.store(total_ptr, total)


@tlx_xdsl.jit
def slopes_of(x, at, place, target, ignore_index, lse, grad, count, smoothing):
    """The gradient of logits at places, of which `place` is that of the class."""
    dx = tl.math.exp2((x - lse) * LOG2_E) - tl.where(at == place, 1.0 - smoothing, 0.0) - smoothing / count
    return tl.where(target == ignore_index, 0.0, dx * grad)


@tlx_xdsl.jit
def cross_entropy_backward_rows(
    x_ptr, target_ptr, lse_ptr, scale_ptr, dloss_ptr, dx_ptr, x_stride, dx_stride, dloss_step, COLUMNS,
    ignore_index, smoothing, BLOCK: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """The gradient of BLOCK columns of a row for each program: programs are (row, block)."""
    row = tl.program_id(0)
    count = COLUMNS * UNIT
    x_ptr += row.to(tl.int64) * (x_stride * UNIT)
    dx_ptr += row.to(tl.int64) * (dx_stride * UNIT)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, at < count, 0.0).to(tl.float32)
    target = tl.load(target_ptr + row)
    lse = tl.load(lse_ptr + row)
    grad = tl.load(dloss_ptr + row * dloss_step)
    if scale_ptr is not None:
        grad = grad * tl.load(scale_ptr)
    dx = slopes_of(x, at, target, target, ignore_index, lse, grad, count, smoothing)
    tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), at < count)


@tlx_xdsl.jit
def cross_entropy_backward_unaligned_rows(
    x_ptr, target_ptr, lse_ptr, scale_ptr, dloss_ptr, dx_ptr, x_stride, dx_stride, dloss_step, ROW_COUNT, COLUMNS,
    ignore_index, smoothing, ROWS: tl.constexpr, LANES: tl.constexpr, PIECES: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The gradient of PIECES of ROWS rows, which begin anywhere (`edges`): programs are (rows, pieces)."""
    rows, lanes = lanes_of(tl.program_id(0) * ROWS, ROWS, LANES)
    is_row = rows < ROW_COUNT
    count = tl.where(is_row, COLUMNS, 0)
    places, inside = parts_of(rows, lanes, x_stride, count, tl.program_id(1) * PIECES, PIECES, LANES, WIDTH)
    x = load_parts(x_ptr + body_of(rows, x_stride, WIDTH), places, inside, 0.0)
    target = tl.load(target_ptr + rows, is_row, ignore_index)
    lse = tl.load(lse_ptr + rows, is_row, 0.0)
    grad = tl.load(dloss_ptr + rows * dloss_step, is_row, 0.0)
    if scale_ptr is not None:
        grad = grad * tl.load(scale_ptr)
    # From the body's first element, in 32 bits; classes that are not there stay so.
    before, _ = span_of(rows, x_stride, count, WIDTH)
    of_class = tl.minimum(tl.maximum(target, -1), COLUMNS).to(tl.int32) - before
    dx = [
        slopes_of(
            x[part].to(tl.float32), places[part], of_class[:, None], target[:, None], ignore_index, lse[:, None],
            grad[:, None], COLUMNS, smoothing,
        )
        for part in range(len(x))
    ]  # fmt: skip
    store_parts(dx_ptr + body_of(rows, dx_stride, WIDTH), places, inside, dx)
