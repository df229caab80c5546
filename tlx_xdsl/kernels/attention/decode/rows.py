"""The consumer of attention to a long cache: items of rows, splits of their keys, and what it leaves of each.

`device` says what rows, splits and items are. `T` is the `config.Tiling` that a kernel is compiled for.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalMemberAccess=false

from typing import Any, NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ...rings import next_place
from ..pieces import (
    ROWS,
    add_values,
    arrived,
    as_matrix,
    matrices_of,
    scores_of,
    times,
    wait_for,
    zeros_of,
)
from ..scores import LOG2_E, capped, next_softmax, normalised


class Work(NamedTuple):
    """The work of all programs: items, and what each of them is of."""

    items: Any
    tiles: Any
    splits: Any
    kv_heads: Any
    group: Any
    queries: Any
    keys: Any
    """Those that there is memory for."""
    rows: Any
    """Queries of all heads and batches."""
    dim: Any
    v_dim: Any
    left: Any = None
    softcap: Any = None


class Split(NamedTuple):
    """An item: a tile of rows, and a split of the keys of their sequence, the blocks from `begin` to `end`."""

    tile: Any
    number: Any
    head: Any
    """That of K and V."""
    batch: Any
    length: Any
    """The keys of the sequence."""
    begin: Any
    end: Any


class Item(NamedTuple):
    """An item with its rows."""

    split: Any
    query: Any
    """That of each row, of `head`."""
    head: Any
    is_row: Any


@tlx_xdsl.jit
def split_of(number, lengths_ptr, work, T: tl.constexpr):
    """The split of an item. A sequence has as many keys as there is memory for, or as are said, within that."""
    rest = number // work.tiles
    head = rest // work.splits
    tile = number % work.tiles
    split = rest % work.splits
    batch = head // work.kv_heads
    head = head % work.kv_heads
    length = work.keys
    if lengths_ptr is not None:
        length = tl.minimum(tl.maximum(tl.load(lengths_ptr + batch), 0), work.keys)
    begin = 0
    if work.left is not None:
        begin = tl.maximum(length - work.queries - work.left, 0) // T.block_n
    count = tl.cdiv(length, T.block_n) - begin
    first = begin + count * split // work.splits
    return Split(tile, split, head, batch, length, first, begin + count * (split + 1) // work.splits)


@tlx_xdsl.jit
def item_of(split, work, T: tl.constexpr):
    """The item of a split."""
    rows = split.tile * T.rows + tl.arange(0, T.rows)
    query = rows // work.group
    return Item(split, query, split.head * work.group + rows % work.group, query < work.queries)


@tlx_xdsl.jit
def hidden(scores, key, item, work, AXIS: tl.constexpr, T: tl.constexpr):
    """The scores, minus infinity for keys that a row does not see; its last query stands at the last key.

    Keys are along AXIS.
    """
    keys = key + tl.arange(0, scores.shape[AXIS])
    seen = tl.expand_dims(keys < item.split.length, 1 - AXIS)
    keys = tl.expand_dims(keys, 1 - AXIS)
    if T.causal:
        seen = seen & (keys <= tl.expand_dims(item.split.length - work.queries + item.query, AXIS))
    if work.left is not None:
        seen = seen & (keys >= tl.expand_dims(item.split.length - work.queries + item.query - work.left, AXIS))
    return tl.where(seen, scores, float("-inf"))


@tlx_xdsl.jit
def clear_after(block, rows):
    """Put zeros to the matrices of a block of V from row `rows` on."""
    for piece in tl.static_range(len(block)):
        values = tlx.local_load(block[piece])
        at = tl.arange(0, values.shape[0])
        tlx.local_store(block[piece], tl.where((at < rows)[:, None], values, 0.0))
    tlx.fence_async_shared()


@tlx_xdsl.jit
def places_of(item, strides, T: tl.constexpr):
    """The elements before each row of an item; strides are those of batches, heads and queries in units."""
    batch_stride, head_stride, row_stride = strides
    at = item.split.batch.to(tl.int64) * batch_stride + item.head.to(tl.int64) * head_stride
    return (at + item.query.to(tl.int64) * row_stride) * T.unit


@tlx_xdsl.jit
def queries_of(q_ptr, at, item, piece, dim, T: tl.constexpr):
    """A piece of the rows at `at`, of heads of `dim` elements."""
    columns = piece * T.qk.elements + tl.arange(0, T.qk.elements)
    inside = item.is_row[:, None] & (columns < dim)[None, :]
    return tl.load(q_ptr + at[:, None] + columns[None, :], inside, 0.0)


@tlx_xdsl.jit
def put_queries(q, q_ptr, strides, item, work, T: tl.constexpr):
    """Write an item's rows to shared memory."""
    at = places_of(item, strides, T)
    dim = work.dim * T.unit
    for piece in tl.static_range(T.qk.number):
        values = queries_of(q_ptr, at, item, piece, dim, T)
        tlx.local_store(as_matrix(q.buffers[piece]), values)
    tlx.fence_async_shared()


