"""The kernel of products of 16-bit activations with 8-bit weights, for Hopper: C = A @ (B * scale_b).

The tensor cores multiply elements of one size, and take their left operand from registers: C^T = B^T A^T. A consumer
reads its rows of B^T, which are 64 columns of B, from shared memory, converts them to the type of A, which is exact,
and multiplies. Columns of C are then the rows of the products: few rows of A waste no rows of the tensor cores.

Persistent, with a producer and two consumers that share a tile, as `gemm/device` says. The sums are in f32 along all of
K. With scales of blocks (PER_BLOCK) each step of 128 columns of A is a sum of its own, which is multiplied as it is
added (`scaled_gemm_scales.added`). A scale is that of COLUMNS_PER_SCALE columns of B.

Epilogue. The sums are written to a transposed view of the buffer from which TMA stores C by rows.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.rings import next_place

from ..device import tile_offsets
from .scales import STEP, added

ROWS = tl.constexpr(64)
"""Columns of C that a consumer has: the rows of one wgmma."""


@tlx_xdsl.jit
def load_step(a_desc, b_desc, a, b, full, stage, off_m, off_n, off_k, BYTES: tl.constexpr):
    """Load what one step needs to a stage: the tile of A, and of B what each consumer has."""
    tlx.barrier_expect_bytes(full[stage], BYTES)
    tlx.async_descriptor_load(a_desc, a[stage], [off_m, off_k], full[stage])
    for part in tl.static_range(2):
        tlx.async_descriptor_load(b_desc, b[stage * 2 + part], [off_n + part * ROWS, off_k], full[stage])


@tlx_xdsl.jit
def column_scales(scale_b, column, N, k, strides, COLUMNS_PER_SCALE: tl.constexpr):
    """The scales of a consumer's columns in step k."""
    columns = tl.minimum(column + tl.arange(0, ROWS), N - 1) // COLUMNS_PER_SCALE
    return tl.load(scale_b + columns * strides[1] + k * strides[0])


@tlx_xdsl.jit
def scaled_mixed(
    a_desc, b_desc, c_desc, scale_b, sizes, strides, BLOCK_M: tl.constexpr, NUM_STAGES: tl.constexpr,
    GROUP_M: tl.constexpr, COLUMNS_PER_SCALE: tl.constexpr, PER_BLOCK: tl.constexpr,
):  # fmt: skip
    """C = A @ (B * scale_b), by tiles of BLOCK_M x 128: 64 columns for each consumer. See the top of the file."""
    BLOCK_N: tl.constexpr = 2 * ROWS
    dtype: tl.constexpr = tlx.dtype_of(a_desc)
    STAGE_BYTES: tl.constexpr = (BLOCK_M * tlx.size_of(dtype) + BLOCK_N) * STEP
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    num_tiles = tl.cdiv(sizes.m, BLOCK_M) * tl.cdiv(sizes.n, BLOCK_N)
    num_k = tl.cdiv(sizes.k, STEP)

    a = tlx.local_alloc((BLOCK_M, STEP), dtype, NUM_STAGES)
    b = tlx.local_alloc((ROWS, STEP), tlx.dtype_of(b_desc), 2 * NUM_STAGES)
    c = tlx.local_alloc((BLOCK_M, ROWS), tlx.dtype_of(c_desc), 2)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=2)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = 0
            phase = 0
            for tile in range(pid, num_tiles, programs):
                off_m, off_n = tile_offsets(tile, sizes, BLOCK_M, BLOCK_N, GROUP_M)
                for k in range(num_k):
                    tlx.barrier_wait(empty[stage], phase ^ 1)
                    load_step(a_desc, b_desc, a, b, full, stage, off_m, off_n, k * STEP, STAGE_BYTES)
                    stage, phase = next_place(stage, phase, NUM_STAGES)

        with tlx.async_task(num_warps=4, replicate=2, registers=232):  # consumers
            half: tl.constexpr = tlx.async_task_replica_id()
            stage = 0
            phase = 0
            for tile in range(pid, num_tiles, programs):
                off_m, off_n = tile_offsets(tile, sizes, BLOCK_M, BLOCK_N, GROUP_M)
                column = off_n + half * ROWS
                sums = tl.zeros((ROWS, BLOCK_M), tl.float32)
                for k in range(num_k):
                    tlx.barrier_wait(full[stage], phase)
                    weights = tlx.local_load(b[stage * 2 + half]).to(dtype)
                    if PER_BLOCK:
                        scales = column_scales(scale_b, column, sizes.n, k, strides, COLUMNS_PER_SCALE)
                        step = tlx.async_dot(weights, tlx.local_trans(a[stage]))
                        step = tlx.async_dot_wait(0, step)
                        sums = added(sums, step, scales, 1.0, True)
                    else:
                        sums = tlx.async_dot(weights, tlx.local_trans(a[stage]), sums)
                        sums = tlx.async_dot_wait(0, sums)
                    tlx.barrier_arrive(empty[stage])
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                if not PER_BLOCK:
                    sums = sums * column_scales(scale_b, column, sizes.n, 0, strides, COLUMNS_PER_SCALE)[:, None]
                tlx.async_descriptor_store_wait(0)
                tlx.local_store(tlx.local_trans(c[half]), sums.to(tlx.dtype_of(c_desc)))
                tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
                tlx.async_descriptor_store(c_desc, c[half], [off_m, column])
            tlx.async_descriptor_store_wait(0)
