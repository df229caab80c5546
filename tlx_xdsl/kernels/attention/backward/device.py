"""Attention backward for Hopper: a program keeps dK and dV of a tile of keys, and adds to dQ of all queries.

With S = Q K^T * scale, P = softmax(S) and O = P V:

    dV = P^T dO,  dP = dO V^T,  dS = P * (dP - delta),  dQ = dS K * scale,  dK = dS^T Q * scale

where delta = sum of dO * O for each query, and P comes back from S and the logarithm of its row's denominator
(`rows`).

Tasks. As many programs as there are multiprocessors take tiles of CONSUMERS * 64 keys of one head of K and V, and go
over the blocks of BLOCK_M queries of all heads of Q that share it. A producer (the default task) loads K and V of a
tile and then, by TMA, blocks of Q and dO with their numbers, and stores dQ, dK and dV. CONSUMERS tasks of one warp
group each have 64 keys of the tile.

Schedule. Programs take tiles from a counter (`tile_counter`), which `attention_backward_before` sets to 0; a producer
takes the next one when it issues the last loads of a tile. With a causal mask the first keys of a head are seen by most
queries: the first tiles of HEADS_TOGETHER heads come first.

Products. A consumer computes S^T = K Q^T and dP^T = V dO^T of its keys. So P^T and dS^T stand in registers as the next
products want their left side, for dV += P^T dO and dK += dS^T Q. For dQ the keys are summed over: consumers put dS^T in
shared memory, meet at a named barrier, and each computes a part of dQ = dS K over all keys of the tile: with 128
elements a head half of them for all queries, with 64 half of the queries. Its f32 sums leave through shared memory, by
TMA of the producer, which adds them in the L2 cache to those of other programs: in any order, so that the last bits of
dQ differ from call to call.

One order. `added_ptr` counts for each block of dQ the tiles that have added to it. With it the tiles of a head add in
the order of their keys, and the bits are the same each time. A producer waits for the tiles before, which programs have
taken before: one of them can always go on. Blocks are taken from the last one down, so that with a causal mask, too,
all tiles of a head begin with the same one, and follow each other a step apart.

Order. S and dP are issued together, the exponentials are computed while dP runs; dV runs while consumers meet for dS,
dK while dQ leaves.

Rings. Q and dO have NUM_STAGES blocks each, which advance together; Q brings the logarithms with it, dO the deltas.
`do_empty` gets its arrivals after dV, `q_empty` after dK, `kv_empty` after the last dQ of a tile. dS has as many blocks
as Q. Two are enough for one meeting in a step: who is at that of the next step has waited for its dQ of this one, and
no one writes this buffer before.

Results. Each consumer has one buffer for what leaves by TMA: its parts of dQ, and at the end of a tile its dV and dK,
which share the bytes of those. `full[c]` says that it is written, `empty[c]` that TMA has read it; `use` counts. The
producer stores dV and dK of a tile after the first loads of the next one.

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
from tlx_xdsl.kernels.rings import next_place, taken_tile, tile_of

from ..pieces import as_matrix
from ..scores import LN_2, LOG2_E
from .producer import KEYS, PART, block_of_turn, first_block, produce


@tlx_xdsl.jit
def hide(p, first_key, first_query, KV_LENGTH, CAUSAL: tl.constexpr, EVEN: tl.constexpr):
    """Probabilities of (keys, queries), 0 for keys that a query does not see and for those after the end."""
    keys = tl.arange(0, p.shape[0])
    if CAUSAL:
        queries = tl.arange(0, p.shape[1])
        p = tl.where((keys + (first_key - first_query))[:, None] <= queries[None, :], p, 0.0)
    if not EVEN:
        p = tl.where((keys < KV_LENGTH - first_key)[:, None], p, 0.0)
    return p


@tlx_xdsl.jit
def is_cut(first_key, first_query, KV_LENGTH, CAUSAL: tl.constexpr, EVEN: tl.constexpr):
    """Return whether a mask hides some of a consumer's keys from some of the queries."""
    cut = first_key + KEYS - 1 > first_query if CAUSAL else False
    return cut if EVEN else cut or first_key + KEYS > KV_LENGTH


@tlx_xdsl.jit
def part_of_dq(ds, k, c, first, CONSUMERS: tl.constexpr):
    """Issue a consumer's part of dQ = dS K, one product for the keys of each consumer: 64 queries, 64 elements.

    `ds` has (keys, queries) of each consumer from `first` on.
    """
    QUERIES: tl.constexpr = ds.shape[1]
    HEAD_DIM: tl.constexpr = k.shape[3]
    dq = tl.zeros((PART, PART), tl.float32)
    for other in tl.static_range(CONSUMERS):
        left = tlx.local_trans(ds[first + other])
        right = as_matrix(k[other])
        if QUERIES > PART:
            left = tlx.local_slice(left, [c * PART, 0], [PART, KEYS])
        if HEAD_DIM > PART:
            right = tlx.local_slice(right, [0, c * PART], [KEYS, PART])
        dq = tlx.async_dot(left, right, dq)
    return dq


