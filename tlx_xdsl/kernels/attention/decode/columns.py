"""The consumer of attention to a long cache in 8 bits: `rows`, with the products transposed.

The tensor cores multiply elements of one size, and take their left operand from registers. So the keys are the rows:
S^T = K Q^T and O^T = V^T P^T. A block of K or V is read from shared memory once, converted in registers, and is an
operand there; the few queries are the columns, COLUMNS of them, and so are the probabilities, which go through shared
memory.

Registers. Of each 16 columns of a left operand, thread t of four has 2t, 2t + 1, 2t + 8 and 2t + 9, and of each 64 rows
a thread has two, 8 apart. A sum over the head dim may be in any order, and so may the rows of O^T: a thread of
`load_keys` has elements of a row that follow each other, a quarter of the piece, and one of `load_values` has four of
each of its keys, or two. Nothing moves between threads.

The scales of K and V are those of a head, and multiply the scores and the results. A row of bf16 queries is multiplied
by a power of two, which the scores undo, so that fp16, which has every e4m3 number, has all of it that can matter.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalMemberAccess=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.rings import next_place

from ..pieces import as_matrix, block_of, wait_for, zeros_of
from ..scores import LOG2_E, normalised, subtracted, turned_scores
from .rows import (
    blocks_of,
    clear_after,
    length_of,
    place_of,
    rows_of,
    store_result,
    store_sums,
    store_totals,
)

TOP = tl.constexpr(127 + 14)
"""The exponent field, in f32, of the largest numbers of a row of queries that is scaled."""


@tlx_xdsl.jit
def load_keys(piece, dtype: tl.constexpr):
    """A piece of K, (keys, elements), as a left operand, its columns in the order of `in_order_of_keys`."""
    matrix = as_matrix(piece)
    KEYS: tl.constexpr = matrix.shape[0]
    WIDTH: tl.constexpr = matrix.shape[1]
    layout: tl.constexpr = tlx.layout(
        shape=((4, 8, 4), (WIDTH // 4, 2, KEYS // 64)),
        stride=((WIDTH // 4, WIDTH, 16 * WIDTH), (1, 8 * WIDTH, 64 * WIDTH)),
    )
    return in_order_of_keys(tlx.local_load(matrix, layout=layout).to(dtype))


@tlx_xdsl.jit
def in_order_of_keys(x):
    """A piece's columns, each quarter, which one thread of four has of K, to where the operand wants that thread's."""
    WIDTH: tl.constexpr = x.shape[1]
    split = tl.reshape(x, (x.shape[0], 4, WIDTH // 16, 2, 2))
    return tl.reshape(tl.permute(split, (0, 2, 3, 1, 4)), x.shape)


@tlx_xdsl.jit
def load_values(piece, dtype: tl.constexpr):
    """A piece of V, (keys, elements), transposed, as a left operand, its rows in the order of `natural_rows`."""
    matrix = as_matrix(piece)
    KEYS: tl.constexpr = matrix.shape[0]
    WIDTH: tl.constexpr = matrix.shape[1]
    layout: tl.constexpr = tlx.layout(
        shape=((4, 8, 4), (WIDTH // 32, 2, KEYS // 8)),
        stride=((2 * WIDTH, WIDTH // 32, WIDTH // 4), (1, WIDTH, 8 * WIDTH)),
    )
    values = tlx.local_load(matrix, layout=layout).to(dtype)
    split = tl.reshape(values, (KEYS, 4, 8, WIDTH // 64, 2))
    return tl.reshape(tl.permute(split, (3, 1, 4, 2, 0)), (WIDTH, KEYS))


@tlx_xdsl.jit
def natural_rows(x):
    """A piece of O^T with its rows in the order of V's elements."""
    split = tl.reshape(x, (x.shape[0] // 64, 4, 2, 8, x.shape[1]))
    return tl.reshape(tl.permute(split, (1, 3, 0, 2, 4)), x.shape)


@tlx_xdsl.jit
def by_rows(acc):
    """The pieces of O, (queries, elements)."""
    pieces = ()
    for piece in tl.static_range(len(acc)):
        pieces += (tl.trans(natural_rows(acc[piece])),)
    return pieces


@tlx_xdsl.jit
def columns_times(acc, factor):
    """The pieces of O^T, each column times its factor."""
    pieces = ()
    for piece in tl.static_range(len(acc)):
        pieces += (acc[piece] * factor[None, :],)
    return pieces


@tlx_xdsl.jit
def scale_of(scale_ptr, batch, head, batch_stride, head_stride):
    """The scale of a head of K or V; 1 without any."""
    if scale_ptr is None:
        return 1.0
    return tl.load(scale_ptr + batch * batch_stride + head * head_stride)


@tlx_xdsl.jit
def power(field):
    """The power of two in f32 with an exponent field."""
    return (field << 23).to(tl.float32, bitcast=True)


@tlx_xdsl.jit
def exponents_of(q_ptr, at, is_row, DIM, PIECE: tl.constexpr, PIECES: tl.constexpr):
    """The exponent field of each row's largest number, within what a power of two can undo."""
    top = tl.zeros(at.shape, tl.float32)
    for piece in tl.static_range(PIECES):
        columns = piece * PIECE + tl.arange(0, PIECE)
        inside = is_row[:, None] & (columns < DIM)[None, :]
        values = tl.load(q_ptr + at[:, None] + columns[None, :], inside, 0.0).to(tl.float32)
        top = tl.maximum(top, tl.max(tl.abs(values), 1))
    field = top.to(tl.int32, bitcast=True) >> 23
    return tl.minimum(tl.maximum(field, 15), 254)


@tlx_xdsl.jit
def put_queries(q, q_ptr, at, is_row, field, DIM, PIECES: tl.constexpr):
    """Write the rows at `at` to shared memory; those with a `field` are multiplied, see `exponents_of`."""
    PIECE: tl.constexpr = q[0].shape[-1]
    for piece in tl.static_range(PIECES):
        columns = piece * PIECE + tl.arange(0, PIECE)
        inside = is_row[:, None] & (columns < DIM)[None, :]
        values = tl.load(q_ptr + at[:, None] + columns[None, :], inside, 0.0)
        if field is not None:
            values = (values.to(tl.float32) * power(TOP + 127 - field)[:, None]).to(tlx.dtype_of(q))
        tlx.local_store(as_matrix(q[piece]), in_order_of_keys(values))
    tlx.fence_async_shared()


@tlx_xdsl.jit
def hidden(scores, key, length, query, QUERIES, left, CAUSAL: tl.constexpr):
    """The scores, minus infinity for keys that a query does not see; the last one stands at the last key."""
    keys = key + tl.arange(0, scores.shape[0])
    seen = (keys < length)[:, None]
    if CAUSAL:
        seen = seen & (keys[:, None] <= (length - QUERIES + query)[None, :])
    if left is not None:
        seen = seen & (keys[:, None] >= (length - QUERIES + query - left)[None, :])
    return tl.where(seen, scores, float("-inf"))


@tlx_xdsl.jit
def softmax_of_columns(scores, scale, m, total):
    """Probabilities before the division, the columns' maxima (scaled), sums, and the factor of what was before.

    The sums are of parts of a column, (keys, columns): they are put together once, after the last block.
    """
    m_new = tl.maximum(m, tl.max(scores, 0) * scale)
    top = subtracted(m_new, True)
    p = tl.math.exp2(scores * scale[None, :] - top[None, :])
    alpha = tl.math.exp2(m - top)
    return p, m_new, total * alpha[None, :] + p, alpha


@tlx_xdsl.jit
def products(keys, q):
    """Issue S^T = K Q^T of a block, one product for each piece.

    All pieces are converted before: ptxas serialises products beside which registers of their operands are written.
    """
    scores = tlx.async_dot(keys[0], tlx.local_trans(as_matrix(q[0])))
    for piece in tl.static_range(1, len(keys)):
        scores = tlx.async_dot(keys[piece], tlx.local_trans(as_matrix(q[piece])), scores)
    return scores


@tlx_xdsl.jit
def visible(scores, factor, softcap, key, length, query, QUERIES, left, CAUSAL: tl.constexpr):
    """The scores, capped, and minus infinity where a key is hidden."""
    if softcap is not None:
        scores = turned_scores(scores, factor[None, :], softcap, None, key, (), None)
    if CAUSAL or left is not None:
        return hidden(scores, key, length, query, QUERIES, left, CAUSAL)
    if key + scores.shape[0] > length:
        scores = hidden(scores, key, length, query, QUERIES, left, CAUSAL)
    return scores


@tlx_xdsl.jit
def factors_of(factor, field, COLUMNS: tl.constexpr):
    """Return the factor of each query's scores: `factor`, times what undoes the power of two of its row, if it has one.

    None is less than the smallest normal number: zero times minus infinity, the score of a hidden key, would be NaN.
    """
    factors = tl.full((COLUMNS,), factor, tl.float32)
    if field is not None:
        factors = factors * power(field - (TOP - 127))
    return tl.where(tl.abs(factors) < 2.0**-126, 2.0**-126, factors)


@tlx_xdsl.jit
def with_values(acc, values, weights, p):
    """O^T += V^T P^T of a block, the probabilities through the buffer `p`."""
    tlx.local_store(tlx.local_trans(p), weights)
    tlx.fence_async_shared()
    sums = ()
    for piece in tl.static_range(len(acc)):
        sums += (tlx.async_dot(values[piece], tlx.local_trans(p), acc[piece]),)
    return wait_for(sums)


@tlx_xdsl.jit
def attend_columns(
    q, k, v, p, k_full, v_full, k_empty, v_empty,
    q_ptr, out_ptr, sums_ptr, lengths_ptr, k_scale_ptr, v_scale_ptr, sm_scale,
    q_batch, q_head, q_row, out_batch, out_head, out_row, k_scale_batch, k_scale_head, v_scale_batch, v_scale_head,
    ITEMS, TILES, SPLITS, KV_HEADS, GROUP, QUERIES, KEYS, TOTAL_ROWS, DIM, V_DIM, left, softcap,
    COLUMNS: tl.constexpr, BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr, PIECES: tl.constexpr,
    V_PIECES: tl.constexpr, CAUSAL: tl.constexpr, DIRECT: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """Consumer: the results of its items, or their parts, from the blocks in the rings."""
    dtype: tl.constexpr = tlx.dtype_of(q)
    PIECE: tl.constexpr = k[0].shape[-1]
    V_PIECE: tl.constexpr = v[0].shape[-1]
    # bf16 has numbers that fp16 has not: such rows are multiplied by powers of two, which the scores undo.
    IS_SCALED: tl.constexpr = dtype != q_ptr.dtype.element_ty
    stage = 0
    phase = 0
    for item in range(tl.program_id(0), ITEMS, tl.num_programs(0)):
        tile, split, head, batch = place_of(item, TILES, SPLITS, KV_HEADS)
        length = length_of(lengths_ptr, batch, KEYS)
        begin, end = blocks_of(split, length, left, QUERIES, SPLITS, BLOCK_N)
        k_scale = scale_of(k_scale_ptr, batch, head, k_scale_batch, k_scale_head)
        query, q_heads, is_row = rows_of(tile, head, GROUP, QUERIES, COLUMNS)
        at = batch.to(tl.int64) * q_batch + q_heads.to(tl.int64) * q_head + query.to(tl.int64) * q_row
        at = at * UNIT
        field = exponents_of(q_ptr, at, is_row, DIM * UNIT, PIECE, PIECES) if IS_SCALED else None
        put_queries(q, q_ptr, at, is_row, field, DIM * UNIT, PIECES)
        factor = factors_of(sm_scale * k_scale, field, COLUMNS)
        scale = factor * LOG2_E if softcap is None else tl.full((COLUMNS,), LOG2_E, tl.float32)
        m = tl.full((COLUMNS,), float("-inf"), tl.float32)
        total = tl.zeros((BLOCK_N, COLUMNS), tl.float32)
        acc = zeros_of(V_PIECE, COLUMNS, V_PIECES)
        for block in range(begin, end):
            key = block * BLOCK_N
            k_block = block_of(k, stage, PIECES)
            tlx.barrier_wait(k_full[stage], phase)
            keys = ()
            for piece in tl.static_range(PIECES):
                keys += (load_keys(k_block[piece], dtype),)
            tlx.barrier_arrive(k_empty[stage])
            scores = products(keys, q)
            tlx.barrier_wait(v_full[stage], phase)
            v_block = block_of(v, stage, V_PIECES)
            if lengths_ptr is not None and key + BLOCK_N > length:
                clear_after(v_block, length - key)
            values = ()
            for piece in tl.static_range(V_PIECES):
                values += (load_values(v_block[piece], dtype),)
            tlx.barrier_arrive(v_empty[stage])
            scores = tlx.async_dot_wait(0, scores)
            scores = visible(scores, factor, softcap, key, length, query, QUERIES, left, CAUSAL)
            weights, m, total, alpha = softmax_of_columns(scores, scale, m, total)
            acc = with_values(columns_times(acc, alpha), values, weights.to(dtype), p[0])
            stage, phase = next_place(stage, phase, NUM_STAGES)

        total = tl.sum(total, 0)
        if v_scale_ptr is not None:
            of_values = scale_of(v_scale_ptr, batch, head, v_scale_batch, v_scale_head)
            acc = columns_times(acc, tl.full((COLUMNS,), of_values, tl.float32))
        place = (batch, q_heads, query, is_row)
        if DIRECT:
            m, total, factor = normalised(m, total, None, True)
            acc = by_rows(columns_times(acc, factor))
            store_result(out_ptr, acc, place, out_batch, out_head, out_row, V_DIM, UNIT)
        else:
            row = (batch * KV_HEADS * GROUP + q_heads) * QUERIES + query
            store_sums(sums_ptr, by_rows(acc), split, row, is_row, TOTAL_ROWS, V_DIM * UNIT)
            store_totals(sums_ptr, m, total, split, row, is_row, SPLITS, TOTAL_ROWS, V_DIM * UNIT)