@tlx_xdsl.jit
def store_result(out_ptr, acc, strides, item, work, T: tl.constexpr, FIRST: tl.constexpr = 0):
    """Write the results of an item's rows. FIRST is the column of the first sums."""
    at = places_of(item, strides, T)
    for piece in tl.static_range(len(acc)):
        columns = FIRST + piece * acc[0].shape[1] + tl.arange(0, acc[0].shape[1])
        inside = item.is_row[:, None] & (columns < work.v_dim * T.unit)[None, :]
        tl.store(out_ptr + at[:, None] + columns[None, :], acc[piece].to(out_ptr.dtype.element_ty), inside)


@tlx_xdsl.jit
def store_parts(sums_ptr, acc, item, work, T: tl.constexpr, FIRST: tl.constexpr = 0, m=None, total=None):
    """Write the sums that a split has of rows, from column FIRST on; after all sums their maxima and denominators."""
    row = (item.split.batch * work.kv_heads * work.group + item.head) * work.queries + item.query
    v_dim = work.v_dim * T.unit
    slot = item.split.number.to(tl.int64) * work.rows + row
    for piece in tl.static_range(len(acc)):
        columns = FIRST + piece * acc[0].shape[1] + tl.arange(0, acc[0].shape[1])
        inside = item.is_row[:, None] & (columns < v_dim)[None, :]
        tl.store(sums_ptr + slot[:, None] * v_dim + columns[None, :], acc[piece], inside)
    if m is not None:
        maxima = sums_ptr + work.splits.to(tl.int64) * work.rows * v_dim
        tl.store(maxima + slot, m, item.is_row)
        tl.store(maxima + work.splits.to(tl.int64) * work.rows + slot, total, item.is_row)


@tlx_xdsl.jit
def weights_of(scores, m, total, factor, key, item, work, IS_LAST: tl.constexpr, T: tl.constexpr):
    """Probabilities of a block, as `next_softmax`. The end of the keys is in an item's last block, if in any."""
    if work.softcap is not None:
        scores = capped(scores, work.softcap, factor)
    if IS_LAST or T.causal or work.left is not None:
        scores = hidden(scores, key, item, work, 1, T)
    return next_softmax(scores, factor * LOG2_E if work.softcap is None else LOG2_E, m, total, True)


@tlx_xdsl.jit
def attend_blocks(rings, stage, phase, state, factor, item, work, IS_CUT: tl.constexpr, T: tl.constexpr):
    """One block of an item or more: while one is multiplied with V, so is the next one of K with the queries.

    Needs two stages or more. IS_CUT: memory after the end of the keys may hold NaN.
    """
    q, k, v = rings
    acc, m, total = state
    dtype: tl.constexpr = tlx.dtype_of(q.buffers)
    scores = tlx.async_dot_wait(0, scores_of(matrices_of(q, 0), arrived(k, stage, phase)))
    tlx.barrier_arrive(k.empty[stage])
    for block in range(item.split.begin, item.split.end - 1):
        weights, m, total, alpha = weights_of(scores, m, total, factor, block * T.block_n, item, work, False, T)
        acc = times(acc, alpha)
        rounded = weights.to(dtype)
        next_stage, next_phase = next_place(stage, phase, T.stages)
        scores = scores_of(matrices_of(q, 0), arrived(k, next_stage, next_phase))
        acc = add_values(rounded, arrived(v, stage, phase), acc)
        scores = tlx.async_dot_wait(T.v.number, scores)
        tlx.barrier_arrive(k.empty[next_stage])
        acc = wait_for(acc)
        tlx.barrier_arrive(v.empty[stage])
        stage = next_stage
        phase = next_phase
    key = (item.split.end - 1) * T.block_n
    weights, m, total, alpha = weights_of(scores, m, total, factor, key, item, work, True, T)
    acc = times(acc, alpha)
    v_block = arrived(v, stage, phase)
    if IS_CUT and key + T.block_n > item.split.length:
        clear_after(v_block, item.split.length - key)
    acc = wait_for(add_values(weights.to(dtype), v_block, acc))
    tlx.barrier_arrive(v.empty[stage])
    return acc, m, total, *next_place(stage, phase, T.stages)


@tlx_xdsl.jit
def attend(rings, pointers, lengths_ptr, sm_scale, strides, work, T: tl.constexpr):
    """Consumer: the results of its items, or their parts, from the blocks in the rings.

    `pointers` are those of the queries, results and sums, `strides` those of the first two.
    """
    q_ptr, out_ptr, sums_ptr = pointers
    stage = 0
    phase = 0
    for number in range(tl.program_id(0), work.items, tl.num_programs(0)):
        item = item_of(split_of(number, lengths_ptr, work, T), work, T)
        put_queries(rings[0], q_ptr, strides[0], item, work, T)
        m = tl.full((ROWS,), float("-inf"), tl.float32)
        total = tl.zeros((ROWS,), tl.float32)
        acc = zeros_of(ROWS, T.v.elements, T.v.number)
        if item.split.begin < item.split.end:
            acc, m, total, stage, phase = attend_blocks(
                rings, stage, phase, (acc, m, total), sm_scale, item, work, lengths_ptr is not None, T
            )

        if T.direct:
            m, total, factor = normalised(m, total, None, True)
            store_result(out_ptr, times(acc, factor), strides[1], item, work, T)
        else:
            store_parts(sums_ptr, acc, item, work, T, m=m, total=total)
