"""The tile and the schedule of a product of 8-bit floats, by a small model of the time; the same for the same shape.

A multiprocessor multiplies 8-bit elements at twice the speed of 16-bit ones, and a step along K has twice as many: 128.
So steps take the times of `gemm/config` and read the same bytes, but there are half as many: ends of tiles weigh more.

Registers limit tiles with sums per step ("exact"): a thread of a consumer of 64 x 256 holds 128 sums, and those of a
step in two strips of 128 columns, one after the other: 64 registers more. In ping-pong the tensor cores would be idle
during additions (`pingpong`), so cooperative tiles of 128 x 128 take its place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Literal

from ..tiles import SHARED_BYTES, Schedule, Tile

Scaling = Literal["tensors", "rows", "blocks"]
"""What has a scale: an operand, a row or column, or a block."""

Sums = Literal["fast", "exact", "blocks"]
"""What is a sum of the tensor cores: all along K, a step, or a step that is then multiplied by scales of blocks."""

STEP = 128
"""Columns of A in a step, of one byte each: a row of swizzled shared memory. And the side of a block with one scale."""

LINE = 32
"""Scales of B that one copy brings, though one is read: 128 bytes, to multiples of which TMA writes."""

OTHER_BYTES = 3072
"""Shared memory for barriers, and for what Triton moves between threads."""


@dataclass(frozen=True)
class ScaledConfig(Tile):
    """A tile of C of block_m x block_n, and who computes what (`device`).

    `stages` are tiles of A and B in shared memory; `subtiles` the strips of a consumer's columns, which are computed
    one after the other where sums are exact, and stored one after the other; `buffers` what a consumer has for these
    stores (1 or `subtiles`); `group_m` the tiles along M whose order is such that neighbours share tiles of B. The
    consumers of a cooperative tile have halves of its rows, with `split_columns` of its columns; with `turns` they
    issue exact sums in turns (`exact`).
    """

    schedule: Schedule
    block_m: int
    block_n: int
    stages: int
    subtiles: int = 1
    buffers: int = 1
    group_m: int = 8
    split_columns: bool = False
    turns: bool = False
    block_k = STEP

    @property
    def b_parts(self) -> int:
        """Blocks of columns of B in a stage, of all columns of a consumer."""
        return 2 if self.split_columns else 1

    def bytes_of_stage(self, sums: Sums) -> int:
        """Bytes of shared memory of a stage: tiles of A and B, and a step's scales of blocks."""
        scales = 4 * (self.block_m + -(-self.block_n // STEP) * LINE) if sums == "blocks" else 0
        return self.elements + scales

    def bytes_of(self, out_bytes: int, sums: Sums) -> int:
        """Bytes of shared memory where an element of C has so many bytes; without barriers."""
        return self.stages * self.bytes_of_stage(sums) + 2 * self.buffers * self.rows * self.part_n * out_bytes

    def fitted(self, out_bytes: int, sums: Sums) -> ScaledConfig:
        """The same with what fits: one buffer for stores of elements of 4 bytes, and fewer stages."""
        config = replace(self, buffers=1) if out_bytes > 2 else self
        stage = config.bytes_of_stage(sums)
        room = SHARED_BYTES - OTHER_BYTES - (config.bytes_of(out_bytes, sums) - config.stages * stage)
        return replace(config, stages=min(config.stages, room // stage))

    def tiles(self, m: int, n: int) -> tuple[int, int]:
        """Tiles of C along M and along N."""
        return -(-m // self.block_m), -(-n // self.block_n)


@dataclass(frozen=True)
class ScaledForm:
    """Constants of a scaled product: its tile, what consumers do with it (`device`), and what has a scale.

    With `staged` the producer loads scales of blocks. With weights alone, `columns_per_scale` of B have one.
    """

    tile: ScaledConfig
    kind: Literal["fast", "exact", "mixed"]
    scaling: Scaling
    staged: bool = False
    columns_per_scale: int = 1
    a_columns = False
    b_columns = True

    @property
    def strips(self) -> int:
        """Strips of a consumer's columns, each of which has its own products."""
        return self.tile.subtiles if self.kind == "exact" else 1

    @property
    def turns(self) -> bool:
        """Return whether consumers issue sums in turns."""
        return self.kind == "exact" and self.tile.turns

    @property
    def blocks(self) -> int:
        """Blocks of columns of a tile that have a scale each."""
        return -(-self.tile.block_n // STEP)


CONFIGS = {
    "large": ScaledConfig("cooperative", 128, 256, stages=4, subtiles=2),
    "buffered": ScaledConfig("cooperative", 128, 256, stages=3, subtiles=2, buffers=2),
    "turns": ScaledConfig("cooperative", 128, 256, stages=3, subtiles=2, buffers=2, turns=True),
    "medium": ScaledConfig("cooperative", 128, 128, stages=6),
    "pingpong": ScaledConfig("pingpong", 128, 128, stages=6, subtiles=2),
    "small": ScaledConfig("cooperative", 128, 64, stages=8),
    "flat": ScaledConfig("cooperative", 64, 128, stages=8, split_columns=True),
    "wide": ScaledConfig("cooperative", 64, 256, stages=4, split_columns=True),
    # For sums per step: 3 to 4 % faster than with 4 stages (64 x 24576 x 1536 on an H200).
    "wide 3": ScaledConfig("cooperative", 64, 256, stages=3, split_columns=True),
}
"""All that `choose_config` gives, by name."""

TIMES: dict[Sums, dict[str, tuple[float, float]]] = {
    "fast": {
        "large": (0.649, 1.66),
        "pingpong": (0.343, 2.33),
        "small": (0.20, 1.4),
        "flat": (0.20, 1.4),
        "wide": (0.36, 1.5),
    },
    "exact": {
        "buffered": (0.69, 1.3),
        "medium": (0.36, 1.1),
        "small": (0.21, 0.9),
        "flat": (0.21, 0.9),
        "wide 3": (0.37, 1.1),
    },
    "blocks": {
        "turns": (0.665, 1.3),
        "medium": (0.37, 1.1),
        "small": (0.215, 0.9),
        "flat": (0.215, 0.9),
        "wide 3": (0.38, 1.1),
    },
}
"""Microseconds of a step of one tile, and of the end of a tile; the ends of ping-pong overlap with the other consumer's
steps, but for the last one. With sums per step, the first strip of the last step is stored during the second one. They
are those of `gemm/config`, with 2 to 10 % for additions."""

WEIGHT_COLUMNS = 128
"""Columns of a tile of C with weights alone: 64 for each consumer, the rows of one wgmma."""

_WEIGHT_BYTES = WEIGHT_COLUMNS * STEP * 2
"""Shared memory through which converted weights get to the threads that multiply them."""

_ROWS = (16, 32, 64, 128)
"""Rows of tiles of C with weights alone."""

MEMORY_BYTES = 3.65e6
"""Bytes that an H200 reads from its memory in a microsecond."""

OVERLAP = 0.3
"""The part of the shorter of two times, to compute and to read, that the longer one does not hide: an estimate of its
own, less than what was fitted to products of 16 bits (`gemm_model.Model.overlap`)."""


def predict(name: str, m: int, n: int, k: int, sums: Sums, multiprocessors: int) -> float:
    """Microseconds in which each multiprocessor computes one tile after the other, in rounds."""
    config, (step, end) = CONFIGS[name], TIMES[sums][name]
    rounds = -(-prod(config.tiles(m, n)) // multiprocessors)
    ends = rounds if config.schedule == "cooperative" else 1
    busy = rounds * -(-k // STEP) * step + ends * end
    reading = (m * k + k * n + 2 * m * n) / MEMORY_BYTES
    return max(busy, reading) + OVERLAP * min(busy, reading)


@lru_cache(maxsize=4096)
def choose_config(m: int, n: int, k: int, sums: Sums, out_bytes: int = 2, multiprocessors: int = 132) -> ScaledConfig:
    """The configuration that should be done first, for C (m x n) of elements of so many bytes and A (m x k)."""
    best = min(TIMES[sums], key=lambda name: predict(name, m, n, k, sums, multiprocessors))
    return CONFIGS[best].fitted(out_bytes, sums)


def mixed_config(m: int, out_bytes: int) -> ScaledConfig:
    """The tile for C with so many rows and bytes of an element: the fewest rows that hold all, with 2 to 8 stages."""
    block_m = next((rows for rows in _ROWS if rows >= m), _ROWS[-1])
    room = SHARED_BYTES - OTHER_BYTES - _WEIGHT_BYTES - block_m * WEIGHT_COLUMNS * out_bytes
    stages = min(8, room // ((2 * block_m + WEIGHT_COLUMNS) * STEP))
    return ScaledConfig("cooperative", block_m, WEIGHT_COLUMNS, stages, split_columns=True)
