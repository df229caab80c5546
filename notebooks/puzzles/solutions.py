"""Solutions of the puzzles, one for each: `tests/unit/docs/test_puzzles.py` judges them and the given puzzles."""

import tlx_xdsl.language.ttl as ttl

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(z + at, total, mask=inside)


@tlx_xdsl.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=float("-inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * columns + at, powers / tl.sum(powers, 0), mask=inside)


@tlx_xdsl.jit
def matmul(a, b, c, N, K, TILE: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    acc = tl.zeros((TILE, TILE), tl.float32)
    for k in range(0, K, TILE):
        inner = k + tl.arange(0, TILE)
        a_tile = tl.load(a + rows[:, None] * K + inner[None, :])
        b_tile = tl.load(b + inner[:, None] * N + columns[None, :])
        acc = tl.dot(a_tile, b_tile, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc)


@tlx_xdsl.jit
def pipelined(x, y, TILES, TILE: tl.constexpr, STAGES: tl.constexpr):
    at = tl.arange(0, TILE)
    ring = tlx.local_alloc((TILE,), tl.float32, STAGES)
    for t in tl.static_range(STAGES - 1):
        tlx.async_load(x + t * TILE + at, ring[t], mask=(t < TILES) & (at >= 0))
        tlx.async_load_commit_group()
    total = tl.zeros((TILE,), tl.float32)
    for t in range(TILES):
        tlx.async_load_wait_group(STAGES - 2)
        total += tlx.local_load(ring[t % STAGES])
        ahead = t + STAGES - 1
        tlx.async_load(x + ahead * TILE + at, ring[ahead % STAGES], mask=(ahead < TILES) & (at >= 0))
        tlx.async_load_commit_group()
    tlx.async_load_wait_group(0)
    tl.store(y + at, total)


@tlx_xdsl.jit
def specialised(src, dst, TILES, TILE: tl.constexpr):
    tiles = tlx.local_alloc((TILE, TILE), tl.float16, 1)
    full, empty = tlx.alloc_barriers(1), tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(TILES):
                tlx.barrier_wait(empty[0], (t & 1) ^ 1)
                tlx.barrier_expect_bytes(full[0], TILE * TILE * 2)
                tlx.async_descriptor_load(src, tiles[0], [t * TILE, 0], full[0])
        with tlx.async_task(num_warps=4):
            for t in range(TILES):
                tlx.barrier_wait(full[0], t & 1)
                tlx.local_store(tiles[0], tlx.local_load(tiles[0]) * 2)
                tlx.fence_async_shared()
                tlx.async_descriptor_store(dst, tiles[0], [t * TILE, 0])
                tlx.async_descriptor_store_wait(0)
                tlx.barrier_arrive(empty[0])


@tlx_xdsl.jit
def deadlock(src, dst, TILES, TILE: tl.constexpr, STAGES: tl.constexpr):
    tiles = tlx.local_alloc((TILE, TILE), tl.float16, STAGES)
    full, empty = tlx.alloc_barriers(STAGES), tlx.alloc_barriers(STAGES)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(TILES):
                stage, phase = t % STAGES, (t // STAGES) & 1
                tlx.barrier_wait(empty[stage], phase ^ 1)
                tlx.barrier_expect_bytes(full[stage], TILE * TILE * 2)
                tlx.async_descriptor_load(src, tiles[stage], [t * TILE, 0], full[stage])
        with tlx.async_task(num_warps=1):
            for t in range(TILES):
                stage, phase = t % STAGES, (t // STAGES) & 1
                tlx.barrier_wait(full[stage], phase)
                tlx.async_descriptor_store(dst, tiles[stage], [t * TILE, 0])
                tlx.async_descriptor_store_wait(0)
                tlx.barrier_arrive(empty[stage])


@tlx_xdsl.jit
def race(src, dst, TILES, TILE: tl.constexpr, STAGES: tl.constexpr):
    tiles = tlx.local_alloc((TILE, TILE), tl.float16, STAGES)
    full, empty = tlx.alloc_barriers(STAGES), tlx.alloc_barriers(STAGES)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(TILES):
                stage, phase = t % STAGES, (t // STAGES) & 1
                tlx.barrier_wait(empty[stage], phase ^ 1)
                tlx.barrier_expect_bytes(full[stage], TILE * TILE * 2)
                tlx.async_descriptor_load(src, tiles[stage], [t * TILE, 0], full[stage])
        with tlx.async_task(num_warps=4):
            for t in range(TILES):
                stage, phase = t % STAGES, (t // STAGES) & 1
                tlx.barrier_wait(full[stage], phase)
                tlx.local_store(tiles[stage], tlx.local_load(tiles[stage]) + 1)
                tlx.fence_async_shared()
                tlx.async_descriptor_store(dst, tiles[stage], [t * TILE, 0])
                tlx.async_descriptor_store_wait(0)
                tlx.barrier_arrive(empty[stage])


@tlx_xdsl.jit
def aliased(a, b, c, STEPS, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    storage = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    a_tiles = tlx.local_alloc((M, K), tl.float16, 1, reuse=storage)
    b_tiles = tlx.local_alloc((K, N), tl.float16, 1, reuse=storage)
    c_tile = tlx.local_alloc((M, N), tl.float16, 1, reuse=storage)
    operands = tlx.reuse_group(a_tiles, b_tiles, group_type=tlx.reuse_group_type.distinct)
    storage.set_buffer_overlap(tlx.reuse_group(operands, c_tile, group_type=tlx.reuse_group_type.shared))
    loaded = tlx.alloc_barriers(1)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(STEPS):
        tlx.barrier_expect_bytes(loaded[0], (M + N) * K * 2)
        tlx.async_descriptor_load(a, a_tiles[0], [0, k * K], loaded[0])
        tlx.async_descriptor_load(b, b_tiles[0], [k * K, 0], loaded[0])
        tlx.barrier_wait(loaded[0], k & 1)
        acc = tlx.async_dot(a_tiles[0], b_tiles[0], acc)
        acc = tlx.async_dot_wait(0, acc)
    tlx.local_store(c_tile[0], acc.to(tl.float16))
    tlx.fence_async_shared()
    tlx.async_descriptor_store(c, c_tile[0], [0, 0])
    tlx.async_descriptor_store_wait(0)


@tlx_xdsl.jit
def cluster(x, y, COLUMNS: tl.constexpr):
    rank = tlx.cluster_cta_rank()
    at = tl.arange(0, COLUMNS)
    other = tlx.local_alloc((1,), tl.float32, 1)
    there = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(there[0], 4)
    tlx.fence_mbarrier_init_cluster()
    tlx.cluster_barrier()
    half = tl.load(x + tl.program_id(0) * COLUMNS + at)
    mine = tl.sum(half, 0)
    tlx.async_remote_shmem_store(other[0], tl.full((1,), mine, tl.float32), rank ^ 1, there[0])
    tlx.barrier_wait(there[0], 0)
    total = mine + tl.sum(tlx.local_load(other[0]), 0)
    tl.store(y + tl.program_id(0) * COLUMNS + at, half / total)


@tlx_xdsl.jit
def attention(q, k, v, out, LENGTH, scale, ROWS: tl.constexpr, KEYS: tl.constexpr, DIM: tl.constexpr):
    row = tl.program_id(0) * ROWS
    q_tile = tlx.local_alloc((ROWS, DIM), tl.float16, 1)
    k_tile = tlx.local_alloc((KEYS, DIM), tl.float16, 1)
    v_tile = tlx.local_alloc((KEYS, DIM), tl.float16, 1)
    q_full, full = tlx.alloc_barriers(1), tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(q_full[0], ROWS * DIM * 2)
    tlx.async_descriptor_load(q, q_tile[0], [row, 0], q_full[0])
    tlx.barrier_wait(q_full[0], 0)
    highest = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    for n in range(LENGTH // KEYS):
        tlx.barrier_expect_bytes(full[0], 2 * KEYS * DIM * 2)
        tlx.async_descriptor_load(k, k_tile[0], [n * KEYS, 0], full[0])
        tlx.async_descriptor_load(v, v_tile[0], [n * KEYS, 0], full[0])
        tlx.barrier_wait(full[0], n & 1)
        scores = tlx.async_dot(q_tile[0], tlx.local_trans(k_tile[0]))
        scores = tlx.async_dot_wait(0, scores) * scale
        higher = tl.maximum(highest, tl.max(scores, 1))
        p = tl.exp(scores - higher[:, None])
        rescale = tl.exp(highest - higher)
        total = total * rescale + tl.sum(p, 1)
        acc = tlx.async_dot(p.to(tl.float16), v_tile[0], acc * rescale[:, None])
        acc = tlx.async_dot_wait(0, acc)
        highest = higher
    tlx.local_store(q_tile[0], (acc / total[:, None]).to(tl.float16))
    tlx.fence_async_shared()
    tlx.async_descriptor_store(out, q_tile[0], [row, 0])
    tlx.async_descriptor_store_wait(0)


@tlx_xdsl.jit
def ranks(slots, pads, src, out, BLOCK: tl.constexpr):
    me = tlx.rank()
    world: tl.constexpr = tlx.world_size()
    at = tl.arange(0, BLOCK)
    mine = tl.load(src + at)
    for r in tl.static_range(world):
        tl.store(tlx.peer(slots, r) + me * BLOCK + at, mine)
        tlx.signal(tlx.peer(pads, r), 0)
    tlx.wait_signal(tlx.peer(pads, me), 0, world)
    total = tl.zeros((BLOCK,), tl.float32)
    for r in tl.static_range(world):
        total += tl.load(tlx.peer(slots, me) + r * BLOCK + at)
    tl.store(out + at, total)


@tlx_xdsl.jit
def lifetimes(src, dst, TILES, TILE: tl.constexpr):
    memory = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    raw = tlx.local_alloc((TILE, TILE), tl.float16, 1, reuse=memory)
    doubled = tlx.local_alloc((TILE, TILE), tl.float32, 1, reuse=memory)
    memory.set_buffer_overlap(tlx.reuse_group(raw, doubled, group_type=tlx.reuse_group_type.shared))
    full = tlx.alloc_barriers(1)
    for t in range(TILES):
        tlx.barrier_expect_bytes(full[0], TILE * TILE * 2)
        tlx.async_descriptor_load(src, raw[0], [t * TILE, 0], full[0])
        tlx.barrier_wait(full[0], t & 1)
        tile = tlx.local_load(raw[0])
        tlx.local_store(doubled[0], tile.to(tl.float32) * 2)
        tlx.fence_async_shared()
        tlx.async_descriptor_store(dst, doubled[0], [t * TILE, 0])
        tlx.async_descriptor_store_wait(0)


@tlx_xdsl.jit
def faster(a, b, c, STEPS, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STAGES: tl.constexpr):
    a_tiles = tlx.local_alloc((M, K), tl.float16, STAGES)
    b_tiles = tlx.local_alloc((K, N), tl.float16, STAGES)
    c_tile = tlx.local_alloc((M, N), tl.float16, 1)
    full, empty = tlx.alloc_barriers(STAGES), tlx.alloc_barriers(STAGES)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for k in range(STEPS):
                slot, phase = k % STAGES, (k // STAGES) & 1
                tlx.barrier_wait(empty[slot], phase ^ 1)
                tlx.barrier_expect_bytes(full[slot], (M + N) * K * 2)
                tlx.async_descriptor_load(a, a_tiles[slot], [0, k * K], full[slot])
                tlx.async_descriptor_load(b, b_tiles[slot], [k * K, 0], full[slot])
        with tlx.async_task(num_warps=4):
            acc = tl.zeros((M, N), tl.float32)
            for k in range(STEPS):
                slot, phase = k % STAGES, (k // STAGES) & 1
                tlx.barrier_wait(full[slot], phase)
                acc = tlx.async_dot(a_tiles[slot], b_tiles[slot], acc)
                acc = tlx.async_dot_wait(0, acc)
                tlx.barrier_arrive(empty[slot])
            tlx.local_store(c_tile[0], acc.to(tl.float16))
            tlx.fence_async_shared()
            tlx.async_descriptor_store(c, c_tile[0], [0, 0])
            tlx.async_descriptor_store_wait(0)


@ttl.kernel(grid=(1, 1))
def tensix(a, b, c, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 2), buffer_factor=2)
    b_cb = ttl.make_circular_buffer_like(b, shape=(1, 2), buffer_factor=2)
    c_cb = ttl.make_circular_buffer_like(c, shape=(1, 2), buffer_factor=1)
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 2), buffer_factor=2)

    @ttl.datamovement()
    def read():
        with c_cb.reserve() as c_block:
            ttl.copy(c[0:1, 0:2], c_block).wait()
        for row in range(3):
            with a_cb.reserve() as a_block, b_cb.reserve() as b_block:
                ttl.copy(a[row : row + 1, 0:2], a_block).wait()
                ttl.copy(b[row : row + 1, 0:2], b_block).wait()

    @ttl.compute()
    def compute():
        with c_cb.wait() as c_block:
            for _ in range(3):
                with a_cb.wait() as a_block, b_cb.wait() as b_block, out_cb.reserve() as out_block:
                    out_block.store(a_block * b_block + c_block)

    @ttl.datamovement()
    def write():
        for row in range(3):
            with out_cb.wait() as out_block:
                ttl.copy(out_block, out[row : row + 1, 0:2]).wait()


answers = {"cycles": 19_400, "busy": 42, "line": 70, "gain": 18}
