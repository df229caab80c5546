"""Attention backward for Hopper: a program keeps dK and dV of a tile of keys, and adds to dQ of all queries.

With S = Q K^T * scale, P = softmax(S) and O = P V:

    dV = P^T dO,  dP = dO V^T,  dS = P * (dP - delta),  dQ = dS K * scale,  dK = dS^T Q * scale

where delta = sum of dO * O for each query, and P comes back from S and the logarithm of its row's denominator
(`attention_backward_rows`).

Tasks. A program has a tile of CONSUMERS * 64 keys of one head of K and V, and goes over the blocks of BLOCK_M queries
of all heads of Q that share it. A producer (the default task) loads K and V once and then, by TMA, blocks of Q and dO
with their numbers, and stores dQ, dK and dV. CONSUMERS tasks of one warp group each have 64 keys of the tile.

Products. A consumer computes S^T = K Q^T and dP^T = V dO^T of its keys. So P^T and dS^T stand in registers as the next
products want their left side, for dV += P^T dO and dK += dS^T Q. For dQ the keys are summed over: consumers put dS^T in
shared memory, meet at a named barrier, and each computes a part of dQ = dS K over all keys of the tile: with 128
elements a head half of them for all queries, with 64 half of the queries. Its f32 sums leave through shared memory, by
TMA of the producer, which adds them in the L2 cache to those of other programs: in any order, so that the last bits of
dQ differ from call to call.

Order. S and dP are issued together, the exponentials are computed while dP runs; dV runs while consumers meet for dS,
dK while dQ leaves.

Rings. Q and dO have NUM_STAGES blocks each, which advance together; Q brings the logarithms with it, dO the deltas.
`do_empty` gets its arrivals after dV, `q_empty` after dK. dS has as many blocks. Two are enough for one meeting in a
step: who is at that of the next step has waited for its dQ of this one, and no one writes this buffer before. dQ has
one buffer for each consumer: `dq_full[c]` says that it is written, `dq_empty[c]` that TMA has read it.

Masks. A causal mask cuts the blocks of queries that hold the diagonal of the tile, the first ones; blocks before them
are left out. The cut ones of all heads come first, so that there are two loops and none within another, for which
registers would not do. Keys after the end get the probability 0 where there are any; queries after the end have it by
their logarithm.

Edges. Descriptors have four dimensions, (batch, head, row, column), so that TMA reads zeros after the end of a sequence
and writes nothing there: lengths may be any. The f32 sums of dQ have whole blocks.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.attention_device import LN_2, LOG2_E, as_matrix
from tlx_xdsl.kernels.rings import next_place

KEYS = tl.constexpr(64)
"""Keys of a consumer: the rows of one wgmma."""

PART = tl.constexpr(64)
"""Rows and columns of a consumer's part of dQ."""


@tlx_xdsl.jit
def load_block(desc, place, buffer, numbers_ptr, numbers, full, empty, phase):
    """Producer: when they are free, load a block of Q or dO to `buffer` and a number for each of its rows."""
    ROWS: tl.constexpr = numbers.shape[0]
    BYTES: tl.constexpr = ROWS * (buffer.shape[3] * tlx.size_of(tlx.dtype_of(desc)) + 4)
    tlx.barrier_wait(empty, phase ^ 1)
    tlx.barrier_expect_bytes(full, BYTES)
    tlx.async_descriptor_load(desc, buffer, place, full)
    tlx.async_load(numbers_ptr, numbers, bulk=True, barrier=full)


