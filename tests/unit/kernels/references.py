"""Inputs for the kernels that people import, on the CPU, and what they should give, computed in float64."""

import math
from typing import Any

import ml_dtypes
import numpy as np

DTYPES = {"fp16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
TOLERANCE = {"fp16": 1e-3, "bf16": 8e-3}
"""Largest norm of the difference over the norm of the result: one rounding of the result, and of the probabilities."""


def matrix(rows: int, columns: int, dtype: Any, *, by_columns: bool = False, seed: int = 0) -> np.ndarray:
    """A random matrix whose rows (or columns) are padded to multiples of 16 bytes, as TMA wants; the padding is NaN."""
    if by_columns:
        return matrix(columns, rows, dtype, seed=seed).T
    memory = np.full((rows, -(-columns // 8) * 8), np.nan, dtype)
    memory[:, :columns] = np.random.default_rng(seed).standard_normal((rows, columns)).astype(dtype)
    return memory[:, :columns]


def heads(batch: int, count: int, length: int, dim: int, dtype: Any, seed: int) -> np.ndarray:
    """Random heads, (batch, heads, length, dim), that lie as (batch, length, heads, dim): no copy may be needed."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((batch, length, count, dim)).astype(dtype).swapaxes(1, 2)


def poisoned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """NaN everywhere: what is not written is found."""
    return np.full(shape, np.nan, dtype)


def attention(q, k, v, scale: float, causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """The output, and the logarithm of the denominators."""
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(each.astype(np.float64), group, 1) for each in (k, v))
    scores = q.astype(np.float64) @ k.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -math.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    return weights / total @ v, (np.log(total) + top)[..., 0]


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    """The norm of the difference over that of `expected`; NaN when something was not written."""
    return float(np.linalg.norm(found.astype(np.float64) - expected) / np.linalg.norm(expected))
