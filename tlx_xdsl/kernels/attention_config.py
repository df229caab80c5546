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

from dataclasses import dataclass

HEAD_DIMS = (64, 128)
"""Elements of a head for which there are figures, and a configuration."""


@dataclass(frozen=True)
class AttentionConfig:
    """A tile of 64 rows for each of so many consumers, with so many registers per thread, and blocks of keys.

    `stages` are blocks of K and V in shared memory; `all_heads` says that heads take their tiles in turn.
    """

    consumers: int
    registers: int
    block_n: int = 128
    stages: int = 2
    all_heads: bool = False

    @property
    def block_m(self) -> int:
        """Rows of a tile."""
        return self.consumers * CONSUMER_ROWS


CONSUMER_ROWS = 64
"""Rows of a consumer: those of one wgmma."""


def choose_config(head_dim: int, causal: bool) -> AttentionConfig:
    """The configuration for heads of `head_dim` elements. Raises ValueError for a head that has none."""
    if head_dim not in HEAD_DIMS:
        raise ValueError(f"expected heads of {' or '.join(map(str, HEAD_DIMS))} elements, got {head_dim}")
    if head_dim == 128:
        return AttentionConfig(consumers=2, registers=240)
    return AttentionConfig(consumers=3, registers=160, all_heads=causal)
