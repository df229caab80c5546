"""Placement of circular buffers: no two that are in use together overlap, and the total is near the optimum.

The oracle tries every order of the buffers: any placement can be pushed down into one that first fit finds for some
order, so the best of all orders is the optimum. `pytest -s` prints the distribution.
"""

from __future__ import annotations

import random
from itertools import combinations, permutations
from statistics import mean, median

import pytest

from tests.unit import volume
from tlx_xdsl.ttl.analysis.first_fit import ALIGNMENT, aligned, first_fit, place

pytestmark = pytest.mark.quick

COUNT = 2000
ORACLES = 400 if volume.is_full() else 120
"""Programs with an oracle, which takes the most time."""
SIZES = [2048, 4096, 8192, 12288, 16384, 24576, 65536, 131072, 96, 200]
"""Bytes of one to thirty-two tiles, and of rows of numbers."""


def random_program(rng: random.Random, most: int) -> tuple[list[int], list[set[int]]]:
    """Sizes and conflicts of buffers whose uses are partly ordered: lifetimes, where A ends before B begins."""
    count = rng.randint(2, most)
    lives = [sorted(rng.sample(range(12), 2)) for _ in range(count)]
    sizes = [rng.choice(SIZES) * rng.choice([1, 2]) for _ in range(count)]
    conflicts: list[set[int]] = [set() for _ in range(count)]
    for one, other in combinations(range(count), 2):
        before = lives[one][1] < lives[other][0] or lives[other][1] < lives[one][0]
        # Threads make some of what follows in time unordered.
        if not before or rng.random() < 0.1:
            conflicts[one].add(other)
            conflicts[other].add(one)
    return sizes, conflicts


def overlaps(sizes: list[int], conflicts: list[set[int]], addresses: tuple[int, ...]) -> bool:
    spans = [range(at, at + size) for at, size in zip(addresses, sizes, strict=True)]
    return any(
        max(spans[one].start, spans[other].start) < min(spans[one].stop, spans[other].stop)
        for one, others in enumerate(conflicts)
        for other in others
    )


def test_random_programs_never_overlap():
    rng = random.Random(7)
    for _ in range(COUNT):
        sizes, conflicts = random_program(rng, 16)
        placement = place(sizes, conflicts)
        assert not overlaps(sizes, conflicts, placement.addresses)
        assert all(address % ALIGNMENT == 0 for address in placement.addresses)
        assert placement.bytes == max(
            address + aligned(size) for address, size in zip(placement.addresses, sizes, strict=True)
        )


def test_total_is_near_the_optimum():
    rng = random.Random(11)
    ratios: list[float] = []
    for _ in range(ORACLES):
        sizes, conflicts = random_program(rng, 7 if volume.is_full() else 6)
        optimum = min(first_fit(sizes, conflicts, order).bytes for order in permutations(range(len(sizes))))
        ratios.append(place(sizes, conflicts).bytes / optimum)
        assert ratios[-1] >= 1
    print(f"\nfirst fit / optimum: median {median(ratios):.4f}, mean {mean(ratios):.4f}, worst {max(ratios):.4f}")
    assert median(ratios) <= 1.05
    assert max(ratios) <= 1.1


def test_all_in_use_together_lie_in_order():
    everything = [{1, 2}, {0, 2}, {0, 1}]
    assert place([4096, 100, 64], everything).addresses == (0, 4096, 4224)


def test_one_after_the_other_share():
    placement = place([4096, 8192], [set(), set()])
    assert placement.addresses == (0, 0)
    assert placement.bytes == 8192


@pytest.mark.parametrize(("size", "expected"), [(0, 0), (1, 32), (32, 32), (33, 64)])
def test_alignment(size: int, expected: int):
    assert aligned(size) == expected


def test_nothing():
    assert place([], []).bytes == 0


def test_large_programs_are_fast():
    rng = random.Random(5)
    sizes, conflicts = random_program(rng, 32)
    while len(sizes) < 28:
        sizes, conflicts = random_program(rng, 32)
    assert not overlaps(sizes, conflicts, place(sizes, conflicts).addresses)
