"""Attention forward for Hopper: persistent programs whose consumers take turns at the tensor cores.

O = softmax(Q K^T * scale) V for each head, and the logarithm of each row's softmax denominator, by online softmax in
powers of two. Q has `heads` heads, K and V one for each `group` of them; row i of a causal mask sees the keys 0 to i.

Tasks. As many programs as are resident at once take tiles of T.consumers * 64 rows of one head, one after the other. A
producer (the default task) loads by TMA, also for the next tile while the consumers end this one. T.consumers tasks of
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

Rings. K and V have one of T.stages blocks each, which advance together. Q has one block for each consumer, O too, so
that Q of the next tile arrives before O of this one has left. Where shared memory does not hold both (T.o_in_q), O
takes Q's bytes: `q_empty[c]` then says that TMA has read O, and the producer loads the next tile's first K before it
waits for that. Blocks may be in pieces (`pieces`). `q_full`, `k_full` and `v_full` complete when the bytes of a copy
have arrived; `q_empty[c]` when consumer c has done its last S of a tile, `k_empty` and `v_empty` when all consumers
have arrived, after the wait for the product that read the stage. The producer waits for the phase before the current
one; a fresh barrier lets the first pass.

Masks. Each consumer iterates over its key blocks in descending order, so only its first block needs a mask. That block
has the diagonal, since 64 rows never cross from one block of T.block_n = 64 or 128 keys to the next, or the end of the
keys, or both; every row sees at least one key of it. Where the consumers of a tile end in different blocks, those that
end earlier release the blocks that they do not need, unread, and pass their turn on.

Edges. Descriptors have four dimensions, (batch, head, row, column), so that TMA reads zeros after the end of a
sequence and writes nothing there: lengths may be any.

Schedule. `together` heads (1 or all) take their tiles in turn: all tiles of a head one after the other, whose K and
V then stay in the L2 cache, or the same tile of all heads. With a causal mask tiles go from long to short, and
alternate rounds are assigned in reverse order, which balances the programs' load.

Sequences. Tiles come from a grid of heads, or of sequences that follow each other in one tensor (T.sequences). Where
those begin is known on the GPU alone. All tiles of a sequence follow each other, `together` heads in turn, whose K and
V stay in the L2 cache. Lengths differ, so programs take tiles from a counter (`rings`): a program that is done early
has the next one. `clear_counter` sets it to zero before. Each task finds the sequence of a tile itself, going on from
that of the tile before (`sequences.seek`). A block may reach into the next sequence. Rows of Q after the end give rows
that no task stores, keys after the end are hidden. Values are not, since 0 * NaN is NaN, nor may O be written there:
descriptors of V and O are ragged, and cut where the sequence ends (`gemm/grouped/parts`). Their dimensions are (2^31,
2^31, heads, 2^30, head dim). A sequence without keys takes one block, all of it hidden.

Eight bits. Heads may be of e4m3 (T.in_8_bits): `fp8/blocks` says what that changes.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalMemberAccess=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..rings import begin_turns, end_turns, queue_for, take_next, taken_next
from .pieces import ROWS, Ring, buffers_for, rings_of
from .scores import LOG2_E, Scoring
from .sequences import count_tiles, first_place, seek, tile_at, tile_blocks, tile_of
from .tile import attend_tile, load_tile


@tlx_xdsl.jit
def clear_counter(counter_ptr):
    """Set the counter of tiles to zero."""
    tl.store(counter_ptr, 0.0)


@tlx_xdsl.jit
def attention(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, sm_scale, source, lower, upper, softcap, sinks_ptr, score_args, scales,
    T: tl.constexpr,
):  # fmt: skip
    """The kernel; see the top of the file. `source` is where tiles come from, a `Grid` or `Sequences`.

    `lower` and `upper` limit the keys that a row sees (`sequences`); they, `softcap` and `sinks_ptr` are None where
    there is no such thing. What T.score_mod takes is in `score_args`, `scales` are the `Scales` of 8 bits.
    """
    tl.static_assert(T.block_n % ROWS == 0, "one block of keys holds the diagonal of a consumer's rows")
    tl.static_assert(T.stages >= 2, "a consumer holds K of a block and V of the block before")
    limits = (lower, upper)
    descs = (q_desc, k_desc, v_desc)
    if not T.sequences:
        num_tiles = count_tiles(source, T)

    tiles = tlx.storage_alias_spec(storage=tlx.storage_kind.smem) if T.o_in_q else None
    q_buffers = buffers_for(q_desc, T.consumers, T.qk, tiles)
    k_buffers = buffers_for(k_desc, T.stages, T.qk)
    v_buffers = buffers_for(v_desc, T.stages, T.v)
    o_buffers = buffers_for(o_desc, T.consumers, T.v, tiles)
    if T.o_in_q:
        tiles.set_buffer_overlap(
            tlx.reuse_group(
                tlx.reuse_group(q_buffers, group_size=T.qk.number),
                tlx.reuse_group(o_buffers, group_size=T.v.number),
                group_type=tlx.reuse_group_type.shared,
            )
        )
    q = Ring(q_buffers, tlx.alloc_barriers(T.consumers), tlx.alloc_barriers(T.consumers), T.qk)
    k, v = rings_of(k_buffers, v_buffers, T.stages, T.consumers, T)
    rings = (q, k, v)
    o = Ring(o_buffers, None, None, T.v)
    if T.sequences:
        queue = queue_for(T.consumers)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = 0
            phase = 0
            if T.sequences:
                turn = 0
                number = tl.program_id(0)
                place = first_place(source, number, T)
                while place[0] < source.count:
                    h, tile = tile_at(source, number, place, turn, limits, T)
                    blocks = tile_blocks(tile, T)
                    stage, phase = load_tile(descs, rings, (0, h, h // source.group), tile, blocks, stage, phase, T)
                    number = take_next(source.counter, queue, turn)
                    turn += 1
                    place = seek(source, number, place, T)
            else:
                for turn in range(num_tiles):
                    head, tile = tile_of(source, turn, limits, T)
                    b = head // source.heads
                    h = head % source.heads
                    at = (b, h, h // source.group)
                    stage, phase = load_tile(descs, rings, at, tile, tile_blocks(tile, T), stage, phase, T)

        with tlx.async_task(num_warps=4, replicate=T.consumers, registers=T.registers):  # consumers
            c: tl.constexpr = tlx.async_task_replica_id()
            power = LOG2_E if T.turned else sm_scale * LOG2_E
            scoring = Scoring(sm_scale, power, softcap, sinks_ptr, score_args, scales)
            begin_turns(c, T.consumers)
            stage = 0
            phase = 0
            if T.sequences:
                turn = 0
                number = tl.program_id(0)
                place = first_place(source, number, T)
                while place[0] < source.count:
                    h, tile = tile_at(source, number, place, turn, limits, T)
                    at = (place[0] * source.heads + h, source.heads, source.group)
                    results = (o_desc, lse_ptr, source.q_rows)
                    stage, phase = attend_tile(rings, o, results, at, tile, scoring, stage, phase, c, T)
                    number = taken_next(queue, turn)
                    turn += 1
                    place = seek(source, number, place, T)
            else:
                for turn in range(num_tiles):
                    head, tile = tile_of(source, turn, limits, T)
                    at = (head, source.heads, source.group)
                    results = (o_desc, lse_ptr, source.queries)
                    stage, phase = attend_tile(rings, o, results, at, tile, scoring, stage, phase, c, T)
            tlx.async_descriptor_store_wait(0)
            end_turns(c, T.consumers)
