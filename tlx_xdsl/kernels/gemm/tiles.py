"""Tiles and schedules of a GEMM: `GemmConfig`, and `CONFIGS`, all that `config` chooses from.

Why these tiles. Large ones read the fewest bytes for a product. With a short K the epilogue is a large part of the
work, and ping-pong overlaps it with the other consumer's MMAs. Columns in two strips (192 = 128 + 64) fill the last
round where powers of two leave it nearly empty. 16 to 64 columns, and 64 rows, are for products with few rows or
columns, which compute C^T = B^T A^T where that makes the long side the rows of the tensor cores' 64. Clusters of two
or four load tiles of B once for all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

Schedule = Literal["cooperative", "pingpong"]

SHARED_BYTES = 232448
"""Shared memory that a thread block can have on compute capability 9.0 (CUDA C++ Programming Guide)."""

BARRIER_BYTES = 1024
"""What is kept of it for mbarriers and what Triton adds."""

LEAST_RING = 128 << 10
"""Bytes of tiles of A and B in shared memory with which loads still hide; with 120 KiB and less launches took 1.15 to
1.3 times as long (H200, 2026-11-23)."""


class Tile:
    """Extents and sizes that follow from the fields of a tile of C, of block_m x block_n.

    The consumers of a cooperative tile have parts of its rows each, or of its columns.
    """

    schedule: Schedule
    block_m: int
    block_n: int
    block_k: int
    stages: int
    subtiles: int
    buffers: int
    consumers: int = 2
    cluster: int = 1

    @property
    def b_parts(self) -> int:
        """Blocks of a strip of B in a stage: one for each consumer that has columns of its own."""
        return 1

    @property
    def parts(self) -> int:
        """Blocks of A in a stage: one for each consumer that has rows of its own."""
        return self.consumers // self.b_parts if self.schedule == "cooperative" else 1

    @property
    def rows(self) -> int:
        """Rows of a consumer, which are those of a copy of A and C."""
        return self.block_m // self.parts

    @property
    def columns(self) -> int:
        """Columns of a consumer, but for those of a second strip."""
        return self.block_n // self.b_parts

    @property
    def part_n(self) -> int:
        """Columns that a consumer stores at a time."""
        return self.columns // self.subtiles

    @property
    def tile_n(self) -> int:
        """Columns of a tile of C, where it is not made of two halves of B."""
        return self.block_n

    @property
    def elements(self) -> int:
        """Elements of A and B in a stage."""
        return (self.block_m + self.tile_n) * self.block_k

    @property
    def stage_bytes(self) -> int:
        """Bytes of the tiles of A and B of a step, of elements of 2 bytes."""
        return self.elements * 2

    def shared_bytes(self) -> int:
        """Bytes of shared memory for the tiles, of elements of 2 bytes."""
        return self.stages * self.stage_bytes + self.consumers * self.buffers * self.rows * self.part_n * 2


@dataclass(frozen=True)
class GemmConfig(Tile):
    """A tile of C of block_m x (block_n + tail_n), products of block_k columns of A, and who computes what.

    `stages` are tiles of A and B in shared memory, `subtiles` the parts in which the epilogue stores the columns
    block_n, of `part_n` columns each, `buffers` what a consumer has for them, `group_m` the tiles along M whose order
    is such that neighbours share tiles of B. `tail_n` are the columns of a second strip, `consumers` the warp groups
    that multiply, and `cluster` the CTAs that share their loads of B. See `persistent`.
    """

    schedule: Schedule
    block_m: int
    block_n: int
    block_k: int
    stages: int
    subtiles: int
    buffers: int = 1
    group_m: int = 8
    tail_n: int = 0
    consumers: int = 2
    cluster: int = 1

    @property
    def shared_m(self) -> int:
        """Rows of the tiles of a cluster."""
        return self.block_m * self.cluster

    @property
    def tile_n(self) -> int:
        """Columns of a tile of C, where it is not made of two halves of B."""
        return self.block_n + self.tail_n

    @property
    def strips(self) -> tuple[int, ...]:
        """Columns of each strip of a tile."""
        return (self.block_n, self.tail_n) if self.tail_n else (self.block_n,)

    def tiles(self, m: int, n: int) -> int:
        """Tiles of C, those of a cluster counted as one."""
        return -(-m // self.shared_m) * -(-n // self.tile_n)


@dataclass(frozen=True)
class Form:
    """Constants of a product's kernel: its tile, the orders of memory, and the end of a tile (`epilogue`).

    `tile` is a `GemmConfig`, or that of another kernel which has its properties. `a_columns`, `b_columns` and
    `c_columns` say that a matrix lies column by column.
    """

    tile: Any
    a_columns: bool = False
    b_columns: bool = False
    c_columns: bool = False
    turned: bool = False
    paired: bool = False
    epilogue: Any = None
    reduce: str = ""


def _cooperative(block_n: int, tail_n: int, stages: int, part_n: int, buffers: int, **more: int) -> GemmConfig:
    settings = {"block_m": 128, "block_k": 64, **more}
    return GemmConfig(
        "cooperative", block_n=block_n, tail_n=tail_n, stages=stages, subtiles=block_n // part_n, buffers=buffers,
        **settings,
    )  # fmt: skip


LARGE = _cooperative(256, 0, 3, 128, 2)
MEDIUM = GemmConfig("pingpong", 128, 128, 64, stages=6, subtiles=2)
SMALL = GemmConfig("pingpong", 64, 128, 64, stages=8, subtiles=1)
TINY = GemmConfig("pingpong", 64, 64, 128, stages=6, subtiles=1)


_ALONE = {
    # Columns of both strips, stages, columns of a part, buffers.
    "320": _cooperative(256, 64, 3, 64, 2),
    "288": _cooperative(256, 32, 3, 32, 3),
    "272": _cooperative(256, 16, 3, 16, 6),
    "large": LARGE,
    "192": _cooperative(128, 64, 4, 64, 3),
    "160": _cooperative(128, 32, 5, 32, 3),
    "144": _cooperative(128, 16, 5, 16, 9),
    "128": _cooperative(128, 0, 5, 64, 2),
    "96": _cooperative(64, 32, 3, 32, 3, block_k=128),
    "64": _cooperative(64, 0, 4, 64, 1, block_k=128),
    "32": _cooperative(32, 0, 5, 32, 1, block_k=128),
    "16": _cooperative(16, 0, 5, 16, 1, block_k=128),
    "192x192": _cooperative(128, 64, 3, 64, 3, block_m=192, consumers=3),
    "192x128": _cooperative(128, 0, 4, 64, 2, block_m=192, consumers=3),
    "192x96": _cooperative(64, 32, 5, 32, 3, block_m=192, consumers=3),
    "64x256": _cooperative(256, 0, 5, 64, 2, block_m=64, consumers=1),
    "64x192": _cooperative(128, 64, 6, 64, 2, block_m=64, consumers=1),
    "64x160": _cooperative(128, 32, 7, 32, 2, block_m=64, consumers=1),
    "64x128": _cooperative(128, 0, 4, 64, 2, block_m=64, block_k=128, consumers=1),
    "64x96": _cooperative(64, 32, 5, 32, 2, block_m=64, block_k=128, consumers=1),
    "64x64": _cooperative(64, 0, 6, 64, 1, block_m=64, block_k=128, consumers=1),
    "64x32": _cooperative(32, 0, 8, 32, 1, block_m=64, block_k=128, consumers=1),
    "64x16": _cooperative(16, 0, 10, 16, 1, block_m=64, block_k=128, consumers=1),
}

_DEEP: dict[str, dict[str, int]] = {
    "320": {},
    "large": {"stages": 4, "subtiles": 4, "buffers": 1},
    "192": {"stages": 5, "buffers": 1},
    "272": {"stages": 4, "buffers": 4},
    "160": {"stages": 6, "buffers": 1},
    "144": {"stages": 6, "buffers": 3},
    "128": {"stages": 6, "buffers": 1},
    "96": {},
    "64": {},
    "192x192": {"stages": 4, "buffers": 1},
    "192x128": {"stages": 5, "buffers": 1},
    "192x96": {"stages": 5},
    "64x256": {},
    "64x192": {},
    "64x128": {},
}
"""Configurations that also come in clusters of two CTAs, for problems that are limited by their loads: with stages
rather than buffers."""

_FOUR = ("large", "192", "160", "144")
"""Those that also come in clusters of four."""

CONFIGS = {
    **_ALONE,
    "medium": MEDIUM,
    "small": SMALL,
    "tiny": TINY,
    **{f"{name} by 2": replace(_ALONE[name], cluster=2, **changes) for name, changes in _DEEP.items()},
    **{f"{name} by 4": replace(_ALONE[name], cluster=4, **_DEEP[name]) for name in _FOUR},
}
"""All that `gemm_config.choose` gives, by name."""


def fit_output(config: GemmConfig, element_bytes: int) -> GemmConfig:
    """The configuration for elements of C of so many bytes: the same buffers hold half as many columns of f32."""
    return config if element_bytes == 2 else replace(config, subtiles=config.subtiles * element_bytes // 2)


def for_sums(config: GemmConfig) -> GemmConfig:
    """The configuration for a product some of whose tiles are stored as f32 sums.

    With a buffer for each part of them none waits for another's store; stages make way, where four are left.
    """
    buffers = 2 * config.tile_n // config.part_n
    for stages in range(config.stages, 3, -1):
        changed = replace(config, buffers=buffers, stages=stages)
        if changed.shared_bytes() + BARRIER_BYTES <= SHARED_BYTES:
            return changed
    return config


def received_bytes(config: GemmConfig, split: int) -> int:
    """Shared memory for the sums that a CTA of so many receives: those of its parts of the tile, from each of them."""
    own = -(-config.tile_n // config.part_n // split)
    return own * split * config.block_m * config.part_n * 4


@cache
def for_split(config: GemmConfig, split: int, element_bytes: int = 4) -> GemmConfig | None:
    """The configuration for clusters of so many CTAs that share a tile along K; None where loads have too little left,
    and for ping-pong and clusters that share B.

    The parts are as wide as they can be where the CTA with most columns has the fewest, and each has a buffer.
    """
    if config.schedule != "cooperative" or config.cluster > 1:
        return None
    least = min(config.strips)
    widths = [width for width in (64, 32, 16, 8) if least % width == 0]
    part_n = min(widths, key=lambda width: -(-config.tile_n // width // split) * width)
    parts = -(-config.tile_n // part_n // split)
    changed = replace(config, subtiles=config.block_n // part_n, buffers=parts)
    room = SHARED_BYTES - BARRIER_BYTES - received_bytes(changed, split)
    room -= parts * config.block_m * part_n * element_bytes
    stages = min(config.stages, room // config.stage_bytes)
    least_ring = min(LEAST_RING, config.stages * config.stage_bytes)
    return replace(changed, stages=stages) if stages * config.stage_bytes >= least_ring else None
