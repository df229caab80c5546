"""Maps through views: right wherever one is found, and none is found only where there is none."""

from itertools import product

import pytest

from tlx_xdsl.analysis.overlap_tree import IndexMap
from tlx_xdsl.transforms.storage_alias.array_views import places_of_regrouping, places_of_slice

MAPS = [IndexMap(1, 1, offset) for offset in range(5)] + [
    IndexMap(size, stride, offset) for size in (1, 2, 3, 4) for stride in range(size + 1, 8) for offset in range(4)
]
COUNT = 12


def some_map_says(places: list[int]) -> bool:
    """Return whether any map puts buffers at `places`."""
    candidates = (
        IndexMap(size, stride, places[0]) for size in range(1, len(places) + 1) for stride in range(places[-1] + 2)
    )
    return any([candidate(i) for i in range(len(places))] == places for candidate in candidates)


@pytest.mark.parametrize("places", MAPS, ids=str)
def test_slices(places: IndexMap):
    for first, count in product(range(COUNT), range(1, COUNT)):
        found = places_of_slice(places, first, count)
        wanted = [places(first + i) for i in range(count)]
        if found is None:
            # Buffers of three groups or more; two can look like groups of another size.
            assert first % places.group_size
        else:
            assert [found(i) for i in range(count)] == wanted


@pytest.mark.parametrize("places", MAPS, ids=str)
def test_regroupings(places: IndexMap):
    for unit, new_unit in product((1, 2, 3, 4, 6, 8), repeat=2):
        for count in range(1, COUNT * unit // new_unit + 1):
            found = places_of_regrouping(places, unit, new_unit, count)
            starts = [
                [places(b // unit) * unit + b % unit for b in range(i * new_unit, (i + 1) * new_unit)]
                for i in range(count)
            ]
            whole = all(bytes_[-1] - bytes_[0] == new_unit - 1 and bytes_[0] % new_unit == 0 for bytes_ in starts)
            slots = [bytes_[0] // new_unit for bytes_ in starts]
            if found is not None:
                assert whole, (unit, new_unit, count)
                assert [found(i) for i in range(count)] == slots
            else:
                assert not whole or not some_map_says(slots), (unit, new_unit, count)
