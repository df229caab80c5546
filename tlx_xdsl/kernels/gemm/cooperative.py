"""The cooperative GEMM kernel for Hopper: C = A @ B with f32 sums, persistent and warp-specialised.

Program p of P takes tiles p, p + P, p + 2 P, ... of C. A producer (the default task) loads by TMA into a ring of
NUM_STAGES stages and does not wait for epilogues: it fills the ring for the next tile meanwhile. One to three consumers
of one warp group share each tile: every consumer has 64 of its rows. The largest tiles, so the fewest bytes from memory
per product; all consumers stop for the epilogue.

Without clusters, the first step of a program is loaded before the tasks begin, and the producer goes on after it: the
load is under way while the warps of the tasks get their registers.

Barriers. `full[stage]` completes when the bytes of the stage's copies have arrived; `empty[stage]` when the consumers
that read it have arrived, which they do one step late, when `async_dot_wait` says that the product before is done.
Waiting for parity p means "phase p has completed": the producer waits for the phase before the current one, and a fresh
barrier lets the first turn pass.

Strips. The columns of a tile are one power of two, BLOCK_N, or two of them (192 = 128 + 64): then TAIL_N is the width
of the second strip, which has its own descriptor, ring and accumulator; products of both read the same tile of A. With
PAIRED the second strip lies N columns after the first one, and the epilogue makes one tile of C of both (SwiGLU).

Clusters (CLUSTER of 2 or 4). CTAs have tiles above each other and load the tile of B once for all: CTA s % CLUSTER to
stage s. It waits for the other CTAs' consumers as well, which arrive at its `far[stage]`. With one barrier for all
consumers, one that is a turn ahead could be counted for one that is late; and a barrier that all CTAs wait for could
complete twice before the last of them looks (the interpreter found both). At the end each producer waits until all
stages that it has loaded are given back, so that no arrival comes to a CTA that has ended. Pays where lines of the L2
cache limit the loads: rows of A or B that begin at odd multiples of 16 bytes take twice as many of them.

Stream-K (STREAM). Tiles that do not fill a round of all programs would leave most of them idle. FULL_ROUNDS rounds are
dealt out as above; the steps along K of all other tiles are one sequence, of which each program takes SHARE steps in a
row. Where the programs suffice for parts that end with their tiles (split-K), STEPS, a tile's steps in the sequence,
is the next multiple of SHARE, and those past K are left out. A piece that is a whole tile is stored; of another one
the f32 sums go to `w_desc`, slot 2 p + 1 for the piece that begins its tile, 2 p for one that continues it (a program
has at most one of each), and `reduce` adds up the slots of each tile in the order of K: the same bits every time,
without atomics and without waiting for other programs.

Epilogue. A tile goes through shared memory, in parts of PART_N columns: the store of one part begins while the next one
is converted. Each consumer has BUFFERS buffers of its own in turn, and waits for the store that used a buffer before it
writes it again, not after the store, so that the store overlaps what follows. EPILOGUE is a function of the f32 sums of
a part, and of what `epilogue_operands` finds of vectors and the matrix there. With C_COLUMNS parts are transposed on
their way: C lies by columns. With REDUCE ("add") TMA adds each part to what C holds, which the kernel does not read.

Edges. TMA reads zeros outside of A and B, so that M, N and K may be any, and leaves out rows of C that are not
there; but it writes a row in units of 16 bytes, past its end where that is none. Without `c_desc` threads write C at
`c_ptr`, with rows and columns `c_row` and `c_column` elements apart.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportOptionalSubscript=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..rings import next_place
from .device import divided, load_tile, operand, tile_offsets
from .epilogue import store_partial, store_tile, type_of_result


@tlx_xdsl.jit
def pieces_of(pid, programs, num_tiles, by_steps, FULL_ROUNDS, SHARE, STEPS):
    """The first tile of the sequence of steps, this program's first step, the one after its last, and its pieces.

    Steps are counted from the first one of that tile. A tile has STEPS of them, of which `by_steps` is the divisor.
    """
    first_tile = FULL_ROUNDS * programs
    steps = (num_tiles - first_tile) * STEPS
    begin = min(pid * SHARE, steps)
    end = min(begin + SHARE, steps)
    tile = divided(begin, by_steps)
    count = tl.where(end > begin, divided(max(end - 1, 0), by_steps) - tile + 1, 0)
    return first_tile + tile, begin - tile * STEPS, end - tile * STEPS, count


@tlx_xdsl.jit
def work_of(item, pid, programs, num_k, pieces, FULL_ROUNDS, STEPS, STREAM: tl.constexpr):
    """The tile of a program's item, its first step along K and the one after its last."""
    tile = pid + item * programs
    first, last = 0, num_k
    if STREAM:
        first_tile, begin, end, _ = pieces
        piece = item - FULL_ROUNDS
        streamed = piece >= 0
        tile = tl.where(streamed, first_tile + piece, tile)
        first = tl.where(piece == 0, begin, 0)
        last = tl.where(streamed, min(num_k, end - piece * STEPS), num_k)
    return tile, first, last


