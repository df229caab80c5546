"""Blocks of tiles in numpy, each number with a bound on how far that of a machine may be from it.

What IEEE arithmetic says is exact: the bound is zero until a function that libraries round in their own ways, or a sum
whose order is free, is part of a value; from there it grows as the operations that follow let it grow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

ULP = 2.0**-23
"""The largest distance between neighbouring f32 numbers, as a part of them."""
LIBRARY = 4 * ULP
"""What two libraries' results of a function may differ by."""
DTYPES = {"f32": np.dtype(np.float32), "bf16": np.dtype(ml_dtypes.bfloat16)}
SUM_BITS = 24

Numbers = NDArray[np.float32]
Bounds = NDArray[np.float64]
_ERF = np.vectorize(math.erf, otypes=[np.float64])


@dataclass(frozen=True, eq=False)
class Blocks:
    """A block for each iteration of a kernel: [iteration, row, column], in elements."""

    numbers: Numbers
    slack: Bounds

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of a block, in tiles."""
        return self.numbers.shape[1] // 32, self.numbers.shape[2] // 32

    @property
    def is_exact(self) -> bool:
        return not self.slack.any()


def exact(numbers: np.ndarray) -> Blocks:
    found = numbers.astype(np.float32)
    return Blocks(found, np.zeros(found.shape))


def _rounded(numbers: Numbers, dtype: str) -> Numbers:
    return numbers if dtype == "f32" else numbers.astype(DTYPES[dtype]).astype(np.float32)


def rounded(x: Blocks, dtype: str) -> Blocks:
    """Round to what the tiles of a circular buffer hold."""
    numbers = _rounded(x.numbers, dtype)
    if dtype == "f32":
        return x
    # What is off to begin with can be rounded to the other neighbour.
    apart = np.abs(numbers.astype(np.float64)) * 2.0**-7 + 2.0**-133
    return Blocks(numbers, np.where(x.slack > 0, x.slack + apart, 0))


def maybe_rounded(x: Blocks, dtype: str) -> Blocks:
    """A value that a machine may have rounded, since another operation reads it from a buffer, or not."""
    there = rounded(x, dtype)
    apart = np.abs(there.numbers.astype(np.float64) - x.numbers) + (there.slack - x.slack)
    return Blocks(x.numbers, x.slack + apart)


def _with_ulp(numbers: Numbers, slack: Bounds) -> Blocks:
    """An exact operation on operands that may be off: its result may be rounded to a neighbour, too."""
    return Blocks(numbers, np.where(slack > 0, slack + ULP * np.abs(numbers.astype(np.float64)), 0))


def itself(x: Blocks) -> Blocks:
    return x


# --- element by element ----------------------------------------------------------------------------------------------

_BINARY: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
}  # fmt: skip


def binary(kind: str, a: Blocks, b: Blocks) -> Blocks:
    x, y = np.abs(a.numbers.astype(np.float64)), np.abs(b.numbers.astype(np.float64))
    numbers = _BINARY[kind](a.numbers, b.numbers)
    match kind:
        case "add" | "sub":
            return _with_ulp(numbers, a.slack + b.slack)
        case "mul":
            return _with_ulp(numbers, x * b.slack + y * a.slack + a.slack * b.slack)
        case "div":
            near = np.maximum(y - b.slack, 1e-30)
            return _with_ulp(numbers, (a.slack + np.abs(numbers.astype(np.float64)) * b.slack) / near)
        case _:
            return Blocks(numbers, np.maximum(a.slack, b.slack))


def _gelu(x: Numbers) -> Numbers:
    wide = x.astype(np.float64)
    return (0.5 * wide * (1.0 + _ERF(wide * math.sqrt(0.5)))).astype(np.float32)


_EXACT_UNARY: dict[str, Callable[[Blocks], Blocks]] = {
    "neg": lambda a: Blocks(-a.numbers, a.slack),
    "abs": lambda a: Blocks(np.abs(a.numbers), a.slack),
    "relu": lambda a: Blocks(np.maximum(a.numbers, np.float32(0)), a.slack),
    "square": lambda a: binary("mul", a, a),
    "recip": lambda a: _with_ulp(np.float32(1) / a.numbers, a.slack / _least(a) ** 2),
    "sqrt": lambda a: _with_ulp(np.sqrt(a.numbers), a.slack / (2 * np.sqrt(_least(a)))),
}
_LIBRARY_UNARY: dict[str, Callable[[Numbers], Numbers]] = {
    "rsqrt": lambda x: np.float32(1) / np.sqrt(x),
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": lambda x: np.float32(1) / (np.float32(1) + np.exp(-x)),
    "gelu": _gelu,
}
_SLOPES: dict[str, Callable[[Blocks], Any]] = {
    "rsqrt": lambda a: 0.5 * _least(a) ** -1.5,
    "exp": lambda a: np.exp(a.numbers.astype(np.float64) + a.slack),
    "log": lambda a: 1 / _least(a),
    "tanh": lambda a: 1.0,
    "sigmoid": lambda a: 0.25,
    "gelu": lambda a: 1.2,
}
"""How steep a function is at most, within the slack."""


def _least(a: Blocks) -> NDArray[np.float64]:
    """The smallest size that a number may have."""
    return np.maximum(np.abs(a.numbers.astype(np.float64)) - a.slack, 1e-30)


def unary(kind: str, a: Blocks) -> Blocks:
    """A function of each element."""
    with np.errstate(all="ignore"):
        if kind in _EXACT_UNARY:
            return _EXACT_UNARY[kind](a)
        numbers = _LIBRARY_UNARY[kind](a.numbers)
        size = np.abs(numbers.astype(np.float64))
        # The two terms of the factor of gelu may cancel.
        size = np.maximum(size, np.abs(a.numbers)) if kind == "gelu" else size
        return Blocks(numbers, a.slack * _SLOPES[kind](a) + LIBRARY * size + 1e-40)


# --- beyond elements -------------------------------------------------------------------------------------------------


def _quantum(*arrays: NDArray[np.float64]) -> float:
    """The power of two of which all these numbers are multiples, or 0 if none is found."""
    for bits in (0, 4, 8, 16):
        if all((array * 2.0**bits == np.rint(array * 2.0**bits)).all() for array in arrays):
            return 2.0**-bits
    return 0.0


def _sum(numbers: NDArray[np.float64], total: NDArray[np.float64], terms: int, slack: Bounds, quantum: float) -> Blocks:
    """A sum in an order that is free; `total` is that of the terms without their signs."""
    small = bool(quantum) and bool((total < quantum * 2.0**SUM_BITS).all())
    off = np.zeros(numbers.shape) if small else total * (terms * ULP)
    return Blocks(numbers.astype(np.float32), np.where((off > 0) | (slack > 0), off + slack + total * ULP, 0))


def reduce(kind: str, a: Blocks, dims: Sequence[int]) -> Blocks:
    """Sums or largest elements, in row 0, column 0, or element 0 of a tile of zeros."""
    axes = tuple(dim + 1 for dim in dims)
    x = a.numbers.astype(np.float64)
    if kind == "max":
        found = Blocks(a.numbers.max(axis=axes, keepdims=True), a.slack.max(axis=axes, keepdims=True))
    else:
        terms = math.prod(x.shape[axis] for axis in axes)
        sums = [each.sum(axis=axes, keepdims=True) for each in (x, np.abs(x), a.slack)]
        found = _sum(sums[0], sums[1], terms, sums[2], _quantum(x))
    shape = [x.shape[0], *(32 if dim in dims else x.shape[dim + 1] for dim in range(2))]
    numbers, slack = np.zeros(shape, np.float32), np.zeros(shape)
    place = np.s_[:, : found.numbers.shape[1], : found.numbers.shape[2]]
    numbers[place], slack[place] = found.numbers, found.slack
    return Blocks(numbers, slack)


def broadcast(a: Blocks, shape: tuple[int, int], dims: Sequence[int]) -> Blocks:
    place = np.s_[:, : 1 if 0 in dims else None, : 1 if 1 in dims else None]
    wide = (len(a.numbers), shape[0] * 32, shape[1] * 32)
    return Blocks(*(np.broadcast_to(each[place], wide) for each in (a.numbers, a.slack)))


def transpose(a: Blocks) -> Blocks:
    return Blocks(a.numbers.swapaxes(1, 2), a.slack.swapaxes(1, 2))


def matmul(a: Blocks, b: Blocks) -> Blocks:
    x, y = a.numbers.astype(np.float64), b.numbers.astype(np.float64)
    size_x, size_y = np.abs(x), np.abs(y)
    slack = size_x @ b.slack + a.slack @ size_y + a.slack @ b.slack
    return _sum(x @ y, size_x @ size_y, x.shape[2], slack, _quantum(x) * _quantum(y))


def accumulate(sums: Blocks | None, term: Blocks, dtype: str) -> Blocks:
    """Add `term` to a circular buffer's contents; the buffer rounds, maybe the term, too."""
    if sums is None:
        return rounded(term, dtype)
    found, other = (rounded(binary("add", sums, each), dtype) for each in (term, rounded(term, dtype)))
    apart = np.abs(found.numbers.astype(np.float64) - other.numbers)
    return Blocks(found.numbers, np.maximum(found.slack, other.slack) + apart)
