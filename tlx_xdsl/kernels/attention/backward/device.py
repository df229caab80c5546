"""Attention backward for Hopper: a program keeps dK and dV of a tile of keys, and adds to dQ of all queries.

With S = Q K^T * scale, P = softmax(S) and O = P V:

    dV = P^T dO,  dP = dO V^T,  dS = P * (dP - delta),  dQ = dS K * scale,  dK = dS^T Q * scale

where delta = sum of dO * O for each query, and P comes back from S and the logarithm of its row's denominator
(`rows`).

Tasks. As many programs as there are multiprocessors take tiles of T.consumers * 64 keys of one head of K and V, and go
over the blocks of T.block_m queries of all heads of Q that share it. A producer (the default task) loads K and V of a
tile and then, by TMA, blocks of Q and dO with their numbers, and stores dQ, dK and dV. T.consumers tasks of one warp
group each have 64 keys of the tile.

Schedule. Programs take tiles from a counter (`tile_counter`), which `attention_backward_before` sets to 0; a producer
takes the next one when it issues the last loads of a tile. With a causal mask the first keys of a head are seen by most
queries: the first tiles of `together` heads come first.

Products. A consumer computes S^T = K Q^T and dP^T = V dO^T of its keys. So P^T and dS^T stand in registers as the next
products want their left side, for dV += P^T dO and dK += dS^T Q. For dQ the keys are summed over: consumers put dS^T in
shared memory, meet at a named barrier, and each computes a part of dQ = dS K over all keys of the tile: with 128
elements a head half of them for all queries, with 64 half of the queries. It adds its f32 sums from registers to those
of other programs in the L2 cache, 16 bytes at a time: in any order, so that the last bits of dQ differ from call to
call. A part's sums lie in the order in which threads hold them (`by_threads`).

One order. `added_ptr` counts for each block of dQ the tiles that have added to it. With it the tiles of a head add in
the order of their keys, and the bits are the same each time. Parts of dQ then leave through shared memory, by TMA of
the producer. It waits for the tiles before, which programs have taken before: one of them can always go on. Blocks are
taken from the last one down, so that with a causal mask, too, all tiles of a head begin with the same one, and follow
each other a step apart.

Order. S and dP are issued together, the exponentials are computed while dP runs; dV runs while consumers meet for dS,
dK while dQ leaves.

Rings. Q and dO have T.stages blocks each, which advance together; Q brings the logarithms with it, dO the deltas.
`do_empty` gets its arrivals after dV, `q_empty` after dK, `kv_empty` after the last dQ of a tile. dS has as many blocks
as Q. Two are enough for one meeting in a step: who is at that of the next step has waited for its dQ of this one, and
no one writes this buffer before.

Results. Each consumer has one buffer for what leaves by TMA: its parts of dQ where there is one order, and at the end
of a tile its dV and dK, which share the bytes of those. `full[c]` says that it is written, `empty[c]` that TMA has read
it; `use` counts. The producer stores dV and dK of a tile after the first loads of the next one.

Masks. Whether the mask or the end of the keys cuts a block is asked at each step: the comparisons are in a branch, and
nothing is hoisted out of the loop, for which there are no registers. Blocks before the diagonal are left out; keys
after all queries have one block, of which they see nothing. Queries after the end have the probability 0 by their
logarithm.

Edges. Descriptors have four dimensions, (batch, head, row, column), so that TMA reads zeros after the end of a sequence
and writes nothing there: lengths may be any. The f32 sums of dQ have whole blocks.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ...rings import next_place, queue_for, taken_next, tile_of
from ..pieces import as_matrix, buffers_for, rings_of
from ..scores import LN_2, LOG2_E
from .producer import KEYS, PART, Results, block_of_turn, first_block, produce


@tlx_xdsl.jit
def hide(p, first_key, first_query, keys_end, T: tl.constexpr):
    """Probabilities of (keys, queries), 0 for keys that a query does not see and for those after the end."""
    keys = tl.arange(0, p.shape[0])
    if T.causal:
        queries = tl.arange(0, p.shape[1])
        p = tl.where((keys + (first_key - first_query))[:, None] <= queries[None, :], p, 0.0)
    if not T.even:
        p = tl.where((keys < keys_end - first_key)[:, None], p, 0.0)
    return p


@tlx_xdsl.jit
def is_cut(first_key, first_query, keys_end, T: tl.constexpr):
    """Return whether a mask hides some of a consumer's keys from some of the queries."""
    cut = first_key + KEYS - 1 > first_query if T.causal else False
    return cut if T.even else cut or first_key + KEYS > keys_end


