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

from ...rings import next_place
from ..device import Ring, by_parts, multiply_tile
from .jobs import Groups, first_shared, group_end, job_of, seek, tiles_of_job
from .parts import cut_at, pass_on, store_columns, tile_in_group


@tlx_xdsl.jit
def grouped_ring(a, b, form: tl.constexpr):
    """The ring of these buffers."""
    STAGES: tl.constexpr = form.tile.stages
    tl.static_assert(STAGES >= 2, "a stage is given back when the next one is being multiplied")
    return Ring(a, (b,), tlx.alloc_barriers(STAGES), tlx.alloc_barriers(STAGES, arrive_count=2), form)


@tlx_xdsl.jit
def load_rows_step(ring, x_desc, w_desc, stage, group, off_m, off_n, off_k, both):
    """Load what one product needs to a stage: one operand for both consumers, and each one's part of the other.

    `both` says whether the second consumer has anything to multiply.
    """
    tile: tl.constexpr = ring.form.tile
    full = ring.full
    ELEMENT: tl.constexpr = tlx.size_of(tlx.dtype_of(x_desc))
    PART: tl.constexpr = (tile.columns if tile.b_parts == 2 else tile.rows) * tile.block_k
    tlx.barrier_expect_bytes(full[stage], tile.elements * ELEMENT, pred=both)
    tlx.barrier_expect_bytes(full[stage], (tile.elements - PART) * ELEMENT, pred=not both)
    for part in tl.static_range(tile.parts):
        where = (off_m + part * tile.rows, off_k)
        x = ring.a[stage * tile.parts + part]
        tlx.async_descriptor_load(x_desc, x, where, full[stage], pred=both if part else None)
    for part in tl.static_range(tile.b_parts):
        column = off_n + part * tile.columns
        where = (group, column, off_k) if ring.form.b_columns else (group, off_k, column)
        w = ring.b[0][stage * tile.b_parts + part]
        tlx.async_descriptor_load(w_desc, w, where, full[stage], pred=both if part else None)


@tlx_xdsl.jit
def both_multiply(place, tile: tl.constexpr):
    """Return whether the second consumer has a part of a tile: `place` are its first row and column, and their ends."""
    off_m, off_n, end_m, end_n = place
    return off_n + tile.columns < end_n if tile.b_parts == 2 else off_m + tile.rows < end_m


@tlx_xdsl.jit
def ragged_rows(
    x_desc, w_desc, out_desc, offsets, scale_x, scale_w, ROWS, GROUPS, N, K, FORM: tl.constexpr
):  # fmt: skip
    """out[t] = x[t] @ w[the group of t]. See the top of the file.

    `scale_x` (ROWS,) and `scale_w` (GROUPS, N) multiply the rows of x and the columns of w; both are None without.
    """
    TILE: tl.constexpr = FORM.tile
    dtype: tl.constexpr = tlx.dtype_of(x_desc)
    programs = tl.num_programs(0)
    tiles_n = tl.cdiv(N, TILE.block_n)
    num_k = tl.cdiv(K, TILE.block_k)
    groups = Groups(offsets, ROWS, GROUPS, tiles_n)

    x = tlx.local_alloc((TILE.rows, TILE.block_k), dtype, TILE.parts * TILE.stages)
    w_shape: tl.constexpr = (1, TILE.columns, TILE.block_k) if FORM.b_columns else (1, TILE.block_k, TILE.columns)
    w = tlx.local_alloc(w_shape, dtype, TILE.b_parts * TILE.stages)
    c = tlx.local_alloc((1, 1, TILE.rows, TILE.part_n), tlx.dtype_of(out_desc), 2 * TILE.buffers)
    ring = grouped_ring(x, w, FORM)

    shared = first_shared(groups, TILE)
    pid = tl.program_id(0)
    first_place = (0, 0, 0, group_end(groups, 0, 0))
    first_place = seek(job_of(pid, shared), first_place, groups, TILE)
    # The first step of a program is loaded before the tasks begin.
    loaded = 0
    if first_place[0] < GROUPS:
        off_m, off_n, end_m, end_n, _ = tiles_of_job(pid, shared, first_place, tiles_n, N, TILE)
        if (off_m < end_m) & (off_n < end_n):
            both = both_multiply((off_m, off_n, end_m, end_n), TILE)
            load_rows_step(ring, x_desc, w_desc, 0, first_place[0], off_m, off_n, 0, both)
            loaded = 1

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = loaded
            phase = 0
            first_k = loaded
            index = pid
            place = first_place
            while place[0] < GROUPS:
                off_m, off_n, end_m, end_n, tiles = tiles_of_job(index, shared, place, tiles_n, N, TILE)
                for _ in range(tiles):
                    both = both_multiply((off_m, off_n, end_m, end_n), TILE)
                    for k in range(first_k, tl.where((off_m < end_m) & (off_n < end_n), num_k, 0)):
                        tlx.barrier_wait(ring.empty[stage], phase ^ 1)
                        off_k = k * TILE.block_k
                        load_rows_step(ring, x_desc, w_desc, stage, place[0], off_m, off_n, off_k, both)
                        stage, phase = next_place(stage, phase, TILE.stages)
                    first_k = 0
                    off_n += TILE.block_n
                index += programs
                place = seek(job_of(index, shared), place, groups, TILE)

        with tlx.async_task(num_warps=4, replicate=2, registers=232):  # consumers
            half: tl.constexpr = tlx.async_task_replica_id()
            x_part: tl.constexpr = half if TILE.parts == 2 else 0
            w_part: tl.constexpr = half if TILE.b_parts == 2 else 0
            stage = 0
            phase = 0
            index = pid
            place = first_place
            while place[0] < GROUPS:
                off_m, off_n, end_m, end_n, tiles = tiles_of_job(index, shared, place, tiles_n, N, TILE)
                for _ in range(tiles):
                    row = off_m + x_part * TILE.rows
                    column = off_n + w_part * TILE.columns
                    if (row < end_m) & (column < end_n):
                        sums, stage, phase = multiply_tile(ring, stage, phase, 0, num_k, x_part, w_part)
                        scales = None
                        if scale_x is not None:
                            rows = row + tl.arange(0, TILE.rows)
                            scales = (tl.load(scale_x + rows, mask=rows < end_m, other=0.0), scale_w + place[0] * N)
                        where = cut_at(end_m, row, TILE.rows)
                        state = (out_desc, c, where, scales, N, TILE)
                        by_parts(sums, column, store_columns, state, half, TILE.part_n)
                    else:
                        steps = tl.where((off_m < end_m) & (off_n < end_n), num_k, 0)
                        stage, phase = pass_on(ring, stage, phase, steps)
                    off_n += TILE.block_n
                index += programs
                place = seek(job_of(index, shared), place, groups, TILE)
            tlx.async_descriptor_store_wait(0)


