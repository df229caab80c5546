"""The ping-pong GEMM kernel for Hopper: C = A @ B with f32 sums, persistent and warp-specialised.

Like `cooperative`, whose file explains tasks, rings and barriers, but each of the two consumers has tiles of its
own, and they take turns at the tensor cores: one stores its tile while the other multiplies. Pays where K is short and
epilogues are frequent.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..rings import TURN_THREADS, next_place
from .device import load_tile, multiply_steps, tile_offsets
from .epilogue import store_tile, type_of_result


@tlx_xdsl.jit
def load_step(
    a_desc, b_desc, a, b, full, stage, off_m, off_n, off_k, A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr,
    BYTES: tl.constexpr,
):  # fmt: skip
    """Load what one product needs to a stage: the tiles of A and B."""
    tlx.barrier_expect_bytes(full[stage], BYTES)
    load_tile(a_desc, a[stage], off_m, off_k, full[stage], A_COLUMNS)
    load_tile(b_desc, b[stage], off_k, off_n, full[stage], B_COLUMNS)


@tlx_xdsl.jit
def gemm_pingpong(
    a_desc, b_desc, c_desc, c_ptr, c_row, c_column, row0, row1, column0, column1, matrix_desc, M, N, K,
    GROUP_FACTOR, GROUP_SHIFT, REST_FACTOR, REST_SHIFT,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    NUM_STAGES: tl.constexpr, PART_N: tl.constexpr, BUFFERS: tl.constexpr, GROUP_M: tl.constexpr,
    A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr, C_COLUMNS: tl.constexpr, TURNED: tl.constexpr,
    EPILOGUE: tl.constexpr,
):  # fmt: skip
    """C = EPILOGUE(A @ B); consumer 0 has the program's even tiles, consumer 1 the odd ones.

    The consumers' stages follow each other in the one ring, in the order in which the consumers take turns. Named
    barrier c is "consumer c may multiply". A consumer waits for its turn before the first product of a tile and gives
    the turn to the other one when it has issued the last. Tile 0 needs no turn, and after the last tile of the
    program no task is called, so each barrier completes as often as it is waited for.
    """
    tl.static_assert(NUM_STAGES >= 2, "a stage is given back when the next one is being multiplied")
    dtype: tl.constexpr = tlx.dtype_of(a_desc)
    STAGE_BYTES: tl.constexpr = (BLOCK_M + BLOCK_N) * BLOCK_K * tlx.size_of(dtype)

    order = ((GROUP_FACTOR, GROUP_SHIFT), (REST_FACTOR, REST_SHIFT))
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    num_tiles = tl.cdiv(tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N) - pid, programs)  # of this program
    num_k = tl.cdiv(K, BLOCK_K)

    a = tlx.local_alloc((BLOCK_K, BLOCK_M) if A_COLUMNS else (BLOCK_M, BLOCK_K), dtype, NUM_STAGES)
    b = tlx.local_alloc((BLOCK_N, BLOCK_K) if B_COLUMNS else (BLOCK_K, BLOCK_N), dtype, NUM_STAGES)
    out = (c_desc, c_ptr, c_row, c_column)
    c_shape: tl.constexpr = (PART_N, BLOCK_M) if C_COLUMNS else (BLOCK_M, PART_N)
    c = tlx.local_alloc(c_shape, type_of_result(out), 2 * BUFFERS)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES)
    arrived = tlx.alloc_barriers(2) if matrix_desc is not None else None

    if num_tiles > 0:
        off_m, off_n = tile_offsets(pid, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
        load_step(a_desc, b_desc, a, b, full, 0, off_m, off_n, 0, A_COLUMNS, B_COLUMNS, STAGE_BYTES)

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
                        STAGE_BYTES,
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
                acc, last, _, _ = multiply_steps(
                    (a, b), (full, empty), stage, phase, num_k, NUM_STAGES, A_COLUMNS, B_COLUMNS
                )  # fmt: skip
                if j + 1 < num_tiles:
                    tlx.named_barrier_arrive(1 - consumer, TURN_THREADS)
                acc = tlx.async_dot_wait(0, acc)
                tlx.barrier_arrive(empty[last])
                store_tile(
                    (acc,), out, c, consumer, off_m, off_n, M, N, (row0, row1), (column0, column1), matrix_desc,
                    arrived, j // 2, PART_N, BUFFERS, C_COLUMNS, False, TURNED, EPILOGUE,
                )  # fmt: skip
            tlx.async_descriptor_store_wait(0)
