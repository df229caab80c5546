"""Attention forward for Hopper: persistent programs whose consumers take turns at the tensor cores.

O = softmax(Q K^T * scale) V for each head, and the logarithm of each row's softmax denominator, by online softmax in
powers of two. Q has HEADS heads, K and V one for each GROUP of them; row i of a causal mask sees the keys 0 to i.

Tasks. As many programs as there are multiprocessors take tiles of CONSUMERS * 64 rows of one head, one after the other.
A producer (the default task) loads by TMA, also for the next tile while the consumers end this one. CONSUMERS tasks of
one warp group each have 64 rows of a tile.

Pipeline. A consumer issues S(n) = Q K(n)^T before O += P(n - 1) V(n - 1), waits for the first alone, and computes the
softmax of block n while the second is in flight. The probabilities are converted to the operand's type before they are
carried to the next step, which halves their registers.

Turns (ping-pong). A consumer issues the two products only in its turn, and calls the next one as soon as they are
issued: one computes a softmax while the others' products run. Named barrier c is "consumer c may issue", with 256
threads: the 128 that wait and the 128 that arrive. All consumers take one turn for each block of a tile but the first,
so they alternate; the last one calls consumer 0 at the start, and consumer 0 takes the last call at the end: each
barrier completes as often as it is waited for.

Rings. K and V have one of NUM_STAGES blocks each, which advance together. Q has one buffer for each consumer, O too, so
that Q of the next tile arrives before O of this one has left. `q_full`, `k_full` and `v_full` complete when the bytes
of a copy have arrived; `q_empty[c]` when consumer c has done its last S of a tile, `k_empty` and `v_empty` when all
consumers have arrived, after the wait for the product that read the stage. The producer waits for the phase before
the current one; a fresh barrier lets the first pass.

Masks. Blocks are taken from a consumer's last one down: only that first one holds keys to hide. It is the one with the
diagonal, since 64 rows never cross from one block of BLOCK_N = 128 keys to the next, or the one with the end of the
keys, or both; every row sees at least one key of it. Where a tile's consumers end in different blocks, those that end
earlier give back what they do not need, unread, and pass their turn on.

Edges. Descriptors have four dimensions, (batch, head, row, column), so that TMA reads zeros after the end of a
sequence and writes nothing there: lengths may be any.

Schedule. HEADS_TOGETHER heads (1 or all) take their tiles in turn: all tiles of a head one after the other, whose K and
V then stay in the L2 cache, or the same tile of all heads. With a causal mask tiles go from long to short, and every
other round is dealt out backwards, so that the sums of the programs are alike.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import math

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.attention_pieces import (
    add_values,
    block_of,
    load_pieces,
    put,
    scores_of,
    store_pieces,
    times,
    wait_for,
    zeros_of,
)
from tlx_xdsl.kernels.rings import TURN_THREADS, next_place

LOG2_E = tl.constexpr(math.log2(math.e))
LN_2 = tl.constexpr(math.log(2))
ROWS = tl.constexpr(64)
"""Rows of a consumer: those of one wgmma."""


@tlx_xdsl.jit
def hide_keys(scores, last_key, first_column, KV_LENGTH, EVEN: tl.constexpr):
    """Minus infinity for the keys that a row does not see: those after its last one, and after the end of the keys.

    `last_key` is that of the first row; each further row sees one more.
    """
    last = last_key + tl.arange(0, scores.shape[0])
    if not EVEN:
        last = tl.minimum(last, KV_LENGTH - 1)
    columns = first_column + tl.arange(0, scores.shape[1])
    return tl.where(columns[None, :] <= last[:, None], scores, float("-inf"))


@tlx_xdsl.jit
def first_softmax(scores, scale):
    """Probabilities before the division, their rows' maximum (scaled) and sum."""
    m = tl.max(scores, 1) * scale
    p = tl.math.exp2(scores * scale - m[:, None])
    return p, m, tl.sum(p, 1)


@tlx_xdsl.jit
def next_softmax(scores, scale, m, total):
    """The same for another block, with the factor that rescales what was computed before.

    The sum stands before that factor: ptxas then lets the shuffles of the sum run while the accumulator is rescaled, in
    the other order the rescaling waits for them (2 % of the whole kernel, Triton 3.6.0).
    """
    m_new = tl.maximum(m, tl.max(scores, 1) * scale)
    p = tl.math.exp2(scores * scale - m_new[:, None])
    block_total = tl.sum(p, 1)
    alpha = tl.math.exp2(m - m_new)
    return p, m_new, total * alpha + block_total, alpha


@tlx_xdsl.jit
def place_in_round(turn, CAUSAL: tl.constexpr):
    """The place of this program in a round of tiles: every other round of a causal mask is dealt out backwards."""
    pid = tl.program_id(0)
    return tl.where(turn % 2 == 0, pid, tl.num_programs(0) - 1 - pid) if CAUSAL else pid


@tlx_xdsl.jit
def count_tiles(num_tiles, CAUSAL: tl.constexpr):
    """The number of tiles that this program takes: one in each full round, and perhaps one of the rest."""
    rounds = num_tiles // tl.num_programs(0)
    rest = num_tiles - rounds * tl.num_programs(0)
    return rounds + (place_in_round(rounds, CAUSAL) < rest).to(tl.int32)


