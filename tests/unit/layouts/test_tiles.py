"""Tiles of a buffer, against the place of every element."""

import itertools

import numpy as np
import pytest

from tlx_xdsl.layouts.encodings import NvmmaSharedLayout, SwizzledSharedLayout
from tlx_xdsl.layouts.offset_terms import offset_of, offset_terms, tile_strides

LAYOUTS = (
    *(NvmmaSharedLayout(width, False, 16) for width in (32, 64, 128)),
    SwizzledSharedLayout(1, 1, 1, (1, 0)),
    SwizzledSharedLayout(8, 1, 8, (1, 0)),
    SwizzledSharedLayout(4, 2, 4, (1, 0)),
    SwizzledSharedLayout(1, 1, 1, (0, 1)),
)
SIZES = (4, 8, 16, 64, 128)


def places(layout, shape):
    """The byte of each element."""
    terms = offset_terms(layout, shape, 16)
    return np.array([offset_of(terms, index) for index in itertools.product(*map(range, shape))]).reshape(shape)


def strides_by_search(whole, part):
    """The steps between tiles where all of them lie as the part does, else None."""
    tiles = [size // inner for size, inner in zip(whole.shape, part.shape, strict=True)]
    size = 2 * part.size
    numbers = {}
    for tile in itertools.product(*map(range, tiles)):
        window = tuple(slice(at * inner, (at + 1) * inner) for at, inner in zip(tile, part.shape, strict=True))
        found = np.unique(whole[window] - part)
        if len(found) != 1 or found[0] % size:
            return None
        numbers[tile] = int(found[0]) // size
    steps = tuple(numbers[tuple(int(axis == dim) for axis in range(2))] if tiles[dim] > 1 else 0 for dim in range(2))
    fits = all(
        sum(at * step for at, step in zip(tile, steps, strict=True)) == number for tile, number in numbers.items()
    )
    return steps if fits else None


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_every_tile_lies_where_it_is_said_to(layout):
    tried = agreed = 0
    for shape in itertools.product((16, 64, 128), (16, 64, 128)):
        try:
            whole = places(layout, shape)
        except ValueError:
            # The layout wants a larger buffer.
            continue
        for tile in itertools.product(SIZES, SIZES):
            if tile[0] > shape[0] or tile[1] > shape[1]:
                continue
            try:
                expected = strides_by_search(whole, places(layout, tile))
            except ValueError:
                continue
            tried += 1
            try:
                found = tile_strides(layout, shape, tile, 16)
            except ValueError:
                found = None
            assert found == expected, f"{tile} of {shape}"
            agreed += found is not None
    assert tried > agreed > 0
