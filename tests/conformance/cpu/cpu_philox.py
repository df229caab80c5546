"""Triton's random numbers in Python's integers: Philox 4x32-10 (Salmon et al., SC 2011)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

_ROUNDS = 10
_KEYS = 0x9E3779B9, 0xBB67AE85
_FACTORS = 0xD2511F53, 0xCD9E8D57
_WORD = 0xFFFFFFFF
_SCALE = 4.6566127342e-10
"""Triton's, a little less than 2 ** -31: no number becomes 1."""


def words(seed: int, offsets: torch.Tensor) -> tuple[Any, Any]:
    """The first two words of 32 bits for each offset. The upper half of an offset of 64 bits is the second counter."""
    wide = np.array(offsets.tolist(), dtype=object)
    upper: Any = wide >> 32 & _WORD if offsets.dtype == torch.int64 else 0
    counters: list[Any] = [wide & _WORD, upper, 0, 0]
    keys = [seed & _WORD, seed >> 32 & _WORD]
    for _ in range(_ROUNDS):
        high, low = _FACTORS[0] * counters[0], _FACTORS[1] * counters[2]
        counters = [low >> 32 ^ counters[1] ^ keys[0], low & _WORD, high >> 32 ^ counters[3] ^ keys[1], high & _WORD]
        keys = [key + step & _WORD for key, step in zip(keys, _KEYS, strict=True)]
    return counters[0], counters[1]


def randint(seed: int, offset: int) -> int:
    """`tl.randint` of a 64-bit offset, as an unsigned number."""
    return int(words(seed, torch.tensor([offset]))[0][0])


def rand(seed: int, offsets: torch.Tensor) -> torch.Tensor:
    """`tl.rand`: numbers in [0, 1)."""
    drawn = words(seed, offsets)[0]
    drawn = np.where(drawn >> 31, _WORD - drawn, drawn)
    return torch.from_numpy(drawn.astype(np.int32)).to(torch.float32) * torch.tensor(_SCALE)


def rand64(seed: int, offsets: torch.Tensor) -> torch.Tensor:
    """vLLM's `tl_rand64`: float64 numbers in (0, 1) of two words."""
    low, high = words(seed, offsets)
    return torch.from_numpy((high << 32 | low).astype(np.float64)) * 2.0**-64


def gumbel(seed: int, position: int, keys: torch.Tensor, *, drafting: bool, double: bool) -> torch.Tensor:
    """The noise of vLLM's sampler for some tokens at a position."""
    inner = randint(seed, position + (1 << 30 if drafting else 0))
    if double:
        return -torch.log(-torch.log(rand64(inner, keys).clamp_min(2.2250738585072014e-308)))
    return -torch.log(-torch.log1p(-rand(inner, keys).clamp_min(_SCALE)))
