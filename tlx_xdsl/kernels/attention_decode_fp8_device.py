"""Attention of few queries to a long cache in 8 bits, for Hopper: `attention_decode_device` with a task that converts.

TMA brings blocks of K and V as they are, in 8 bits, to rings of their own. A task of four warps converts them to fp16,
which has every e4m3 number, and puts them into the rings that the consumer knows. Those have one block of K and two
of V: the scores of a block are there before its V is needed. What keeps the memory busy are the 8-bit blocks.

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

V_STAGES = tl.constexpr(2)
"""Blocks of V in fp16, of which the consumer holds one for longer than it does that of K."""

THREADS = tl.constexpr(128)
"""Those of the task that converts."""

TOGETHER = tl.constexpr(16)
"""Elements of 8 bits that a thread loads at a time."""


@tlx_xdsl.jit
def convert_block(raw, raw_full, raw_empty, raw_phase, block, full, empty, phase):
    """Write a block to another type, piece by piece, when it has come and its place is free.

    Pieces of both are as wide.
    """
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
def joined(buffers, TOGETHER: tl.constexpr, COUNT: tl.constexpr):
    """COUNT pieces as wider ones, TOGETHER in each."""
    if TOGETHER == 1:
        return buffers
    shape: tl.constexpr = (1, 1, buffers[0].shape[2], buffers[0].shape[3] * TOGETHER)
    return tlx.local_reinterpret(buffers, tlx.dtype_of(buffers), shape, num=COUNT // TOGETHER)


@tlx_xdsl.jit
def attention_decode_fp8(
    q_ptr, k_desc, v_desc, out_ptr, sums_ptr, lengths_ptr, table_ptr, k_scale_ptr, v_scale_ptr, sm_scale,
    q_batch, q_head, q_row, out_batch, out_head, out_row, k_scale_batch, k_scale_head, v_scale_batch, v_scale_head,
    ITEMS, TILES, SPLITS, KV_HEADS, GROUP, QUERIES, KEYS, TOTAL_ROWS, DIM, V_DIM, left, softcap,
    BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr,
    V_PIECE: tl.constexpr, V_PIECES: tl.constexpr, CAUSAL: tl.constexpr, DIRECT: tl.constexpr,
    PAGE: tl.constexpr, PART: tl.constexpr, UNIT: tl.constexpr, REGISTERS: tl.constexpr,
    RAW: tl.constexpr, V_RAW: tl.constexpr,
):  # fmt: skip
    """The kernel; NUM_STAGES are the 8-bit blocks of each ring, the others as those of `attention_decode`.

    RAW and V_RAW are pieces of fp16 that are as wide as a piece of 8 bits: two of 64 elements are one of 128, whose
    rows are 128 bytes, too, and which in fp16 is those two, one after the other.
    """
    dtype: tl.constexpr = tlx.dtype_of(k_desc)
    q = tlx.local_alloc((1, 1, ROWS, PIECE), tl.float16, PIECES)
    k = tlx.local_alloc((1, 1, BLOCK_N, PIECE), tl.float16, PIECES)
    v = tlx.local_alloc((1, 1, BLOCK_N, V_PIECE), tl.float16, V_STAGES * V_PIECES)
    k_raw = tlx.local_alloc((1, 1, BLOCK_N, PIECE * RAW), dtype, NUM_STAGES * PIECES // RAW)
    v_raw = tlx.local_alloc((1, 1, BLOCK_N, V_PIECE * V_RAW), dtype, NUM_STAGES * V_PIECES // V_RAW)
    k_full = tlx.alloc_barriers(1)
    v_full = tlx.alloc_barriers(V_STAGES)
    k_empty = tlx.alloc_barriers(1)
    v_empty = tlx.alloc_barriers(V_STAGES)
    k_raw_full = tlx.alloc_barriers(NUM_STAGES)
    v_raw_full = tlx.alloc_barriers(NUM_STAGES)
    k_raw_empty = tlx.alloc_barriers(NUM_STAGES)
    v_raw_empty = tlx.alloc_barriers(NUM_STAGES)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # converts
            stage = 0
            phase = 0
            turn = 0
            v_stage = 0
            v_phase = 0
            for item in range(tl.program_id(0), ITEMS, tl.num_programs(0)):
                _, split, _, batch = place_of(item, TILES, SPLITS, KV_HEADS)
                length = length_of(lengths_ptr, batch, KEYS)
                begin, end = blocks_of(split, length, left, QUERIES, SPLITS, BLOCK_N)
                for _ in range(begin, end):
                    convert_block(
                        block_of(k_raw, stage, PIECES // RAW), k_raw_full[stage], k_raw_empty[stage], phase,
                        block_of(joined(k, RAW, PIECES), 0, PIECES // RAW), k_full[0], k_empty[0], turn,
                    )  # fmt: skip
                    convert_block(
                        block_of(v_raw, stage, V_PIECES // V_RAW), v_raw_full[stage], v_raw_empty[stage], phase,
                        block_of(joined(v, V_RAW, V_STAGES * V_PIECES), v_stage, V_PIECES // V_RAW),
                        v_full[v_stage], v_empty[v_stage], v_phase,
                    )  # fmt: skip
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                    turn = turn ^ 1
                    v_stage, v_phase = next_place(v_stage, v_phase, V_STAGES)

        with tlx.async_task(num_warps=4, registers=REGISTERS):  # consumer
            attend(
                q, k, v, k_full, v_full, k_empty, v_empty,
                q_ptr, out_ptr, sums_ptr, lengths_ptr, k_scale_ptr, v_scale_ptr, sm_scale, q_batch, q_head, q_row,
                out_batch, out_head, out_row, k_scale_batch, k_scale_head, v_scale_batch, v_scale_head,
                ITEMS, TILES, SPLITS, KV_HEADS, GROUP, QUERIES, KEYS, TOTAL_ROWS, DIM, V_DIM, left, softcap,
                BLOCK_N, 1, V_STAGES, PIECES, V_PIECES, CAUSAL, DIRECT, UNIT,
            )  # fmt: skip

        with tlx.async_task(num_warps=1, registers=24):  # producer
            load_items(
                k_desc, v_desc, k_raw, v_raw, k_raw_full, v_raw_full, k_raw_empty, v_raw_empty, table_ptr, lengths_ptr,
                ITEMS, TILES, SPLITS, KV_HEADS, QUERIES, KEYS, left,
                BLOCK_N, NUM_STAGES, PIECES // RAW, V_PIECES // V_RAW, PAGE, PART,
            )  # fmt: skip
