"""The tile of a product of several ranks."""

from __future__ import annotations

from dataclasses import dataclass

from ..gemm.tiles import GemmConfig


@dataclass(frozen=True)
class ProductConfig:
    """A tile of block_m x block_n, in steps of block_k columns of A, of which `stages` are in shared memory.

    Its columns leave in parts of `part_n`, through `buffers` of each of the `consumers`; `group_m` tiles along M go
    together. All but `group_m` and `stages` are powers of two; a consumer has 64 rows.
    """

    block_m: int = 128
    block_n: int = 256
    block_k: int = 64
    stages: int = 3
    part_n: int = 64
    buffers: int = 4
    group_m: int = 8
    consumers: int = 2
    pingpong: bool = False
    """Whether each of two consumers has tiles of its own (`gemm_reduce_scatter`)."""
    chunk: int | None = None
    """Columns of A that are sent at a time, a power of two (`all_gather_gemm`), or None: chosen."""
    pieces: int | None = None
    """Pieces of a tile's rows, which are sent and signalled one by one (`all_gather_gemm`), or None: chosen."""

    @property
    def tile(self) -> GemmConfig:
        """The tile as products of one GPU have it."""
        return GemmConfig(
            "pingpong" if self.pingpong else "cooperative", self.block_m, self.block_n, self.block_k, self.stages,
            self.block_n // self.part_n, self.buffers, self.group_m, consumers=self.consumers,
        )  # fmt: skip
