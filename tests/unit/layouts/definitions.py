"""Definitions by single elements, which the arrays and the algebra of `tlx_xdsl.layouts` are compared with."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import cast

from tlx_xdsl.layouts.address import TMEM_COLUMN_BITS, padded_place, tmem_columns
from tlx_xdsl.layouts.conversion.shared import buffer_rank, shared_to_linear
from tlx_xdsl.layouts.conversion.tensor_memory import tensor_memory_to_linear
from tlx_xdsl.layouts.conversion.tiling import BLOCK, COL, OFFSET, ROW, dim_names, dims_by_appearance, identity_nd
from tlx_xdsl.layouts.cute import CuteLayout, Nested, Swizzle
from tlx_xdsl.layouts.encodings import Ints, PaddedSharedLayout, SharedLayout, TmemLayout
from tlx_xdsl.layouts.f2 import image
from tlx_xdsl.layouts.linear_layout import LinearLayout, log2


def compose(inner: LinearLayout, outer: LinearLayout) -> LinearLayout:
    """`outer` after `inner`: `compose(f, g)(x) == g(f(x))`; associative.

    The outputs of `inner` are the inputs of `outer`, in any order; `outer` may take larger indices.
    """
    if set(inner.out_names) != set(outer.in_names):
        raise ValueError(f"cannot compose: {inner.out_names} are not the inputs {outer.in_names}")
    for name, size in inner.outs:
        if (taken := outer.in_sizes[name]) < size:
            raise ValueError(f"cannot compose: '{name}' has size {size}, the outer layout takes {taken}")
    columns = tuple(chain.from_iterable(outer.packed_bases(name)[: log2(size)] for name, size in inner.outs))
    return LinearLayout(
        tuple((name, tuple(image(columns, basis) for basis in bases)) for name, bases in inner.ins), outer.outs
    )


def invert(layout: LinearLayout) -> LinearLayout:
    """The inverse of a bijection."""
    if not layout.is_injective():
        raise ValueError(f"cannot invert a layout that is not injective:\n{layout}")
    return layout.right_inverse()


@dataclass(frozen=True, slots=True)
class SharedAddress:
    """A place in the shared memory of a cluster."""

    block: int
    """Rank of the CTA whose shared memory it is; the lowest if several hold copies."""
    byte: int
    """Bytes from the start of the buffer."""


@dataclass(frozen=True, slots=True)
class TmemAddress:
    """A place in the tensor memory of a cluster."""

    block: int
    """Rank of the CTA whose tensor memory it is; the lowest if several hold copies."""
    row: int
    """One of the 128 lanes, the lowest if several hold copies."""
    column: int
    """32-bit columns from the start of the buffer."""
    bit: int
    """Lowest bit of the element in the column's cell."""


