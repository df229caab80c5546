"""The producer of attention's backward pass: TMA loads of K, V, Q and dO, and stores of dQ, dK and dV.

`device` says what its barriers mean.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false

from typing import Any, NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ...rings import next_place, take_next, tile_of
from ..pieces import load_parts, slot_of
from . import config

KEYS = tl.constexpr(config.CONSUMER_KEYS)
"""Keys of a consumer: the rows of one wgmma."""

PART = tl.constexpr(config.PART)
"""Rows and columns of a consumer's part of dQ."""


class Results(NamedTuple):
    """Buffers through which a consumer's results leave, parts of dQ or those of a tile, and their barriers."""

    dq: Any
    tile: Any
    full: Any
    empty: Any


class Blocks(NamedTuple):
    """The blocks of queries that a tile of keys meets, from `begin` on, of the heads that share its head of K and V."""

    first_row: Any
    """That of the tile."""
    begin: Any
    count: Any
    """Those of a head."""
    batch: Any
    head: Any
    place: Any
    """The blocks of all heads before."""


@tlx_xdsl.jit
def first_block(first_key, num_blocks, T: tl.constexpr):
    """The first block of queries that see keys of a tile; for keys after all queries the last one, which sees none."""
    return min(first_key // T.block_m, num_blocks - 1) if T.causal else 0


@tlx_xdsl.jit
def blocks_of(tile, tiles, num_blocks, grid, ROWS: tl.constexpr, T: tl.constexpr):
    """The blocks that a tile of ROWS keys meets, one of the `tiles` of a head."""
    kv_head, first_row = tile_of(tile, tiles, grid.together, ROWS)
    batch = kv_head // grid.heads
    head = kv_head % grid.heads
    begin = first_block(first_row, num_blocks, T)
    return Blocks(first_row, begin, num_blocks, batch, head, kv_head * grid.group * num_blocks)


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
def load_turn(
    descs, stats_ptr, rings, numbers, turn, blocks, stage, phase,
    GROUP: tl.constexpr, ORDERED: tl.constexpr, T: tl.constexpr,
):  # fmt: skip
    """Producer: load a turn's block of Q with its logarithms, and that of dO with its deltas, which follow those."""
    member, block = block_of_turn(turn, blocks.begin, blocks.count, GROUP, ORDERED)
    head = blocks.head * GROUP + member
    row = block * T.block_m
    source = stats_ptr + (blocks.place + member * blocks.count + block).to(tl.int64) * (2 * T.block_m)
    q, do = rings
    lse, delta = numbers
    where = ((blocks.batch,),)
    load_parts(descs[0], slot_of(q, stage), where, head, row, phase, source, lse[stage])
    source += T.block_m
    load_parts(descs[1], slot_of(do, stage), where, head, row, phase, source, delta[stage])


@tlx_xdsl.jit
def add_dq(sums_desc, results, use, row_block, added_ptr, tiles_before, T: tl.constexpr):
    """Producer: add the consumers' parts of dQ to the sums, after those of the tiles before."""
    # Asked before the wait for the consumers, in which the answer arrives.
    added = tl.load(added_ptr + row_block, volatile=True)
    for part in tl.static_range(T.consumers):
        tlx.barrier_wait(results.full[part], use & 1)
        if part == 0:
            wait_for_tiles(added_ptr + row_block, added, tiles_before)
        row = (row_block * T.consumers + part) * PART
        tlx.async_descriptor_store(sums_desc, results.dq[part], [row, 0], store_reduce="add")


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
def store_gradients(stored, results, use, tile, T: tl.constexpr):
    """Producer: store dV and then dK of a tile; `use` is the number of results before."""
    dk_desc, dv_desc, _ = stored
    batch, head, first_row = tile
    for part in tl.static_range(T.consumers):
        tlx.barrier_wait(results.full[part], use & 1)
        tlx.async_descriptor_store(dv_desc, results.tile[part], [batch, head, first_row + part * KEYS, 0])
    give_back(results.empty, T.consumers)
    for part in tl.static_range(T.consumers):
        tlx.barrier_wait(results.full[part], (use + 1) & 1)
        tlx.async_descriptor_store(dk_desc, results.tile[part], [batch, head, first_row + part * KEYS, 0])
    give_back(results.empty, T.consumers)


@tlx_xdsl.jit
def produce(loaded, stored, pointers, rings, numbers, kv, results, queue, counts, grid, T: tl.constexpr):
    """The producer. `counts` are all tiles, those of a head, and the blocks of queries of one."""
    q_desc, do_desc, k_desc, v_desc = loaded
    stats_ptr, counter_ptr, added_ptr = pointers
    k, v, kv_full, kv_empty = kv
    num_tiles, tiles, num_blocks = counts
    ORDERED: tl.constexpr = added_ptr is not None
    BLOCK_N: tl.constexpr = T.consumers * KEYS
    KV_BYTES: tl.constexpr = 2 * BLOCK_N * T.qk.elements * tlx.size_of(tlx.dtype_of(q_desc))
    if ORDERED:
        added_ptr = added_ptr.to(tl.pointer_type(tl.int32), bitcast=True)
    stage = 0
    phase = 0
    use = 0
    last = (0, 0, 0)
    tile = tl.program_id(0)
    round = 0
    while tile < num_tiles:
        blocks = blocks_of(tile, tiles, num_blocks, grid, BLOCK_N, T)
        first_row, begin, _, batch, head, place = blocks
        turns = grid.group * (num_blocks - begin)

        tlx.barrier_wait(kv_empty, (round & 1) ^ 1)
        tlx.barrier_expect_bytes(kv_full, KV_BYTES)
        for part in tl.static_range(T.consumers):
            at = [batch, head, first_row + part * KEYS, 0]
            tlx.async_descriptor_load(k_desc, k[part], at, kv_full)
            tlx.async_descriptor_load(v_desc, v[part], at, kv_full)
        for turn in range(min(turns, T.stages)):
            load_turn(
                (q_desc, do_desc), stats_ptr, rings, numbers, turn, blocks, stage, phase, grid.group, ORDERED, T
            )  # fmt: skip
            stage, phase = next_place(stage, phase, T.stages)
        if round > 0:
            # Not before the first loads of this tile, which run while the consumers end the one before.
            store_gradients(stored, results, use, last, T)
            use += 2
        for turn in range(turns):
            if turn == turns - 1:
                # As late as it costs nothing: who is done first has the next one.
                tile = take_next(counter_ptr, queue, round)
            if ORDERED:
                member, block = block_of_turn(turn, begin, num_blocks, grid.group, ORDERED)
                row_block = place + member * num_blocks + block
                add_dq(stored[2], results, use, row_block, added_ptr, first_row // BLOCK_N, T)
            if turn + T.stages < turns:
                load_turn(
                    (q_desc, do_desc), stats_ptr, rings, numbers, turn + T.stages, blocks, stage, phase,
                    grid.group, ORDERED, T,
                )  # fmt: skip
                stage, phase = next_place(stage, phase, T.stages)
            if ORDERED:
                give_back(results.empty, T.consumers)
                use += 1
                allow_next_tile(added_ptr + row_block)
        last = (batch, head, first_row)
        round += 1
    store_gradients(stored, results, use, last, T)
