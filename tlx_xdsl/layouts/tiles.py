"""Recognition of buffers in shared memory that are arrays of tiles, one after the other."""

from __future__ import annotations

from math import prod

from tlx_xdsl.layouts.encodings import Ints, SharedLayout
from tlx_xdsl.layouts.linear_layout import log2
from tlx_xdsl.layouts.offset_terms import offset_of, offset_terms


def tile_strides(layout: SharedLayout, shape: Ints, tile: Ints, element_bits: int) -> Ints:
    """How many tiles a step from tile to tile along each dimension is, in the order in which tiles lie in memory.

    Each tile of `tile` elements then lies as a buffer of its own with the same layout would. A dimension that one tile
    fills has stride 0.

    Raises ValueError where tiles are interleaved, or lie otherwise than such a buffer.
    """
    whole, part = (offset_terms(layout, sizes, element_bits) for sizes in (shape, tile))
    tile_bytes = prod(tile) * element_bits // 8
    strides: list[int] = []
    for dim, (size, inner) in enumerate(zip(shape, tile, strict=True)):
        places = [offset_of(whole, _unit(len(shape), dim, 1 << bit)) for bit in range(log2(size))]
        below = [offset_of(part, _unit(len(shape), dim, 1 << bit)) for bit in range(log2(inner))]
        steps = places[len(below) :]
        if places[: len(below)] != below:
            raise ValueError("a tile lies otherwise than a buffer of its shape")
        if any(step != steps[0] << number or step % tile_bytes for number, step in enumerate(steps)):
            raise ValueError("the elements of a tile do not follow each other in shared memory")
        strides.append(steps[0] // tile_bytes if steps else 0)
    return tuple(strides)


def _unit(rank: int, dim: int, value: int) -> Ints:
    return tuple(value if number == dim else 0 for number in range(rank))
