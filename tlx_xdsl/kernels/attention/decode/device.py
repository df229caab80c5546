"""Attention of few queries to many keys, for Hopper: the keys of a head are split over programs.

Bound by memory: K and V are read once, so what counts is that loads are in flight all the time. A producer keeps a ring
of blocks of K and V full by TMA, and goes on to the next item while the consumer ends one. An item is (batch, head of K
and V, tile of rows, split); programs take every `num_programs`-th.

Rows. The queries of all heads that share K and V are the rows of one product: row r is the query r // group of the
r % group-th of these heads. Rows are filled up to 64, a wgmma's: products are far from limiting here.

Splits. A sequence's blocks of keys are divided evenly, by its own length, which is read on the GPU. With one split the
kernel writes the result; else it writes for each row the sum of P V in f32, the maximum and the denominator, and
`merge` adds them up in the order of the splits, so that results are the same bits each time. A split without keys has
the maximum minus infinity.

Pages. With a table of pages, K and V are (pages, heads, rows of a page), and a sequence's blocks are gathered from the
pages that the table names: from a part of one, or from several, of T.part rows each, which lie in shared memory one
after the other as the rows of a block would.

Memory after the end of a sequence may hold NaN, and 0 * NaN is NaN: the consumer puts zeros to those rows of V.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalMemberAccess=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ...rings import next_place
from ..pieces import Ring, load_parts, rings_of, slot_of
from ..scores import subtracted
from .columns import attend_columns
from .rows import attend, split_of

REGISTERS = tl.constexpr(232)
"""Those of a thread of the consumer."""


@tlx_xdsl.jit
def pages_of(table_ptr, batch, key, work, T: tl.constexpr):
    """The pages of a block that starts at `key`: one for each part; after the end of the table its last one again."""
    count = work.keys // T.page
    pages = ()
    for part in tl.static_range(T.block_n // T.part):
        at = tl.minimum((key + part * T.part) // T.page, count - 1)
        pages += ((tl.load(table_ptr + batch.to(tl.int64) * count + at),),)
    return pages


@tlx_xdsl.jit
def parts_of(ring, pieces, T: tl.constexpr):
    """A ring whose blocks are in `pieces` of T.part rows each."""
    buffers = ring.buffers
    if T.part < T.block_n:
        shape: tl.constexpr = (1, 1, T.part, pieces.elements)
        count: tl.constexpr = T.stages * pieces.number
        buffers = tlx.local_reinterpret(buffers, tlx.dtype_of(buffers), shape, num=count)
    return Ring(buffers, ring.full, ring.empty, pieces)


@tlx_xdsl.jit
def load_items(k_desc, v_desc, k, v, table_ptr, lengths_ptr, work, T: tl.constexpr):
    """Producer: the blocks of all items of a program, to the rings of K and V, or to that of K alone."""
    k_parts = parts_of(k, T.qk_parts, T)
    if v_desc is not None:
        v_parts = parts_of(v, T.v_parts, T)
    stage = 0
    phase = 0
    for number in range(tl.program_id(0), work.items, tl.num_programs(0)):
        _, _, head, batch, _, begin, end = split_of(number, lengths_ptr, work, T)
        pages = ((batch,),)
        if table_ptr is not None:
            pages = pages_of(table_ptr, batch, begin * T.block_n, work, T)
        for block in range(begin, end):
            key = block * T.block_n
            row = key if table_ptr is None else key % T.page
            load_parts(k_desc, slot_of(k_parts, stage), pages, head, row, phase)
            if v_desc is not None:
                load_parts(v_desc, slot_of(v_parts, stage), pages, head, row, phase)
            if table_ptr is not None:
                # They are there when the next block is free.
                pages = pages_of(table_ptr, batch, key + T.block_n, work, T)
            stage, phase = next_place(stage, phase, T.stages)


@tlx_xdsl.jit
def attention_decode(
    q_ptr, k_desc, v_desc, out_ptr, sums_ptr, lengths_ptr, table_ptr, k_scale_ptr, v_scale_ptr, sm_scale, strides,
    work, T: tl.constexpr,
):  # fmt: skip
    """The kernel; see the top of the file. `strides` are those of queries, results and scales of K and V.

    Strides of queries and results and the head dims are counted in T.unit elements: 16 bytes move at a time if that is
    8. The consumer of a cache in 8 bits, which converts it in its registers, is that of `columns`.
    """
    dtype: tl.constexpr = tlx.dtype_of(k_desc)
    q = tlx.local_alloc((1, 1, T.rows, T.qk.elements), tl.float16 if T.in_8_bits else dtype, T.qk.number)
    if T.in_8_bits:
        p = tlx.local_alloc((T.rows, T.block_n), tl.float16, 1)
    k_buffers = tlx.local_alloc((1, 1, T.block_n, T.qk.elements), dtype, T.stages * T.qk.number)
    v_buffers = tlx.local_alloc((1, 1, T.block_n, T.v.elements), dtype, T.stages * T.v.number)
    k, v = rings_of(k_buffers, v_buffers, T.stages, 1, T)
    rings = (Ring(q, None, None, T.qk), k, v)
    pointers = (q_ptr, out_ptr, sums_ptr)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            load_items(k_desc, v_desc, k, v, table_ptr, lengths_ptr, work, T)

        with tlx.async_task(num_warps=4, registers=REGISTERS):  # consumer
            if T.in_8_bits:
                scales = (k_scale_ptr, v_scale_ptr)
                attend_columns(rings, p, pointers, scales, lengths_ptr, sm_scale, strides, work, T)
            else:
                attend(rings, pointers, lengths_ptr, sm_scale, strides, work, T)


@tlx_xdsl.jit
def merge(
    sums_ptr, out_ptr, SPLITS, TOTAL_ROWS, HEADS, QUERIES, V_DIM, strides,
    COUNT: tl.constexpr, WIDTH: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """The result of one row of all: COUNT is a power of two for the splits, WIDTH for the columns."""
    row = tl.program_id(0)
    split = tl.arange(0, COUNT)
    columns = tl.arange(0, WIDTH)
    slot = split.to(tl.int64) * TOTAL_ROWS + row
    is_split = split < SPLITS
    tl.extra.cuda.gdc_wait()  # the programs of this launch are there before the other one has ended
    maxima = sums_ptr + SPLITS.to(tl.int64) * TOTAL_ROWS * (V_DIM * UNIT)
    m = tl.load(maxima + slot, is_split, float("-inf"))
    totals = tl.load(maxima + SPLITS.to(tl.int64) * TOTAL_ROWS + slot, is_split, 0.0)
    weights = tl.math.exp2(m - subtracted(tl.max(m, 0), True))
    inside = is_split[:, None] & (columns < V_DIM * UNIT)[None, :]
    sums = tl.load(sums_ptr + slot[:, None] * (V_DIM * UNIT) + columns[None, :], inside, 0.0)
    total = tl.sum(totals * weights, 0)
    result = tl.sum(sums * weights[:, None], 0) * tl.where(total == 0.0, 0.0, 1.0 / total)
    at = (row // (HEADS * QUERIES)).to(tl.int64) * strides[0]
    at += (row // QUERIES % HEADS).to(tl.int64) * strides[1] + (row % QUERIES).to(tl.int64) * strides[2]
    tl.store(out_ptr + at * UNIT + columns, result.to(out_ptr.dtype.element_ty), columns < V_DIM * UNIT)
