"""Arithmetic on tiles: arrays of f32 [..., 32, 32], one operation as the units of a core do it (but exactly in f32)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Operation
from xdsl.utils.hints import isa

from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.numerics.rounding import round_to_integer
from tlx_xdsl.ttl.elementwise import Function, evaluate
from tlx_xdsl.ttl.formats import Format, format_for

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


def number_of(op: Operation) -> Any:
    """The number that an operation fills a tile with, in the type that registers have."""
    value = attribute(op, "value")
    if isinstance(value, FloatAttr):
        return np.float32(value.value.data)
    assert isa(value, IntegerAttr[IntegerType])
    return format_for(value.type).register.type(value.value.data)


def formats_of(op: Operation) -> tuple[Format, Format]:
    """The formats that a typecast is between."""
    source, target = attribute(op, "source"), attribute(op, "target")
    assert source is not None and target is not None
    return format_for(source), format_for(target)


def typecast(values: Array, source: Format, target: Format) -> Array:
    """Elements of a register as they are after a typecast: see `ttl.typecast`."""
    if source.is_integer and target.is_integer:
        limits = np.iinfo(target.register)
        return np.clip(values.astype(np.int64), limits.min, limits.max).astype(target.register)
    if target.is_integer:
        to_whole = _away if target.name == "ui16" else np.trunc
        return np.asarray(round_to_integer(values, target.register, to_whole))
    if source.is_integer:
        wide = values.astype(np.float32)
        return wide if target.name == "f32" else _bf16_away(wide)
    return target.rounded(values) if (source.name, target.name) == ("f32", "bf16") else values


def _away(values: Array) -> Array:
    """The nearest integers, ties away from zero."""
    return np.copysign(np.floor(np.abs(values) + 0.5), values)


def _bf16_away(values: Array) -> Array:
    """The nearest bf16 numbers, ties away from zero, as f32."""
    return (values.view(np.uint32) + np.uint32(0x8000) & np.uint32(0xFFFF0000)).view(np.float32)


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
