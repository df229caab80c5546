"""Rows of the cross-entropy of a linear layer, in plain `tl`: losses, and gradients in the place of logits.

`rows.cross_entropy_rows` has the formulas.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false

import tlx_xdsl
import tlx_xdsl.language as tl

from ..attention.scores import LOG2_E
from ..rows.softmax_rows import maximum_and_sum, sums_of_threads

WIDTH = tl.constexpr(8)
"""Elements of 16 bytes: rows of logits begin at multiples of it."""


@tlx_xdsl.jit
def scale_of_rows(target_ptr, scale_ptr, ROWS, ignore_index, BLOCK: tl.constexpr):
    """Store 1 over the rows that count, by one program."""
    places = tl.arange(0, BLOCK)
    counted = tl.zeros((BLOCK,), tl.int32)
    for first in range(0, ROWS, BLOCK):
        at = first + places
        counted += ((tl.load(target_ptr + at, at < ROWS, ignore_index) != ignore_index) & (at < ROWS)).to(tl.int32)
    tl.store(scale_ptr, 1.0 / tl.sum(counted, 0).to(tl.float32))


@tlx_xdsl.jit
def sum_of_losses(losses_ptr, scale_ptr, total_ptr, ROWS, BLOCK: tl.constexpr):
    """Add up the losses of all rows, always in the same order, by one program; `scale_ptr` has a factor, or is None."""
    places = tl.arange(0, BLOCK)
    losses = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, ROWS, BLOCK):
        at = first + places
        losses += tl.load(losses_ptr + at, at < ROWS, 0.0)
    total = tl.sum(losses, 0)
    if scale_ptr is not None:
        total = total * tl.load(scale_ptr)
    tl.store(total_ptr, total)


@tlx_xdsl.jit
def combine_tiles(
    x_ptr, w_ptr, target_ptr, top_ptr, total_ptr, plain_ptr, loss_ptr, lse_ptr, x_stride, w_stride, extents,
    ignore_index, smoothing, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """The loss of a row, of the maxima and sums of its tiles (`device.linear_sums`); programs are rows.

    `extents` are rows, classes, elements of a row of x, and tiles of a row of logits. The logit of the target is
    x . w[target], in f32. A class that is not there makes the loss no number.
    """
    ROWS, COLUMNS, DEPTH, TILES = extents
    row = tl.program_id(0)
    target = tl.load(target_ptr + row)
    is_class = (target >= 0) & (target < COLUMNS)
    x_ptr += row.to(tl.int64) * x_stride
    w_ptr += target.to(tl.int64) * w_stride
    products = tl.zeros((BLOCK_K,), tl.float32)
    for first in range(0, DEPTH, BLOCK_K):
        at = first + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + at, (at < DEPTH) & is_class, 0.0).to(tl.float32)
        products += tl.load(x_ptr + at, at < DEPTH, 0.0).to(tl.float32) * w
    of_target = tl.where(is_class, tl.sum(products, 0), float("nan"))

    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    plain = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, TILES, BLOCK):
        tile = first + tl.arange(0, BLOCK)
        place = tile.to(tl.int64) * ROWS + row
        of_tile = tl.load(top_ptr + place, tile < TILES, float("-inf"))
        higher = tl.maximum(top, of_tile)
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        added = tl.load(total_ptr + place, tile < TILES, 0.0) * tl.math.exp2((of_tile - shift) * LOG2_E)
        total = total * tl.math.exp2((top - shift) * LOG2_E) + added
        top = higher
        if plain_ptr is not None:
            plain += tl.load(plain_ptr + place, tile < TILES, 0.0)
    highest, whole = maximum_and_sum(top, total)
    lse = highest + tl.log(whole)
    if lse_ptr is not None:
        tl.store(lse_ptr + row, lse)
    loss = lse - of_target
    if plain_ptr is not None:
        loss = (1.0 - smoothing) * loss + smoothing * (lse - tl.sum(plain, 0) / COLUMNS)
    tl.store(loss_ptr + row, tl.where(target == ignore_index, 0.0, loss))


@tlx_xdsl.jit
def gradient_of(x, at, lse, target, smoothing, count, factor, is_counted):
    """The gradient of the logits x at the columns `at` of a row, times a factor; zero where the row does not count."""
    grad = tl.math.exp2((x - lse) * LOG2_E) - tl.where(at == target, 1.0 - smoothing, 0.0) - smoothing / count
    return tl.where(is_counted, grad * factor, 0.0)


@tlx_xdsl.jit
def gradients_of_logits(
    x_ptr, target_ptr, loss_ptr, scale_ptr, x_stride, VECTORS, REST, ignore_index, smoothing,
    THREADS: tl.constexpr, BLOCK: tl.constexpr, HAS_REST: tl.constexpr, IS_SMOOTHED: tl.constexpr,
):  # fmt: skip
    """The loss of a row of logits, whose gradient takes the place of the logits; programs are rows.

    A row has VECTORS times WIDTH logits and REST more, and begins `x_stride` times WIDTH logits after the one before.
    It is read for its sum, and from the L2 cache for its gradient. `scale_ptr` has a factor of the gradient, or is
    None.
    """
    row = tl.program_id(0)
    vectors = VECTORS * WIDTH
    count = vectors + REST
    row_ptr = x_ptr + row.to(tl.int64) * (x_stride * WIDTH)
    target = tl.load(target_ptr + row)
    top, total, plain = sums_of_threads(row_ptr, vectors, THREADS, WITH_PLAIN=IS_SMOOTHED, POLICY="evict_last")
    # Before the threads add up their sums, which they do together: no thread has written to the row yet.
    of_target = tl.load(row_ptr + target, (target >= 0) & (target < count), float("nan")).to(tl.float32)
    if HAS_REST:
        last = vectors + tl.arange(0, WIDTH)
        rest = tl.load(row_ptr + last, last < count, float("-inf")).to(tl.float32)
    top, total = maximum_and_sum(top, total)
    lse = top + tl.log(total)
    mean = tl.sum(plain, 0)
    if HAS_REST:
        higher = tl.maximum(top, tl.max(rest, 0))
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.math.exp2((top - shift) * LOG2_E) + tl.sum(tl.math.exp2((rest - shift) * LOG2_E), 0)
        lse = higher + tl.log(total)
        mean += tl.sum(tl.where(last < count, rest, 0.0), 0)
    loss = lse - of_target
    if IS_SMOOTHED:
        loss = (1.0 - smoothing) * loss + smoothing * (lse - mean / count)
    is_counted = target != ignore_index
    tl.store(loss_ptr + row, tl.where(is_counted, loss, 0.0))
    factor = 1.0
    if scale_ptr is not None:
        factor = tl.load(scale_ptr)
    for first in range(0, vectors, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(row_ptr + at, at < vectors, 0.0, eviction_policy="evict_first").to(tl.float32)
        grad = gradient_of(x, at, lse, target, smoothing, count, factor, is_counted)
        tl.store(row_ptr + at, grad.to(x_ptr.dtype.element_ty), at < vectors)
    if HAS_REST:
        grad = gradient_of(rest, last, lse, target, smoothing, count, factor, is_counted)
        tl.store(row_ptr + last, grad.to(x_ptr.dtype.element_ty), last < count)


@tlx_xdsl.jit
def rounded(sums_ptr, out_ptr, VECTORS, BLOCK: tl.constexpr):
    """Round f32 sums to the type of the result, BLOCK elements for each program, of VECTORS times WIDTH altogether."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    at = tl.arange(0, BLOCK)
    inside = first + at < VECTORS.to(tl.int64) * WIDTH
    sums = tl.load(sums_ptr + first + at, inside, 0.0, eviction_policy="evict_first")
    tl.store(out_ptr + first + at, sums.to(out_ptr.dtype.element_ty), inside)


@tlx_xdsl.jit
def scaled(x_ptr, factor_ptr, VECTORS, BLOCK: tl.constexpr):
    """Multiply VECTORS times WIDTH elements by a factor, in their place. For a factor of 1 none is read."""
    factor = tl.load(factor_ptr)
    if factor != 1.0:
        count = VECTORS.to(tl.int64) * WIDTH
        step = tl.num_programs(0).to(tl.int64) * BLOCK
        for first in range(tl.program_id(0).to(tl.int64) * BLOCK, count, step):
            at = first + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + at, at < count, 0.0).to(tl.float32)
            tl.store(x_ptr + at, (x * factor).to(x_ptr.dtype.element_ty), at < count)
