"""PTX that stock Triton makes of kernels, and mutations of it."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.ptx.snippets import without_debug
from tlx_xdsl.runtime.simulate import ptx_stage

_found: dict[Any, Any] = {}
_compile = ptx_stage.compiled


def compiled_once(source: Any, specialization: Any, options: Any) -> Any:
    """Compile a kernel with stock Triton, once for all tests of this process."""
    choices = options.num_stages, options.mends
    key = (source.name, source.filename if hasattr(source, "filename") else "", repr(specialization), choices)
    if key not in _found:
        _found[key] = _compile(source, specialization, options)
    return _found[key]


@contextmanager
def changed(change: Callable[[str], str]) -> Iterator[None]:
    """Run PTX with a change while this lasts."""

    def compiled(source: Any, specialization: Any, options: Any) -> Any:
        result = compiled_once(source, specialization, options)
        return replace(result, ptx=change(without_debug(result.ptx)))

    ptx_stage.compiled = compiled
    try:
        yield
    finally:
        ptx_stage.compiled = _compile


def without(pattern: str, number: int = 0) -> Callable[[str], str]:
    """A change that removes what a pattern finds, at its n-th place."""
    return instead(pattern, "", number)


def instead(pattern: str, new: str, number: int = 0) -> Callable[[str], str]:
    """A change that replaces what a pattern finds, at its n-th place."""

    def change(text: str) -> str:
        found = list(re.finditer(pattern, text))
        assert found, f"nothing matches {pattern}"
        match = found[number]
        return text[: match.start()] + match.expand(new) + text[match.end() :]

    return change


@tlx_xdsl.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@tlx_xdsl.jit
def softmax(x, out, stride, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0) * stride, tl.arange(0, BLOCK)
    value = tl.load(x + row + i, mask=i < n, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(out + row + i, power / tl.sum(power, 0), mask=i < n)


@tlx_xdsl.jit
def matmul(a, b, c, M, N, K, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, DEPTH)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, K, DEPTH):
        left = tl.load(a + m[:, None] * K + (first + k)[None, :])
        right = tl.load(b + (first + k)[:, None] * N + n[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + m[:, None] * N + n[None, :], total)


@tlx_xdsl.jit
def histogram(x, counts, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(counts + value % 8, 1, mask=i < n)
    tl.store(counts + 8 + i, tl.cumsum(value, 0), mask=i < n)


@cache
def matrices(m: int = 128, n: int = 64, k: int = 160) -> tuple[np.ndarray, np.ndarray]:
    """Two matrices of fp16."""
    rng = np.random.default_rng(1)
    return rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
