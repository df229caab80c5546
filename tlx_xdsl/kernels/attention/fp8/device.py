"""Attention forward in fp8 (e4m3) for Hopper: `attention/device`, with what 8 bits change.

Tasks, rings, barriers, masks and the schedule are those of `attention/device`; read its top first. Here is the rest.

V. The tensor cores read 8-bit operands along K alone, and in P V that is along the keys: V comes transposed, (batch,
heads, dim, keys), from `values`, with the keys of each 16 in the order 0 1 8 9 2 3 10 11 4 5 12 13 6 7 14
15.

P. That order is the one in which P already lies. Of each 16 columns of S, thread t of four has 2t, 2t + 1, 2t + 8 and
2t + 9, and the tensor cores want 4t to 4t + 3 of it as their left operand: the same four, with the columns in the
order above. `attention_fp8_blocks.rounded` says so, and nothing moves; a sum over keys may be in any order.

Numbers. Probabilities are at most 1, before the division by their sum; times 2 ** P_BITS they use more of e4m3's range:
the smallest that is no zero is 2 ** -17 of the largest. The sums are in the same units, which cancel out. Scores are
q k * (q_scale * k_scale * sm_scale), and v_scale multiplies the result; each scale is one number, or one for each head.

Sums. The tensor cores keep some 14 bits of the sums of 8-bit products. With EXACT, P V of each block of keys is a sum
of its own, which is added to the f32 sums as these are rescaled, in one instruction; it takes as many registers as
they do. Else the tensor cores add up all keys.

Overlap. OVERLAP chooses between the two ways of `blocks`.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.rings import begin_turns, end_turns

from ..pieces import ROWS, Ring, as_matrix, buffers_for, rings_of
from ..scores import LN_2, LOG2_E, first_softmax, hide_keys, scale_of
from ..sequences import count_tiles, end_block, last_key_of, tile_blocks, tile_of
from ..tile import load_tile, pass_on
from .blocks import P_BITS, drained_blocks, overlapped_blocks


@tlx_xdsl.jit
def attention_fp8(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, q_scale, k_scale, v_scale, sm_scale, strides, grid,
    T: tl.constexpr, EXACT: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """The kernel; see the top of the file. `strides` are those of the scales, `grid` is a `Grid`."""
    tl.static_assert(T.block_n % ROWS == 0, "one block of keys holds the diagonal of a consumer's rows")
    tl.static_assert(T.stages >= 2, "a consumer holds K of a block and V of the block before")
    ENDS_DIFFER: tl.constexpr = T.causal and T.block_n % T.block_m != 0
    MASKED: tl.constexpr = T.causal or not T.even
    out_dtype: tl.constexpr = tlx.dtype_of(o_desc)
    num_tiles = count_tiles(grid, T)

    q_buffers = buffers_for(q_desc, T.consumers, T.qk)
    k_buffers = buffers_for(k_desc, T.stages, T.qk)
    v_buffers = buffers_for(v_desc, T.stages, T.v)
    o = buffers_for(o_desc, T.consumers, T.v)
    q = Ring(q_buffers, tlx.alloc_barriers(T.consumers), tlx.alloc_barriers(T.consumers), T.qk)
    k, v = rings_of(k_buffers, v_buffers, T.stages, T.consumers, T)
    rings = (q, k, v)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = 0
            phase = 0
            for turn in range(num_tiles):
                head, tile = tile_of(grid, turn, (None, None), T)
                b = head // grid.heads
                h = head % grid.heads
                at = (b, h, h // grid.group)
                blocks = tile_blocks(tile, T)
                stage, phase = load_tile((q_desc, k_desc, v_desc), rings, at, tile, blocks, stage, phase, T)

        with tlx.async_task(num_warps=4, replicate=T.consumers, registers=T.registers):  # consumers
            c: tl.constexpr = tlx.async_task_replica_id()
            begin_turns(c, T.consumers)
            stage = 0
            phase = 0
            for turn in range(num_tiles):
                head, tile = tile_of(grid, turn, (None, None), T)
                b = head // grid.heads
                h = head % grid.heads
                first_row = tile.row + c * ROWS
                by_q = scale_of(q_scale, b, h, strides[0])
                by_k = scale_of(k_scale, b, h // grid.group, strides[1])
                scale = sm_scale * LOG2_E * (by_q * by_k)
                last_key = last_key_of(first_row, tile, T)
                num_blocks = end_block(last_key + ROWS - 1, 0, tile, MASKED, T)
                if ENDS_DIFFER:
                    stage, phase = pass_on(rings, num_blocks, tile_blocks(tile, T)[1], stage, phase, c, T)

                tlx.barrier_wait(q.full[c], turn & 1)
                tlx.barrier_wait(k.full[stage], phase)
                first = tlx.async_dot(as_matrix(q.buffers[c]), tlx.local_trans(as_matrix(k.buffers[stage])))
                first = tlx.async_dot_wait(0, first)
                tlx.barrier_arrive(k.empty[stage])
                if MASKED:
                    first = hide_keys(first, last_key, (num_blocks - 1) * T.block_n, grid.keys, T.even)
                weights, m, total = first_softmax(first, scale, False, P_BITS)
                blocks: tl.constexpr = overlapped_blocks if OVERLAP else drained_blocks
                acc, m, total, stage, phase = blocks(
                    rings, weights, m, total, scale, num_blocks, stage, phase, c, EXACT, T
                )

                # Not after the store but before the buffer is written again: the store overlaps the next tile.
                by_v = scale_of(v_scale, b, h // grid.group, strides[2])
                result = (acc * (by_v / total)[:, None]).to(out_dtype)
                tlx.async_descriptor_store_wait(0)
                tlx.local_store(as_matrix(o[c]), result)
                tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
                tlx.async_descriptor_store(o_desc, o[c], [b, h, first_row, 0])
                rows = first_row + tl.arange(0, ROWS)
                tl.store(
                    lse_ptr + head * grid.queries + rows, (m - P_BITS + tl.log2(total)) * LN_2,
                    mask=rows < grid.queries,
                )  # fmt: skip
            tlx.async_descriptor_store_wait(0)
            end_turns(c, T.consumers)
