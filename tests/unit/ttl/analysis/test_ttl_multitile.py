"""Sub-blocks: they cover the block, fit, and no other way to cut it with two sizes per dimension has fewer."""

from itertools import product
from math import prod

import pytest
from hypothesis import given, strategies as st

from tlx_xdsl.ttl.analysis.multitile import Pieces, multitile, sub_block


@pytest.mark.parametrize(
    ("size", "target", "pieces"),
    [
        (7, 4, Pieces(4, 1, 1)),
        (8, 4, Pieces(4, 2, 0)),
        # The sizes are even: not 4, 4 and 1.
        (9, 4, Pieces(3, 3, 0)),
        (13, 8, Pieces(7, 1, 1)),
        (5, 8, Pieces(5, 1, 0)),
        (3, 1, Pieces(1, 3, 0)),
    ],
)
def test_two_sizes(size: int, target: int, pieces: Pieces) -> None:
    assert multitile(size, target) == pieces


@given(st.integers(1, 60), st.integers(1, 20))
def test_pieces_cover_the_dimension(size: int, target: int) -> None:
    pieces = multitile(size, target)
    covered = [begin for low, high, step in pieces.spans for begin in range(low, high, step)]
    assert len(covered) == pieces.number == -(-size // target)
    assert pieces.spans[0][0] == 0
    assert pieces.spans[-1][1] == size
    assert pieces.high <= target


def _fewest(shape: tuple[int, ...], tiles: int) -> int:
    """Sub-blocks at least, over all ways to cut each dimension into pieces of two sizes of any difference."""

    def ways(size: int) -> set[tuple[int, int]]:
        """The largest piece and the number of pieces."""
        pairs = product(range(1, size + 1), range(size + 1), range(size + 1), range(size + 1))
        return {
            (max(first, second) if others else first, count + others)
            for first, count, second, others in pairs
            if count and first * count + second * others == size and (second or not others)
        }

    return min(
        prod(count for _, count in way)
        for way in product(*(ways(size) for size in shape))
        if prod(largest for largest, _ in way) <= tiles
    )


@pytest.mark.parametrize("tiles", [1, 2, 3, 4, 8])
def test_no_way_has_fewer(tiles: int) -> None:
    for shape in product(range(1, 8), repeat=2):
        found = sub_block(shape, tiles)
        assert prod(pieces.high for pieces in found) <= tiles
        assert prod(pieces.number for pieces in found) == _fewest(shape, tiles), shape


def test_inner_dimension_first() -> None:
    assert sub_block((4, 4), 4) == (Pieces(1, 4, 0), Pieces(4, 1, 0))
    assert sub_block((4, 2), 4) == (Pieces(2, 2, 0), Pieces(2, 1, 0))


def test_prime_dimension_is_not_cut_into_single_tiles() -> None:
    assert sub_block((7, 1), 4) == (Pieces(4, 1, 1), Pieces(1, 1, 0))
