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

from .device import load_step, load_steps, multiply_in_turn, released, ring_of, tile_offsets, tile_rings, waited
from .epilogue import Result, result_buffers, store_tile, type_of_result


@tlx_xdsl.jit
def gemm_pingpong(
    a_desc, b_desc, c_desc, c_ptr, c_row, c_column, row0, row1, column0, column1, matrix_desc, sizes,
    FORM: tl.constexpr,
):  # fmt: skip
    """C = EPILOGUE(A @ B); consumer 0 has the program's even tiles, consumer 1 the odd ones."""
    TILE: tl.constexpr = FORM.tile
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    num_tiles = tl.cdiv(sizes.m, TILE.block_m) * tl.cdiv(sizes.n, TILE.block_n)
    num_tiles = tl.cdiv(num_tiles - pid, programs)  # of this program
    num_k = tl.cdiv(sizes.k, TILE.block_k)

    tiles = tile_rings(tlx.dtype_of(a_desc), FORM)
    c = result_buffers(type_of_result(c_desc, c_ptr), FORM)
    ring = ring_of(tiles, FORM)
    arrived = tlx.alloc_barriers(2) if matrix_desc is not None else None
    out = Result(
        c_desc, c_ptr, c_row, c_column, (row0, row1), (column0, column1), matrix_desc, sizes, FORM, c, arrived
    )  # fmt: skip

    if num_tiles > 0:
        off_m, off_n = tile_offsets(pid, sizes, TILE.block_m, TILE.block_n, TILE.group_m)
        load_step(ring, a_desc, (b_desc,), 0, off_m, (off_n,), 0)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = 1
            phase = 0
            first_k = 1
            for j in range(num_tiles):
                off_m, off_n = tile_offsets(pid + j * programs, sizes, TILE.block_m, TILE.block_n, TILE.group_m)
                stage, phase = load_steps(
                    ring, a_desc, (b_desc,), stage, phase, off_m, (off_n,), first_k, num_k
                )  # fmt: skip
                first_k = 0

        with tlx.async_task(num_warps=4, replicate=2, registers=232):  # consumers
            consumer: tl.constexpr = tlx.async_task_replica_id()
            for j in range(consumer, num_tiles, 2):
                off_m, off_n = tile_offsets(pid + j * programs, sizes, TILE.block_m, TILE.block_n, TILE.group_m)
                sums, last = multiply_in_turn(ring, j, num_tiles, num_k, consumer)
                sums = waited(sums, 0)
                released(ring, last)
                store_tile(sums, out, consumer, off_m, off_n, j // 2)
            tlx.async_descriptor_store_wait(0)
