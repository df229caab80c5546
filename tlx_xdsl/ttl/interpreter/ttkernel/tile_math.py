"""Arithmetic on tiles: arrays of f32 [..., 32, 32], one operation as the units of a core do it (but exactly in f32)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Attribute, Operation

from tlx_xdsl.dialects.base.tensors import element_type_of
from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.numerics.rounding import round_to
from tlx_xdsl.ttl.elementwise import Function, evaluate
from tlx_xdsl.ttl.tiles import NUMPY

from .translate import attribute

Unary = Callable[[Array], Array]

BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "remainder": np.remainder,
}


def vector_function(function: Function, op: Operation) -> Unary:
    """A function of the vector unit with the numbers that an operation gives it."""
    given: Any = attribute(op, "parameters")
    numbers = () if given is None else tuple(float(each.value.data) for each in given)
    return lambda tile: evaluate(function, tile, numbers)


def where(condition: Array, a: Array, b: Array) -> Array:
    """Elements of `a` where those of the condition are not zero, of `b` elsewhere."""
    return np.where(condition != 0, a, b)


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
