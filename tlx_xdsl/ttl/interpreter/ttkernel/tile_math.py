"""Arithmetic on tiles: arrays of f32 [..., 32, 32], one operation as the units of a core do it (but exactly in f32)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from tlx_xdsl.dialects.base.tensors import element_type_of
from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.numerics.rounding import round_to
from tlx_xdsl.ttl.tiles import NUMPY

Unary = Callable[[Array], Array]

_HALF_ROOT = np.float32(math.sqrt(0.5))
_ERF: Any = np.vectorize(math.erf, otypes=[np.float64])


def _gelu(x: Array) -> Array:
    return (0.5 * x * (1.0 + _ERF(x * _HALF_ROOT))).astype(np.float32)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


UNARY: dict[str, Unary] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "recip": lambda x: 1 / x,
    "relu": lambda x: np.maximum(x, np.float32(0)),
    "gelu": _gelu,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "neg": np.negative,
    "negative": np.negative,
    "abs": np.abs,
    "square": np.square,
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
}


def dtype_of(type_: Attribute) -> np.dtype[Any]:
    """The numpy type of the elements of a data format.

    Raises ValueError for a type that no data format has.
    """
    found = element_type_of(type_)
    if found is None or found.mlir not in NUMPY:
        raise ValueError(f"no data format has elements of {type_}")
    return NUMPY[found.mlir]


def rounded(values: Array, dtype: np.dtype[Any]) -> Array:
    """f32 numbers as a tile of this type holds them, as f32 again."""
    return values if dtype == np.float32 else round_to(values, dtype).astype(np.float32)


def broadcast(tile: Array, dims: tuple[int, ...]) -> Array:
    """The first row (`dims` has 0), column (1) or element (both) of tiles, spread over the tile."""
    kept = tile[..., :1, :] if 0 in dims else tile
    kept = kept[..., :1] if 1 in dims else kept
    return np.broadcast_to(kept, tile.shape).copy()


def reduce(kind: str, tile: Array, dims: tuple[int, ...]) -> Array:
    """Sums or maxima along rows (`dims` has 0: down the columns) and columns (1): in row 0, column 0 or element 0."""
    axes = tuple(axis - 2 for axis in dims)
    found = (np.sum if kind == "sum" else np.max)(tile, axis=axes, keepdims=True)
    result = np.zeros_like(tile)
    result[..., : found.shape[-2], : found.shape[-1]] = found
    return result


def combine(kind: str, a: Array, b: Array) -> Array:
    """Two partial results of a reduction."""
    return a + b if kind == "sum" else np.maximum(a, b)
