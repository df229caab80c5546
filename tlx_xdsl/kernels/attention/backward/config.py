"""The tiles of attention's backward pass: one configuration for each head dimension.

A consumer holds f32 sums in registers while it goes over the queries: S^T and dP^T of 64 keys and `block_m` queries, dK
and dV of 64 keys and a head's elements, which is block_m + head dim registers of each thread. Of its 240, both
configurations take 192. dQ takes the place of dP.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..config import SHARED_BYTES, Pieces, pieces_of

WIDTHS = (64, 128)
"""Columns of the blocks of a head: the kernels fill it with zeros up to the next of these."""

CONSUMER_KEYS = 64
"""Keys of a consumer: the rows of one wgmma."""


PART = 64
"""Rows and columns of a consumer's part of dQ."""

PIECE = 64
"""Columns of a piece of a longer head (`attention/pieces`)."""

_PIECE_BYTES = CONSUMER_KEYS * PIECE * 2

MOST = 3
"""Stages that more of shared memory than this is not spent on."""


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


@dataclass(frozen=True)
class WideBackwardConfig:
    """Heads of more than 128 elements: `registers` per thread of the two consumers that share 64 keys.

    `stages` are blocks of 64 queries of Q and dO in shared memory, `slots` blocks of 64 keys of V and K while dQ is
    computed.
    """

    registers: int = 240
    stages: int = 2
    slots: int = 3
    consumers = 2
    block_m = CONSUMER_KEYS
    block_n = consumers * CONSUMER_KEYS
    """Queries of a tile of dQ."""


AnyConfig = BackwardConfig | WideBackwardConfig


@dataclass(frozen=True)
class Tiling:
    """Facts that a kernel is compiled for: a configuration, and what it may rest on.

    `qk` are the pieces of heads of Q, K and their gradients, `v` those of V, dV and dO. `even`: the keys fill whole
    tiles, or those after the end are hidden anyway.
    """

    consumers: int
    registers: int
    block_m: int
    stages: int
    qk: Pieces
    v: Pieces
    causal: bool
    even: bool = False

    @property
    def widest(self) -> Pieces:
        """The pieces of a block for any of them."""
        return max(self.qk, self.v, key=lambda each: each.number)


def is_wide(dim: int, v_dim: int) -> bool:
    """Return whether heads of `dim` elements, of V `v_dim`, are too long for a consumer with dK and dV of 64 keys."""
    return max(dim, v_dim) > WIDTHS[-1]


def width_of(dim: int, v_dim: int) -> int:
    """Columns of the blocks of heads of `dim` elements, of V `v_dim`, that are not wide."""
    return next(width for width in WIDTHS if max(dim, v_dim) <= width)


def choose_config(dim: int, v_dim: int | None = None) -> BackwardConfig:
    """The configuration for heads of `dim` elements, of V `v_dim`, that are not wide."""
    return BackwardConfig(64 if width_of(dim, v_dim or dim) == 128 else 128)


def choose_wide_config(dim: int, v_dim: int) -> WideBackwardConfig:
    """The configuration for heads that are wide: as many stages and slots, of up to MOST, as shared memory holds."""
    pieces, v_pieces = pieces_of(dim, PIECE).number, pieces_of(v_dim, PIECE).number
    widest = max(pieces, v_pieces)
    stage = _PIECE_BYTES * (pieces + v_pieces + 2) + 2 * CONSUMER_KEYS * 4  # with P in f32, logarithms and deltas
    stages = (SHARED_BYTES - 2 * widest * _PIECE_BYTES) // stage
    slots = (SHARED_BYTES - 2 * (pieces + v_pieces) * _PIECE_BYTES) // (widest * _PIECE_BYTES)
    return WideBackwardConfig(stages=min(stages, MOST), slots=min(slots, 2 * MOST))
