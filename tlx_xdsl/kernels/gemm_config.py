"""The tile and the schedule of a GEMM, by a small model of the time; the same for the same shape.

The tiles are those that won on an H200 (SXM, 700 W, 132 multiprocessors; Triton 3.6.0; fp16; 2026-11-20; cool clock,
TFLOP/s; text of the form that this package's kernels become):

| M x N x K | cooperative 128x256x64 | ping-pong 128x128x64 | cuBLAS |
|---|---|---|---|
| 4096 x 4096 x 4096 | 757 (4 stages, 2 subtiles) | 738 * | 761 |
| 8192 x 8192 x 8192 | 771 (3 stages, 1 subtile) | 712 * | 761 |
| 8192 x 8192 x 512 | 641 (4 stages, 2 subtiles) | 671 | 616 |

Of 128x256x64, as parts of cuBLAS's speed, in one run for each problem (2026-11-22; stages, subtiles, buffers):

| M x N x K | 3, 2, 2 | 3, 2, 1 | 3, 1, 1 | 4, 2, 1 |
|---|---|---|---|---|
| 4096 x 14336 x 4096 | 0.999 | 0.995 | 0.995 | 0.987 |
| 8192 x 8192 x 8192 | 1.013 | 1.013 | 1.009 | |
| 8192 x 8192 x 512 | 1.023 | 1.006 | 0.978 | |

Ping-pong at 8192 x 8192 x 512: 1.091 with 6 stages and 1 buffer, 1.054 with 5 and 2.

(* another compiler's kernel of the same schedule.) Large tiles read the fewest bytes for a product; with a short K the
epilogue is a large part of the work, and ping-pong overlaps it with the other consumer's MMAs. Small tiles do less
in the same time, but come out even where there are few, or where a last round of large ones would leave most
multiprocessors without work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Schedule = Literal["cooperative", "pingpong"]

SHARED_BYTES = 232448
"""Shared memory that a thread block can have on compute capability 9.0 (CUDA C++ Programming Guide)."""


@dataclass(frozen=True)
class GemmConfig:
    """A tile of C of block_m x block_n, products of block_k columns of A, and who computes what (`gemm_device`).

    `stages` are tiles of A and B in shared memory, `subtiles` the parts in which the epilogue stores a tile, `buffers`
    what a consumer has for them (1 or `subtiles`), `group_m` the tiles along M whose order is such that neighbours
    share tiles of B.
    """

    schedule: Schedule
    block_m: int
    block_n: int
    block_k: int
    stages: int
    subtiles: int
    buffers: int = 1
    group_m: int = 8

    @property
    def rows(self) -> int:
        """Rows of a consumer, which are those of a copy of A and C."""
        return self.block_m // 2 if self.schedule == "cooperative" else self.block_m

    @property
    def shared_bytes(self) -> int:
        """Shared memory for 16-bit elements, without the barriers."""
        ring = self.stages * (self.block_m + self.block_n) * self.block_k
        return 2 * (ring + 2 * self.buffers * self.rows * self.block_n // self.subtiles)

    def tiles(self, m: int, n: int) -> int:
        """Tiles of C."""
        return -(-m // self.block_m) * -(-n // self.block_n)


LARGE = GemmConfig("cooperative", 128, 256, 64, stages=3, subtiles=2, buffers=2)
MEDIUM = GemmConfig("pingpong", 128, 128, 64, stages=6, subtiles=2)
SMALL = GemmConfig("pingpong", 64, 128, 64, stages=8, subtiles=1)
TINY = GemmConfig("pingpong", 64, 64, 128, stages=6, subtiles=1)

CONFIGS = {"large": LARGE, "medium": MEDIUM, "small": SMALL, "tiny": TINY}
"""All that `choose_config` gives, by name."""

_STEP_K = 64
"""Columns of A in what the times below call a step."""

_TIMES: tuple[tuple[GemmConfig, float, float], ...] = (
    (LARGE, 0.649, 1.66),
    (MEDIUM, 0.343, 2.33),
    (SMALL, 0.204, 2.67),
    (TINY, 0.150, 1.95),
)
"""Microseconds of a step of one tile, and of the end of a tile; the ends of ping-pong overlap with the other consumer's
steps, but for the last one.

Fitted to 24 problems from 512 x 512 x 512 to 8192 x 8192 x 2048 on an H200 (fp16, Triton 3.6.0, 2026-11-22, each
configuration on each problem): what the rule picks runs at 0.99 of the best of them on average, at 0.90 at worst.
"""


def choose_config(m: int, n: int, k: int, multiprocessors: int = 132) -> GemmConfig:
    """The configuration for C (m x n) = A (m x k) @ B (k x n) on a GPU with so many multiprocessors.

    The one that should be done first, where each multiprocessor computes one tile after the other: tiles are dealt out
    in rounds, and the last one takes as long as the others however few tiles it has.
    """
    steps = -(-k // _STEP_K)

    def microseconds(config: GemmConfig, step: float, end: float) -> float:
        rounds = -(-config.tiles(m, n) // multiprocessors)
        return rounds * steps * step + (rounds if config.schedule == "cooperative" else 1) * end

    return min(_TIMES, key=lambda each: microseconds(*each))[0]