@tlx_xdsl.jit
def step(
    dk, dv, k, v, q, do, lse, delta, ds, dq, q_full, q_empty, do_full, do_empty, full, empty,
    use, stage, phase, scale, first_key, first_query, KV_LENGTH,
    c: tl.constexpr, CONSUMERS: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr, WITH_DQ: tl.constexpr,
):  # fmt: skip
    """A consumer's part of a block of queries: dK and dV with it, and dQ on its way."""
    dtype: tl.constexpr = tlx.dtype_of(k)
    tlx.barrier_wait(q_full[stage], phase)
    scores = tlx.async_dot(as_matrix(k[c]), tlx.local_trans(as_matrix(q[stage])))
    tlx.barrier_wait(do_full[stage], phase)
    dp = tlx.async_dot(as_matrix(v[c]), tlx.local_trans(as_matrix(do[stage])))
    scores = tlx.async_dot_wait(1, scores)
    p = tl.math.exp2(scores * scale - tlx.local_load(lse[stage])[None, :])
    dp = tlx.async_dot_wait(0, dp)
    if (CAUSAL or not EVEN) and is_cut(first_key, first_query, KV_LENGTH, CAUSAL, EVEN):
        p = hide(p, first_key, first_query, KV_LENGTH, CAUSAL, EVEN)
    weights = p.to(dtype)
    gradient = (p * (dp - tlx.local_load(delta[stage])[None, :])).to(dtype)
    if WITH_DQ:
        first = stage * CONSUMERS
        tlx.local_store(ds[first + c], gradient)
        dv = tlx.async_dot(weights, as_matrix(do[stage]), dv)
        tlx.fence_async_shared()  # the tensor cores read through the async proxy what the threads wrote
        tlx.named_barrier_wait(0, CONSUMERS * 128)
        part = part_of_dq(ds, k, c, first, CONSUMERS)
        dv = tlx.async_dot_wait(CONSUMERS, dv)
        tlx.barrier_arrive(do_empty[stage])
        dk = tlx.async_dot(gradient, as_matrix(q[stage]), dk)
        part = tlx.async_dot_wait(1, part)
        tlx.barrier_wait(empty[c], (use & 1) ^ 1)
        tlx.local_store(dq[c], part)
        tlx.fence_async_shared()
        tlx.barrier_arrive(full[c])
    else:
        dv = tlx.async_dot(weights, as_matrix(do[stage]), dv)
        dk = tlx.async_dot(gradient, as_matrix(q[stage]), dk)
        dv = tlx.async_dot_wait(1, dv)
        tlx.barrier_arrive(do_empty[stage])
    dk = tlx.async_dot_wait(0, dk)
    tlx.barrier_arrive(q_empty[stage])
    return dk, dv


@tlx_xdsl.jit
def leave(buffer, gradient, full, empty, use):
    """A consumer: leave dK or dV for the producer to store; `use` is the number of results before."""
    tlx.barrier_wait(empty, (use & 1) ^ 1)
    tlx.local_store(as_matrix(buffer), gradient.to(tlx.dtype_of(buffer)))
    tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
    tlx.barrier_arrive(full)


