"""Inputs of the kernels of `kernels`, and how close their results must be."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

F32 = np.float32


@dataclass(frozen=True)
class Call:
    """A kernel, its arguments, and the arrays among them that it writes."""

    kernel: str
    arguments: dict[str, Any]
    results: tuple[str, ...]
    ulps: int = 0
    """How many units in the last place floats may differ, counted at the larger of the number and `scale`."""
    scale: float = 0.0


def _normal(rng: np.random.Generator, *shape: int, dtype: Any = F32) -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


def _ints(rng: np.random.Generator, *shape: int, dtype: Any = np.int32) -> np.ndarray:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def _random(rng: np.random.Generator) -> dict[str, Call]:
    found: dict[str, Call] = {}
    n = 256
    for name, seed, first in (
        ("", 1234567, 0),
        (" of a wide seed", 0x1234_5678_9ABC_DEF0, 1_000_000),
        (" of a negative seed", -77, 2**31 - 400),
    ):
        numbers = {"seed": seed, "first": first}
        floats = {"out": np.zeros(n, F32), "more": np.zeros(4 * n, F32), "N": n}
        words = {"out": np.zeros(n, np.int32), "few": np.zeros(4 * n, np.int32), "N": n}
        found[f"rand{name}"] = Call("uniform_numbers", numbers | floats, ("out", "more"))
        floats = {name: np.copy(value) for name, value in floats.items()} | {"N": n}
        # Logarithm, cosine and sine are computed by different libraries.
        found[f"randn{name}"] = Call("normal_numbers", numbers | floats, ("out", "more"), 4, 1.0)
        found[f"randint{name}"] = Call("random_words", numbers | words, ("out", "few"))
    counters = _ints(rng, 2 * n)
    found["philox"] = Call(
        "philox_words", {"seed": 99, "counters": counters, "out": np.zeros(4 * n, np.int32), "N": n}, ("out",)
    )
    words = _ints(rng, n, dtype=np.uint32)
    words[:6] = 0, 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1
    found["uint_to_uniform_float"] = Call(
        "uniform_from_words", {"words": words, "out": np.zeros(n, F32), "N": n}, ("out",)
    )
    x, y = rng.random(n, F32), rng.random(n, F32)
    x[:2] = 0, 1
    found["pair_uniform_to_normal"] = Call(
        "normal_from_uniform", {"x": x, "y": y, "out": np.zeros(2 * n, F32), "N": n}, ("out",), 4, 1.0
    )
    return found


def _sorting(rng: np.random.Generator) -> dict[str, Call]:
    found: dict[str, Call] = {}
    m, n = 4, 64
    for dtype in (np.float32, np.float16, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32):
        x = _ints(rng, m, n, dtype=dtype) if np.dtype(dtype).kind in "iu" else _normal(rng, m, n, dtype=dtype)
        if np.dtype(dtype).kind == "f":
            x[0, :3] = np.inf, -np.inf, 0
        x[1, :8] = x[1, 8:16]
        name = np.dtype(dtype).name
        up, down, top = np.zeros_like(x), np.zeros_like(x), np.zeros((m, 8), dtype)
        found[f"sort {name}"] = Call("sorting", {"x": x, "up": up, "down": down, "M": m, "N": n}, ("up", "down"))
        found[f"topk {name}"] = Call("largest", {"x": x, "out": top, "M": m, "N": n, "K": 8}, ("out",))
        flipped = np.zeros((2, m, n), dtype)
        found[f"flip {name}"] = Call("flipping", {"x": x, "out": flipped, "M": m, "N": n}, ("out",))
    bitonic = np.concatenate([np.sort(_normal(rng, 32)), -np.sort(_normal(rng, 32))])
    found["bitonic_merge"] = Call("merging", {"x": bitonic, "out": np.zeros(64, F32), "N": 64}, ("out",))
    return found


def _reductions(rng: np.random.Generator) -> dict[str, Call]:
    found: dict[str, Call] = {}
    m, n = 8, 32
    shape = {"M": m, "N": n}
    for dtype in (np.float32, np.int32, np.uint32, np.int64):
        name = np.dtype(dtype).name
        # Few different numbers: ties must be broken alike, and sums of floats are exact.
        low = 0 if np.dtype(dtype).kind == "u" else -3
        x = rng.integers(low, 4, (m, n)).astype(dtype)
        unique = rng.permutation(m * n).reshape(m, n).astype(dtype)
        out = {"values": np.zeros(2 * m + n, dtype), "indices": np.zeros(2 * m + 2 * n, np.int32)}
        found[f"max, min, argmax, argmin {name}"] = Call(
            "extremes", {"x": x, "unique": unique} | out | shape, ("values", "indices")
        )
        found[f"sum {name}"] = Call("sums", {"x": x, "out": np.zeros(m + n + 1, dtype)} | shape, ("out",))
        running = {"x": x, "out": np.zeros((2, m, n), dtype)} | shape
        found[f"cumsum {name}"] = Call("running_sums", running, ("out",))
        if dtype != np.float32:
            wild = _ints(rng, m, n, dtype=dtype)
            found[f"xor_sum, reduce_or {name}"] = Call(
                "bit_reductions", {"x": wild, "out": np.zeros(2 * m, dtype)} | shape, ("out",)
            )
        signs = (
            rng.integers(low, 3, (m, n)).astype(dtype) if dtype != np.float32 else 2.0 ** rng.integers(-2, 3, (m, n))
        )
        products = {"x": signs.astype(dtype), "out": np.zeros((2, m, n), dtype)} | shape
        found[f"cumprod {name}"] = Call("running_products", products, ("out",))
    # The order of additions differs: by a tree here, by numpy's order there.
    wild = {"x": _normal(rng, m, n), "out": np.zeros(m + n + 1, F32)} | shape
    found["sum of any floats"] = Call("sums", wild, ("out",), 16, 8.0)
    wild = {"x": _normal(rng, m, n), "out": np.zeros((2, m, n), F32)} | shape
    found["cumsum of any floats"] = Call("running_sums", wild, ("out",), 16, 8.0)
    x = rng.integers(0, 32, 512).astype(np.int32)
    found["histogram"] = Call("counting", {"x": x, "out": np.zeros(32, np.int32), "N": 512, "BINS": 32}, ("out",))
    return found


def _others(rng: np.random.Generator) -> dict[str, Call]:
    m, n = 8, 32
    x = 4 * _normal(rng, m, n)
    sides = {"out": np.zeros((m, n), F32), "rows_out": np.zeros((m, n), F32)}
    a, b = rng.integers(0, 10_000, n).astype(np.int32), rng.integers(1, 100, n).astype(np.int32)
    swizzled = {"out": np.zeros((2, m, 8), np.int32), "size_i": 7, "size_j": 5, "GROUP": 3, "M": m, "N": 8}
    pair = {"x": _normal(rng, n), "y": _normal(rng, n), "out": np.zeros(5 * n, F32), "N": n}
    return {
        "softmax": Call("normalising", {"x": x, "M": m, "N": n} | sides, ("out", "rows_out"), 8),
        "sigmoid": Call("sigmoids", {"x": 4 * _normal(rng, n), "out": np.zeros(n, F32), "N": n}, ("out",), 4),
        "sigmoid float64": Call(
            "sigmoids", {"x": _normal(rng, n, dtype=np.float64), "out": np.zeros(n), "N": n}, ("out",), 4
        ),
        "cdiv": Call(
            "ceiling_division", {"x": a, "y": b, "out": np.zeros(2 * n, np.int32), "n": 1003, "N": n}, ("out",)
        ),
        "swizzle2d": Call("swizzling", swizzled, ("out",)),
        "interleave, ravel, zeros, join, split": Call("rearranging", pair, ("out",)),
    }


_TOPICS: tuple[Callable[[np.random.Generator], dict[str, Call]], ...] = (_random, _sorting, _reductions, _others)


def calls() -> dict[str, Call]:
    """All calls by name, with inputs that are the same every time and results that are not computed yet."""
    found: dict[str, Call] = {}
    for number, topic in enumerate(_TOPICS):
        found |= topic(np.random.default_rng(number))
    return found
