"""The consumer of attention to a long cache in 8 bits: `rows`, with the products transposed.

The tensor cores multiply elements of one size, and take their left operand from registers. So the keys are the rows:
S^T = K Q^T and O^T = V^T P^T. A block of K or V is read from shared memory once, converted in registers, and is an
operand there; the few queries are the columns, T.rows of them, and so are the probabilities, which go through shared
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

from ...rings import next_place
from ..pieces import arrived, as_matrix, matrices_of, scores_of, wait_for, zeros_of
from ..scores import LOG2_E, capped, normalised, scale_of, subtracted
from .rows import (
    clear_after,
    hidden,
    item_of,
    places_of,
    queries_of,
    split_of,
    store_parts,
    store_result,
)

TOP = tl.constexpr(127 + 14)
"""The exponent field, in f32, of the largest numbers of a row of queries that is scaled."""


@tlx_xdsl.jit
def load_keys(matrix, dtype: tl.constexpr):
    """A piece of K, (keys, elements), as a left operand, its columns in the order of `in_order_of_keys`."""
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
def load_values(matrix, dtype: tl.constexpr):
    """A piece of V, (keys, elements), transposed, as a left operand, its rows in the order of `natural_rows`."""
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
    return [tl.trans(natural_rows(each)) for each in acc]


@tlx_xdsl.jit
def columns_times(acc, factor):
    """The pieces of O^T, each column times its factor."""
    return [each * factor[None, :] for each in acc]


@tlx_xdsl.jit
def power(field):
    """The power of two in f32 with an exponent field."""
    return (field << 23).to(tl.float32, bitcast=True)


@tlx_xdsl.jit
def exponents_of(q_ptr, at, item, dim, T: tl.constexpr):
    """The exponent field of each row's largest number, within what a power of two can undo."""
    top = tl.zeros(at.shape, tl.float32)
    for piece in tl.static_range(T.qk.number):
        values = queries_of(q_ptr, at, item, piece, dim, T).to(tl.float32)
        top = tl.maximum(top, tl.max(tl.abs(values), 1))
    field = top.to(tl.int32, bitcast=True) >> 23
    return tl.minimum(tl.maximum(field, 15), 254)


@tlx_xdsl.jit
def put_queries(q, q_ptr, strides, item, work, T: tl.constexpr):
    """Write an item's rows to shared memory, and return the field of the power of two that each is multiplied by.

    bf16 has numbers that fp16 has not: rows of it are multiplied, see `exponents_of`; for others there is None.
    """
    dtype: tl.constexpr = tlx.dtype_of(q.buffers)
    at = places_of(item, strides, T)
    dim = work.dim * T.unit
    field = exponents_of(q_ptr, at, item, dim, T) if dtype != q_ptr.dtype.element_ty else None
    for piece in tl.static_range(T.qk.number):
        values = queries_of(q_ptr, at, item, piece, dim, T)
        if field is not None:
            values = (values.to(tl.float32) * power(TOP + 127 - field)[:, None]).to(dtype)
        tlx.local_store(as_matrix(q.buffers[piece]), in_order_of_keys(values))
    tlx.fence_async_shared()
    return field


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
def visible(scores, factor, key, item, work, T: tl.constexpr):
    """The scores, capped, and minus infinity where a key is hidden."""
    if work.softcap is not None:
        scores = capped(scores, work.softcap, factor[None, :])
    if T.causal or work.left is not None:
        return hidden(scores, key, item, work, 0, T)
    if key + scores.shape[0] > item.split.length:
        scores = hidden(scores, key, item, work, 0, T)
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
    return wait_for([tlx.async_dot(values[piece], tlx.local_trans(p), acc[piece]) for piece in range(len(acc))])


@tlx_xdsl.jit
def attend_columns(rings, p, pointers, scales, lengths_ptr, sm_scale, strides, work, T: tl.constexpr):
    """Consumer: the results of its items, or their parts, from the blocks in the rings.

    `pointers` are those of the queries, results and sums, `scales` those of K's and V's scales, `strides` those of
    queries, results, and both scales.
    """
    q, k, v = rings
    q_ptr, out_ptr, sums_ptr = pointers
    k_scale_ptr, v_scale_ptr = scales
    dtype: tl.constexpr = tlx.dtype_of(q.buffers)
    stage = 0
    phase = 0
    for number in range(tl.program_id(0), work.items, tl.num_programs(0)):
        split = split_of(number, lengths_ptr, work, T)
        k_scale = scale_of(k_scale_ptr, split.batch, split.head, strides[2])
        item = item_of(split, work, T)
        field = put_queries(q, q_ptr, strides[0], item, work, T)
        factor = factors_of(sm_scale * k_scale, field, T.rows)
        scale = factor * LOG2_E if work.softcap is None else tl.full((T.rows,), LOG2_E, tl.float32)
        m = tl.full((T.rows,), float("-inf"), tl.float32)
        total = tl.zeros((T.block_n, T.rows), tl.float32)
        acc = zeros_of(T.v.elements, T.rows, T.v.number)
        for block in range(split.begin, split.end):
            key = block * T.block_n
            k_block = matrices_of(k, stage)
            tlx.barrier_wait(k.full[stage], phase)
            keys = [load_keys(each, dtype) for each in k_block]
            tlx.barrier_arrive(k.empty[stage])
            # All pieces are converted before: ptxas serialises products beside which registers of operands are written.
            scores = scores_of(keys, matrices_of(q, 0))
            v_block = arrived(v, stage, phase)
            if lengths_ptr is not None and key + T.block_n > split.length:
                clear_after(v_block, split.length - key)
            values = [load_values(each, dtype) for each in v_block]
            tlx.barrier_arrive(v.empty[stage])
            scores = tlx.async_dot_wait(0, scores)
            scores = visible(scores, factor, key, item, work, T)
            weights, m, total, alpha = softmax_of_columns(scores, scale, m, total)
            acc = with_values(columns_times(acc, alpha), values, weights.to(dtype), p[0])
            stage, phase = next_place(stage, phase, T.stages)

        total = tl.sum(total, 0)
        if v_scale_ptr is not None:
            of_values = scale_of(v_scale_ptr, split.batch, split.head, strides[3])
            acc = columns_times(acc, tl.full((T.rows,), of_values, tl.float32))
        if T.direct:
            m, total, factor = normalised(m, total, None, True)
            store_result(out_ptr, by_rows(columns_times(acc, factor)), strides[1], item, work, T)
        else:
            store_parts(sums_ptr, by_rows(acc), item, work, T, m=m, total=total)
