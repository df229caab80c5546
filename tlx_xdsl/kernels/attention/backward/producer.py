"""The producer of attention's backward pass: TMA loads of K, V, Q and dO, and stores of dQ, dK and dV.

`device` says what its barriers mean.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.rings import next_place, take_tile, tile_of

from ..pieces import block_of

KEYS = tl.constexpr(64)
"""Keys of a consumer: the rows of one wgmma."""

PART = tl.constexpr(64)
"""Rows and columns of a consumer's part of dQ."""


@tlx_xdsl.jit
def first_block(first_key, num_blocks, BLOCK_M: tl.constexpr, CAUSAL: tl.constexpr):
    """The first block of queries that see keys of a tile; for keys after all queries the last one, which sees none."""
    return min(first_key // BLOCK_M, num_blocks - 1) if CAUSAL else 0


@tlx_xdsl.jit
def block_of_turn(turn, begin, num_blocks, GROUP: tl.constexpr, LAST_FIRST: tl.constexpr):
    """The head (of GROUP) and block of a turn: blocks from `begin` on, of one head after the other.

    With LAST_FIRST blocks from the last one down to `begin`, each of all heads: a tile that has fewer blocks than the
    one before it then does not catch up with that at each new head.
    """
    if LAST_FIRST:
        return turn % GROUP, num_blocks - 1 - turn // GROUP
    if GROUP == 1:
        return 0, begin + turn
    span = num_blocks - begin
    return turn // span, begin + turn % span


@tlx_xdsl.jit
def load_block(desc, place, block, numbers_ptr, numbers, full, empty, phase):
    """Producer: when they are free, load a block of Q or dO in pieces and a number for each of its rows."""
    ROWS: tl.constexpr = numbers.shape[0]
    PIECE: tl.constexpr = block[0].shape[3]
    BYTES: tl.constexpr = ROWS * (len(block) * PIECE * tlx.size_of(tlx.dtype_of(desc)) + 4)
    tlx.barrier_wait(empty, phase ^ 1)
    tlx.barrier_expect_bytes(full, BYTES)
    for piece in tl.static_range(len(block)):
        tlx.async_descriptor_load(desc, block[piece], [*place, piece * PIECE], full)
    tlx.async_load(numbers_ptr, numbers, bulk=True, barrier=full)


@tlx_xdsl.jit
def load_turn(
    q_desc, do_desc, stats_ptr, turn, begin, num_blocks, batch, kv_head, place, q, do, lse, delta,
    q_full, do_full, q_empty, do_empty, stage, phase, GROUP: tl.constexpr, ORDERED: tl.constexpr,
    PIECES: tl.constexpr = 1, DO_PIECES: tl.constexpr = 1,
):  # fmt: skip
    """Producer: load a turn's block of Q with its logarithms, and that of dO with its deltas, which follow those."""
    BLOCK_M: tl.constexpr = lse.shape[0]
    member, block = block_of_turn(turn, begin, num_blocks, GROUP, ORDERED)
    at = (batch, kv_head * GROUP + member, block * BLOCK_M)
    numbers = stats_ptr + (place + member * num_blocks + block).to(tl.int64) * (2 * BLOCK_M)
    q_block = block_of(q, stage, PIECES)
    do_block = block_of(do, stage, DO_PIECES)
    load_block(q_desc, at, q_block, numbers, lse[stage], q_full[stage], q_empty[stage], phase)
    load_block(do_desc, at, do_block, numbers + BLOCK_M, delta[stage], do_full[stage], do_empty[stage], phase)


@tlx_xdsl.jit
def add_dq(
    sums_desc, dq, full, use, row_block, added_ptr, tiles_before,
    BLOCK_M: tl.constexpr, HEAD_DIM: tl.constexpr, CONSUMERS: tl.constexpr,
):  # fmt: skip
    """Producer: add the consumers' parts of dQ to the sums, with `added_ptr` after those of the tiles before."""
    row = row_block * BLOCK_M
    if added_ptr is not None:
        # Asked before the wait for the consumers, in which the answer arrives.
        added = tl.load(added_ptr + row_block, volatile=True)
    for part in tl.static_range(CONSUMERS):
        tlx.barrier_wait(full[part], use & 1)
        if part == 0 and added_ptr is not None:
            wait_for_tiles(added_ptr + row_block, added, tiles_before)
        if HEAD_DIM > PART:
            tlx.async_descriptor_store(sums_desc, dq[part], [row, part * PART], store_reduce="add")
        else:
            tlx.async_descriptor_store(sums_desc, dq[part], [row + part * PART, 0], store_reduce="add")


@tlx_xdsl.jit
def give_back(empty, CONSUMERS: tl.constexpr):
    """Producer: results have been read, and consumers may write the next ones."""
    tlx.async_descriptor_store_wait(0)
    for part in tl.static_range(CONSUMERS):
        tlx.barrier_arrive(empty[part])


@tlx_xdsl.jit
def wait_for_tiles(added_ptr, added, tiles):
    """Producer: wait until so many tiles of keys, those before, have added to a block of dQ; `added` had just now.

    Threads leave the loop one by one: what they read may differ, so no barrier may stand in it.
    """
    while added < tiles:
        added = tl.load(added_ptr, volatile=True)


@tlx_xdsl.jit
def allow_next_tile(added_ptr):
    """Producer: what was added to a block of dQ is there, and the next tile of keys may add."""
    tlx.async_descriptor_store_wait(0, read=False)
    tl.atomic_add(added_ptr, 1, sem="release")


@tlx_xdsl.jit
def store_gradients(dk_desc, dv_desc, result, full, empty, use, batch, kv_head, first_row, CONSUMERS: tl.constexpr):
    """Producer: store dV and then dK of a tile; `use` is the number of results before."""
    for part in tl.static_range(CONSUMERS):
        tlx.barrier_wait(full[part], use & 1)
        tlx.async_descriptor_store(dv_desc, result[part], [batch, kv_head, first_row + part * KEYS, 0])
    give_back(empty, CONSUMERS)
    for part in tl.static_range(CONSUMERS):
        tlx.barrier_wait(full[part], (use + 1) & 1)
        tlx.async_descriptor_store(dk_desc, result[part], [batch, kv_head, first_row + part * KEYS, 0])
    give_back(empty, CONSUMERS)


@tlx_xdsl.jit
def produce(
    loaded, stored, stats_ptr, counter_ptr, added_ptr, buffers, fulls, empties,
    KV_HEADS, num_tiles, tiles, num_blocks, HEADS_TOGETHER,
    GROUP: tl.constexpr, CONSUMERS: tl.constexpr, BLOCK_M: tl.constexpr, HEAD_DIM: tl.constexpr,
    NUM_STAGES: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """The producer."""
    q_desc, do_desc, k_desc, v_desc = loaded
    dk_desc, dv_desc, sums_desc = stored
    q, do, lse, delta, k, v, dq, result, next_tile = buffers
    q_full, do_full, kv_full, full, tile_full = fulls
    q_empty, do_empty, kv_empty, empty, tile_empty = empties
    WITH_DQ: tl.constexpr = sums_desc is not None
    ORDERED: tl.constexpr = added_ptr is not None
    BLOCK_N: tl.constexpr = CONSUMERS * KEYS
    KV_BYTES: tl.constexpr = 2 * BLOCK_N * HEAD_DIM * tlx.size_of(tlx.dtype_of(q_desc))
    if ORDERED:
        added_ptr = added_ptr.to(tl.pointer_type(tl.int32), bitcast=True)
    stage = 0
    phase = 0
    use = 0
    last_batch = 0
    last_head = 0
    last_row = 0
    tile = tl.program_id(0)
    round = 0
    while tile < num_tiles:
        kv_head, first_row = tile_of(tile, tiles, HEADS_TOGETHER, BLOCK_N)
        batch = kv_head // KV_HEADS
        head = kv_head % KV_HEADS
        begin = first_block(first_row, num_blocks, BLOCK_M, CAUSAL)
        turns = GROUP * (num_blocks - begin)
        place = kv_head * GROUP * num_blocks

        tlx.barrier_wait(kv_empty[0], (round & 1) ^ 1)
        tlx.barrier_expect_bytes(kv_full[0], KV_BYTES)
        for part in tl.static_range(CONSUMERS):
            at = [batch, head, first_row + part * KEYS, 0]
            tlx.async_descriptor_load(k_desc, k[part], at, kv_full[0])
            tlx.async_descriptor_load(v_desc, v[part], at, kv_full[0])
        for turn in range(min(turns, NUM_STAGES)):
            load_turn(
                q_desc, do_desc, stats_ptr, turn, begin, num_blocks, batch, head, place, q, do, lse, delta,
                q_full, do_full, q_empty, do_empty, stage, phase, GROUP, ORDERED,
            )  # fmt: skip
            stage, phase = next_place(stage, phase, NUM_STAGES)
        if round > 0:
            # Not before the first loads of this tile, which run while the consumers end the one before.
            store_gradients(dk_desc, dv_desc, result, full, empty, use, last_batch, last_head, last_row, CONSUMERS)
            use += 2
        for turn in range(turns):
            if turn == turns - 1:
                # As late as it costs nothing: who is done first has the next one.
                tile = take_tile(counter_ptr, next_tile[0], tile_full[0], tile_empty[0], round)
            if WITH_DQ:
                member, block = block_of_turn(turn, begin, num_blocks, GROUP, ORDERED)
                row_block = place + member * num_blocks + block
                add_dq(
                    sums_desc, dq, full, use, row_block, added_ptr, first_row // BLOCK_N, BLOCK_M, HEAD_DIM, CONSUMERS
                )
            if turn + NUM_STAGES < turns:
                load_turn(
                    q_desc, do_desc, stats_ptr, turn + NUM_STAGES, begin, num_blocks, batch, head, place,
                    q, do, lse, delta, q_full, do_full, q_empty, do_empty, stage, phase, GROUP, ORDERED,
                )  # fmt: skip
                stage, phase = next_place(stage, phase, NUM_STAGES)
            if WITH_DQ:
                give_back(empty, CONSUMERS)
                use += 1
                if ORDERED:
                    allow_next_tile(added_ptr + row_block)
        last_batch = batch
        last_head = head
        last_row = first_row
        round += 1
    store_gradients(dk_desc, dv_desc, result, full, empty, use, last_batch, last_head, last_row, CONSUMERS)
