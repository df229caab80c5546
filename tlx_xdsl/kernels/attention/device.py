"""Attention forward for Hopper: persistent programs whose consumers take turns at the tensor cores.

O = softmax(Q K^T * scale) V for each head, and the logarithm of each row's softmax denominator, by online softmax in
powers of two. Q has HEADS heads, K and V one for each GROUP of them; row i of a causal mask sees the keys 0 to i.

Tasks. As many programs as are resident at once take tiles of CONSUMERS * 64 rows of one head, one after the other.
A producer (the default task) loads by TMA, also for the next tile while the consumers end this one. CONSUMERS tasks of
one warp group each have 64 rows of a tile.

Pipeline. A consumer issues S(n) = Q K(n)^T before O += P(n - 1) V(n - 1), waits for the first alone, and computes the
softmax of block n while the second is in flight. The probabilities are converted to the operand's type before they are
carried to the next step, which halves their registers.

Turns (ping-pong). A consumer issues the two products only in its turn, and calls the next one as soon as they are
issued: one computes a softmax while the others' products run. Named barrier c is "consumer c may issue", with 256
threads: the 128 that wait and the 128 that arrive. All consumers take one turn for each block of a tile but the first,
so they alternate; the last one calls consumer 0 at the start, and consumer 0 takes the last call at the end: each
barrier completes as often as it is waited for. One consumer alone has no turns; several programs are resident then, and
what one leaves idle others use.

Rings. K and V have one of NUM_STAGES blocks each, which advance together. Q has one block for each consumer, O too, so
that Q of the next tile arrives before O of this one has left. Where shared memory does not hold both (O_IN_Q), O takes
Q's bytes: `q_empty[c]` then says that TMA has read O, and the producer loads the next tile's first K before it waits
for that. Blocks may be in pieces (`pieces`). `q_full`, `k_full` and `v_full` complete when the bytes
of a copy have arrived; `q_empty[c]` when consumer c has done its last S of a tile, `k_empty` and `v_empty` when all
consumers have arrived, after the wait for the product that read the stage. The producer waits for the phase before
the current one; a fresh barrier lets the first pass.

Masks. Each consumer iterates over its key blocks in descending order, so only its first block needs a mask. That block
has the diagonal, since 64 rows never cross from one block of BLOCK_N = 64 or 128 keys to the next, or the end of the
keys, or both; every row sees at least one key of it. Where the consumers of a tile end in different blocks, those that
end earlier release the blocks that they do not need, unread, and pass their turn on.

Edges. Descriptors have four dimensions, (batch, head, row, column), so that TMA reads zeros after the end of a
sequence and writes nothing there: lengths may be any.

Schedule. HEADS_TOGETHER heads (1 or all) take their tiles in turn: all tiles of a head one after the other, whose K and
V then stay in the L2 cache, or the same tile of all heads. With a causal mask tiles go from long to short, and
alternate rounds are assigned in reverse order, which balances the programs' load.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalMemberAccess=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..rings import begin_turns, end_turns
from .pieces import ROWS
from .scores import LOG2_E, present
from .sequences import count_tiles, tile_blocks, tile_of
from .tile import attend_tile, load_tile


@tlx_xdsl.jit
def attention(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, sm_scale,
    BATCH_HEADS, HEADS, GROUP, Q_LENGTH, KV_LENGTH, HEADS_TOGETHER,
    lower, upper, softcap, sinks_ptr, score_0, score_1, score_2, score_3,
    CONSUMERS: tl.constexpr, REGISTERS: tl.constexpr, BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr,
    PIECE: tl.constexpr, PIECES: tl.constexpr, V_PIECE: tl.constexpr, V_PIECES: tl.constexpr, O_IN_Q: tl.constexpr,
    CAUSAL: tl.constexpr, EVEN: tl.constexpr, SCORE_MOD: tl.constexpr,
):  # fmt: skip
    """The kernel; see the top of the file. EVEN says that KV_LENGTH is a multiple of BLOCK_N.

    `lower` and `upper` limit the keys that a row sees (`sequences`); they, `softcap` and `sinks_ptr` are None
    where there is no such thing. What SCORE_MOD takes is in `score_0` and so on. Rows of Q and K are PIECES of PIECE
    elements, those of V and O V_PIECES of V_PIECE.
    """
    tl.static_assert(BLOCK_N % ROWS == 0, "one block of keys holds the diagonal of a consumer's rows")
    tl.static_assert(NUM_STAGES >= 2, "a consumer holds K of a block and V of the block before")
    BLOCK_M: tl.constexpr = CONSUMERS * ROWS
    UNEVEN: tl.constexpr = CAUSAL or upper is not None
    MAY_BE_EMPTY: tl.constexpr = lower is not None or upper is not None or SCORE_MOD is not None
    dtype: tl.constexpr = tlx.dtype_of(q_desc)
    num_tiles = count_tiles(BATCH_HEADS * tl.cdiv(Q_LENGTH, BLOCK_M), UNEVEN)

    tiles = tlx.storage_alias_spec(storage=tlx.storage_kind.smem) if O_IN_Q else None
    q = tlx.local_alloc((1, 1, ROWS, PIECE), dtype, CONSUMERS * PIECES, reuse=tiles)
    k = tlx.local_alloc((1, 1, BLOCK_N, PIECE), dtype, NUM_STAGES * PIECES)
    v = tlx.local_alloc((1, 1, BLOCK_N, V_PIECE), dtype, NUM_STAGES * V_PIECES)
    o = tlx.local_alloc((1, 1, ROWS, V_PIECE), dtype, CONSUMERS * V_PIECES, reuse=tiles)
    if O_IN_Q:
        tiles.set_buffer_overlap(
            tlx.reuse_group(
                tlx.reuse_group(q, group_size=PIECES),
                tlx.reuse_group(o, group_size=V_PIECES),
                group_type=tlx.reuse_group_type.shared,
            )
        )
    q_full = tlx.alloc_barriers(CONSUMERS)
    q_empty = tlx.alloc_barriers(CONSUMERS)
    k_full = tlx.alloc_barriers(NUM_STAGES)
    v_full = tlx.alloc_barriers(NUM_STAGES)
    k_empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=CONSUMERS)
    v_empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=CONSUMERS)
    rings = (k_full, k_empty, v_full, v_empty)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = 0
            phase = 0
            for turn in range(num_tiles):
                head, row = tile_of(turn, Q_LENGTH, HEADS_TOGETHER, BLOCK_M, UNEVEN)
                b = head // HEADS
                h = head % HEADS
                h_kv = h // GROUP
                blocks = tile_blocks(row, KV_LENGTH, lower, upper, BLOCK_M, BLOCK_N, CAUSAL, MAY_BE_EMPTY)
                stage, phase = load_tile(
                    (q_desc, k_desc, v_desc), (q, k, v), (q_full, q_empty), rings, (b, h, h_kv), row, blocks,
                    None, KV_LENGTH, turn, stage, phase, CONSUMERS, BLOCK_N, NUM_STAGES, PIECES, V_PIECES, O_IN_Q,
                )  # fmt: skip

        with tlx.async_task(num_warps=4, replicate=CONSUMERS, registers=REGISTERS):  # consumers
            c: tl.constexpr = tlx.async_task_replica_id()
            scale = sm_scale * LOG2_E
            score_args = present((score_0, score_1, score_2, score_3))
            begin_turns(c, CONSUMERS)
            stage = 0
            phase = 0
            for turn in range(num_tiles):
                head, row = tile_of(turn, Q_LENGTH, HEADS_TOGETHER, BLOCK_M, UNEVEN)
                stage, phase = attend_tile(
                    (q, k, v, o), (q_full[c], q_empty[c]), rings, (o_desc, lse_ptr, Q_LENGTH), (head, HEADS),
                    row, None, (Q_LENGTH, KV_LENGTH), (lower, upper),
                    (scale, sinks_ptr, sm_scale, softcap, score_args), turn, stage, phase, c,
                    CONSUMERS, BLOCK_N, NUM_STAGES, PIECES, V_PIECES, O_IN_Q, CAUSAL, EVEN, MAY_BE_EMPTY, SCORE_MOD,
                )  # fmt: skip
            tlx.async_descriptor_store_wait(0)
            end_turns(c, CONSUMERS)