def shared_address(layout: SharedLayout, shape: Ints, index: Ints, element_bits: int) -> SharedAddress:
    """Return where element `index` of a buffer of `shape` elements of `element_bits` bits is.

    Raises ValueError if the layout does not fit `shape`, or `index` is outside it.
    """
    tiles, tile = _split(shape, buffer_rank(layout))
    linear = shared_to_linear(layout, tile)
    number, place = _located(linear, shape, index, len(tiles))
    element = number * linear.in_sizes[OFFSET] + place[OFFSET]
    return SharedAddress(place[BLOCK], padded_place(layout, element) * element_bits // 8)


def tmem_address(layout: TmemLayout, shape: Ints, index: Ints, element_bits: int) -> TmemAddress:
    """Return where element `index` of a buffer of `shape` elements of `element_bits` bits is.

    Raises ValueError if the layout does not fit `shape`, or `index` is outside it.
    """
    tiles, tile = _split(shape, 2)
    number, place = _located(tensor_memory_to_linear(layout, tile), shape, index, len(tiles))
    column, bit = divmod(place[COL] * element_bits, TMEM_COLUMN_BITS)
    start = number * tmem_columns(layout, tile, element_bits)
    return TmemAddress(place[BLOCK], place[ROW], start + column, bit)


def _split(shape: Ints, rank: int) -> tuple[Ints, Ints]:
    if len(shape) - rank not in (0, 1):
        raise ValueError(f"a layout of {rank} dimensions, used for a buffer of shape {shape}")
    return shape[: len(shape) - rank], shape[len(shape) - rank :]


@lru_cache
def _inverse(linear: LinearLayout) -> LinearLayout:
    return linear.right_inverse()


def _located(linear: LinearLayout, shape: Ints, index: Ints, tiles: int) -> tuple[int, dict[str, int]]:
    """The tile that holds element `index`, and the location inside the tile."""
    if len(index) != len(shape) or any(not 0 <= at < size for at, size in zip(index, shape, strict=True)):
        raise ValueError(f"element {index} is outside shape {shape}")
    return index[0] if tiles else 0, _inverse(linear).apply(dict(zip(linear.out_names, index[tiles:], strict=True)))


def identity_padded_layout(intervals: Ints, paddings: Ints, order: Ints, shape: Ints) -> PaddedSharedLayout:
    """The padded layout of elements that follow each other, the dimensions from fastest to slowest as in `order`."""
    linear = identity_nd(OFFSET, shape, order)
    return PaddedSharedLayout(intervals, paddings, linear.bases_of(OFFSET), ())


def identity_order(layout: PaddedSharedLayout, rank: int) -> Ints | None:
    """The order whose `identity_padded_layout` is `layout`; None if its elements are permuted, or in several CTAs."""
    order = dims_by_appearance(layout.offset, rank)
    sizes = LinearLayout.from_bases({OFFSET: layout.offset}, dim_names(rank)).out_sizes
    identity = identity_padded_layout(layout.intervals, layout.paddings, order, tuple(sizes.values()))
    return order if identity == layout else None


_LAYOUT = re.compile(r"(?:Swizzle<(\d+),(\d+),(\d+)> o )?([_\d(),]+):([_\d(),]+)")


def parse_cute_layout(text: str) -> CuteLayout:
    """The layout that `str` of a `CuteLayout` spells.

    Raises ValueError, with what was expected, for any other text.
    """
    match = _LAYOUT.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a layout such as 'Swizzle<3,3,3> o (8,(32,2)):(64,(1,32))', found {text!r}")
    swizzle = None if match[1] is None else Swizzle(int(match[1]), int(match[2]), int(match[3]))
    shape, stride = (_nested(each.replace("_", "")) for each in (match[4], match[5]))
    if not _congruent(shape, stride):
        raise ValueError(f"shape and stride must be nested alike, found {match[4]} and {match[5]}")
    return CuteLayout(shape, stride, swizzle)


def _nested(text: str) -> Nested:
    try:
        # Digits, parentheses and commas: a number or nested tuples of them is all that it can be.
        return ast.literal_eval(text)
    except SyntaxError as error:
        raise ValueError(f"expected a number or nested tuples of numbers, found '{text}'") from error


def _congruent(shape: Nested, stride: Nested) -> bool:
    if isinstance(shape, int) or isinstance(stride, int):
        return isinstance(shape, int) and isinstance(stride, int)
    return len(shape) == len(stride) and all(map(_congruent, shape, stride))


def _offset(shape: Nested, stride: Nested, index: int) -> int:
    if isinstance(shape, int):
        return index * cast(int, stride)
    total = 0
    for size, step in zip(shape, cast("tuple[Nested, ...]", stride), strict=True):
        index, coordinate = divmod(index, _size(size))
        total += _offset(size, step, coordinate)
    return total


def _size(shape: Nested) -> int:
    if isinstance(shape, int):
        return shape
    total = 1
    for size in shape:
        total *= _size(size)
    return total


def cute_offset(layout: CuteLayout, *coordinates: int) -> int:
    """The offset at a coordinate for each mode of the outermost tuple, or at one integer for all of them.

    Raises ValueError for another number of coordinates.
    """
    if len(coordinates) == 1:
        offset = _offset(layout.shape, layout.stride, coordinates[0])
    elif isinstance(layout.shape, tuple) and len(layout.shape) == len(coordinates):
        strides = cast("tuple[Nested, ...]", layout.stride)
        offset = sum(map(_offset, layout.shape, strides, coordinates))
    else:
        raise ValueError(f"expected a coordinate for each mode of {layout.shape}, got {coordinates}")
    return offset if layout.swizzle is None else layout.swizzle(offset)