@tlx_xdsl.jit
def tile_rings(
    dtype: tl.constexpr, CONSUMERS: tl.constexpr, PART_M: tl.constexpr, STRIPS: tl.constexpr, BLOCK_K: tl.constexpr,
    NUM_STAGES: tl.constexpr, A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr,
):  # fmt: skip
    """Buffers for the stages: the consumers' parts of the tile of A, and each strip of that of B."""
    a = tlx.local_alloc((BLOCK_K, PART_M) if A_COLUMNS else (PART_M, BLOCK_K), dtype, CONSUMERS * NUM_STAGES)
    b = ()
    for index in tl.static_range(2):
        if STRIPS[index] > 0:
            shape: tl.constexpr = (STRIPS[index], BLOCK_K) if B_COLUMNS else (BLOCK_K, STRIPS[index])
            b = (*b, tlx.local_alloc(shape, dtype, NUM_STAGES))
    return a, b


@tlx_xdsl.jit
def load_strips(
    a_desc, b_descs, a, b, full, stage, off_m, columns, step, rank, A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr,
    CONSUMERS: tl.constexpr, CLUSTER: tl.constexpr, PART_M: tl.constexpr, BLOCK_K: tl.constexpr, BYTES: tl.constexpr,
):  # fmt: skip
    """Load what one step needs to a stage: the consumers' parts of the tile of A, and each strip of that of B.

    In a cluster, strips of stage s are loaded by CTA s % CLUSTER for both.
    """
    off_k = step * BLOCK_K
    tlx.barrier_expect_bytes(full[stage], BYTES)
    load_tile(a_desc, a[stage * CONSUMERS], off_m, off_k, full[stage], A_COLUMNS)
    if CLUSTER == 1:
        for strip in tl.static_range(len(b_descs)):
            load_tile(b_descs[strip], b[strip][stage], off_k, columns[strip], full[stage], B_COLUMNS)
    elif stage % CLUSTER == rank:
        for strip in tl.static_range(len(b_descs)):
            offsets = [columns[strip], off_k] if B_COLUMNS else [off_k, columns[strip]]
            every: tl.constexpr = list(range(CLUSTER))
            tlx.async_descriptor_load(b_descs[strip], b[strip][stage], offsets, full[stage], multicast_targets=every)
    for part in tl.static_range(1, CONSUMERS):
        load_tile(a_desc, a[stage * CONSUMERS + part], off_m + part * PART_M, off_k, full[stage], A_COLUMNS)


@tlx_xdsl.jit
def multiplied(a, b, stage, sums, B_COLUMNS: tl.constexpr):
    """Issue the products of a tile of A with each strip of B; they begin new sums where `sums` is empty."""
    issued = ()
    for strip in tl.static_range(len(b)):
        tile = operand(b[strip][stage], B_COLUMNS)
        issued = (*issued, tlx.async_dot(a, tile, sums[strip]) if len(sums) else tlx.async_dot(a, tile))
    return issued


@tlx_xdsl.jit
def waited(sums, STEPS: tl.constexpr):
    """Wait until the products of at most `STEPS` steps are in flight."""
    done = ()
    for strip in tl.static_range(len(sums)):
        done = (*done, tlx.async_dot_wait(STEPS * len(sums), sums[strip]))
    return done


@tlx_xdsl.jit
def released(empty, far, before, rank, CLUSTER: tl.constexpr):
    """Give a stage back to whoever loads to it."""
    if CLUSTER > 1 and before % CLUSTER != rank:
        tlx.barrier_arrive(far[before], 1, before % CLUSTER)
    tlx.barrier_arrive(empty[before])


