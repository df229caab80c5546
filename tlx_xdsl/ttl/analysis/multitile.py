"""Sizes of sub-blocks of which all tiles fit into the DST registers at once.

A dimension is cut into pieces of at most two sizes, as MLIR's `transform.structured.multitile_sizes` computes them:
for 7 tiles and a target of 4, one piece of 4 and one of 3, where a size that divides 7 would be 1.
https://mlir.llvm.org/docs/Dialects/Transform/#transformstructuredmultitile_sizes-transformmultitilesizesop
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import NamedTuple


class Pieces(NamedTuple):
    """Division of a dimension: first `high_count` pieces of `high` tiles, then `low_count` of one tile less."""

    high: int
    high_count: int
    low_count: int

    @property
    def number(self) -> int:
        """All pieces."""
        return self.high_count + self.low_count

    @property
    def spans(self) -> list[tuple[int, int, int]]:
        """Begin, end and step of the pieces of one size each; an empty span is left out."""
        middle = self.high * self.high_count
        end = middle + (self.high - 1) * self.low_count
        spans = [(0, middle, self.high), (middle, end, self.high - 1)]
        return [span for span in spans if span[0] < span[1]]


def multitile(size: int, target: int) -> Pieces:
    """Cut `size` tiles into the fewest pieces of at most `target` tiles whose sizes differ by at most one."""
    count = -(-size // target)
    low, larger = divmod(size, count)
    return Pieces(low + 1, larger, count - larger) if larger else Pieces(low, count, 0)


def sub_block(shape: Sequence[int], tiles: int, *, equal: bool = False) -> tuple[Pieces, ...]:
    """Cut a block of `shape` tiles into the fewest sub-blocks of at most `tiles` tiles each; `equal`: of one size.

    Of several ways with as few, the one with the longest rows: inner dimensions are contiguous in the buffer.
    """
    # A target that gives as many pieces as a smaller one can only give larger pieces.
    ways = [list(dict.fromkeys(multitile(size, target) for target in range(1, size + 1))) for size in shape]
    fitting = (
        way
        for way in product(*ways)
        if prod(each.high for each in way) <= tiles and not (equal and any(each.low_count for each in way))
    )
    return min(fitting, key=lambda way: (prod(each.number for each in way), *(-each.high for each in reversed(way))))


def in_order(pieces: Sequence[Pieces]) -> bool:
    """Return whether loops over sub-blocks, a nest for each size of them, go through the tiles row by row."""
    cut = [number for number, each in enumerate(pieces) if each.number > 1]
    if not cut:
        return True
    *outer, last = pieces[: cut[-1] + 1]
    return all(each.high == 1 for each in outer) and (len(last.spans) == 1 or all(each.number == 1 for each in outer))
