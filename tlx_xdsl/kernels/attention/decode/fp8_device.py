"""Attention of few queries to a long cache in 8 bits, for Hopper.

The producer is that of `device`, which brings K and V as they are; the consumer, that of
`columns`, converts them in its registers.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalMemberAccess=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from .columns import attend_columns
from .device import load_items


@tlx_xdsl.jit
def attention_decode_fp8(
    q_ptr, k_desc, v_desc, out_ptr, sums_ptr, lengths_ptr, table_ptr, k_scale_ptr, v_scale_ptr, sm_scale,
    q_batch, q_head, q_row, out_batch, out_head, out_row, k_scale_batch, k_scale_head, v_scale_batch, v_scale_head,
    ITEMS, TILES, SPLITS, KV_HEADS, GROUP, QUERIES, KEYS, TOTAL_ROWS, DIM, V_DIM, left, softcap,
    COLUMNS: tl.constexpr, BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr,
    V_PIECE: tl.constexpr, V_PIECES: tl.constexpr, CAUSAL: tl.constexpr, DIRECT: tl.constexpr,
    PAGE: tl.constexpr, PART: tl.constexpr, UNIT: tl.constexpr, REGISTERS: tl.constexpr,
):  # fmt: skip
    """The kernel; COLUMNS are the queries of a tile, REGISTERS the consumer's, the others as in `attention_decode`."""
    dtype: tl.constexpr = tlx.dtype_of(k_desc)
    q = tlx.local_alloc((1, 1, COLUMNS, PIECE), tl.float16, PIECES)
    p = tlx.local_alloc((COLUMNS, BLOCK_N), tl.float16, 1)
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

        with tlx.async_task(num_warps=4, registers=REGISTERS):  # consumer
            attend_columns(
                q, k, v, p, k_full, v_full, k_empty, v_empty,
                q_ptr, out_ptr, sums_ptr, lengths_ptr, k_scale_ptr, v_scale_ptr, sm_scale, q_batch, q_head, q_row,
                out_batch, out_head, out_row, k_scale_batch, k_scale_head, v_scale_batch, v_scale_head,
                ITEMS, TILES, SPLITS, KV_HEADS, GROUP, QUERIES, KEYS, TOTAL_ROWS, DIM, V_DIM, left, softcap,
                COLUMNS, BLOCK_N, NUM_STAGES, PIECES, V_PIECES, CAUSAL, DIRECT, UNIT,
            )  # fmt: skip