@tlx_xdsl.jit
def first_block(first_key, num_blocks, BLOCK_M: tl.constexpr, CAUSAL: tl.constexpr):
    """The first block of queries that see keys of a tile; for keys after all queries the last block, which sees none."""
    return min(first_key // BLOCK_M, num_blocks - 1) if CAUSAL else 0


@tlx_xdsl.jit
def block_of(turn, begin, num_blocks, GROUP: tl.constexpr):
    """The head (of GROUP) and block of a turn: blocks from `begin` on, of one head after the other."""
    if GROUP == 1:
        return 0, begin + turn
    span = num_blocks - begin
    return turn // span, begin + turn % span


@tlx_xdsl.jit
def load_turn(
    q_desc, do_desc, stats_ptr, turn, begin, num_blocks, batch, kv_head, place, q, do, lse, delta,
    q_full, do_full, q_empty, do_empty, stage, phase, GROUP: tl.constexpr,
):  # fmt: skip
    """Producer: load a turn's block of Q with its logarithms, and that of dO with its deltas, which follow those."""
    BLOCK_M: tl.constexpr = lse.shape[0]
    member, block = block_of(turn, begin, num_blocks, GROUP)
    at = [batch, kv_head * GROUP + member, block * BLOCK_M, 0]
    numbers = stats_ptr + (place + member * num_blocks + block).to(tl.int64) * (2 * BLOCK_M)
    load_block(q_desc, at, q[stage], numbers, lse[stage], q_full[stage], q_empty[stage], phase)
    load_block(do_desc, at, do[stage], numbers + BLOCK_M, delta[stage], do_full[stage], do_empty[stage], phase)


@tlx_xdsl.jit
def tile_of(tile, tiles, HEADS_TOGETHER, BLOCK_N: tl.constexpr):
    """Head of K and V (over all batches) and first key of a tile: those of HEADS_TOGETHER heads, long ones first."""
    together = tiles * HEADS_TOGETHER
    rest = tile % together
    return tile // together * HEADS_TOGETHER + rest % HEADS_TOGETHER, rest // HEADS_TOGETHER * BLOCK_N


@tlx_xdsl.jit
def take_tile(counter_ptr, tile, full, empty, turn):
    """Producer: take the next tile that no program has, for the consumers' `turn`-th turn after their first."""
    taken = tl.num_programs(0) + tl.atomic_add(counter_ptr.to(tl.pointer_type(tl.int32), bitcast=True), 1)
    tlx.barrier_wait(empty, (turn & 1) ^ 1)
    tlx.local_store(tile, tl.full((1,), taken, tl.int32))
    tlx.barrier_arrive(full)
    return taken


@tlx_xdsl.jit
def taken_tile(tile, full, empty, turn):
    """A consumer: the tile that the producer has taken."""
    tlx.barrier_wait(full, turn & 1)
    taken = tl.sum(tlx.local_load(tile), 0)
    tlx.barrier_arrive(empty)
    return taken


@tlx_xdsl.jit
def add_dq(sums_desc, dq, full, use, row, HEAD_DIM: tl.constexpr, CONSUMERS: tl.constexpr):
    """Producer: add the consumers' parts of dQ to the sums."""
    for part in tl.static_range(CONSUMERS):
        tlx.barrier_wait(full[part], use & 1)
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
    """Whether a mask hides some of a consumer's keys from some of the queries."""
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
    q_desc, k_desc, v_desc, do_desc, dk_desc, dv_desc, stats_ptr, counter_ptr, sums_desc, sm_scale,
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
    KV_BYTES: tl.constexpr = 2 * BLOCK_N * HEAD_DIM * tlx.size_of(dtype)
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
                        q_full, do_full, q_empty, do_empty, stage, phase, GROUP,
                    )  # fmt: skip
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                if round > 0:
                    # Not before the first loads of this tile, which run while the consumers end the one before.
                    store_gradients(
                        dk_desc, dv_desc, result, full, empty, use, last_batch, last_head, last_row, CONSUMERS
                    )
                    use += 2
                for turn in range(turns):
                    if turn == turns - 1:
                        # As late as it costs nothing: who is done first has the next one.
                        tile = take_tile(counter_ptr, next_tile[0], tile_full[0], tile_empty[0], round)
                    if WITH_DQ:
                        member, block = block_of(turn, begin, num_blocks, GROUP)
                        row = (place + member * num_blocks + block) * BLOCK_M
                        add_dq(sums_desc, dq, full, use, row, HEAD_DIM, CONSUMERS)
                    if turn + NUM_STAGES < turns:
                        load_turn(
                            q_desc, do_desc, stats_ptr, turn + NUM_STAGES, begin, num_blocks, batch, head, place,
                            q, do, lse, delta, q_full, do_full, q_empty, do_empty, stage, phase, GROUP,
                        )  # fmt: skip
                        stage, phase = next_place(stage, phase, NUM_STAGES)
                    if WITH_DQ:
                        give_back(empty, CONSUMERS)
                        use += 1
                last_batch = batch
                last_head = head
                last_row = first_row
                round += 1
            store_gradients(dk_desc, dv_desc, result, full, empty, use, last_batch, last_head, last_row, CONSUMERS)

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
                    _, block = block_of(turn, begin, num_blocks, GROUP)
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
