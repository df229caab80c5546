"""The cross-entropy of x @ w^T without its logits, for Hopper: a product that keeps two numbers of each row of a tile.

The schedule is pingpong of `gemm.persistent`: one consumer reduces the logits of its tile while the other one
multiplies, so that the exponentials hide under products. A tile leaves the maximum of each of its rows and the sum of
exp(logit - maximum), in f32: 8 bytes for BLOCK_N logits. `rows.combine_tiles` makes the losses of them.

The logits are the f32 sums of the tensor cores; nothing rounds them.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..attention.scores import LOG2_E
from ..gemm.device import (
    load_step,
    multiply_in_turn,
    released,
    ring_of,
    tile_offsets,
    tile_rings,
    wait_for_stage,
    waited,
)


@tlx_xdsl.jit
def store_sums_of_rows(
    logits, top_ptr, total_ptr, plain_ptr, row, column, ROWS, COLUMNS, BLOCK_N: tl.constexpr, EVEN: tl.constexpr
):  # fmt: skip
    """Store the maximum of each row of a tile, the sum of exp(logit - maximum), and with `plain_ptr` that of logits.

    EVEN says that no tile reaches over the last column. The logits there are 0, as TMA reads zeros outside of `w`.
    """
    at = row + tl.arange(0, logits.shape[0])
    place = (column // BLOCK_N).to(tl.int64) * ROWS + at
    if plain_ptr is not None:
        tl.store(plain_ptr + place, tl.sum(logits, 1), at < ROWS)
    if not EVEN:
        logits = tl.where((column + tl.arange(0, BLOCK_N) < COLUMNS)[None, :], logits, float("-inf"))
    top = tl.max(logits, 1)
    # A row of minus infinities has no sum; the difference would be no number.
    shift = tl.where(top == float("-inf"), 0.0, top) * LOG2_E
    tl.store(top_ptr + place, top, at < ROWS)
    tl.store(total_ptr + place, tl.sum(tl.math.exp2(logits * LOG2_E - shift[:, None]), 1), at < ROWS)


@tlx_xdsl.jit
def linear_sums(x_desc, w_desc, top_ptr, total_ptr, plain_ptr, sizes, FORM: tl.constexpr, EVEN: tl.constexpr):
    """The sums of the rows of each tile of x @ w^T: consumer 0 has the program's even tiles, consumer 1 the odd ones.

    x is (M, K), w (N, K), both by rows. See `gemm.device.multiply_in_turn` for stages, turns and barriers.
    """
    TILE: tl.constexpr = FORM.tile
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    num_tiles = tl.cdiv(sizes.m, TILE.block_m) * tl.cdiv(sizes.n, TILE.block_n)
    num_tiles = tl.cdiv(num_tiles - pid, programs)  # of this program
    num_k = tl.cdiv(sizes.k, TILE.block_k)
    ring = ring_of(tile_rings(tlx.dtype_of(x_desc), FORM), FORM)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            for j in range(num_tiles):
                off_m, off_n = tile_offsets(pid + j * programs, sizes, TILE.block_m, TILE.block_n, TILE.group_m)
                for k in range(num_k):
                    stage, phase = tlx.get_bufidx_phase(j * num_k + k, TILE.stages)
                    wait_for_stage(ring, stage, phase)
                    load_step(ring, x_desc, (w_desc,), stage, off_m, (off_n,), k * TILE.block_k)

        with tlx.async_task(num_warps=4, replicate=2, registers=232):  # consumers
            consumer: tl.constexpr = tlx.async_task_replica_id()
            for j in range(consumer, num_tiles, 2):
                off_m, off_n = tile_offsets(pid + j * programs, sizes, TILE.block_m, TILE.block_n, TILE.group_m)
                logits, last = multiply_in_turn(ring, j, num_tiles, num_k, consumer)
                (logits,) = waited(logits, 0)
                released(ring, last)
                store_sums_of_rows(
                    logits, top_ptr, total_ptr, plain_ptr, off_m, off_n, sizes.m, sizes.n, TILE.block_n, EVEN
                )  # fmt: skip