@tlx_xdsl.jit
def attention_backward(
    q_desc, k_desc, v_desc, do_desc, dk_desc, dv_desc, stats_ptr, counter_ptr, added_ptr, sums_desc, sm_scale,
    BATCH_HEADS, KV_HEADS, Q_LENGTH, KV_LENGTH, HEADS_TOGETHER,
    GROUP: tl.constexpr, CONSUMERS: tl.constexpr, REGISTERS: tl.constexpr, BLOCK_M: tl.constexpr,
    HEAD_DIM: tl.constexpr, NUM_STAGES: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """The kernel; see the top of the file. BATCH_HEADS are the heads of K and V of all batches.

    EVEN says that KV_LENGTH is a multiple of the tile's keys. Without `sums_desc` dQ is left out.
    """
    BLOCK_N: tl.constexpr = CONSUMERS * KEYS
    WITH_DQ: tl.constexpr = sums_desc is not None
    tl.static_assert(BLOCK_M * HEAD_DIM == CONSUMERS * PART * PART or not WITH_DQ, "each consumer has one part of dQ")
    tl.static_assert(NUM_STAGES >= 2, "consumers write dS of a block while others read that of the block before")
    dtype: tl.constexpr = tlx.dtype_of(q_desc)
    tiles = tl.cdiv(KV_LENGTH, BLOCK_N)
    num_tiles = BATCH_HEADS * tiles
    num_blocks = tl.cdiv(Q_LENGTH, BLOCK_M)

    k = tlx.local_alloc((1, 1, KEYS, HEAD_DIM), dtype, CONSUMERS)
    v = tlx.local_alloc((1, 1, KEYS, HEAD_DIM), dtype, CONSUMERS)
    q = tlx.local_alloc((1, 1, BLOCK_M, HEAD_DIM), dtype, NUM_STAGES)
    do = tlx.local_alloc((1, 1, BLOCK_M, HEAD_DIM), dtype, NUM_STAGES)
    lse = tlx.local_alloc((BLOCK_M,), tl.float32, NUM_STAGES)
    delta = tlx.local_alloc((BLOCK_M,), tl.float32, NUM_STAGES)
    ds = tlx.local_alloc((KEYS, BLOCK_M), dtype, NUM_STAGES * CONSUMERS) if WITH_DQ else None
    # A consumer's results leave through one buffer: its parts of dQ, and dV and dK of a tile.
    results = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    result = tlx.local_alloc((1, 1, KEYS, HEAD_DIM), dtype, CONSUMERS, reuse=results)
    dq = None
    if WITH_DQ:
        dq = tlx.local_alloc((PART, PART), tl.float32, CONSUMERS, reuse=results)
        results.set_buffer_overlap(tlx.reuse_group(dq, result, group_type=tlx.reuse_group_type.shared))
    kv_full = tlx.alloc_barriers(1)
    kv_empty = tlx.alloc_barriers(1, arrive_count=CONSUMERS)
    q_full = tlx.alloc_barriers(NUM_STAGES)
    do_full = tlx.alloc_barriers(NUM_STAGES)
    q_empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=CONSUMERS)
    do_empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=CONSUMERS)
    next_tile = tlx.local_alloc((1,), tl.int32, 1)
    tile_full = tlx.alloc_barriers(1)
    tile_empty = tlx.alloc_barriers(1, arrive_count=CONSUMERS)
    full = tlx.alloc_barriers(CONSUMERS)
    empty = tlx.alloc_barriers(CONSUMERS)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            produce(
                (q_desc, do_desc, k_desc, v_desc), (dk_desc, dv_desc, sums_desc), stats_ptr, counter_ptr, added_ptr,
                (q, do, lse, delta, k, v, dq, result, next_tile),
                (q_full, do_full, kv_full, full, tile_full), (q_empty, do_empty, kv_empty, empty, tile_empty),
                KV_HEADS, num_tiles, tiles, num_blocks, HEADS_TOGETHER,
                GROUP, CONSUMERS, BLOCK_M, HEAD_DIM, NUM_STAGES, CAUSAL,
            )  # fmt: skip

        with tlx.async_task(num_warps=4, replicate=CONSUMERS, registers=REGISTERS):  # consumers
            c: tl.constexpr = tlx.async_task_replica_id()
            scale = sm_scale * LOG2_E
            stage = 0
            phase = 0
            use = 0
            tile = tl.program_id(0)
            round = 0
            while tile < num_tiles:
                _, first_row = tile_of(tile, tiles, HEADS_TOGETHER, BLOCK_N)
                first_key = first_row + c * KEYS
                begin = first_block(first_row, num_blocks, BLOCK_M, CAUSAL)
                dk = tl.zeros((KEYS, HEAD_DIM), tl.float32)
                dv = tl.zeros((KEYS, HEAD_DIM), tl.float32)
                tlx.barrier_wait(kv_full[0], round & 1)
                for turn in tl.range(GROUP * (num_blocks - begin), disable_licm=True):
                    _, block = block_of_turn(turn, begin, num_blocks, GROUP, added_ptr is not None)
                    dk, dv = step(
                        dk, dv, k, v, q, do, lse, delta, ds, dq, q_full, q_empty, do_full, do_empty, full, empty,
                        use, stage, phase, scale, first_key, block * BLOCK_M, KV_LENGTH,
                        c, CONSUMERS, CAUSAL, EVEN, WITH_DQ,
                    )  # fmt: skip
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                    if WITH_DQ:
                        use += 1
                tlx.barrier_arrive(kv_empty[0])
                leave(result[c], dv, full[c], empty[c], use)
                leave(result[c], dk * (scale * LN_2), full[c], empty[c], use + 1)
                use += 2
                tile = taken_tile(next_tile[0], tile_full[0], tile_empty[0], round)
                round += 1