@tlx_xdsl.jit
def part_of_dq(ds, k, c, first, T: tl.constexpr):
    """Issue a consumer's part of dQ = dS K, one product for the keys of each consumer: 64 queries, 64 elements.

    `ds` has (keys, queries) of each consumer from `first` on.
    """
    dq = tl.zeros((PART, PART), tl.float32)
    for other in tl.static_range(T.consumers):
        left = tlx.local_trans(ds[first + other])
        right = as_matrix(k[other])
        if T.block_m > PART:
            left = tlx.local_slice(left, [c * PART, 0], [PART, KEYS])
        if T.qk.elements > PART:
            right = tlx.local_slice(right, [0, c * PART], [KEYS, PART])
        dq = tlx.async_dot(left, right, dq)
    return dq


@tlx_xdsl.jit
def by_threads(part):
    """The numbers of a part of dQ, those of a thread four by four, of the threads of a warp one after the other.

    A wgmma gives a thread two neighbours in each of two rows, in every eighth column (PTX ISA, "wgmma", register
    fragments of D).
    """
    return part.reshape((4, 2, 8, 8, 4, 2)).permute((0, 3, 2, 4, 1, 5)).reshape((PART * PART,))


@tlx_xdsl.jit
def send(part, sums_ptr, results, use, c: tl.constexpr):
    """A consumer: add its part of dQ to the sums, or leave it for the producer to add.

    `use` is the number of results before.
    """
    if sums_ptr is not None:
        tl.atomic_add(sums_ptr + tl.arange(0, PART * PART), by_threads(part), sem="relaxed")
    else:
        tlx.barrier_wait(results.empty[c], (use & 1) ^ 1)
        tlx.local_store(results.dq[c], by_threads(part).reshape((PART, PART)))
        tlx.fence_async_shared()
        tlx.barrier_arrive(results.full[c])


@tlx_xdsl.jit
def step(
    sums, kv, rings, numbers, ds, sums_ptr, results, use, stage, phase, scale, first_key, first_query, keys_end,
    c: tl.constexpr, T: tl.constexpr,
):  # fmt: skip
    """A consumer's part of a block of queries: dK and dV with it, and dQ on its way."""
    dk, dv = sums
    k, v = kv
    q, do = rings
    lse, delta = numbers
    dtype: tl.constexpr = tlx.dtype_of(k)
    tlx.barrier_wait(q.full[stage], phase)
    scores = tlx.async_dot(as_matrix(k[c]), tlx.local_trans(as_matrix(q.buffers[stage])))
    tlx.barrier_wait(do.full[stage], phase)
    dp = tlx.async_dot(as_matrix(v[c]), tlx.local_trans(as_matrix(do.buffers[stage])))
    scores = tlx.async_dot_wait(1, scores)
    p = tl.math.exp2(scores * scale - tlx.local_load(lse[stage])[None, :])
    dp = tlx.async_dot_wait(0, dp)
    if (T.causal or not T.even) and is_cut(first_key, first_query, keys_end, T):
        p = hide(p, first_key, first_query, keys_end, T)
    weights = p.to(dtype)
    gradient = (p * (dp - tlx.local_load(delta[stage])[None, :])).to(dtype)
    first = stage * T.consumers
    tlx.local_store(ds[first + c], gradient)
    dv = tlx.async_dot(weights, as_matrix(do.buffers[stage]), dv)
    tlx.fence_async_shared()  # the tensor cores read through the async proxy what the threads wrote
    tlx.named_barrier_wait(0, T.consumers * 128)
    part = part_of_dq(ds, k, c, first, T)
    dv = tlx.async_dot_wait(T.consumers, dv)
    tlx.barrier_arrive(do.empty[stage])
    dk = tlx.async_dot(gradient, as_matrix(q.buffers[stage]), dk)
    part = tlx.async_dot_wait(1, part)
    send(part, sums_ptr, results, use, c)
    dk = tlx.async_dot_wait(0, dk)
    tlx.barrier_arrive(q.empty[stage])
    return dk, dv


@tlx_xdsl.jit
def leave(results, gradient, use, c: tl.constexpr):
    """A consumer: leave dK or dV for the producer to store; `use` is the number of results before."""
    tlx.barrier_wait(results.empty[c], (use & 1) ^ 1)
    tlx.local_store(as_matrix(results.tile[c]), gradient.to(tlx.dtype_of(results.tile)))
    tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
    tlx.barrier_arrive(results.full[c])


