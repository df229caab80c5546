"""The kernels of scaled products of 8-bit floats for Hopper: C = (A * scale_a) @ (B * scale_b).

Persistent and warp-specialised as the kernels of `gemm/device`, whose top explains tasks, rings and barriers: a
producer (the default task) loads by TMA, two consumers of one warp group each multiply. Both operands lie along K, A
by rows and B by columns: `wgmma` reads 8-bit elements in no other order.

- `scaled_cooperative`: the consumers share a tile, each has half of its rows, or of its columns (SPLIT_COLUMNS, where
  C has few rows).
- `scaled_pingpong`: each has tiles of its own; only with sums that stay in the tensor cores.

Sums. The tensor cores add products of 8-bit floats with 14 bits or so. Where that is too few (EXACT), each step of 128
columns of A is a sum of its own, which is then added to sums in f32: the sum of a step takes registers of its own, so
a consumer computes its columns in STRIPS, one after the other, with the registers of one. While it adds a strip, the
tensor cores compute the other consumer's. The last strip of a tile is computed while the one before is stored.

Scales. PER_BLOCK: scale_a has a number for each row and step, scale_b one for each step and 128 columns of C; each
step's sum is multiplied as it is added, in one instruction per element. Where the scales of A's rows lie next to each
other, the producer brings a step's scales with its tiles (STAGED): scale_a and scale_b are then descriptors of their
memory as lines. Otherwise the consumers load them while the step before is computed. Without blocks the sums are
multiplied before they are stored: by a number of each row and of each column (PER_ROW), or by one of each operand. The
scales' strides are arguments, in elements: all lie in any order.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.rings import TURN_THREADS, next_place

from ..device import multiply_steps, tile_offsets
from .exact import exact_tile
from .scales import LINE, STEP, load_scales, store_scaled, tile_scales


@tlx_xdsl.jit
def load_step(
    a_desc, b_desc, a, b, full, stage, off_m, off_n, off_k,
    A_PARTS: tl.constexpr, B_PARTS: tl.constexpr, STRIPS: tl.constexpr, MORE_BYTES: tl.constexpr,
):  # fmt: skip
    """Load what one step needs to a stage: A_PARTS blocks of rows of A, and B_PARTS blocks of columns of B.

    The first barrier of the stage is that of A and of the consumers' first strips, the second that of their second. The
    first one waits for MORE_BYTES, too, which the caller loads.
    """
    PART_M: tl.constexpr = a[0].shape[0]
    PART_N: tl.constexpr = b[0].shape[0]
    B_BYTES: tl.constexpr = B_PARTS // STRIPS * PART_N * STEP
    FIRST_BYTES: tl.constexpr = A_PARTS * PART_M * STEP + B_BYTES + MORE_BYTES
    for strip in tl.static_range(STRIPS):
        barrier = full[stage * STRIPS + strip]
        tlx.barrier_expect_bytes(barrier, FIRST_BYTES if strip == 0 else B_BYTES)
        if strip == 0:
            for part in tl.static_range(A_PARTS):
                tlx.async_descriptor_load(a_desc, a[stage * A_PARTS + part], [off_m + part * PART_M, off_k], barrier)
        for part in tl.static_range(strip, B_PARTS, STRIPS):
            tlx.async_descriptor_load(b_desc, b[stage * B_PARTS + part], [off_n + part * PART_N, off_k], barrier)


@tlx_xdsl.jit
def fast_tile(
    buffers, barriers, scales, c_desc, row, column, M, N, num_k, stage, phase,
    A_PARTS: tl.constexpr, A_PART: tl.constexpr, B_PARTS: tl.constexpr, B_PART: tl.constexpr,
    NUM_STAGES: tl.constexpr, STRIPS: tl.constexpr, BUFFERS: tl.constexpr, FIRST: tl.constexpr, PER_ROW: tl.constexpr,
):  # fmt: skip
    """Compute and store a consumer's part of a tile with sums that stay in the tensor cores, from a stage on.

    The consumer reads part A_PART of the A_PARTS that a stage has of A, and B_PART of B; its buffers of C begin with
    FIRST. Returns the next stage and its phase.
    """
    a, b, c = buffers
    sums, last, stage, phase = multiply_steps(
        (a, b), barriers, stage, phase, num_k, NUM_STAGES, False, True, A_PARTS, A_PART, B_PARTS, B_PART
    )  # fmt: skip
    COLUMNS: tl.constexpr = sums.shape[1] // STRIPS
    of_tile = tile_scales(scales, row, column, M, N, sums.shape[0], COLUMNS, STRIPS, PER_ROW)
    sums = tlx.async_dot_wait(0, sums)
    tlx.barrier_arrive(barriers[1][last])
    store_scaled(sums, of_tile, c_desc, c, FIRST, row, column, STRIPS, BUFFERS, PER_ROW)
    return stage, phase


@tlx_xdsl.jit
def scaled_cooperative(
    a_desc, b_desc, c_desc, scale_a, scale_b, M, N, K, A_ROWS, A_STEPS, B_STEPS, B_COLUMNS,
    GROUP_FACTOR, GROUP_SHIFT, REST_FACTOR, REST_SHIFT,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr, STRIPS: tl.constexpr,
    BUFFERS: tl.constexpr, GROUP_M: tl.constexpr, SPLIT_COLUMNS: tl.constexpr,
    EXACT: tl.constexpr, PER_ROW: tl.constexpr, PER_BLOCK: tl.constexpr,
    STAGED: tl.constexpr, TURNS: tl.constexpr,
):  # fmt: skip
    """C = (A * scale_a) @ (B * scale_b); the consumers have halves of each tile. See the top of the file.

    A_ROWS to B_COLUMNS are the scales' strides: along the rows and the columns of A, the rows and the columns of B.
    """
    tl.static_assert(NUM_STAGES >= 2, "a stage is given back when the next one is being multiplied")
    tl.static_assert(EXACT or not PER_BLOCK, "scales of blocks are those of the sums of single steps")
    A_PARTS: tl.constexpr = 1 if SPLIT_COLUMNS else 2
    CONSUMER_B: tl.constexpr = STRIPS if EXACT else 1
    B_PARTS: tl.constexpr = CONSUMER_B * (2 if SPLIT_COLUMNS else 1)
    PART_M: tl.constexpr = BLOCK_M // A_PARTS
    PART_N: tl.constexpr = BLOCK_N // B_PARTS
    STRIP_N: tl.constexpr = BLOCK_N // (STRIPS * (2 if SPLIT_COLUMNS else 1))

    order = ((GROUP_FACTOR, GROUP_SHIFT), (REST_FACTOR, REST_SHIFT))
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    num_tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    num_k = tl.cdiv(K, STEP)

    a = tlx.local_alloc((PART_M, STEP), tlx.dtype_of(a_desc), A_PARTS * NUM_STAGES)
    b = tlx.local_alloc((PART_N, STEP), tlx.dtype_of(b_desc), B_PARTS * NUM_STAGES)
    c = tlx.local_alloc((PART_M, STRIP_N), tlx.dtype_of(c_desc), 2 * BUFFERS)
    strides = (A_ROWS, A_STEPS, B_STEPS, B_COLUMNS)
    BLOCKS: tl.constexpr = (BLOCK_N + STEP - 1) // STEP
    SCALE_BYTES: tl.constexpr = (BLOCK_M + BLOCKS * LINE) * 4 if STAGED else 0
    staged = (0, 0)
    if STAGED:
        by_blocks = tlx.local_alloc((LINE,), tl.float32, BLOCKS * NUM_STAGES)
        staged = (tlx.local_alloc((BLOCK_M,), tl.float32, NUM_STAGES), by_blocks)
    full = tlx.alloc_barriers(NUM_STAGES * CONSUMER_B)
    empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=2)

    if pid < num_tiles:
        off_m, off_n = tile_offsets(pid, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
        load_step(a_desc, b_desc, a, b, full, 0, off_m, off_n, 0, A_PARTS, B_PARTS, CONSUMER_B, SCALE_BYTES)
        if STAGED:
            load_scales(scale_a, scale_b, strides, staged, full[0], 0, off_m, off_n, 0, BLOCKS)

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
                        a_desc, b_desc, a, b, full, stage, off_m, off_n, k * STEP, A_PARTS, B_PARTS, CONSUMER_B,
                        SCALE_BYTES,
                    )  # fmt: skip
                    if STAGED:
                        barrier = full[stage * CONSUMER_B]
                        load_scales(scale_a, scale_b, strides, staged, barrier, stage, off_m, off_n, k, BLOCKS)
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                first_k = 0

        with tlx.async_task(num_warps=4, replicate=2, registers=240):  # consumers
            half: tl.constexpr = tlx.async_task_replica_id()
            A_PART: tl.constexpr = 0 if SPLIT_COLUMNS else half
            B_PART: tl.constexpr = half * CONSUMER_B if SPLIT_COLUMNS else 0
            buffers = (a, b, c)
            barriers = (full, empty)
            scales = (scale_a, scale_b, strides)
            if TURNS and half == 1:
                tlx.named_barrier_arrive(0, TURN_THREADS)
            stage = 0
            phase = 0
            for tile in range(pid, num_tiles, programs):
                off_m, off_n = tile_offsets(tile, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
                row = off_m + A_PART * PART_M
                column = off_n + B_PART * PART_N
                if EXACT:
                    stage, phase = exact_tile(
                        buffers, barriers, scales, staged, c_desc, row, column, M, N, num_k, stage, phase,
                        A_PARTS, A_PART, B_PARTS, B_PART, BLOCKS, NUM_STAGES, STRIPS, BUFFERS, half,
                        PER_ROW, PER_BLOCK, STAGED, TURNS,
                    )  # fmt: skip
                else:
                    stage, phase = fast_tile(
                        buffers, barriers, scales, c_desc, row, column, M, N, num_k, stage, phase,
                        A_PARTS, A_PART, B_PARTS, B_PART, NUM_STAGES, STRIPS, BUFFERS, half * BUFFERS, PER_ROW,
                    )  # fmt: skip
            tlx.async_descriptor_store_wait(0)
            if TURNS and half == 0:
                tlx.named_barrier_wait(0, TURN_THREADS)
