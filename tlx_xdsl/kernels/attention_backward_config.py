"""The tiles of attention's backward pass: one configuration for each head dimension.

A consumer holds f32 sums in registers while it goes over the queries: S^T and dP^T of 64 keys and `block_m` queries, dK
and dV of 64 keys and a head's elements, which is block_m + head dim registers of each thread. Of its 240, both
configurations take 192. dQ takes the place of dP.
"""

from __future__ import annotations

from dataclasses import dataclass

WIDTHS = (64, 128)
"""Columns of the blocks of a head: the kernels fill it with zeros up to the next of these."""

CONSUMER_KEYS = 64
"""Keys of a consumer: the rows of one wgmma."""


@dataclass(frozen=True)
class BackwardConfig:
    """Tiles of 64 keys for each of so many consumers, with so many registers per thread, and blocks of queries.

    `stages` are blocks of Q and dO in shared memory.
    """

    block_m: int
    consumers: int = 2
    registers: int = 240
    stages: int = 2

    @property
    def block_n(self) -> int:
        """Keys of a tile."""
        return self.consumers * CONSUMER_KEYS


def width_of(dim: int, v_dim: int) -> int:
    """Columns of the blocks of heads of `dim` elements, of V `v_dim`. Raises ValueError for heads that are too long."""
    longest = max(dim, v_dim)
    if longest > WIDTHS[-1]:
        raise ValueError(f"expected heads of at most {WIDTHS[-1]} elements, got {longest}")
    return next(width for width in WIDTHS if longest <= width)


def choose_config(dim: int, v_dim: int | None = None) -> BackwardConfig:
    """The configuration for heads of `dim` elements, of V `v_dim`. Raises ValueError for heads that are too long."""
    return BackwardConfig(64 if width_of(dim, v_dim or dim) == 128 else 128)