@tlx_xdsl.jit
def attention_backward(
    q_desc, k_desc, v_desc, do_desc, dk_desc, dv_desc, stats_ptr, counter_ptr, added_ptr, sums_desc, sums_ptr, sm_scale,
    grid, T: tl.constexpr,
):  # fmt: skip
    """The kernel; see the top of the file. `grid` is a `sequences.Grid` of heads of K and V.

    `added_ptr` comes with `sums_desc`, blocks of (PART, PART) for TMA; without both `sums_ptr` has the sums.
    """
    WIDTH: tl.constexpr = T.qk.elements
    tl.static_assert(T.block_m * WIDTH == T.consumers * PART * PART, "each consumer has one part of dQ")
    tl.static_assert(T.stages >= 2, "consumers write dS of a block while others read that of the block before")
    BLOCK_N: tl.constexpr = T.consumers * KEYS
    dtype: tl.constexpr = tlx.dtype_of(q_desc)
    tiles = tl.cdiv(grid.keys, BLOCK_N)
    num_tiles = grid.batch_heads * tiles
    num_blocks = tl.cdiv(grid.queries, T.block_m)

    k = buffers_for(k_desc, T.consumers, T.qk)
    v = buffers_for(v_desc, T.consumers, T.v)
    q_buffers = buffers_for(q_desc, T.stages, T.qk)
    do_buffers = buffers_for(do_desc, T.stages, T.v)
    lse = tlx.local_alloc((T.block_m,), tl.float32, T.stages)
    delta = tlx.local_alloc((T.block_m,), tl.float32, T.stages)
    ds = tlx.local_alloc((KEYS, T.block_m), dtype, T.stages * T.consumers)
    # A consumer's results leave through one buffer: its parts of dQ, and dV and dK of a tile.
    shared = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    result = buffers_for(dk_desc, T.consumers, T.qk, shared)
    dq = tlx.local_alloc((PART, PART), tl.float32, T.consumers, reuse=shared)
    shared.set_buffer_overlap(tlx.reuse_group(dq, result, group_type=tlx.reuse_group_type.shared))
    kv_full = tlx.alloc_barriers(1)
    kv_empty = tlx.alloc_barriers(1, arrive_count=T.consumers)
    rings = rings_of(q_buffers, do_buffers, T.stages, T.consumers, T)
    queue = queue_for(T.consumers)
    results = Results(dq, result, tlx.alloc_barriers(T.consumers), tlx.alloc_barriers(T.consumers))

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            produce(
                (q_desc, do_desc, k_desc, v_desc), (dk_desc, dv_desc, sums_desc), (stats_ptr, counter_ptr, added_ptr),
                rings, (lse, delta), (k, v, kv_full[0], kv_empty[0]), results,
                queue, (num_tiles, tiles, num_blocks), grid, T,
            )  # fmt: skip

        with tlx.async_task(num_warps=4, replicate=T.consumers, registers=T.registers):  # consumers
            c: tl.constexpr = tlx.async_task_replica_id()
            scale = sm_scale * LOG2_E
            stage = 0
            phase = 0
            use = 0
            tile = tl.program_id(0)
            round = 0
            while tile < num_tiles:
                kv_head, first_row = tile_of(tile, tiles, grid.together, BLOCK_N)
                first_key = first_row + c * KEYS
                begin = first_block(first_row, num_blocks, T)
                dk = tl.zeros((KEYS, WIDTH), tl.float32)
                dv = tl.zeros((KEYS, WIDTH), tl.float32)
                if sums_ptr is not None:
                    parts = kv_head * grid.group * num_blocks * T.consumers + c
                    head_sums_ptr = sums_ptr + parts.to(tl.int64) * (PART * PART)
                tlx.barrier_wait(kv_full[0], round & 1)
                for turn in tl.range(grid.group * (num_blocks - begin), disable_licm=True):
                    member, block = block_of_turn(turn, begin, num_blocks, grid.group, added_ptr is not None)
                    part_ptr = None
                    if sums_ptr is not None:
                        part_ptr = head_sums_ptr + (member * num_blocks + block) * (T.consumers * PART * PART)
                    dk, dv = step(
                        (dk, dv), (k, v), rings, (lse, delta), ds, part_ptr, results, use, stage, phase, scale,
                        first_key, block * T.block_m, grid.keys, c, T,
                    )  # fmt: skip
                    stage, phase = next_place(stage, phase, T.stages)
                    if sums_ptr is None:
                        use += 1
                tlx.barrier_arrive(kv_empty[0])
                leave(results, dv, use, c)
                leave(results, dk * (scale * LN_2), use + 1, c)
                use += 2
                tile = taken_next(queue, round)
                round += 1
