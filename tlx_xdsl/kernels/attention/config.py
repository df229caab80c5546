"""The tiles of attention: one configuration for each head dimension and mask.

What won on an H200 (SXM, 700 W; fp16; Triton 3.6.0 / 3.9.0; 2026-11-20; cool clock, TFLOP/s; text of the form that this
package's kernel becomes), at (batch, heads, length, head dim):

| | (4, 16, 4096, D) | (2, 16, 16384, D) |
|---|---|---|
| D = 128, 2 consumers of 240 registers | 694 / 686 | 706 / 700 |
| D = 128, causal, the same, heads one by one | 643 / 641 | 685 / 683 |
| D = 128, causal, all heads together | 594 / - | |
| D = 64, 3 consumers of 160 registers | 533 / 517 | 574 / 564 |
| D = 64, 2 consumers | 468 / 479 | |
| D = 64, causal, 3 consumers, all heads together | 440 / 425 | 531 / 518 |

At D = 64 the exponentials take as long as the products, and a third consumer fills what two leave. A causal mask makes
tiles of different lengths; with tiles of 192 rows the sums of the programs are most alike when all heads go together,
with 128 rows one head after the other is best, whose K and V then stay in the L2 cache.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

MAX_HEAD_DIM = 256
"""Elements of a head."""

DIM_STEP = 8
"""Elements of a head come in multiples of it: 16 bytes, as TMA wants rows to start."""

CONSUMER_ROWS = 64
"""Rows of a consumer: those of one wgmma."""

SHARED_BYTES = 226 << 10
"""Shared memory for buffers: what a program can have, but 1 KB for barriers."""

_ELEMENT_BYTES = 2

_REGISTERS = 1 << 16
"""Those of a multiprocessor."""

_WARP_GROUP = 128
"""Threads of a task."""


@dataclass(frozen=True)
class Pieces:
    """A head in shared memory: so many pieces of so many elements, a power of two; what is over is zero."""

    elements: int
    number: int

    @property
    def width(self) -> int:
        """Elements in all."""
        return self.elements * self.number


_PIECES = (Pieces(32, 1), Pieces(64, 1), Pieces(32, 3), Pieces(128, 1), Pieces(64, 3), Pieces(256, 1))


def pieces_of(dim: int, elements: int = 0) -> Pieces:
    """The narrowest pieces that hold a head of `dim` elements; with `elements` pieces of that many."""
    if elements:
        return Pieces(elements, -(-dim // elements))
    return next(each for each in _PIECES if dim <= each.width)


@dataclass(frozen=True)
class AttentionConfig:
    """A tile of 64 rows for each of so many consumers, with so many registers per thread, and blocks of keys.

    `stages` are blocks of K and V in shared memory; `all_heads` says that heads take their tiles in turn. `piece` and
    `v_piece` are the elements of a piece of Q and K, and of V (`pieces_of`), 0 for as many as fit best. `resident` is
    how many programs a multiprocessor has at once.
    """

    consumers: int
    registers: int
    block_n: int = 128
    stages: int = 2
    all_heads: bool = False
    piece: int = 0
    v_piece: int = 0
    resident: int = 1

    @property
    def maxnreg(self) -> int | None:
        """Registers of each thread at the launch that leave room for the other programs; None for all there are."""
        threads = self.resident * (self.consumers + 1) * _WARP_GROUP
        return _REGISTERS // threads // 8 * 8 if self.resident > 1 else None

    @property
    def block_m(self) -> int:
        """Rows of a tile."""
        return self.consumers * CONSUMER_ROWS

    def pieces(self, dim: int, v_dim: int) -> tuple[Pieces, Pieces]:
        """The pieces of heads of Q and K, and of V."""
        return pieces_of(dim, self.piece), pieces_of(v_dim, self.v_piece)

    def shared_bytes(self, dim: int, v_dim: int, *, o_in_q: bool) -> int:
        """The bytes of all buffers; with `o_in_q` those of Q and O are the same."""
        qk, v = (each.width for each in self.pieces(dim, v_dim))
        tile = max(qk, v) if o_in_q else qk + v
        return (self.block_m * tile + self.stages * self.block_n * (qk + v)) * _ELEMENT_BYTES

    def is_o_in_q(self, dim: int, v_dim: int) -> bool:
        """Return whether O has to take the bytes of Q. A tile's Q is then loaded when the O before it has left."""
        return self.shared_bytes(dim, v_dim, o_in_q=False) > SHARED_BYTES

    def tiling(self, dim: int, v_dim: int, **facts: Any) -> Tiling:
        """Return the facts that a kernel is compiled for: heads of `dim` elements, of V `v_dim`, and `facts`."""
        pieces, o_in_q = self.pieces(dim, v_dim), self.is_o_in_q(dim, v_dim)
        return Tiling(self.consumers, self.registers, self.block_n, self.stages, *pieces, o_in_q, **facts)


