"""The tile of a grouped GEMM, by a small model of the time that knows the groups' mean size alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..tiles import Tile


@dataclass(frozen=True)
class GroupedConfig(Tile):
    """Tiles of block_m x block_n of a group's result, and products of block_k (`device`).

    `stages`, `subtiles`, `buffers` and `group_m` are those of `gemm_config.GemmConfig`. The two consumers have half of
    a tile's rows each, or half of its columns where it has only the 64 rows of one product.
    """

    block_m: int
    block_n: int
    block_k: int
    stages: int
    subtiles: int
    buffers: int = 1
    group_m: int = 8
    schedule = "cooperative"

    @property
    def b_parts(self) -> int:
        """Blocks of the right operand in a stage."""
        return 2 if self.block_m == 64 else 1

    def of_step(self, factor: int) -> GroupedConfig:
        """The same with steps of so many times the columns."""
        return replace(self, block_k=factor * self.block_k)


LARGE = GroupedConfig(128, 256, 64, stages=3, subtiles=2, buffers=2)
MEDIUM = GroupedConfig(128, 128, 64, stages=6, subtiles=1)
SMALL = GroupedConfig(64, 256, 64, stages=5, subtiles=2)
TINY = GroupedConfig(64, 128, 64, stages=8, subtiles=1)

CONFIGS = {"large": LARGE, "medium": MEDIUM, "small": SMALL, "tiny": TINY}
"""All that `choose_config` gives, by name."""

_STEP_K = 64
"""Columns of x in what the times below call a step."""

_TIMES: tuple[tuple[GroupedConfig, float, float, float], ...] = (
    (LARGE, 0.649, 0.4, 1.66),
    (MEDIUM, 0.343, 0.22, 1.3),
    (SMALL, 0.36, 0.22, 1.2),
    (TINY, 0.204, 0.14, 0.9),
)
"""Microseconds of a step of one tile, of a step that only one of the consumers computes, and of the end of a tile.

Those of LARGE, and of the tiles of MEDIUM and TINY, are `gemm/config`'s for an H200; the others follow from the bytes
of a step at the speed at which these get theirs.
"""


def choose_config(
    groups: int, rows: int, n: int, k: int, multiprocessors: int = 132, *, split: bool = True
) -> GroupedConfig:
    """The configuration for `rows` rows in `groups` groups, times matrices of k x n, on so many multiprocessors.

    The one that should be done first if all groups were of one size. `split` says whether the tiles of 64 rows count.
    """
    steps = -(-k // _STEP_K)
    group_rows = max(rows // groups, 1)

    def microseconds(config: GroupedConfig, step: float, half: float, end: float) -> float:
        columns = -(-n // config.block_n)
        part_m = config.rows
        tiles = (group_rows + part_m - 1) // config.block_m if part_m < config.block_m else -(-group_rows // part_m)
        pairs = -(-columns // 2) if group_rows > tiles * config.block_m else 0
        jobs = tiles * columns + pairs
        mean = (tiles * columns * (steps * step + end) + 2 * pairs * (steps * half + end)) / jobs
        # The jobs of a last round that is not half full are shared.
        rounds, rest = divmod(groups * jobs, multiprocessors)
        last = (steps * half + end if 2 * rest <= multiprocessors else mean) if rest else 0
        return rounds * mean + last

    return min((times for times in _TIMES if split or times[0].b_parts == 1), key=lambda times: microseconds(*times))[0]
