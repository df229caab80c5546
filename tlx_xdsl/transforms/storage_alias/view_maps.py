"""The slots of a view of an array whose buffers are not consecutive: plain arithmetic.

A view sees the bytes of the array as if its buffers were dense. Where they lie apart, the view's own buffers lie
somewhere too, and when these slots have the form of an `IndexMap` the view can be rewritten.
"""

from __future__ import annotations

from tlx_xdsl.analysis.overlap_tree import IndexMap


def places_of_slice(places: IndexMap, first: int, count: int) -> IndexMap | None:
    """The slots of buffers `first` to `first + count - 1`, numbered from 0; None when no map has them."""
    size = places.group_size
    if first // size == (first + count - 1) // size:
        return IndexMap(1, 1, places(first))
    if first % size:
        return None
    return IndexMap(size, places.group_stride, places(first))


def places_of_regrouping(places: IndexMap, unit: int, new_unit: int, count: int) -> IndexMap | None:
    """The slots of `count` buffers of `new_unit` bytes that view the bytes of buffers of `unit` bytes.

    None when one of them is not in one piece, or does not lie on a multiple of its size. Works on columns of tensor
    memory as well.

    Two buffers of 4 KB in each group of 12 KB are one of 8 KB, at no multiple of its size; or four of 2 KB:
    >>> places_of_regrouping(IndexMap(2, 3, 0), 4096, 8192, 2)
    >>> places_of_regrouping(IndexMap(2, 3, 0), 4096, 2048, 8)
    IndexMap(group_size=4, group_stride=6, offset=0)
    """
    if unit == new_unit:
        return places
    run, stride, start = places.group_size * unit, places.group_stride * unit, places.offset * unit
    if start % new_unit:
        return None
    if run == stride or count * new_unit <= run:
        return IndexMap(1, 1, start // new_unit)
    if run % new_unit or stride % new_unit:
        return None
    return IndexMap(run // new_unit, stride // new_unit, start // new_unit)
