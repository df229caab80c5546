"""Division of a GEMM's tiles among programs: whole ones, parts along K, and parts that a cluster adds up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .tiles import CONFIGS, GemmConfig, for_split

_CLUSTERS = {1: 132, 2: 66, 3: 39, 4: 30, 5: 22, 6: 17, 7: 15, 8: 15}
"""Clusters of so many CTAs that 132 multiprocessors run at once, where each CTA takes all of a multiprocessor.

A cluster lies in one graphics processing cluster, and those have different numbers of multiprocessors. Asked of an H200
(2026-11-23, `cuOccupancyMaxActiveClusters`); where another one has fewer, the last clusters wait.
"""


_FEW = 160
"""Tiles of a narrow configuration in about one round; more of them would be larger tiles' work."""


@dataclass(frozen=True)
class Choice:
    """A configuration and how the work is divided.

    `swapped` computes C^T = B^T A^T. `programs` (clusters, where CTAs share tiles) share `full_rounds` rounds of whole
    tiles; of the other tiles' steps along K each program takes `share` in a row (0: none is left, tiles are dealt out
    whole). With `split` above 1 each tile has a cluster of so many CTAs, each of which takes `share` of its steps.
    """

    config: GemmConfig
    programs: int
    swapped: bool = False
    full_rounds: int = 0
    share: int = 0
    split: int = 1

    @property
    def streamed(self) -> bool:
        """Return whether a second kernel adds up pieces of tiles."""
        return self.share > 0 and self.split == 1

    @property
    def ctas(self) -> int:
        """Thread blocks of the product."""
        return self.programs * self.config.cluster * self.split

    def rest(self, tiles: int) -> int:
        """Return how many of so many tiles are not dealt out whole."""
        return tiles - self.full_rounds * self.programs if self.share else 0

    def steps(self, tiles: int, num_k: int) -> int:
        """The steps of a tile in the sequence that programs share; some are past K where parts end with their tiles."""
        parts = -(-num_k // self.share)
        return parts * self.share if self.rest(tiles) * parts <= self.programs else num_k


def candidates(m: int, n: int, k: int, multiprocessors: int = 132) -> Iterator[Choice]:
    """All ways to compute C (m x n) = A (m x k) @ B (k x n) on a GPU with so many multiprocessors."""
    for config, swapped in orientations(m, n):
        rows, columns = (n, m) if swapped else (m, n)
        yield from divisions(config, rows, columns, k, multiprocessors, swapped)


def orientations(m: int, n: int) -> Iterator[tuple[GemmConfig, bool]]:
    """The configurations for C (m x n), and for its transpose, but those that are far from the best."""
    for config in CONFIGS.values():
        for swapped in (False, True):
            rows, columns = (n, m) if swapped else (m, n)
            if swapped and config.schedule == "pingpong":
                continue  # as the cooperative one, which is there for both
            narrow = config.tile_n <= 64 and config.tile_n < columns // 8
            if (narrow and config.tiles(rows, columns) > _FEW) or config.tile_n >= max(2 * columns, 32):
                continue
            yield config, swapped


def divisions(
    config: GemmConfig, m: int, n: int, k: int, multiprocessors: int, swapped: bool = False
) -> Iterator[Choice]:
    """The ways to divide the tiles of C (m x n) among programs: whole ones, and those of the last round along K."""
    tiles = config.tiles(m, n)
    programs = clusters_on(multiprocessors, config.cluster)
    if not programs:
        return
    yield Choice(config, min(tiles, programs), swapped)
    if config.schedule != "cooperative":
        return
    full_rounds, rest = divmod(tiles, programs)
    num_k = -(-k // config.block_k)
    if not rest or num_k < 2:
        return
    share = -(-rest * num_k // programs)
    needed = {share: -(-rest * num_k // share)}
    parts = min(programs // rest, num_k)
    for each in (parts, parts // 2):
        if each > 1:
            share = -(-num_k // each)
            needed[share] = rest * -(-num_k // share)
    for share in sorted(needed):
        if share < num_k:
            yield Choice(config, programs if full_rounds else needed[share], swapped, full_rounds, share)
    if full_rounds == 0:
        yield from _splits(config, tiles, num_k, multiprocessors, swapped)


def _splits(config: GemmConfig, tiles: int, num_k: int, multiprocessors: int, swapped: bool) -> Iterator[Choice]:
    """The most CTAs for each tile that run at once, and half of them."""
    most = max(size for size in _CLUSTERS if size == 1 or tiles <= clusters_on(multiprocessors, size))
    for split in sorted({most, most // 2}):
        if split > 1 and for_split(config, split) is not None:
            share = -(-num_k // split)
            if (split - 1) * share < num_k:
                yield Choice(config, tiles, swapped, 0, share, split)


def covers(choice: Choice, m: int, n: int, k: int) -> bool:
    """Return whether the programs of a choice compute all tiles of C (m x n), each step along K once."""
    if choice.swapped:
        m, n = n, m
    tiles = choice.config.tiles(m, n)
    num_k = -(-k // choice.config.block_k)
    if choice.config.cluster not in _CLUSTERS:
        return False
    if choice.split > 1:
        fits = choice.split in _CLUSTERS and for_split(choice.config, choice.split) is not None
        return fits and choice.programs == tiles and 0 < num_k - (choice.split - 1) * choice.share <= choice.share
    if not choice.streamed:
        return choice.programs > 0
    return 0 < choice.rest(tiles) * num_k <= choice.programs * choice.share


def clusters_on(multiprocessors: int, size: int) -> int:
    """Clusters of so many CTAs that run at once."""
    return multiprocessors * _CLUSTERS[size] // _CLUSTERS[1]


def whole(config: GemmConfig, m: int, n: int, multiprocessors: int) -> Choice:
    """A choice of this configuration whose tiles are dealt out whole. Raises ValueError for clusters that can't run."""
    if (size := config.cluster) not in _CLUSTERS:
        raise ValueError(f"gemm: argument 'config': expected clusters of 1 to {max(_CLUSTERS)} CTAs, got {size}")
    return Choice(config, min(config.tiles(m, n), max(clusters_on(multiprocessors, size), 1)))
