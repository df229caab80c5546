"""The address of an element of a buffer: the byte in shared memory, the row and column in tensor memory.

A buffer may have one dimension more than its layout describes, in front: that many tiles, one after the other.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, overload

from tlx_xdsl.errors import InputError

from .conversion.shared import buffer_rank, shared_to_linear
from .conversion.tensor_memory import tensor_memory_to_linear
from .conversion.tiling import BLOCK, COL, NEWEST, OFFSET, ROW, Version, dim_names
from .encodings import Ints, PaddedSharedLayout, SharedLayout, TmemLayout
from .linear_layout import LinearLayout
from .shared import bytes_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TMEM_COLUMN_BITS = 32
"""Bits of one cell of tensor memory (PTX ISA, "Tensor Memory")."""


def shared_addresses(layout: SharedLayout, shape: Ints, element_bits: int) -> NDArray[np.int64]:
    """The byte, from the start of the buffer, of every element, as an array of `shape`.

    An element that several CTAs hold is that of the lowest one.
    """
    tiles, tile = split(shape, buffer_rank(layout))
    linear = shared_to_linear(layout, tile)
    numbers, places = _located(linear, tiles, tile)
    return padded_place(layout, numbers * linear.in_sizes[OFFSET] + places[OFFSET]) * element_bits // 8


def shared_blocks(layout: SharedLayout, shape: Ints) -> tuple[NDArray[np.int64], int]:
    """The rank of the CTA that holds each element, the lowest if several hold copies, as an array of `shape`, and the
    number of CTAs.
    """
    import numpy as np

    tiles, tile = split(shape, buffer_rank(layout))
    linear = shared_to_linear(layout, tile)
    return np.broadcast_to(_located(linear, tiles, tile)[1][BLOCK], shape), linear.in_sizes[BLOCK]


def shared_bytes(layout: SharedLayout, shape: Ints, element_bits: int, version: Version = NEWEST) -> int:
    """Bytes of shared memory that one CTA's part of a buffer takes, paddings between elements included."""
    tiles, tile = split(shape, buffer_rank(layout))
    elements = prod(tiles) * shared_to_linear(layout, tile, version).in_sizes[OFFSET]
    return bytes_of(padded_place(layout, elements - 1) + 1, element_bits)


def tmem_addresses(layout: TmemLayout, shape: Ints, element_bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The row of every element, and its bit from the start of the row, as arrays of `shape`."""
    import numpy as np

    tiles, tile = split(shape, 2)
    numbers, places = _located(tensor_memory_to_linear(layout, tile), tiles, tile)
    width = tmem_columns(layout, tile, element_bits) * TMEM_COLUMN_BITS
    return np.broadcast_to(places[ROW], shape), numbers * width + places[COL] * element_bits


def tmem_columns(layout: TmemLayout, shape: Ints, element_bits: int, version: Version = NEWEST) -> int:
    """32-bit columns of tensor memory that one CTA's part of a buffer takes."""
    tiles, tile = split(shape, 2)
    elements = tensor_memory_to_linear(layout, tile, version).in_sizes[COL]
    return prod(tiles) * -(-elements * element_bits // TMEM_COLUMN_BITS)


@lru_cache(maxsize=4096)
def _inverse(linear: LinearLayout) -> LinearLayout:
    return linear.right_inverse()


@overload
def padded_place(layout: SharedLayout, element: int) -> int: ...
@overload
def padded_place(layout: SharedLayout, element: NDArray[np.int64]) -> NDArray[np.int64]: ...
def padded_place(layout: SharedLayout, element: int | NDArray[np.int64]) -> int | NDArray[np.int64]:
    """The place of an element, counted in elements, if so many elements precede it without paddings."""
    if not isinstance(layout, PaddedSharedLayout):
        return element
    place = element
    for interval, padding in zip(layout.intervals, layout.paddings, strict=True):
        place = place + element // interval * padding
    return place


def split(shape: Ints, rank: int) -> tuple[Ints, Ints]:
    """`shape` as the number of tiles, empty or one number, and the shape of a tile."""
    if len(shape) - rank not in (0, 1):
        raise InputError(f"a layout of {rank} dimensions, used for a buffer of shape {shape}")
    return shape[: len(shape) - rank], shape[len(shape) - rank :]


def _located(linear: LinearLayout, tiles: Ints, tile: Ints) -> tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]:
    """The tile of every element, and the location inside the tile, as arrays that broadcast to the buffer's shape."""
    import numpy as np

    indices = dict(zip(dim_names(len(tile)), np.indices(tile, sparse=True), strict=True))
    return np.arange(prod(tiles)).reshape(*tiles, *(1 for _ in tile)), _inverse(linear).apply_array(indices)
