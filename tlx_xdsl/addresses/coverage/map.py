"""One array as a picture shows it: a grid of samples, each with the programs that touch it.

An array is seen as rows: its last dimension goes to the right, all others downwards. Where the blocks of programs have
few borders, samples stand for all elements between two borders; else they are spread evenly, and an element that no
sample stands for is not seen. Either way, what is said of a sample is true of that element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tlx_xdsl.numerics.arrays import distinct

from .coverage import Touched
from .runs import Runs
from .values import Integers

FINEST = 96
"""Cells along an axis, at most: the finest resolution."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Rectangles of an array seen as rows, each touched by a program: from `top` and `left` on, before the others."""

    program: Integers
    top: Integers
    bottom: Integers
    left: Integers
    right: Integers


@dataclass(frozen=True, eq=False)
class CoverageMap:
    """An array of `height` rows of `width` elements, cut into cells."""

    height: int
    width: int
    rows: Integers
    """The first row of each row of cells, and the end of the last one."""
    columns: Integers
    counts: Integers
    """The number of programs that touch the sample of each cell."""
    first: Integers
    """The first of them; -1 for none."""
    last: Integers
    is_exact: bool
    """True if all elements of a cell are touched by the same programs."""


def coverage_map(touched: Sequence[Touched], shape: Sequence[int]) -> CoverageMap:
    """The programs that touch each part of an array of the given shape; what lies outside of it is left out."""
    height, width = prod(shape[:-1]), shape[-1]
    boxes = boxes_of([each.runs for each in touched], touched[0].element if touched else 1, height, width)
    rows, exact_rows = _cuts(boxes.top, boxes.bottom, height)
    columns, exact_columns = _cuts(boxes.left, boxes.right, width)
    counts = np.zeros((len(rows) - 1, len(columns) - 1), np.int64)
    first, last = np.full_like(counts, -1), np.full_like(counts, -1)
    row_samples, column_samples = (cuts[:-1] + (cuts[1:] - cuts[:-1]) // 2 for cuts in (rows, columns))
    spans = np.stack(
        [
            np.searchsorted(row_samples, boxes.top),
            np.searchsorted(row_samples, boxes.bottom),
            np.searchsorted(column_samples, boxes.left),
            np.searchsorted(column_samples, boxes.right),
        ],
        axis=1,
    )
    seen_at_all = (spans[:, 0] < spans[:, 1]) & (spans[:, 2] < spans[:, 3])
    spans, owners = spans[seen_at_all], boxes.program[seen_at_all]
    order = np.argsort(owners, kind="stable")
    programs, starts = np.unique(owners[order], return_index=True)
    for program, here in zip(programs, np.split(spans[order], starts)[1:], strict=True):
        seen = np.zeros(counts.shape, np.bool_)
        for top, bottom, left, right in np.unique(here, axis=0):
            seen[top:bottom, left:right] = True
        first[seen & (counts == 0)] = program
        last[seen] = program
        counts += seen
    return CoverageMap(height, width, rows, columns, counts, first, last, exact_rows and exact_columns)


def boxes_of(all_runs: Sequence[Runs], element: int, height: int, width: int) -> Boxes:
    """Runs of bytes as rectangles of `height` rows of `width` elements."""
    runs = Runs.joined(all_runs).united()
    start = np.clip(runs.start // element, 0, height * width)
    end = np.clip(-(-runs.end // element), 0, height * width)
    inside = end > start
    program, start, end = runs.program[inside], start[inside], end[inside]
    first, last = start // width, (end - 1) // width
    # A run that goes on after the end of its row is the rest of that row, whole rows, and the begin of one.
    one = first == last
    head = ~one & (start % width != 0)
    tail = ~one & (end % width != 0)
    whole_from, whole_to = first + head, last + 1 - tail
    whole = ~one & (whole_to > whole_from)
    pieces = (
        (one, first, first + 1, start % width, (end - 1) % width + 1),
        (head, first, first + 1, start % width, np.full_like(first, width)),
        (whole, whole_from, whole_to, np.zeros_like(first), np.full_like(first, width)),
        (tail, last, last + 1, np.zeros_like(first), end % width),
    )
    found = [
        np.concatenate([program[chosen] for chosen, *_ in pieces]),
        *(np.concatenate([piece[i][piece[0]] for piece in pieces]) for i in range(1, 5)),
    ]
    return _stacked(Boxes(*found))


def _stacked(boxes: Boxes) -> Boxes:
    """Rectangles of the same program and columns that stand on each other, as one."""
    order = np.lexsort((boxes.top, boxes.right, boxes.left, boxes.program))
    sorted_ = [each[order] for each in (boxes.program, boxes.left, boxes.right, boxes.top, boxes.bottom)]
    if not len(order):
        return boxes
    program, left, right, top, bottom = sorted_
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (
        (program[1:] != program[:-1]) | (left[1:] != left[:-1]) | (right[1:] != right[:-1]) | (top[1:] != bottom[:-1])
    )
    begins = np.flatnonzero(fresh)
    ends = np.concatenate((begins[1:], [len(order)])) - 1
    return Boxes(program[begins], top[begins], bottom[ends], left[begins], right[begins])


def _cuts(low: Integers, high: Integers, length: int) -> tuple[Integers, bool]:
    """The borders of cells along an axis, and True if every border of a block is among them."""
    borders = distinct(np.concatenate((low, high, [0, length])))
    if len(borders) <= FINEST + 1:
        return borders, True
    return distinct(np.linspace(0, length, FINEST + 1).round().astype(np.int64)), False