@tlx_xdsl.jit
def wait_for_stage(empty, far, stage, phase, rank, CLUSTER: tl.constexpr):
    """Wait until a stage can be loaded to."""
    tlx.barrier_wait(empty[stage], phase ^ 1)
    if CLUSTER > 1 and stage % CLUSTER == rank:
        tlx.barrier_wait(far[stage], phase ^ 1)


@tlx_xdsl.jit
def wait_for_cluster(empty, far, stage, phase, rank, NUM_STAGES: tl.constexpr, CLUSTER: tl.constexpr):
    """Wait until all stages are given back: no arrival comes to a CTA that has ended."""
    if CLUSTER > 1:
        for _ in range(NUM_STAGES):
            wait_for_stage(empty, far, stage, phase, rank, CLUSTER)
            stage, phase = next_place(stage, phase, NUM_STAGES)


@tlx_xdsl.jit
def gemm_cooperative(
    a_desc, b_desc, tail_desc, c_desc, c_ptr, c_row, c_column, w_desc, row0, row1, column0, column1,
    matrix_desc, M, N, K,
    GROUP_FACTOR, GROUP_SHIFT, REST_FACTOR, REST_SHIFT, STEPS_FACTOR, STEPS_SHIFT, FULL_ROUNDS, SHARE, STEPS,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, TAIL_N: tl.constexpr, BLOCK_K: tl.constexpr,
    NUM_STAGES: tl.constexpr, PART_N: tl.constexpr, BUFFERS: tl.constexpr, GROUP_M: tl.constexpr,
    A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr, C_COLUMNS: tl.constexpr, PAIRED: tl.constexpr,
    TURNED: tl.constexpr, STREAM: tl.constexpr, EPILOGUE: tl.constexpr, CONSUMERS: tl.constexpr, CLUSTER: tl.constexpr,
    REDUCE: tl.constexpr = "",
):  # fmt: skip
    """C = EPILOGUE(A @ B); the consumers have the upper and the lower half of each tile. See the top of the file."""
    PART_M: tl.constexpr = BLOCK_M // CONSUMERS
    SHARED_M: tl.constexpr = BLOCK_M * CLUSTER
    TILE_N: tl.constexpr = BLOCK_N if PAIRED else BLOCK_N + TAIL_N
    # All that the multiprocessor has, but for what the producer's warp group keeps.
    REGISTERS: tl.constexpr = 160 if CONSUMERS == 3 else 232
    tl.static_assert(NUM_STAGES >= 2, "a stage is given back when the next one is being multiplied")
    dtype: tl.constexpr = tlx.dtype_of(a_desc)
    STAGE_BYTES: tl.constexpr = (BLOCK_M + BLOCK_N + TAIL_N) * BLOCK_K * tlx.size_of(dtype)

    order = ((GROUP_FACTOR, GROUP_SHIFT), (REST_FACTOR, REST_SHIFT))
    pid = tl.program_id(0) // CLUSTER
    programs = tl.num_programs(0) // CLUSTER
    rank = tlx.cluster_cta_rank() if CLUSTER > 1 else 0
    num_tiles = tl.cdiv(M, SHARED_M) * tl.cdiv(N, TILE_N)
    num_k = tl.cdiv(K, BLOCK_K)
    if STREAM:
        pieces = pieces_of(pid, programs, num_tiles, (STEPS_FACTOR, STEPS_SHIFT), FULL_ROUNDS, SHARE, STEPS)
        items = FULL_ROUNDS + pieces[3]
    else:
        pieces = ()
        items = tl.cdiv(num_tiles - pid, programs)
    to_second = N if PAIRED else BLOCK_N

    a, b = tile_rings(dtype, CONSUMERS, PART_M, (BLOCK_N, TAIL_N), BLOCK_K, NUM_STAGES, A_COLUMNS, B_COLUMNS)
    b_descs = (b_desc, tail_desc) if TAIL_N > 0 else (b_desc,)
    out = (c_desc, c_ptr, c_row, c_column)
    c_shape: tl.constexpr = (PART_N, PART_M) if C_COLUMNS else (PART_M, PART_N)
    c = tlx.local_alloc(c_shape, type_of_result(out), CONSUMERS * BUFFERS)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=CONSUMERS)
    far = tlx.alloc_barriers(NUM_STAGES, arrive_count=CONSUMERS * (CLUSTER - 1)) if CLUSTER > 1 else None
    arrived = tlx.alloc_barriers(CONSUMERS) if matrix_desc is not None else None
    # In a cluster the producer begins: it waits until the other CTAs' barriers are ready.
    BEGUN: tl.constexpr = 0 if CLUSTER > 1 else 1
    if CLUSTER > 1:
        tlx.cluster_barrier()
    elif items > 0:
        tile, first, _ = work_of(0, pid, programs, num_k, pieces, FULL_ROUNDS, STEPS, STREAM)
        off_m, off_n = tile_offsets(tile, M, N, order, SHARED_M, TILE_N, GROUP_M)
        load_strips(
            a_desc, b_descs, a, b, full, 0, off_m + rank * BLOCK_M, (off_n, off_n + to_second), first, rank,
            A_COLUMNS, B_COLUMNS, CONSUMERS, CLUSTER, PART_M, BLOCK_K, STAGE_BYTES,
        )  # fmt: skip

    with tlx.async_tasks(no_ending_cluster_sync=True):
        with tlx.async_task("default"):  # producer
            stage = BEGUN
            phase = 0
            loaded = BEGUN
            for item in range(items):
                tile, first, last = work_of(item, pid, programs, num_k, pieces, FULL_ROUNDS, STEPS, STREAM)
                off_m, off_n = tile_offsets(tile, M, N, order, SHARED_M, TILE_N, GROUP_M)
                for k in range(first + loaded, last):
                    wait_for_stage(empty, far, stage, phase, rank, CLUSTER)
                    load_strips(
                        a_desc, b_descs, a, b, full, stage, off_m + rank * BLOCK_M, (off_n, off_n + to_second), k,
                        rank, A_COLUMNS, B_COLUMNS, CONSUMERS, CLUSTER, PART_M, BLOCK_K, STAGE_BYTES,
                    )  # fmt: skip
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                loaded = 0
            wait_for_cluster(empty, far, stage, phase, rank, NUM_STAGES, CLUSTER)

        with tlx.async_task(num_warps=4, replicate=CONSUMERS, registers=REGISTERS):  # consumers
            part: tl.constexpr = tlx.async_task_replica_id()
            stage = 0
            phase = 0
            turn = 0
            for item in range(items):
                tile, first, last = work_of(item, pid, programs, num_k, pieces, FULL_ROUNDS, STEPS, STREAM)
                off_m, off_n = tile_offsets(tile, M, N, order, SHARED_M, TILE_N, GROUP_M)
                # The first product overwrites the sums: no zeros, and no condition in the loop.
                tlx.barrier_wait(full[stage], phase)
                sums = multiplied(operand(a[stage * CONSUMERS + part], A_COLUMNS), b, stage, (), B_COLUMNS)
                before = stage
                stage, phase = next_place(stage, phase, NUM_STAGES)
                for _ in range(first + 1, last):
                    tlx.barrier_wait(full[stage], phase)
                    sums = multiplied(operand(a[stage * CONSUMERS + part], A_COLUMNS), b, stage, sums, B_COLUMNS)
                    # One step's products stay in flight; those before are done, so their stage can be refilled.
                    sums = waited(sums, 1)
                    released(empty, far, before, rank, CLUSTER)
                    before = stage
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                sums = waited(sums, 0)
                released(empty, far, before, rank, CLUSTER)
                row = off_m + rank * BLOCK_M + part * PART_M
                if STREAM:
                    if last - first < num_k:
                        slot = 2 * pid + (first == 0).to(tl.int32)
                        place = slot * SHARED_M + rank * BLOCK_M + part * PART_M
                        store_partial(sums, w_desc, c, part, place, PART_N, BUFFERS)
                    else:
                        store_tile(
                            sums, out, c, part, row, off_n, M, N, (row0, row1), (column0, column1), matrix_desc,
                            arrived, turn, PART_N, BUFFERS, C_COLUMNS, PAIRED, TURNED, EPILOGUE, REDUCE,
                        )  # fmt: skip
                        turn += 1
                else:
                    store_tile(
                        sums, out, c, part, row, off_n, M, N, (row0, row1), (column0, column1), matrix_desc,
                        arrived, turn, PART_N, BUFFERS, C_COLUMNS, PAIRED, TURNED, EPILOGUE, REDUCE,
                    )  # fmt: skip
                    turn += 1
            tlx.async_descriptor_store_wait(0)
