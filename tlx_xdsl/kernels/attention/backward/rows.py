"""Kernels before and after the products of attention's backward pass: rows, read and written once.

Before, for each query: delta = sum of dO * O, less the gradient of its logarithm where there is one; the logarithm of
its denominator in base 2, and a row of zeros for the sums of dQ; and zeros for the counters of tiles. After:
dQ = sums * scale, in the type of Q.

The workspace has whole blocks of BLOCK_M queries, so that what reads it needs no masks. Queries after the end have the
logarithm plus infinity, which makes their probabilities 0. Sums have HEAD_DIM columns, a head V_ELEMENTS of O and
ELEMENTS of dQ.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl

from ..scores import LOG2_E

UNIT = tl.constexpr(8)
"""Elements of 16 bytes. Strides are multiples of it; as the compiler sees that, it moves 16 bytes at a time."""


@tlx_xdsl.jit
def rows_at(pointer, head, first, HEADS, strides, ROWS: tl.constexpr, HEAD_DIM: tl.constexpr):
    """Pointers to rows of a head, which is counted over all batches; strides are in units of 16 bytes."""
    batch_stride, head_stride, row_stride = strides
    start = (head // HEADS).to(tl.int64) * (batch_stride * UNIT) + (head % HEADS).to(tl.int64) * (head_stride * UNIT)
    rows = (first + tl.arange(0, ROWS)).to(tl.int64) * (row_stride * UNIT)
    return pointer + start + rows[:, None] + tl.arange(0, HEAD_DIM)[None, :]


@tlx_xdsl.jit
def inside_of(rows, ELEMENTS: tl.constexpr, WIDTH: tl.constexpr):
    """Return the mask of a head's elements in a block with WIDTH columns, from the mask `rows` of its rows."""
    inside = rows[:, None]
    return inside if ELEMENTS == WIDTH else inside & (tl.arange(0, WIDTH) < ELEMENTS)[None, :]


@tlx_xdsl.jit
def attention_backward_before(
    out_ptr, dout_ptr, lse_ptr, dlse_ptr, stats_ptr, sums_ptr, counter_ptr, added_ptr,
    out_strides, dout_strides, HEADS, Q_LENGTH, BLOCKS,
    BLOCK_M: tl.constexpr, HEAD_DIM: tl.constexpr, V_ELEMENTS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Programs are (head, ROWS of the queries). `stats_ptr` has, for each block, its logarithms and then its deltas.

    `counter_ptr` has UNIT numbers.
    """
    first = tl.program_id(1) * ROWS
    head = tl.program_id(0)
    if head + first == 0:
        tl.store(counter_ptr + tl.arange(0, UNIT), 0.0)
    if added_ptr is not None and first % BLOCK_M == 0:
        tl.store(added_ptr + head * BLOCKS + first // BLOCK_M, 0.0)
    rows = first + tl.arange(0, ROWS)
    inside = rows < Q_LENGTH
    read = inside_of(inside, V_ELEMENTS, HEAD_DIM)
    out = tl.load(rows_at(out_ptr, head, first, HEADS, out_strides, ROWS, HEAD_DIM), read, 0)
    dout = tl.load(rows_at(dout_ptr, head, first, HEADS, dout_strides, ROWS, HEAD_DIM), read, 0)
    delta = tl.sum(out.to(tl.float32) * dout.to(tl.float32), 1)
    row = head.to(tl.int64) * Q_LENGTH + rows
    if dlse_ptr is not None:
        # The logarithm's slope is the probability: dS = P (dP - delta + d lse).
        delta -= tl.load(dlse_ptr + row, inside, 0)
    lse = tl.load(lse_ptr + row, inside, float("inf")) * LOG2_E
    block = head.to(tl.int64) * BLOCKS + first // BLOCK_M
    place = stats_ptr + block * (2 * BLOCK_M) + first % BLOCK_M + tl.arange(0, ROWS)
    tl.store(place, lse)
    tl.store(place + BLOCK_M, delta)
    if sums_ptr is not None:
        start = (head.to(tl.int64) * (BLOCKS * BLOCK_M) + first) * HEAD_DIM
        at = sums_ptr + start + tl.arange(0, ROWS)[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, :]
        tl.store(at, tl.zeros((ROWS, HEAD_DIM), tl.float32))


@tlx_xdsl.jit
def attention_backward_after(
    sums_ptr, dq_ptr, strides, scale, HEADS, Q_LENGTH, PADDED,
    HEAD_DIM: tl.constexpr, ELEMENTS: tl.constexpr, ROWS: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """Write dQ = sums * scale. Programs are (head, ROWS of the queries); a head has PADDED rows of sums.

    PART rows are HEAD_DIM / PART parts, one after the other, whose numbers lie as `device.by_threads` has them: a
    warp's 16 rows together.
    """
    first = tl.program_id(1) * ROWS
    head = tl.program_id(0)
    parts: tl.constexpr = HEAD_DIM // PART
    start = (head.to(tl.int64) * PADDED + first // PART * PART) * HEAD_DIM + first % PART * PART
    at = start + tl.arange(0, parts)[:, None] * (PART * PART) + tl.arange(0, ROWS * PART)[None, :]
    held = tl.load(sums_ptr + at).reshape((parts, ROWS // 16, PART // 8, 8, 4, 2, 2))
    dq = held.permute((1, 5, 3, 0, 2, 4, 6)).reshape((ROWS, HEAD_DIM)) * scale
    inside = inside_of(first + tl.arange(0, ROWS) < Q_LENGTH, ELEMENTS, HEAD_DIM)
    target = rows_at(dq_ptr, head, first, HEADS, strides, ROWS, HEAD_DIM)
    tl.store(target, dq.to(dq_ptr.dtype.element_ty), inside)
