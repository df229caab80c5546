"""The ping-pong kernel of scaled products of 8-bit floats: each consumer has tiles of its own.

C = (A * scale_a) @ (B * scale_b) with sums that stay in the tensor cores along all of K, and with scales of operands or
of rows and columns, for Hopper. One consumer scales and stores a tile while the other multiplies: it pays where K is
short. The protocol is that of `gemm/pingpong`, the data that of `device`.

It has no sums per step: in its turn a consumer would leave the tensor cores idle while it adds.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.rings import TURN_THREADS, next_place

from ..device import multiply_steps, tile_offsets
from .device import load_step
from .scales import STEP, store_scaled, tile_scales


@tlx_xdsl.jit
def scaled_pingpong(
    a_desc, b_desc, c_desc, scale_a, scale_b, M, N, K, A_ROWS, A_STEPS, B_STEPS, B_COLUMNS,
    GROUP_FACTOR, GROUP_SHIFT, REST_FACTOR, REST_SHIFT,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr, STRIPS: tl.constexpr,
    BUFFERS: tl.constexpr, GROUP_M: tl.constexpr, PER_ROW: tl.constexpr,
):  # fmt: skip
    """C = (A * scale_a) @ (B * scale_b); consumer 0 has the program's even tiles, consumer 1 the odd ones."""
    tl.static_assert(NUM_STAGES >= 2, "a stage is given back when the next one is being multiplied")
    order = ((GROUP_FACTOR, GROUP_SHIFT), (REST_FACTOR, REST_SHIFT))
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    num_tiles = tl.cdiv(tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N) - pid, programs)  # of this program
    num_k = tl.cdiv(K, STEP)

    a = tlx.local_alloc((BLOCK_M, STEP), tlx.dtype_of(a_desc), NUM_STAGES)
    b = tlx.local_alloc((BLOCK_N, STEP), tlx.dtype_of(b_desc), NUM_STAGES)
    c = tlx.local_alloc((BLOCK_M, BLOCK_N // STRIPS), tlx.dtype_of(c_desc), 2 * BUFFERS)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES)

    if num_tiles > 0:
        off_m, off_n = tile_offsets(pid, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
        load_step(a_desc, b_desc, a, b, full, 0, off_m, off_n, 0, 1, 1, 1, 0)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = 1
            phase = 0
            first_k = 1
            for j in range(num_tiles):
                off_m, off_n = tile_offsets(pid + j * programs, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
                for k in range(first_k, num_k):
                    tlx.barrier_wait(empty[stage], phase ^ 1)
                    load_step(a_desc, b_desc, a, b, full, stage, off_m, off_n, k * STEP, 1, 1, 1, 0)
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                first_k = 0

        with tlx.async_task(num_warps=4, replicate=2, registers=240):  # consumers
            consumer: tl.constexpr = tlx.async_task_replica_id()
            scales = (scale_a, scale_b, (A_ROWS, A_STEPS, B_STEPS, B_COLUMNS))
            for j in range(consumer, num_tiles, 2):
                off_m, off_n = tile_offsets(pid + j * programs, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
                # The other consumer's steps lie between this one's tiles.
                stage, phase = tlx.get_bufidx_phase(j * num_k, NUM_STAGES)
                if j > 0:
                    tlx.named_barrier_wait(consumer, TURN_THREADS)
                sums, last, _, _ = multiply_steps((a, b), (full, empty), stage, phase, num_k, NUM_STAGES, False, True)
                if j + 1 < num_tiles:
                    tlx.named_barrier_arrive(1 - consumer, TURN_THREADS)
                of_tile = tile_scales(
                    scales, off_m, off_n, M, N, BLOCK_M, BLOCK_N // STRIPS, STRIPS, PER_ROW
                )  # fmt: skip
                sums = tlx.async_dot_wait(0, sums)
                tlx.barrier_arrive(empty[last])
                store_scaled(sums, of_tile, c_desc, c, consumer * BUFFERS, off_m, off_n, STRIPS, BUFFERS, PER_ROW)
            tlx.async_descriptor_store_wait(0)
