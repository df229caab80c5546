"""The cross-entropy of x @ w^T without its logits, for Hopper: a product that keeps two numbers of each row of a tile.

The schedule is that of `gemm.pingpong`: one consumer reduces the logits of its tile while the other one multiplies, so
that the exponentials hide under products. A tile leaves the maximum of each of its rows and the sum of
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
from ..gemm.device import multiply_steps, tile_offsets
from ..gemm.pingpong import load_step
from ..rings import TURN_THREADS


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
def linear_sums(
    x_desc, w_desc, top_ptr, total_ptr, plain_ptr, M, N, K, GROUP_FACTOR, GROUP_SHIFT, REST_FACTOR, REST_SHIFT,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NUM_STAGES: tl.constexpr,
    GROUP_M: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """The sums of the rows of each tile of x @ w^T: consumer 0 has the program's even tiles, consumer 1 the odd ones.

    x is (M, K), w (N, K), both by rows. See `gemm.pingpong` for stages, turns and barriers.
    """
    tl.static_assert(NUM_STAGES >= 2, "a stage is given back when the next one is being multiplied")
    dtype: tl.constexpr = tlx.dtype_of(x_desc)
    STAGE_BYTES: tl.constexpr = (BLOCK_M + BLOCK_N) * BLOCK_K * tlx.size_of(dtype)

    order = ((GROUP_FACTOR, GROUP_SHIFT), (REST_FACTOR, REST_SHIFT))
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    num_tiles = tl.cdiv(tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N) - pid, programs)  # of this program
    num_k = tl.cdiv(K, BLOCK_K)

    a = tlx.local_alloc((BLOCK_M, BLOCK_K), dtype, NUM_STAGES)
    b = tlx.local_alloc((BLOCK_N, BLOCK_K), dtype, NUM_STAGES)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            for j in range(num_tiles):
                off_m, off_n = tile_offsets(pid + j * programs, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
                for k in range(num_k):
                    stage, phase = tlx.get_bufidx_phase(j * num_k + k, NUM_STAGES)
                    tlx.barrier_wait(empty[stage], phase ^ 1)
                    load_step(
                        x_desc, w_desc, a, b, full, stage, off_m, off_n, k * BLOCK_K, False, True, STAGE_BYTES
                    )  # fmt: skip

        with tlx.async_task(num_warps=4, replicate=2, registers=232):  # consumers
            consumer: tl.constexpr = tlx.async_task_replica_id()
            for j in range(consumer, num_tiles, 2):
                off_m, off_n = tile_offsets(pid + j * programs, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
                stage, phase = tlx.get_bufidx_phase(j * num_k, NUM_STAGES)
                if j > 0:
                    tlx.named_barrier_wait(consumer, TURN_THREADS)
                logits, last, _, _ = multiply_steps((a, b), (full, empty), stage, phase, num_k, NUM_STAGES, False, True)
                if j + 1 < num_tiles:
                    tlx.named_barrier_arrive(1 - consumer, TURN_THREADS)
                logits = tlx.async_dot_wait(0, logits)
                tlx.barrier_arrive(empty[last])
                store_sums_of_rows(logits, top_ptr, total_ptr, plain_ptr, off_m, off_n, M, N, BLOCK_N, EVEN)