@tlx_xdsl.jit
def tile_of(turn, Q_LENGTH, HEADS_TOGETHER, BLOCK_M: tl.constexpr, CAUSAL: tl.constexpr):
    """Head (over all batches) and first row of the program's `turn`-th tile."""
    tiles = tl.cdiv(Q_LENGTH, BLOCK_M)
    tile = turn * tl.num_programs(0) + place_in_round(turn, CAUSAL)
    together = tiles * HEADS_TOGETHER
    rest = tile % together
    place = rest // HEADS_TOGETHER
    row = (tiles - 1 - place if CAUSAL else place) * BLOCK_M
    return tile // together * HEADS_TOGETHER + rest % HEADS_TOGETHER, row


@tlx_xdsl.jit
def blocks_until(last_key, KV_LENGTH, BLOCK_N: tl.constexpr, MASKED: tl.constexpr):
    """Blocks of keys up to the one with `last_key`, or all of them where nothing is masked."""
    blocks = tl.cdiv(KV_LENGTH, BLOCK_N)
    return min(last_key // BLOCK_N + 1, blocks) if MASKED else blocks


@tlx_xdsl.jit
def produce(
    loaded, buffers, fulls, empties, num_tiles, HEADS, GROUP, Q_LENGTH, KV_LENGTH, HEADS_TOGETHER,
    CONSUMERS: tl.constexpr, BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr,
    PIECES: tl.constexpr, V_PIECES: tl.constexpr, O_IN_Q: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """The producer."""
    q_desc, k_desc, v_desc = loaded
    q, k, v = buffers
    q_full, k_full, v_full = fulls
    q_empty, k_empty, v_empty = empties
    BLOCK_M: tl.constexpr = CONSUMERS * ROWS
    stage = 0
    phase = 0
    for turn in range(num_tiles):
        head, row = tile_of(turn, Q_LENGTH, HEADS_TOGETHER, BLOCK_M, CAUSAL)
        b = head // HEADS
        h = head % HEADS
        h_kv = h // GROUP
        num_blocks = blocks_until(row + BLOCK_M - 1, KV_LENGTH, BLOCK_N, CAUSAL)
        kv_row = (num_blocks - 1) * BLOCK_N

        # In the order in which the consumers need them: K is a step ahead of V. Q that waits for O comes later.
        if not O_IN_Q:
            load_pieces(q_desc, b, h, row, block_of(q, 0, PIECES), q_full[0], q_empty[0], turn & 1)
        k_block = block_of(k, stage, PIECES)
        load_pieces(k_desc, b, h_kv, kv_row, k_block, k_full[stage], k_empty[stage], phase)
        for c in tl.static_range(0 if O_IN_Q else 1, CONSUMERS):
            q_block = block_of(q, c, PIECES)
            load_pieces(q_desc, b, h, row + c * ROWS, q_block, q_full[c], q_empty[c], turn & 1)
        for _ in range(1, num_blocks):
            v_stage = stage
            v_phase = phase
            stage, phase = next_place(stage, phase, NUM_STAGES)
            k_row = kv_row - BLOCK_N
            k_block = block_of(k, stage, PIECES)
            load_pieces(k_desc, b, h_kv, k_row, k_block, k_full[stage], k_empty[stage], phase)
            v_block = block_of(v, v_stage, V_PIECES)
            load_pieces(v_desc, b, h_kv, kv_row, v_block, v_full[v_stage], v_empty[v_stage], v_phase)
            kv_row = k_row
        v_block = block_of(v, stage, V_PIECES)
        load_pieces(v_desc, b, h_kv, kv_row, v_block, v_full[stage], v_empty[stage], phase)
        stage, phase = next_place(stage, phase, NUM_STAGES)


@tlx_xdsl.jit
def attention(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, sm_scale,
    BATCH_HEADS, HEADS, GROUP, Q_LENGTH, KV_LENGTH, HEADS_TOGETHER,
    CONSUMERS: tl.constexpr, REGISTERS: tl.constexpr, BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr,
    PIECE: tl.constexpr, PIECES: tl.constexpr, V_PIECE: tl.constexpr, V_PIECES: tl.constexpr, O_IN_Q: tl.constexpr,
    CAUSAL: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """The kernel; see the top of the file. EVEN says that KV_LENGTH is a multiple of BLOCK_N.

    Rows of Q and K are PIECES of PIECE elements, those of V and O V_PIECES of V_PIECE.
    """
    tl.static_assert(BLOCK_N % ROWS == 0, "one block of keys holds the diagonal of a consumer's rows")
    tl.static_assert(NUM_STAGES >= 2, "a consumer holds K of a block and V of the block before")
    BLOCK_M: tl.constexpr = CONSUMERS * ROWS
    ENDS_DIFFER: tl.constexpr = CAUSAL and BLOCK_N % BLOCK_M != 0
    MASKED: tl.constexpr = CAUSAL or not EVEN
    dtype: tl.constexpr = tlx.dtype_of(q_desc)
    num_tiles = count_tiles(BATCH_HEADS * tl.cdiv(Q_LENGTH, BLOCK_M), CAUSAL)

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

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            produce(
                (q_desc, k_desc, v_desc), (q, k, v), (q_full, k_full, v_full), (q_empty, k_empty, v_empty), num_tiles,
                HEADS, GROUP, Q_LENGTH, KV_LENGTH, HEADS_TOGETHER,
                CONSUMERS, BLOCK_N, NUM_STAGES, PIECES, V_PIECES, O_IN_Q, CAUSAL,
            )  # fmt: skip

        with tlx.async_task(num_warps=4, replicate=CONSUMERS, registers=REGISTERS):  # consumers
            c: tl.constexpr = tlx.async_task_replica_id()
            NEXT: tl.constexpr = (c + 1) % CONSUMERS
            scale = sm_scale * LOG2_E
            if c == CONSUMERS - 1:
                tlx.named_barrier_arrive(0, TURN_THREADS)
            stage = 0
            phase = 0
            for turn in range(num_tiles):
                head, row = tile_of(turn, Q_LENGTH, HEADS_TOGETHER, BLOCK_M, CAUSAL)
                first_row = row + c * ROWS
                # Without a causal mask the diagonal lies after all keys, and their end counts. That it is the same for
                # all tiles stays hidden: LLVM would compute the mask before them, and hold it in registers.
                last_key = first_row if CAUSAL else first_row + KV_LENGTH
                num_blocks = blocks_until(last_key + ROWS - 1, KV_LENGTH, BLOCK_N, MASKED)
                if ENDS_DIFFER:
                    for _ in range(num_blocks, blocks_until(row + BLOCK_M - 1, KV_LENGTH, BLOCK_N, CAUSAL)):
                        # An arrival before the block is there would count for the block before.
                        tlx.barrier_wait(k_full[stage], phase)
                        tlx.barrier_arrive(k_empty[stage])
                        tlx.barrier_wait(v_full[stage], phase)
                        tlx.barrier_arrive(v_empty[stage])
                        tlx.named_barrier_wait(c, TURN_THREADS)
                        tlx.named_barrier_arrive(NEXT, TURN_THREADS)
                        stage, phase = next_place(stage, phase, NUM_STAGES)

                tlx.barrier_wait(q_full[c], turn & 1)
                tlx.barrier_wait(k_full[stage], phase)
                first = scores_of(block_of(q, c, PIECES), block_of(k, stage, PIECES))
                first = tlx.async_dot_wait(0, first)
                tlx.barrier_arrive(k_empty[stage])
                if MASKED:
                    first = hide_keys(first, last_key, (num_blocks - 1) * BLOCK_N, KV_LENGTH, EVEN)
                weights, m, total = first_softmax(first, scale)
                p = weights.to(dtype)
                acc = zeros_of(ROWS, V_PIECE, V_PIECES)

                for _ in range(1, num_blocks):
                    v_stage = stage
                    v_phase = phase
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                    tlx.barrier_wait(k_full[stage], phase)
                    tlx.named_barrier_wait(c, TURN_THREADS)
                    scores = scores_of(block_of(q, c, PIECES), block_of(k, stage, PIECES))
                    tlx.barrier_wait(v_full[v_stage], v_phase)
                    acc = add_values(p, block_of(v, v_stage, V_PIECES), acc)
                    tlx.named_barrier_arrive(NEXT, TURN_THREADS)
                    scores = tlx.async_dot_wait(V_PIECES, scores)
                    tlx.barrier_arrive(k_empty[stage])
                    weights, m, total, alpha = next_softmax(scores, scale, m, total)
                    p = weights.to(dtype)
                    acc = wait_for(acc)
                    tlx.barrier_arrive(v_empty[v_stage])
                    acc = times(acc, alpha)
                if not O_IN_Q:
                    tlx.barrier_arrive(q_empty[c])

                tlx.barrier_wait(v_full[stage], phase)
                acc = wait_for(add_values(p, block_of(v, stage, V_PIECES), acc))
                tlx.barrier_arrive(v_empty[stage])
                stage, phase = next_place(stage, phase, NUM_STAGES)

                result = times(acc, 1.0 / total)
                if not O_IN_Q:
                    # Not after the store but before the buffer is written again: the store overlaps the next tile.
                    tlx.async_descriptor_store_wait(0)
                o_block = block_of(o, c, V_PIECES)
                put(o_block, result, dtype)
                store_pieces(o_desc, head // HEADS, head % HEADS, first_row, o_block)
                rows = first_row + tl.arange(0, ROWS)
                tl.store(lse_ptr + head * Q_LENGTH + rows, (m + tl.log2(total)) * LN_2, mask=rows < Q_LENGTH)
                if O_IN_Q:
                    tlx.async_descriptor_store_wait(0)
                    tlx.barrier_arrive(q_empty[c])
            tlx.async_descriptor_store_wait(0)
            if c == 0:
                tlx.named_barrier_wait(0, TURN_THREADS)
