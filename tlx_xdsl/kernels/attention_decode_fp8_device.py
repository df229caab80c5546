"""Attention of few queries to a long cache in 8 bits, for Hopper: `attention_decode_device` with a task that converts.

TMA brings blocks of K and V as they are, in 8 bits, to rings of their own. A task of four warps converts them to fp16,
which has every e4m3 number, and puts them into the rings that the consumer knows. Those have one block each of K and
V: while the consumer has the one, the other is converted, and what keeps the memory busy are the 8-bit blocks.

The scales of K and V are those of a head, and multiply the scores and the results. A row of bf16 queries is multiplied
by a power of two, which the scores undo, so that fp16 has all of it that can matter.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalMemberAccess=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.attention_decode_device import load_items
from tlx_xdsl.kernels.attention_decode_rows import attend, blocks_of, length_of, place_of
from tlx_xdsl.kernels.attention_pieces import ROWS, as_matrix, block_of
from tlx_xdsl.kernels.rings import next_place

THREADS = tl.constexpr(128)
"""Those of the task that converts."""

TOGETHER = tl.constexpr(16)
"""Elements of 8 bits that a thread loads at a time."""


@tlx_xdsl.jit
def convert_block(raw, raw_full, raw_empty, raw_phase, block, full, empty, phase):
    """Write a block to another type, piece by piece, when it has come and its place is free."""
    ROW: tl.constexpr = raw[0].shape[-1]
    BESIDE: tl.constexpr = ROW // TOGETHER  # threads of a row
    STEP: tl.constexpr = THREADS // BESIDE  # rows of all threads
    layout: tl.constexpr = tlx.layout(
        shape=((BESIDE, STEP), (TOGETHER, raw[0].shape[-2] // STEP)), stride=((TOGETHER, ROW), (1, ROW * STEP))
    )
    tlx.barrier_wait(raw_full, raw_phase)
    tlx.barrier_wait(empty, phase ^ 1)
    for piece in tl.static_range(len(raw)):
        values = tlx.local_load(as_matrix(raw[piece]), layout=layout)
        tlx.local_store(as_matrix(block[piece]), values.to(tlx.dtype_of(block[piece])))
    tlx.fence_async_shared()
    tlx.barrier_arrive(raw_empty)
    tlx.barrier_arrive(full)


@tlx_xdsl.jit
def attention_decode_fp8(
    q_ptr, k_desc, v_desc, out_ptr, sums_ptr, lengths_ptr, table_ptr, k_scale_ptr, v_scale_ptr, sm_scale,
    q_batch, q_head, q_row, out_batch, out_head, out_row, k_scale_batch, k_scale_head, v_scale_batch, v_scale_head,
    ITEMS, TILES, SPLITS, KV_HEADS, GROUP, QUERIES, KEYS, TOTAL_ROWS, DIM, V_DIM, left, softcap,
    BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr,
    V_PIECE: tl.constexpr, V_PIECES: tl.constexpr, CAUSAL: tl.constexpr, DIRECT: tl.constexpr,
    PAGE: tl.constexpr, PART: tl.constexpr, UNIT: tl.constexpr, REGISTERS: tl.constexpr,
):  # fmt: skip
    """The kernel; NUM_STAGES are the 8-bit blocks of each ring, the others as those of `attention_decode`."""
    dtype: tl.constexpr = tlx.dtype_of(k_desc)
    q = tlx.local_alloc((1, 1, ROWS, PIECE), tl.float16, PIECES)
    k = tlx.local_alloc((1, 1, BLOCK_N, PIECE), tl.float16, PIECES)
    v = tlx.local_alloc((1, 1, BLOCK_N, V_PIECE), tl.float16, V_PIECES)
    k_raw = tlx.local_alloc((1, 1, BLOCK_N, PIECE), dtype, NUM_STAGES * PIECES)
    v_raw = tlx.local_alloc((1, 1, BLOCK_N, V_PIECE), dtype, NUM_STAGES * V_PIECES)
    k_full = tlx.alloc_barriers(1)
    v_full = tlx.alloc_barriers(1)
    k_empty = tlx.alloc_barriers(1)
    v_empty = tlx.alloc_barriers(1)
    k_raw_full = tlx.alloc_barriers(NUM_STAGES)
    v_raw_full = tlx.alloc_barriers(NUM_STAGES)
    k_raw_empty = tlx.alloc_barriers(NUM_STAGES)
    v_raw_empty = tlx.alloc_barriers(NUM_STAGES)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # converts
            stage = 0
            phase = 0
            turn = 0
            for item in range(tl.program_id(0), ITEMS, tl.num_programs(0)):
                _, split, _, batch = place_of(item, TILES, SPLITS, KV_HEADS)
                length = length_of(lengths_ptr, batch, KEYS)
                begin, end = blocks_of(split, length, left, QUERIES, SPLITS, BLOCK_N)
                for _ in range(begin, end):
                    convert_block(
                        block_of(k_raw, stage, PIECES), k_raw_full[stage], k_raw_empty[stage], phase,
                        block_of(k, 0, PIECES), k_full[0], k_empty[0], turn,
                    )  # fmt: skip
                    convert_block(
                        block_of(v_raw, stage, V_PIECES), v_raw_full[stage], v_raw_empty[stage], phase,
                        block_of(v, 0, V_PIECES), v_full[0], v_empty[0], turn,
                    )  # fmt: skip
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                    turn = turn ^ 1

        with tlx.async_task(num_warps=4, registers=REGISTERS):  # consumer
            attend(
                q, k, v, k_full, v_full, k_empty, v_empty,
                q_ptr, out_ptr, sums_ptr, lengths_ptr, k_scale_ptr, v_scale_ptr, sm_scale, q_batch, q_head, q_row,
                out_batch, out_head, out_row, k_scale_batch, k_scale_head, v_scale_batch, v_scale_head,
                ITEMS, TILES, SPLITS, KV_HEADS, GROUP, QUERIES, KEYS, TOTAL_ROWS, DIM, V_DIM, left, softcap,
                BLOCK_N, 1, PIECES, V_PIECES, CAUSAL, DIRECT, UNIT,
            )  # fmt: skip

        with tlx.async_task(num_warps=1, registers=24):  # producer
            load_items(
                k_desc, v_desc, k_raw, v_raw, k_raw_full, v_raw_full, k_raw_empty, v_raw_empty, table_ptr, lengths_ptr,
                ITEMS, TILES, SPLITS, KV_HEADS, QUERIES, KEYS, left, BLOCK_N, NUM_STAGES, PIECES, V_PIECES, PAGE, PART,
            )  # fmt: skip
