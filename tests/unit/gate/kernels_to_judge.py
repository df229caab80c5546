"""Kernels that tests judge, and launches of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.gate import Subject
from tlx_xdsl.language.core import constexpr


@tlx_xdsl.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, at < n), at < n)


@tlx_xdsl.jit
def early(x, y, n, BLOCK: tl.constexpr):
    if tl.program_id(0) == 1:
        return
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n), at < n)


@tlx_xdsl.jit
def beyond(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at))


@tlx_xdsl.jit
def refused(x, y, n, BLOCK: tl.constexpr):
    tl.store(y + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, 2 * BLOCK)))


@tlx_xdsl.jit
def quantized(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, (tl.load(x + at, at < n) - 100).to(tl.int8).to(tl.float32), at < n)


@tlx_xdsl.jit
def product(a, b, c, K, BK: tl.constexpr):
    rows = tl.arange(0, 64)
    total = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, BK):
        depth = k + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + depth[None, :])
        right = tl.load(b + depth[:, None] * 64 + rows[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * 64 + rows[None, :], total)


def elementwise(kernel: Any, n: int = 200, block: int = 64, **options: Any) -> Subject:
    """A launch of one of the kernels that take `x`, `y` and `n`."""

    def arguments() -> Mapping[str, Any]:
        x = np.arange(n, dtype=np.float32)
        return {"x": x, "y": np.zeros(n, np.float32), "n": n, "BLOCK": constexpr(block)}

    name, grid = kernel.source.name, -(-n // block)
    return Subject(name, kernel.source, {"BLOCK": block}, grid, arguments, f"{n}", options=options)


def products(depth: int = 128, block: int = 32, **options: Any) -> Subject:
    """A launch of `product`, whose numbers are whole and exact in each order."""

    def arguments() -> Mapping[str, Any]:
        random = np.random.default_rng(0)
        left, right = (random.integers(-4, 5, shape).astype(np.float16) for shape in ((64, depth), (depth, 64)))
        return {"a": left, "b": right, "c": np.zeros((64, 64), np.float32), "K": depth, "BK": constexpr(block)}

    return Subject("product", product.source, {"BK": block, **options}, 1, arguments, f"{depth}", options=options)


@tlx_xdsl.jit
def cancelled(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.exp2(tl.log2(tl.load(x + at, at < n, 0.0)))
    tl.store(y + at, values - tl.sum(values) / BLOCK, at < n)


def cancelling() -> Subject:
    """A launch of `cancelled`, whose results have few right digits: all are differences of numbers close to one."""

    def arguments() -> Mapping[str, Any]:
        x = (3 + np.random.default_rng(0).standard_normal(128) * 1e-4).astype(np.float32)
        return {"x": x, "y": np.zeros(128, np.float32), "n": 128, "BLOCK": constexpr(128)}

    return Subject("cancelled", cancelled.source, {}, 1, arguments)
