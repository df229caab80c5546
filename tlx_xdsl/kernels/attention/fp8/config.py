"""The tiles of attention in fp8: one configuration for all.

What was timed on an H200 (Triton 3.6.0, 2026-11-23), TFLOP/s at (2, 16, 16384, 128) not causal and causal: 2 consumers
of 240 registers 870 and 772 (847 and 855 with one product in flight at a time, 930 and 946 with blocks of 256 keys), 3
of 160 with one product in flight 1039 and, heads one by one, 816. With all heads together the same without `exact` has
1001 causal; but without `exact` means of positive values over 16384 keys are 25 % too small.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..config import AttentionConfig

FP8_HEAD_DIMS = (64, 128)
"""Elements of a head for which there is a configuration."""

OUT_DTYPES = ("bf16", "fp16")
"""Types of the result."""


@dataclass(frozen=True)
class AttentionFp8Config(AttentionConfig):
    """A tile as `AttentionConfig` says; `exact` and `overlap` are EXACT and OVERLAP of `device`."""

    exact: bool = True
    overlap: bool = True


def choose_fp8_config(head_dim: int, causal: bool) -> AttentionFp8Config:
    """The configuration for heads of `head_dim` elements. Raises ValueError for a head that has none."""
    if head_dim not in FP8_HEAD_DIMS:
        raise ValueError(f"expected heads of {' or '.join(map(str, FP8_HEAD_DIMS))} elements, got {head_dim}")
    return AttentionFp8Config(consumers=3, registers=160, stages=4, all_heads=causal, overlap=False)
