"""The tiles of attention in fp8: one configuration for each head dimension."""

from __future__ import annotations

from dataclasses import dataclass

from tlx_xdsl.kernels.attention_config import AttentionConfig

FP8_HEAD_DIMS = (64, 128)
"""Elements of a head for which there is a configuration."""

OUT_DTYPES = ("bf16", "fp16")
"""Types of the result."""


@dataclass(frozen=True)
class AttentionFp8Config(AttentionConfig):
    """A tile as `AttentionConfig` says; `exact` and `overlap` are EXACT and OVERLAP of `attention_fp8_device`."""

    exact: bool = True
    overlap: bool = True


def choose_fp8_config(head_dim: int) -> AttentionFp8Config:
    """The configuration for heads of `head_dim` elements. Raises ValueError for a head that has none."""
    if head_dim not in FP8_HEAD_DIMS:
        raise ValueError(f"expected heads of {' or '.join(map(str, FP8_HEAD_DIMS))} elements, got {head_dim}")
    return AttentionFp8Config(consumers=2, registers=240, stages=4)
