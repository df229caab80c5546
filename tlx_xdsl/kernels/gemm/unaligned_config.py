"""Choice of how to multiply matrices that TMA can't read: by copies around the product by TMA, or directly.

A model of the time decides, so the same shapes and strides always run the same kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Placement:
    """Order and alignment of a matrix in memory.

    `columns`: neighbours in a column lie closer than those in a row. `dense`: they lie side by side. `vector`: so many
    of them (1, or those in 16 bytes) are aligned, wherever one starts. `tma`: TMA can read and write it.
    """

    columns: bool = False
    dense: bool = True
    vector: int = 1
    tma: bool = False


@dataclass(frozen=True)
class Costs:
    """Constants of the rule for an H200, estimated from its figures (not fitted): microseconds, bytes a microsecond."""

    launch: float = 3.0
    """From a launch to the first load, and from the last store to the end."""
    next_launch: float = 2.2
    """The same of a kernel that follows another one."""
    reduction: float = 1.5
    """The same of `add_splits`, which is launched before the product has ended."""
    added: float = 0.05
    """Of adding one more matrix of sums, however small it is."""
    copied: float = 3.2e6
    """Bytes that a copy reads and writes."""
    loaded: float = 3.3e6
    """Bytes of a direct product's steps, from the memory or the L2 cache, by all multiprocessors."""
    step: float = 1.0
    """Of a step of K, however few bytes it has: the latency of the memory."""
    sums: float = 3.0e6
    """Bytes of f32 sums that are written or read."""


COSTS = Costs()

RESIDENT = {16: 3, 32: 2, 64: 2}
"""Programs of `gemm_direct` that a multiprocessor holds, by BLOCK_N: what their registers leave room for."""


@dataclass(frozen=True)
class Direct:
    """Plan of `gemm_direct` for a product of (m, n): tiles of C (of its transpose if `swapped`), programs along K."""

    block_m: int
    block_n: int
    block_k: int
    splits: int
    steps: int
    swapped: bool
    tiles: tuple[int, int]

    @property
    def partial_bytes(self) -> int:
        """Memory for the sums of the programs along K; none where there is one for each tile."""
        return 4 * self.part_rows * self.part_columns * self.splits if self.splits > 1 else 0

    @property
    def part_rows(self) -> int:
        """Rows of such a matrix of sums."""
        return self.tiles[0] * self.block_m

    @property
    def part_columns(self) -> int:
        """Columns of it."""
        return self.tiles[1] * self.block_n


@dataclass(frozen=True)
class UnalignedPlan:
    """Launches of a product: `direct`, or the named copies around the product by TMA; and the time expected."""

    microseconds: float
    direct: Direct | None = None
    copies: frozenset[str] = frozenset()


def plan_unaligned(
    m: int, n: int, k: int, left: Placement, right: Placement, target: Placement, multiprocessors: int,
    predict: Callable[[int, int, int], float], *, stores_anywhere: bool = True, element_bytes: int = 2,
) -> UnalignedPlan:  # fmt: skip
    """The way that should be done first, for C (m x n) = A (m x k) @ B (k x n).

    `predict` gives the microseconds of the product by TMA. `stores_anywhere` says that its kernels write any C; else
    one that TMA can't write goes through a copy.
    """
    matrices = {"left": (left, m * k), "right": (right, k * n)}
    if not stores_anywhere:
        matrices["target"] = (target, m * n)
    copied = {name: size for name, (where, size) in matrices.items() if not where.tma}
    moved = 2 * element_bytes * sum(copied.values()) / COSTS.copied
    # The factors are copied in one launch.
    moved += COSTS.next_launch * (("left" in copied or "right" in copied) + ("target" in copied))
    repacked = UnalignedPlan(predict(m, n, k) + moved, copies=frozenset(copied))
    direct = min(_directs(m, n, k, left, right, multiprocessors, element_bytes), key=lambda each: each.microseconds)
    return min(direct, repacked, key=lambda each: each.microseconds)


def _directs(
    m: int, n: int, k: int, left: Placement, right: Placement, multiprocessors: int, element_bytes: int
) -> Iterator[UnalignedPlan]:
    swapped = n > m
    rows, columns = (n, m) if swapped else (m, n)
    by_columns = not right.columns if swapped else left.columns
    for block_n, resident in RESIDENT.items():
        # Lines of memory that begin anywhere are read twice at each end: what lies in a row of a tile should be long.
        block_m, block_k = (64, 128) if block_n < 64 and not by_columns else (128 if block_n < 64 else 64, 64)
        tiles = (-(-rows // block_m), -(-columns // block_n))
        all_steps = -(-k // block_k)
        at_once = resident * multiprocessors
        step_bytes = element_bytes * (block_m + block_n) * block_k
        for wanted in {1, min(-(-at_once // prod(tiles)), all_steps), min(max(at_once // prod(tiles), 1), all_steps)}:
            steps = -(-all_steps // wanted)
            direct = Direct(block_m, block_n, block_k, -(-all_steps // steps), steps, swapped, tiles)
            programs = prod(tiles) * direct.splits
            busy = min(programs, at_once)
            time = COSTS.launch + -(-programs // busy) * (1 + steps) * max(COSTS.step, busy * step_bytes / COSTS.loaded)
            if direct.splits > 1:
                time += COSTS.reduction + COSTS.added * direct.splits + 2 * direct.partial_bytes / COSTS.sums
            yield UnalignedPlan(time, direct)
