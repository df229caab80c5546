"""The two grouped GEMM kernels for Hopper: a product for each group of rows, persistent over all groups.

Row t of the jagged operands belongs to group g when offsets[g - 1] <= t < offsets[g]. The offsets are read by the
kernels alone: how many tiles there are is known only on the GPU.

- `ragged_rows`: out[t] = x[t] @ w[g]. A group has as many rows of tiles as its rows need; the jobs of all groups are
  numbered one group after the other.
- `ragged_sums`: out[g] = sum over the rows t of the group of x[:, t] y[t, :], the gradient of the weights. All groups
  have the same number of tiles; how many steps one takes is the group's.

Tasks, rings and barriers are those of the cooperative GEMM: as many programs as multiprocessors, program p takes tiles
or jobs p, p + P, ...; a producer loads by TMA, also for the next tile; two consumers share a tile. They split its
rows, or with SPLIT_N its columns, where a tile has only 64 rows. A consumer whose part of a tile lies outside of the
group multiplies nothing: it only gives the stages back, each when it has arrived, so that it counts with the other one.

What a program of `ragged_rows` takes is a job, a tile or two: `jobs` says which, and whose.

Edges. Reading rows of the next group is harmless where they only give rows of the result that are not stored. Storing
them is not, nor is summing over them (0 * NaN is NaN). There a ragged descriptor cuts at the group's end
(`parts`). w and the result of `ragged_sums` have a dimension for the group, so that K, M and N end where
they should.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.rings import next_place

from .jobs import first_shared, group_end, job_of, seek, tiles_of_job
from .parts import as_matrix, cut_at, multiply, pass_on, store_tile, tile_in_group


@tlx_xdsl.jit
def load_rows_step(
    x_desc, w_desc, x, w, full, stage, group, off_m, off_n, off_k, both,
    W_COLUMNS: tl.constexpr, SPLIT_N: tl.constexpr, BYTES: tl.constexpr,
):  # fmt: skip
    """Load what one product needs to a stage: one operand for both consumers, and each one's part of the other.

    `both` says whether the second consumer has anything to multiply.
    """
    X_PARTS: tl.constexpr = 1 if SPLIT_N else 2
    W_PARTS: tl.constexpr = 2 if SPLIT_N else 1
    PART_M: tl.constexpr = as_matrix(x[0]).shape[0]
    PART_N: tl.constexpr = as_matrix(w[0]).shape[0 if W_COLUMNS else 1]
    PART_BYTES: tl.constexpr = BYTES * (PART_N if SPLIT_N else PART_M) // (X_PARTS * PART_M + W_PARTS * PART_N)
    tlx.barrier_expect_bytes(full[stage], BYTES, pred=both)
    tlx.barrier_expect_bytes(full[stage], BYTES - PART_BYTES, pred=not both)
    for part in tl.static_range(X_PARTS):
        where = (off_m + part * PART_M, off_k)
        tlx.async_descriptor_load(x_desc, x[stage * X_PARTS + part], where, full[stage], pred=both if part else None)
    for part in tl.static_range(W_PARTS):
        column = off_n + part * PART_N
        where = (group, column, off_k) if W_COLUMNS else (group, off_k, column)
        tlx.async_descriptor_load(w_desc, w[stage * W_PARTS + part], where, full[stage], pred=both if part else None)


@tlx_xdsl.jit
def ragged_rows(
    x_desc, w_desc, out_desc, offsets, scale_x, scale_w, ROWS, GROUPS, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_N: tl.constexpr,
    NUM_STAGES: tl.constexpr, SUBTILES: tl.constexpr, BUFFERS: tl.constexpr, GROUP_M: tl.constexpr,
    W_COLUMNS: tl.constexpr,
):  # fmt: skip
    """out[t] = x[t] @ w[the group of t]. See the top of the file.

    `scale_x` (ROWS,) and `scale_w` (GROUPS, N) multiply the rows of x and the columns of w; both are None without.
    """
    tl.static_assert(NUM_STAGES >= 2, "a stage is given back when the next one is being multiplied")
    X_PARTS: tl.constexpr = 1 if SPLIT_N else 2
    W_PARTS: tl.constexpr = 2 if SPLIT_N else 1
    PART_M: tl.constexpr = BLOCK_M // X_PARTS
    PART_N: tl.constexpr = BLOCK_N // W_PARTS
    dtype: tl.constexpr = tlx.dtype_of(x_desc)
    STAGE_BYTES: tl.constexpr = (BLOCK_M + BLOCK_N) * BLOCK_K * tlx.size_of(dtype)

    programs = tl.num_programs(0)
    tiles_n = tl.cdiv(N, BLOCK_N)
    num_k = tl.cdiv(K, BLOCK_K)

    x = tlx.local_alloc((PART_M, BLOCK_K), dtype, X_PARTS * NUM_STAGES)
    w = tlx.local_alloc((1, PART_N, BLOCK_K) if W_COLUMNS else (1, BLOCK_K, PART_N), dtype, W_PARTS * NUM_STAGES)
    c = tlx.local_alloc((1, 1, PART_M, PART_N // SUBTILES), tlx.dtype_of(out_desc), 2 * BUFFERS)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=2)

    shared = first_shared(offsets, ROWS, GROUPS, tiles_n, BLOCK_M, PART_M)
    pid = tl.program_id(0)
    first_place = (0, 0, 0, group_end(offsets, 0, 0, ROWS, GROUPS))
    first_place = seek(job_of(pid, shared), first_place, offsets, ROWS, GROUPS, tiles_n, BLOCK_M, PART_M)
    # The first step of a program is loaded before the tasks begin.
    loaded = 0
    if first_place[0] < GROUPS:
        off_m, off_n, end_m, end_n, _ = tiles_of_job(
            pid, shared, first_place, tiles_n, N, BLOCK_M, BLOCK_N, PART_M, PART_N, GROUP_M
        )
        if (off_m < end_m) & (off_n < end_n):
            both = off_n + PART_N < end_n if SPLIT_N else off_m + PART_M < end_m
            load_rows_step(
                x_desc, w_desc, x, w, full, 0, first_place[0], off_m, off_n, 0, both,
                W_COLUMNS, SPLIT_N, STAGE_BYTES,
            )  # fmt: skip
            loaded = 1

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = loaded
            phase = 0
            first_k = loaded
            index = pid
            place = first_place
            while place[0] < GROUPS:
                off_m, off_n, end_m, end_n, tiles = tiles_of_job(
                    index, shared, place, tiles_n, N, BLOCK_M, BLOCK_N, PART_M, PART_N, GROUP_M
                )
                for _ in range(tiles):
                    both = off_n + PART_N < end_n if SPLIT_N else off_m + PART_M < end_m
                    for k in range(first_k, tl.where((off_m < end_m) & (off_n < end_n), num_k, 0)):
                        tlx.barrier_wait(empty[stage], phase ^ 1)
                        load_rows_step(
                            x_desc, w_desc, x, w, full, stage, place[0], off_m, off_n, k * BLOCK_K, both,
                            W_COLUMNS, SPLIT_N, STAGE_BYTES,
                        )  # fmt: skip
                        stage, phase = next_place(stage, phase, NUM_STAGES)
                    first_k = 0
                    off_n += BLOCK_N
                index += programs
                place = seek(job_of(index, shared), place, offsets, ROWS, GROUPS, tiles_n, BLOCK_M, PART_M)

        with tlx.async_task(num_warps=4, replicate=2, registers=232):  # consumers
            half: tl.constexpr = tlx.async_task_replica_id()
            x_part: tl.constexpr = 0 if SPLIT_N else half
            w_part: tl.constexpr = half if SPLIT_N else 0
            stage = 0
            phase = 0
            index = pid
            place = first_place
            while place[0] < GROUPS:
                off_m, off_n, end_m, end_n, tiles = tiles_of_job(
                    index, shared, place, tiles_n, N, BLOCK_M, BLOCK_N, PART_M, PART_N, GROUP_M
                )
                for _ in range(tiles):
                    row = off_m + x_part * PART_M
                    column = off_n + w_part * PART_N
                    if (row < end_m) & (column < end_n):
                        acc, stage, phase = multiply(
                            x, w, full, empty, stage, phase, num_k, x_part, w_part, X_PARTS, W_PARTS,
                            False, W_COLUMNS, NUM_STAGES,
                        )  # fmt: skip
                        scales = None
                        if scale_x is not None:
                            rows = row + tl.arange(0, PART_M)
                            scales = (tl.load(scale_x + rows, mask=rows < end_m, other=0.0), scale_w + place[0] * N)
                        where = cut_at(end_m, row, PART_M)
                        store_tile(acc, out_desc, c, half * BUFFERS, where, column, scales, N, SUBTILES, BUFFERS)
                    else:
                        steps = tl.where((off_m < end_m) & (off_n < end_n), num_k, 0)
                        stage, phase = pass_on(full, empty, stage, phase, steps, NUM_STAGES)
                    off_n += BLOCK_N
                index += programs
                place = seek(job_of(index, shared), place, offsets, ROWS, GROUPS, tiles_n, BLOCK_M, PART_M)
            tlx.async_descriptor_store_wait(0)


@tlx_xdsl.jit
def group_of_tile(tile, offsets, ROWS, tiles):
    """The group of a tile where each has so many, and its first row and end."""
    group = tile // tiles
    start = min(max(tl.load(offsets + max(group - 1, 0)), 0), ROWS)
    start = tl.where(group == 0, 0, start)
    return group, start, min(max(tl.load(offsets + group), start), ROWS)


@tlx_xdsl.jit
def load_sums_step(x_desc, y_desc, x, y, full, stage, row, end, off_m, off_n, BYTES: tl.constexpr):
    """Load the rows of a group from `row` on to a stage: zeros from `end` on."""
    BLOCK_K: tl.constexpr = as_matrix(x[0]).shape[0]
    PART_M: tl.constexpr = as_matrix(x[0]).shape[1]
    where = cut_at(end, row, BLOCK_K)
    tlx.barrier_expect_bytes(full[stage], BYTES)
    tlx.async_descriptor_load(x_desc, x[stage * 2], (*where, off_m), full[stage])
    tlx.async_descriptor_load(y_desc, y[stage], (*where, off_n), full[stage])
    tlx.async_descriptor_load(x_desc, x[stage * 2 + 1], (*where, off_m + PART_M), full[stage])


@tlx_xdsl.jit
def ragged_sums(
    x_desc, y_desc, out_desc, offsets, ROWS, GROUPS, M, N,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    NUM_STAGES: tl.constexpr, SUBTILES: tl.constexpr, BUFFERS: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """out[g] = x^T y over the rows of group g, of x (ROWS, M) and y (ROWS, N). See the top of the file.

    An empty group takes one step of zeros.
    """
    tl.static_assert(NUM_STAGES >= 2, "a stage is given back when the next one is being multiplied")
    PART_M: tl.constexpr = BLOCK_M // 2
    dtype: tl.constexpr = tlx.dtype_of(x_desc)
    STAGE_BYTES: tl.constexpr = (BLOCK_M + BLOCK_N) * BLOCK_K * tlx.size_of(dtype)

    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * tiles_n

    x = tlx.local_alloc((1, 1, BLOCK_K, PART_M), dtype, 2 * NUM_STAGES)
    y = tlx.local_alloc((1, 1, BLOCK_K, BLOCK_N), dtype, NUM_STAGES)
    c = tlx.local_alloc((1, PART_M, BLOCK_N // SUBTILES), tlx.dtype_of(out_desc), 2 * BUFFERS)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=2)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = 0
            phase = 0
            for tile in range(pid, GROUPS * tiles, programs):
                group, start, end = group_of_tile(tile, offsets, ROWS, tiles)
                off_m, off_n = tile_in_group(tile - group * tiles, M, tiles_n, BLOCK_M, BLOCK_N, GROUP_M)
                for k in range(max(tl.cdiv(end - start, BLOCK_K), 1)):
                    tlx.barrier_wait(empty[stage], phase ^ 1)
                    row = start + k * BLOCK_K
                    load_sums_step(x_desc, y_desc, x, y, full, stage, row, end, off_m, off_n, STAGE_BYTES)
                    stage, phase = next_place(stage, phase, NUM_STAGES)

        with tlx.async_task(num_warps=4, replicate=2, registers=232):  # consumers
            half: tl.constexpr = tlx.async_task_replica_id()
            stage = 0
            phase = 0
            for tile in range(pid, GROUPS * tiles, programs):
                group, start, end = group_of_tile(tile, offsets, ROWS, tiles)
                off_m, off_n = tile_in_group(tile - group * tiles, M, tiles_n, BLOCK_M, BLOCK_N, GROUP_M)
                num_k = max(tl.cdiv(end - start, BLOCK_K), 1)
                acc, stage, phase = multiply(
                    x, y, full, empty, stage, phase, num_k, half, 0, 2, 1, True, False, NUM_STAGES
                )  # fmt: skip
                where = (group, off_m + half * PART_M)
                store_tile(acc, out_desc, c, half * BUFFERS, where, off_n, None, N, SUBTILES, BUFFERS)
            tlx.async_descriptor_store_wait(0)