@dataclass(frozen=True)
class Tiling:
    """Facts that a kernel is compiled for: a configuration (`AttentionConfig`), and what it may rest on.

    `qk` are the pieces of heads of Q and K, `v` those of V and O; with `o_in_q` O takes the bytes of Q. With `causal`
    a row sees the keys up to its own, `uneven` says that later rows see more keys for this or another reason, and
    `may_be_empty` that a row may meet a block of which it sees no key. `even`: the keys fill whole blocks. `turned`:
    there is a cap or a `score_mod`. Tiles are those of `sequences` or of a grid, whose limits count from the last keys
    with `bottom_right`. Of heads `in_8_bits` V has its keys last; `fp8/blocks` says what `exact` and `overlap` choose.
    """

    consumers: int
    registers: int
    block_n: int
    stages: int
    qk: Pieces
    v: Pieces
    o_in_q: bool
    causal: bool
    uneven: bool
    even: bool = False
    may_be_empty: bool = False
    turned: bool = False
    score_mod: Any = None
    sequences: bool = False
    bottom_right: bool = False
    in_8_bits: bool = False
    exact: bool = False
    overlap: bool = True

    @property
    def block_m(self) -> int:
        """Rows of a tile."""
        return self.consumers * CONSUMER_ROWS

    @property
    def bits(self) -> int:
        """Probabilities are multiplied by 2 ** bits; e4m3 ends at 448."""
        return 8 if self.in_8_bits else 0


SHORT = 1024
"""Queries of a head of 64 elements up to which, under a causal mask, three programs of one consumer do more than one.

H200, TFLOP/s: at (32, 16, 512) 264, with one program of two consumers 225; at (16, 16, 1024) 310, with one of three
266. A tile has few blocks; while one program begins or ends, the others compute.
"""


def choose_config(head_dim: int, causal: bool, v_dim: int | None = None, queries: int | None = None) -> AttentionConfig:
    """The configuration for heads of `head_dim` elements of Q and K, and `v_dim`, by default as many, of V.

    Without `queries` there are many.
    """
    v_dim = v_dim or head_dim
    if max(head_dim, v_dim) <= 64:
        if causal and queries and queries <= SHORT:
            return AttentionConfig(consumers=1, registers=136, block_n=64, resident=3)
        return AttentionConfig(consumers=3, registers=160, all_heads=causal)
    config = AttentionConfig(consumers=2, registers=240)
    if v_dim <= 128 and config.shared_bytes(head_dim, v_dim, o_in_q=True) <= SHARED_BYTES:
        return config
    return replace(config, block_n=64)


# --- fp8: one configuration for all -----------------------------------------------------------------------------------
#
# What was timed on an H200 (Triton 3.6.0, 2026-11-23), TFLOP/s at (2, 16, 16384, 128) not causal and causal: 2
# consumers of 240 registers 870 and 772 (847 and 855 with one product in flight at a time, 930 and 946 with blocks of
# 256 keys), 3 of 160 with one product in flight 1039 and, heads one by one, 816. With all heads together the same
# without `exact` has 1001 causal; but without `exact` means of positive values over 16384 keys are 25 % too small.


FP8_HEAD_DIMS = (64, 128)
"""Elements of a head for which there is a configuration."""

OUT_DTYPES = ("bf16", "fp16")
"""Types of the result."""


@dataclass(frozen=True)
class AttentionFp8Config(AttentionConfig):
    """A tile as `AttentionConfig` says; what `exact` and `overlap` choose is said in `fp8/blocks`."""

    exact: bool = True
    overlap: bool = True

    def is_o_in_q(self, dim: int, v_dim: int) -> bool:
        """Return False: heads of 8 bits leave room for O."""
        return False

    def tiling(self, dim: int, v_dim: int, **facts: Any) -> Tiling:
        """The facts of `AttentionConfig.tiling`, and those of 8 bits."""
        return super().tiling(dim, v_dim, in_8_bits=True, exact=self.exact, overlap=self.overlap, **facts)


def choose_fp8_config(head_dim: int, causal: bool) -> AttentionFp8Config:
    """The configuration for heads of `head_dim` elements. Raises ValueError for a head that has none."""
    if head_dim not in FP8_HEAD_DIMS:
        raise ValueError(f"expected heads of {' or '.join(map(str, FP8_HEAD_DIMS))} elements, got {head_dim}")
    return AttentionFp8Config(consumers=3, registers=160, stages=4, all_heads=causal, overlap=False)
