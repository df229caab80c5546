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


def seen(queries: int, keys: int, causal: bool, window: Any = None, align: str = "top-left") -> np.ndarray:
    """Return which keys each query sees, (queries, keys)."""
    left, right = window or (None, None)
    distance = np.arange(keys)[None, :] - np.arange(queries)[:, None]
    if align == "bottom-right":
        distance -= keys - queries
    found = distance <= 0 if causal else np.ones_like(distance, bool)
    if left is not None:
        found = found & (distance >= -left)
    return found if right is None else found & (distance <= right)


def attention(
    q, k, v, scale: float, causal: bool, *, window=None, align="top-left", softcap=None, sinks=None, score_mod=None
) -> tuple[np.ndarray, np.ndarray]:
    """The output, and the logarithm of the denominators; `score_mod` is a function of the scores, by numpy."""
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(each.astype(np.float64), group, 1) for each in (k, v))
    scores = q.astype(np.float64) @ k.swapaxes(-1, -2) * scale
    if softcap is not None:
        scores = softcap * np.tanh(scores / softcap)
    if score_mod is not None:
        scores = score_mod(scores)
    scores = np.where(seen(*scores.shape[-2:], causal, window, align), scores, -math.inf)
    sinks = np.array(-math.inf) if sinks is None else sinks.astype(np.float64)[:, None, None]
    top = np.maximum(np.maximum(scores.max(-1, keepdims=True, initial=-math.inf), sinks), -1e30)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True) + np.exp(sinks - top)
    with np.errstate(divide="ignore"):
        return weights / np.where(total > 0, total, 1) @ v, (np.log(total) + top)[..., 0]


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    """The norm of the difference over that of `expected`; NaN when something was not written."""
    return float(np.linalg.norm(found.astype(np.float64) - expected) / np.linalg.norm(expected))
