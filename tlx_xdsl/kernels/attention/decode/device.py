"""Attention of few queries to many keys, for Hopper: the keys of a head are split over programs.

Bound by memory: K and V are read once, so what counts is that loads are in flight all the time. A producer keeps a ring
of blocks of K and V full by TMA, and goes on to the next item while the consumer ends one. An item is (batch, head of K
and V, tile of rows, split); programs take every `num_programs`-th.

Rows. The queries of all heads that share K and V are the rows of one product: row r is the query r // GROUP of the
r % GROUP-th of these heads. Rows are filled up to 64, a wgmma's: products are far from limiting here.

Splits. A sequence's blocks of keys are divided evenly, by its own length, which is read on the GPU. With one split the
kernel writes the result; else it writes for each row the sum of P V in f32, the maximum and the denominator, and
`merge` adds them up in the order of the splits, so that results are the same bits each time. A split without keys has
the maximum minus infinity.

Pages. With a table of pages, K and V are (pages, heads, rows of a page), and a sequence's blocks are gathered from the
pages that the table names: from a part of one, or from several, of PART rows each, which lie in shared memory one after
the other as the rows of a block would.

Memory after the end of a sequence may hold NaN, and 0 * NaN is NaN: the consumer puts zeros to those rows of V.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalMemberAccess=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.rings import next_place

from ..pieces import ROWS, block_of, load_pieces
from ..scores import subtracted
from .rows import attend, blocks_of, length_of, place_of


@tlx_xdsl.jit
def pages_of(table_ptr, batch, key, KEYS, PAGE: tl.constexpr, PART: tl.constexpr, PARTS: tl.constexpr):
    """The pages of a block that starts at `key`: one for each part; after the end of the table its last one again."""
    count = KEYS // PAGE
    pages = ()
    for part in tl.static_range(PARTS):
        at = tl.minimum((key + part * PART) // PAGE, count - 1)
        pages += (tl.load(table_ptr + batch.to(tl.int64) * count + at),)
    return pages


@tlx_xdsl.jit
def parts_of(buffers, COUNT: tl.constexpr, PART: tl.constexpr):
    """COUNT buffers of blocks as buffers of PART rows each."""
    block: tl.constexpr = buffers[0].shape
    if block[2] == PART:
        return buffers
    shape: tl.constexpr = (1, 1, PART, block[3])
    return tlx.local_reinterpret(buffers, tlx.dtype_of(buffers), shape, num=COUNT * block[2] // PART)


@tlx_xdsl.jit
def load_blocks(
    k_desc, v_desc, k, v, k_full, v_full, k_empty, v_empty, stage, phase, table_ptr, batch, head, begin, end, KEYS,
    NUM_STAGES: tl.constexpr, PIECES: tl.constexpr, V_PIECES: tl.constexpr, BLOCK_N: tl.constexpr,
    PAGE: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """Producer: load an item's blocks of K and V, or of K alone, and return the ring's next place."""
    PARTS: tl.constexpr = BLOCK_N // PART
    if table_ptr is not None:
        pages = pages_of(table_ptr, batch, begin * BLOCK_N, KEYS, PAGE, PART, PARTS)
    for block in range(begin, end):
        key = block * BLOCK_N
        k_block = block_of(k, stage, PIECES * PARTS)
        if table_ptr is None:
            load_pieces(k_desc, (batch,), head, key, k_block, k_full[stage], k_empty[stage], phase)
        else:
            load_parts(k_desc, pages, head, key % PAGE, k_block, k_full[stage], k_empty[stage], phase)
        if v_desc is not None:
            v_block = block_of(v, stage, V_PIECES * PARTS)
            if table_ptr is None:
                load_pieces(v_desc, (batch,), head, key, v_block, v_full[stage], v_empty[stage], phase)
            else:
                load_parts(v_desc, pages, head, key % PAGE, v_block, v_full[stage], v_empty[stage], phase)
        if table_ptr is not None:
            # They are there when the next block is free.
            pages = pages_of(table_ptr, batch, key + BLOCK_N, KEYS, PAGE, PART, PARTS)
        stage, phase = next_place(stage, phase, NUM_STAGES)
    return stage, phase


@tlx_xdsl.jit
def load_parts(desc, pages, head, row, parts, full, empty, phase):
    """Producer: when a block is free, load its parts, of all pieces, from `row` of its pages on."""
    PIECE: tl.constexpr = parts[0].shape[-1]
    BYTES: tl.constexpr = len(parts) * parts[0].shape[-2] * PIECE * tlx.size_of(tlx.dtype_of(desc))
    tlx.barrier_wait(empty, phase ^ 1)
    tlx.barrier_expect_bytes(full, BYTES)
    for at in tl.static_range(len(parts)):
        column = at // len(pages) * PIECE
        tlx.async_descriptor_load(desc, parts[at], [pages[at % len(pages)], head, row, column], full)


@tlx_xdsl.jit
def load_items(
    k_desc, v_desc, k, v, k_full, v_full, k_empty, v_empty, table_ptr, lengths_ptr,
    ITEMS, TILES, SPLITS, KV_HEADS, QUERIES, KEYS, left, BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr,
    PIECES: tl.constexpr, V_PIECES: tl.constexpr, PAGE: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """Producer: the blocks of all items of a program, to the rings of `k` and `v`, or to that of `k` alone."""
    k_parts = parts_of(k, NUM_STAGES * PIECES, PART)
    v_parts = v if v_desc is None else parts_of(v, NUM_STAGES * V_PIECES, PART)
    stage = 0
    phase = 0
    for item in range(tl.program_id(0), ITEMS, tl.num_programs(0)):
        _, split, head, batch = place_of(item, TILES, SPLITS, KV_HEADS)
        length = length_of(lengths_ptr, batch, KEYS)
        begin, end = blocks_of(split, length, left, QUERIES, SPLITS, BLOCK_N)
        stage, phase = load_blocks(
            k_desc, v_desc, k_parts, v_parts, k_full, v_full, k_empty, v_empty, stage, phase, table_ptr,
            batch, head, begin, end, KEYS, NUM_STAGES, PIECES, V_PIECES, BLOCK_N, PAGE, PART,
        )  # fmt: skip


@tlx_xdsl.jit
def attention_decode(
    q_ptr, k_desc, v_desc, out_ptr, sums_ptr, lengths_ptr, table_ptr, sm_scale,
    q_batch, q_head, q_row, out_batch, out_head, out_row,
    ITEMS, TILES, SPLITS, KV_HEADS, GROUP, QUERIES, KEYS, TOTAL_ROWS, DIM, V_DIM, left, softcap,
    BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr,
    V_PIECE: tl.constexpr, V_PIECES: tl.constexpr, CAUSAL: tl.constexpr, DIRECT: tl.constexpr,
    PAGE: tl.constexpr, PART: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """The kernel; see the top of the file. `DIRECT`: there is one split. Without a table, PART is BLOCK_N.

    Strides of queries and results and the head dims are counted in UNIT elements: 16 bytes move at a time if UNIT is 8.
    """
    dtype: tl.constexpr = tlx.dtype_of(k_desc)
    q = tlx.local_alloc((1, 1, ROWS, PIECE), dtype, PIECES)
    k = tlx.local_alloc((1, 1, BLOCK_N, PIECE), dtype, NUM_STAGES * PIECES)
    v = tlx.local_alloc((1, 1, BLOCK_N, V_PIECE), dtype, NUM_STAGES * V_PIECES)
    k_full = tlx.alloc_barriers(NUM_STAGES)
    v_full = tlx.alloc_barriers(NUM_STAGES)
    k_empty = tlx.alloc_barriers(NUM_STAGES)
    v_empty = tlx.alloc_barriers(NUM_STAGES)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            load_items(
                k_desc, v_desc, k, v, k_full, v_full, k_empty, v_empty, table_ptr, lengths_ptr,
                ITEMS, TILES, SPLITS, KV_HEADS, QUERIES, KEYS, left, BLOCK_N, NUM_STAGES, PIECES, V_PIECES, PAGE, PART,
            )  # fmt: skip

        with tlx.async_task(num_warps=4, registers=232):  # consumer
            attend(
                q, k, v, k_full, v_full, k_empty, v_empty,
                q_ptr, out_ptr, sums_ptr, lengths_ptr, sm_scale, q_batch, q_head, q_row, out_batch, out_head, out_row,
                ITEMS, TILES, SPLITS, KV_HEADS, GROUP, QUERIES, KEYS, TOTAL_ROWS, DIM, V_DIM, left, softcap,
                BLOCK_N, NUM_STAGES, PIECES, V_PIECES, CAUSAL, DIRECT, UNIT,
            )  # fmt: skip


@tlx_xdsl.jit
def merge(
    sums_ptr, out_ptr, SPLITS, TOTAL_ROWS, HEADS, QUERIES, V_DIM, out_batch, out_head, out_row,
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
    at = (row // (HEADS * QUERIES)).to(tl.int64) * out_batch
    at += (row // QUERIES % HEADS).to(tl.int64) * out_head + (row % QUERIES).to(tl.int64) * out_row
    tl.store(out_ptr + at * UNIT + columns, result.to(out_ptr.dtype.element_ty), columns < V_DIM * UNIT)