@tlx_xdsl.jit
def tile_of_group(number, offsets, rows, m, tiles_n, tile: tl.constexpr):
    """The group of a tile, its first row and end, the tile's first row and column, and its steps: one at least."""
    tiles = tl.cdiv(m, tile.block_m) * tiles_n
    group = number // tiles
    start = min(max(tl.load(offsets + max(group - 1, 0)), 0), rows)
    start = tl.where(group == 0, 0, start)
    end = min(max(tl.load(offsets + group), start), rows)
    off_m, off_n = tile_in_group(number - group * tiles, m, tiles_n, tile.block_m, tile.block_n, tile.group_m)
    return group, start, end, off_m, off_n, max(tl.cdiv(end - start, tile.block_k), 1)


@tlx_xdsl.jit
def load_sums_step(ring, x_desc, y_desc, stage, row, end, off_m, off_n):
    """Load the rows of a group from `row` on to a stage: zeros from `end` on."""
    tile: tl.constexpr = ring.form.tile
    full = ring.full
    where = cut_at(end, row, tile.block_k)
    tlx.barrier_expect_bytes(full[stage], tile.elements * tlx.size_of(tlx.dtype_of(x_desc)))
    tlx.async_descriptor_load(x_desc, ring.a[stage * 2], (*where, off_m), full[stage])
    tlx.async_descriptor_load(y_desc, ring.b[0][stage], (*where, off_n), full[stage])
    tlx.async_descriptor_load(x_desc, ring.a[stage * 2 + 1], (*where, off_m + tile.rows), full[stage])


@tlx_xdsl.jit
def ragged_sums(x_desc, y_desc, out_desc, offsets, ROWS, GROUPS, M, N, FORM: tl.constexpr):
    """out[g] = x^T y over the rows of group g, of x (ROWS, M) and y (ROWS, N). See the top of the file.

    An empty group takes one step of zeros.
    """
    TILE: tl.constexpr = FORM.tile
    BLOCK_K: tl.constexpr = TILE.block_k
    dtype: tl.constexpr = tlx.dtype_of(x_desc)

    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    tiles_n = tl.cdiv(N, TILE.block_n)
    tiles = tl.cdiv(M, TILE.block_m) * tiles_n

    x = tlx.local_alloc((1, 1, BLOCK_K, TILE.rows), dtype, 2 * TILE.stages)
    y = tlx.local_alloc((1, 1, BLOCK_K, TILE.block_n), dtype, TILE.stages)
    c = tlx.local_alloc((1, TILE.rows, TILE.part_n), tlx.dtype_of(out_desc), 2 * TILE.buffers)
    ring = grouped_ring(x, y, FORM)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = 0
            phase = 0
            for tile in range(pid, GROUPS * tiles, programs):
                _, start, end, off_m, off_n, num_k = tile_of_group(tile, offsets, ROWS, M, tiles_n, TILE)
                for k in range(num_k):
                    tlx.barrier_wait(ring.empty[stage], phase ^ 1)
                    load_sums_step(ring, x_desc, y_desc, stage, start + k * BLOCK_K, end, off_m, off_n)
                    stage, phase = next_place(stage, phase, TILE.stages)

        with tlx.async_task(num_warps=4, replicate=2, registers=232):  # consumers
            half: tl.constexpr = tlx.async_task_replica_id()
            stage = 0
            phase = 0
            for tile in range(pid, GROUPS * tiles, programs):
                group, _, _, off_m, off_n, num_k = tile_of_group(tile, offsets, ROWS, M, tiles_n, TILE)
                sums, stage, phase = multiply_tile(ring, stage, phase, 0, num_k, half)
                state = (out_desc, c, (group, off_m + half * TILE.rows), None, N, TILE)
                by_parts(sums, off_n, store_columns, state, half, TILE.part_n)
            tlx.async_descriptor_store_wait(0)
