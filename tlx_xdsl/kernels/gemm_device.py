"""The two GEMM kernels for Hopper: C = A @ B with f32 sums, persistent and warp-specialised.

Both walk over the tiles of C with as many programs as there are multiprocessors: program p takes tiles p, p + P,
p + 2 P, ... A producer (the default task) loads by TMA into a ring of NUM_STAGES stages and does not wait for
epilogues: it fills the ring for the next tile meanwhile. Two consumers of one warp group each multiply.

- `gemm_cooperative`: the consumers share a tile, each has half of its rows. The largest tiles (128 x 256), so the
  fewest bytes from memory per product; both stop for the epilogue.
- `gemm_pingpong`: each consumer has tiles of its own, and they take turns at the tensor cores: one stores its tile
  while the other multiplies. Pays where K is short and epilogues are frequent.

The first step of a program is loaded before the tasks begin, and the producer goes on after it: the load is under way
while the warps of the tasks get their registers.

Barriers. `full[stage]` completes when the bytes of the stage's copies have arrived; `empty[stage]` when the consumers
that read it have arrived, which they do one step late, when `async_dot_wait(1)` says that the product before is done.
Waiting for parity p means "phase p has completed": the producer waits for the phase before the current one, and a fresh
barrier lets the first turn pass.

Layouts. A_COLUMNS says that A lies column by column, B_COLUMNS the same of B: the descriptor is then of the
transposed matrix, whose tile is transposed as it is read, which costs nothing (`wgmma` reads either).

Epilogue. C goes through shared memory, in SUBTILES parts of BLOCK_N / SUBTILES columns (1 or 2): the store of the
first part begins while the second one is converted. Each consumer has BUFFERS buffers of its own, one for both parts
or one for each (the ring can have more stages, or the second part need not wait for the first), and waits for its last
TMA store before it writes a buffer again, not after the store, so that the store overlaps what follows.

Order of tiles. They go in columns of GROUP_M, so that neighbours share tiles in the L2 cache. Where a tile lies takes
two divisions by numbers that only the launch knows; they stand before a program's first load, so they are made as
products with what `division.divisor` finds for these numbers (200 ns of the 28 us of 2048 x 2048 x 2048 on an H200).

Edges. TMA reads zeros outside of A and B, and writes nothing outside of C: M, N and K may be any.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.division import divided
from tlx_xdsl.kernels.rings import next_place

TURN_THREADS = tl.constexpr(256)
"""Threads that meet at a named barrier: both consumers."""


@tlx_xdsl.jit
def tile_offsets(tile, M, N, order, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """First row and column of a C tile; `order` are the divisors of a group's tiles and of the last group's rows."""
    by_group, by_rest = order
    group = divided(tile, by_group)
    in_group = tile - group * (GROUP_M * tl.cdiv(N, BLOCK_N))
    first_m = group * GROUP_M
    group_m = min(tl.cdiv(M, BLOCK_M) - first_m, GROUP_M)
    tile_n = tl.where(group_m == GROUP_M, in_group // GROUP_M, divided(in_group, by_rest))
    return (first_m + in_group - tile_n * group_m) * BLOCK_M, tile_n * BLOCK_N


@tlx_xdsl.jit
def load_tile(desc, buffer, row, column, full, COLUMNS: tl.constexpr):
    """Load the tile of a matrix at (row, column); the descriptor is of its transpose where it lies by columns."""
    if COLUMNS:
        tlx.async_descriptor_load(desc, buffer, [column, row], full)
    else:
        tlx.async_descriptor_load(desc, buffer, [row, column], full)


@tlx_xdsl.jit
def load_step(
    a_desc, b_desc, a, b, full, stage, off_m, off_n, off_k, A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr,
    PARTS: tl.constexpr, PART_M: tl.constexpr, BYTES: tl.constexpr,
):  # fmt: skip
    """Load what one product needs to a stage: the tile of A in PARTS parts of PART_M rows, and that of B."""
    tlx.barrier_expect_bytes(full[stage], BYTES)
    load_tile(a_desc, a[stage * PARTS], off_m, off_k, full[stage], A_COLUMNS)
    load_tile(b_desc, b[stage], off_k, off_n, full[stage], B_COLUMNS)
    for part in tl.static_range(1, PARTS):
        load_tile(a_desc, a[stage * PARTS + part], off_m + part * PART_M, off_k, full[stage], A_COLUMNS)


@tlx_xdsl.jit
def operand(buffer, COLUMNS: tl.constexpr):
    """The tile in a buffer as the product reads it."""
    return tlx.local_trans(buffer) if COLUMNS else buffer


@tlx_xdsl.jit
def store_part(part, c_desc, buffer, row, column, IS_FREE: tl.constexpr):
    """Store columns of C from registers, through a buffer that only this task uses."""
    if not IS_FREE:
        tlx.async_descriptor_store_wait(0)
    tlx.local_store(buffer, part)
    tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
    tlx.async_descriptor_store(c_desc, buffer, [row, column])


@tlx_xdsl.jit
def store_tile(acc, c_desc, c, first, row, column, SUBTILES: tl.constexpr, BUFFERS: tl.constexpr):
    """Store a tile of C in SUBTILES parts, in the type of `c_desc`, through the buffers from `first` on."""
    dtype: tl.constexpr = tlx.dtype_of(c_desc)
    if SUBTILES == 1:
        store_part(acc.to(dtype), c_desc, c[first], row, column, False)
    else:
        PART_N: tl.constexpr = acc.shape[1] // 2
        left, right = tl.split(tl.permute(tl.reshape(acc, (acc.shape[0], 2, PART_N)), (0, 2, 1)))
        store_part(left.to(dtype), c_desc, c[first], row, column, False)
        # The wait before the first part was for all stores of this task.
        store_part(right.to(dtype), c_desc, c[first + BUFFERS - 1], row, column + PART_N, BUFFERS == 2)


@tlx_xdsl.jit
def gemm_cooperative(
    a_desc, b_desc, c_desc, M, N, K, GROUP_FACTOR, GROUP_SHIFT, REST_FACTOR, REST_SHIFT,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    NUM_STAGES: tl.constexpr, SUBTILES: tl.constexpr, BUFFERS: tl.constexpr, GROUP_M: tl.constexpr,
    A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr,
):  # fmt: skip
    """C = A @ B; the consumers have the upper and the lower half of each tile. See the top of the file."""
    HALF_M: tl.constexpr = BLOCK_M // 2
    tl.static_assert(NUM_STAGES >= 2, "a stage is given back when the next one is being multiplied")
    tl.static_assert(SUBTILES == 1 or SUBTILES == 2, "the epilogue has one part or two")
    tl.static_assert(BUFFERS == 1 or BUFFERS == SUBTILES, "the parts share a buffer, or each has its own")
    dtype: tl.constexpr = tlx.dtype_of(a_desc)
    STAGE_BYTES: tl.constexpr = (BLOCK_M + BLOCK_N) * BLOCK_K * tlx.size_of(dtype)

    order = ((GROUP_FACTOR, GROUP_SHIFT), (REST_FACTOR, REST_SHIFT))
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    num_tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    num_k = tl.cdiv(K, BLOCK_K)

    a = tlx.local_alloc((BLOCK_K, HALF_M) if A_COLUMNS else (HALF_M, BLOCK_K), dtype, 2 * NUM_STAGES)
    b = tlx.local_alloc((BLOCK_N, BLOCK_K) if B_COLUMNS else (BLOCK_K, BLOCK_N), dtype, NUM_STAGES)
    c = tlx.local_alloc((HALF_M, BLOCK_N // SUBTILES), tlx.dtype_of(c_desc), 2 * BUFFERS)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=2)

    if pid < num_tiles:
        off_m, off_n = tile_offsets(pid, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
        load_step(
            a_desc, b_desc, a, b, full, 0, off_m, off_n, 0, A_COLUMNS, B_COLUMNS, 2, HALF_M, STAGE_BYTES
        )  # fmt: skip

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = 1
            phase = 0
            first_k = 1
            for tile in range(pid, num_tiles, programs):
                off_m, off_n = tile_offsets(tile, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
                for k in range(first_k, num_k):
                    tlx.barrier_wait(empty[stage], phase ^ 1)
                    load_step(
                        a_desc, b_desc, a, b, full, stage, off_m, off_n, k * BLOCK_K, A_COLUMNS, B_COLUMNS,
                        2, HALF_M, STAGE_BYTES,
                    )  # fmt: skip
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                first_k = 0

        with tlx.async_task(num_warps=4, replicate=2, registers=232):  # consumers
            half: tl.constexpr = tlx.async_task_replica_id()
            stage = 0
            phase = 0
            for tile in range(pid, num_tiles, programs):
                off_m, off_n = tile_offsets(tile, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
                # The first product overwrites the sums: no zeros, and no condition in the loop.
                tlx.barrier_wait(full[stage], phase)
                acc = tlx.async_dot(operand(a[stage * 2 + half], A_COLUMNS), operand(b[stage], B_COLUMNS))
                before = stage
                stage, phase = next_place(stage, phase, NUM_STAGES)
                for _ in range(1, num_k):
                    tlx.barrier_wait(full[stage], phase)
                    acc = tlx.async_dot(operand(a[stage * 2 + half], A_COLUMNS), operand(b[stage], B_COLUMNS), acc)
                    # One product stays in flight; the one before it is done, so its stage can be refilled.
                    acc = tlx.async_dot_wait(1, acc)
                    tlx.barrier_arrive(empty[before])
                    before = stage
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                acc = tlx.async_dot_wait(0, acc)
                tlx.barrier_arrive(empty[before])
                store_tile(acc, c_desc, c, half * BUFFERS, off_m + half * HALF_M, off_n, SUBTILES, BUFFERS)
            tlx.async_descriptor_store_wait(0)


@tlx_xdsl.jit
def gemm_pingpong(
    a_desc, b_desc, c_desc, M, N, K, GROUP_FACTOR, GROUP_SHIFT, REST_FACTOR, REST_SHIFT,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    NUM_STAGES: tl.constexpr, SUBTILES: tl.constexpr, BUFFERS: tl.constexpr, GROUP_M: tl.constexpr,
    A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr,
):  # fmt: skip
    """C = A @ B; consumer 0 has the program's even tiles, consumer 1 the odd ones. See the top of the file.

    The consumers' stages follow each other in the one ring, in the order in which the consumers take turns. Named
    barrier c is "consumer c may multiply". A consumer waits for its turn before the first product of a tile and gives
    the turn to the other one when it has issued the last. Tile 0 needs no turn, and after the last tile of the
    program no task is called, so each barrier completes as often as it is waited for.
    """
    tl.static_assert(NUM_STAGES >= 2, "a stage is given back when the next one is being multiplied")
    tl.static_assert(SUBTILES == 1 or SUBTILES == 2, "the epilogue has one part or two")
    tl.static_assert(BUFFERS == 1 or BUFFERS == SUBTILES, "the parts share a buffer, or each has its own")
    dtype: tl.constexpr = tlx.dtype_of(a_desc)
    STAGE_BYTES: tl.constexpr = (BLOCK_M + BLOCK_N) * BLOCK_K * tlx.size_of(dtype)

    order = ((GROUP_FACTOR, GROUP_SHIFT), (REST_FACTOR, REST_SHIFT))
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    num_tiles = tl.cdiv(tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N) - pid, programs)  # of this program
    num_k = tl.cdiv(K, BLOCK_K)

    a = tlx.local_alloc((BLOCK_K, BLOCK_M) if A_COLUMNS else (BLOCK_M, BLOCK_K), dtype, NUM_STAGES)
    b = tlx.local_alloc((BLOCK_N, BLOCK_K) if B_COLUMNS else (BLOCK_K, BLOCK_N), dtype, NUM_STAGES)
    c = tlx.local_alloc((BLOCK_M, BLOCK_N // SUBTILES), tlx.dtype_of(c_desc), 2 * BUFFERS)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES)

    if num_tiles > 0:
        off_m, off_n = tile_offsets(pid, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
        load_step(
            a_desc, b_desc, a, b, full, 0, off_m, off_n, 0, A_COLUMNS, B_COLUMNS, 1, BLOCK_M, STAGE_BYTES
        )  # fmt: skip

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = 1
            phase = 0
            first_k = 1
            for j in range(num_tiles):
                off_m, off_n = tile_offsets(pid + j * programs, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
                for k in range(first_k, num_k):
                    tlx.barrier_wait(empty[stage], phase ^ 1)
                    load_step(
                        a_desc, b_desc, a, b, full, stage, off_m, off_n, k * BLOCK_K, A_COLUMNS, B_COLUMNS,
                        1, BLOCK_M, STAGE_BYTES,
                    )  # fmt: skip
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                first_k = 0

        with tlx.async_task(num_warps=4, replicate=2, registers=232):  # consumers
            consumer: tl.constexpr = tlx.async_task_replica_id()
            for j in range(consumer, num_tiles, 2):
                off_m, off_n = tile_offsets(pid + j * programs, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
                # The other consumer's steps lie between this one's tiles.
                stage, phase = tlx.get_bufidx_phase(j * num_k, NUM_STAGES)
                if j > 0:
                    tlx.named_barrier_wait(consumer, TURN_THREADS)
                tlx.barrier_wait(full[stage], phase)
                acc = tlx.async_dot(operand(a[stage], A_COLUMNS), operand(b[stage], B_COLUMNS))
                before = stage
                stage, phase = next_place(stage, phase, NUM_STAGES)
                for _ in range(1, num_k):
                    tlx.barrier_wait(full[stage], phase)
                    acc = tlx.async_dot(operand(a[stage], A_COLUMNS), operand(b[stage], B_COLUMNS), acc)
                    # One product stays in flight; the one before it is done, so its stage can be refilled.
                    acc = tlx.async_dot_wait(1, acc)
                    tlx.barrier_arrive(empty[before])
                    before = stage
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                if j + 1 < num_tiles:
                    tlx.named_barrier_arrive(1 - consumer, TURN_THREADS)
                acc = tlx.async_dot_wait(0, acc)
                tlx.barrier_arrive(empty[before])
                store_tile(acc, c_desc, c, consumer * BUFFERS, off_m, off_n, SUBTILES, BUFFERS)
            tlx.async_descriptor_store_wait(0)
