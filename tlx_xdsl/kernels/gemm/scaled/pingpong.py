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
from tlx_xdsl.kernels.rings import next_place

from ..device import multiply_in_turn, tile_offsets, waited
from .device import load_step, scaled_ring
from .scales import STEP, Scales, store_scaled, tile_scales


@tlx_xdsl.jit
def scaled_pingpong(a_desc, b_desc, c_desc, scale_a, scale_b, sizes, strides, FORM: tl.constexpr):
    """C = (A * scale_a) @ (B * scale_b); consumer 0 has the program's even tiles, consumer 1 the odd ones."""
    TILE: tl.constexpr = FORM.tile
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    num_tiles = tl.cdiv(sizes.m, TILE.block_m) * tl.cdiv(sizes.n, TILE.block_n)
    num_tiles = tl.cdiv(num_tiles - pid, programs)  # of this program
    num_k = tl.cdiv(sizes.k, STEP)

    ring, c, staged = scaled_ring(a_desc, b_desc, c_desc, FORM)
    scales = Scales(scale_a, scale_b, strides, sizes, staged)
    if num_tiles > 0:
        off_m, off_n = tile_offsets(pid, sizes, TILE.block_m, TILE.block_n, TILE.group_m)
        load_step(ring, scales, a_desc, b_desc, 0, off_m, off_n, 0)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = 1
            phase = 0
            first_k = 1
            for j in range(num_tiles):
                off_m, off_n = tile_offsets(pid + j * programs, sizes, TILE.block_m, TILE.block_n, TILE.group_m)
                for k in range(first_k, num_k):
                    tlx.barrier_wait(ring.empty[stage], phase ^ 1)
                    load_step(ring, scales, a_desc, b_desc, stage, off_m, off_n, k)
                    stage, phase = next_place(stage, phase, TILE.stages)
                first_k = 0

        with tlx.async_task(num_warps=4, replicate=2, registers=240):  # consumers
            consumer: tl.constexpr = tlx.async_task_replica_id()
            for j in range(consumer, num_tiles, 2):
                off_m, off_n = tile_offsets(pid + j * programs, sizes, TILE.block_m, TILE.block_n, TILE.group_m)
                sums, last = multiply_in_turn(ring, j, num_tiles, num_k, consumer)
                of_tile = tile_scales(scales, off_m, off_n, FORM)
                (sums,) = waited(sums, 0)
                tlx.barrier_arrive(ring.empty[last])
                store_scaled(sums, of_tile, c_desc, c, off_m, off_n, consumer, FORM)
            tlx.async_descriptor_store_wait(0)
