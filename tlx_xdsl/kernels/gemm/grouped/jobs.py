"""The jobs of a product of rows in groups: what a program computes at a time, and of which group it is.

What is dealt out should take equally long. The last tile of a group may have half of the rows or less, which one
consumer computes in little more than half of the time; two of these, side by side, are one job of one program, after
the tiles of the group that have more. Programs that would get no job in the last round share those of others, if all
can be shared: a job is cut into what its two consumers compute, or into its two tiles.

With groups of random sizes (64 of 256 rows on average, 2048 columns, 132 programs) the last program ends 5 % earlier
than with single tiles as jobs, and a queue would gain 1 % more. With groups of 300 rows, where every third tile is
small and falls to the same programs, it is 14 %. (Computed with 0.57 of a tile's time for a small one, not measured.)

A program's jobs only grow, so its tasks carry the group, its first job and its rows from job to job and look at each
group once: O(jobs + groups), each offset a load that the L1 cache has after the first.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

from typing import Any, NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl

from .parts import tile_in_group

LANES = tl.constexpr(256)
"""Groups that are counted at a time."""


class Groups(NamedTuple):
    """`count` groups of `rows` rows altogether, which end at `offsets`, and tiles along N."""

    offsets: Any
    rows: Any
    count: Any
    tiles_n: Any


@tlx_xdsl.jit
def group_end(groups, group, start):
    """The end of the group that begins at `start`; not before that, nor after the last of all rows."""
    end = tl.load(groups.offsets + min(group, groups.count - 1))
    return min(max(end, start), groups.rows)


@tlx_xdsl.jit
def rows_of_tiles(rows, tile: tl.constexpr):
    """Rows of tiles of which both consumers have a part; up to a consumer's rows of the group may be left."""
    return (rows + tile.rows - 1) // tile.block_m if tile.rows < tile.block_m else tl.cdiv(rows, tile.block_m)


@tlx_xdsl.jit
def count_jobs(rows, tiles_n, tile: tl.constexpr):
    """Jobs of a group: its tiles, and pairs of tiles of the rows that are left."""
    tiles_m = rows_of_tiles(rows, tile)
    return tiles_m * tiles_n + tl.where(rows > tiles_m * tile.block_m, tl.cdiv(tiles_n, 2), 0)


@tlx_xdsl.jit
def seek(job, place, groups, tile: tl.constexpr):
    """The place of the group that has `job`, from that of an earlier one on: group, first job, first row, end.

    The group is `groups.count` when all jobs come before.
    """
    group, first, start, end = place
    jobs = count_jobs(end - start, groups.tiles_n, tile)
    while (group < groups.count) & (job >= first + jobs):
        group += 1
        first += jobs
        start = end
        end = group_end(groups, group, start)
        jobs = count_jobs(end - start, groups.tiles_n, tile)
    return group, first, start, end


@tlx_xdsl.jit
def first_shared(groups, tile: tl.constexpr):
    """The first job of the last round, if that has jobs for half of the programs at most; else the number of jobs.

    Whatever it is, all jobs are computed, so offsets that fall do no harm.
    """
    jobs = 0
    for first in range(0, groups.count, LANES):
        some = first + tl.arange(0, LANES)
        ends = tl.load(groups.offsets + some, mask=some < groups.count, other=0)
        starts = tl.load(groups.offsets + some - 1, mask=(some > 0) & (some < groups.count), other=0)
        jobs += tl.sum(count_jobs(tl.maximum(tl.minimum(ends, groups.rows) - starts, 0), groups.tiles_n, tile))
    rest = jobs % tl.num_programs(0)
    return tl.where(rest * 2 <= tl.num_programs(0), jobs - rest, jobs)


@tlx_xdsl.jit
def job_of(index, shared):
    """The job of an index: from `shared` on two indices have one job together."""
    return index - (tl.maximum(index - shared, 0) + 1) // 2


@tlx_xdsl.jit
def tiles_of_job(index, shared, place, tiles_n, N, tile: tl.constexpr):
    """First row and column of what an index has to compute, their ends, and how many tiles side by side there are.

    Where a first one is not before its end, there is nothing.
    """
    _, first, start, end = place
    tiles_m = rows_of_tiles(end - start, tile)
    in_group = job_of(index, shared) - first
    pair = in_group - tiles_m * tiles_n
    in_tiles = tl.where(pair < 0, in_group, 0)
    row, off_n = tile_in_group(
        in_tiles, tl.maximum(tiles_m, 1) * tile.block_m, tiles_n, tile.block_m, tile.block_n, tile.group_m
    )
    half = tl.maximum(index - shared, 0) % 2
    off_m = start + tl.where(pair < 0, row, tiles_m * tile.block_m)
    if tile.b_parts == 2:  # there are no pairs
        off_n += half * tile.columns
        return off_m, off_n, end, tl.where(index < shared, N, min(N, off_n + tile.columns)), 1
    off_n = tl.where(pair < 0, off_n, (2 * pair + half) * tile.block_n)
    off_m += tl.where(pair < 0, half * tile.rows, 0)
    end_m = tl.where(index < shared, end, min(end, off_m + tile.rows))
    return off_m, off_n, end_m, N, tl.where((pair < 0) | (index >= shared), 1, 2)
