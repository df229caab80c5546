"""First-fit placement of buffers in one memory: pure arithmetic.

A buffer goes to the lowest address that is free among those placed before which are in use together with it, so all
that there is to choose is the order. No order is best for all kernels, so a few are tried, and the best one is improved
by moving single buffers to its front: the optimum over all orders is the optimum over all placements, because every
placement can be pushed down into one that first fit finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set as AbstractSet
from dataclasses import dataclass

ALIGNMENT = 32
"""Bytes to a multiple of which every circular buffer begins: the NoC moves 32 bytes at a time."""

Conflicts = Sequence[AbstractSet[int]]
"""For each buffer the numbers of those that are in use together with it. Symmetric; without the buffer itself."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Addresses of the buffers, in bytes."""

    addresses: tuple[int, ...]
    bytes: int
    """Of all together: the highest end of a buffer."""


def aligned(size: int) -> int:
    """The next multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def first_fit(sizes: Sequence[int], conflicts: Conflicts, order: Sequence[int]) -> Placement:
    """Place the buffers in this order, each at the lowest address that is free for it."""
    addresses: dict[int, int] = {}
    total = 0
    for number in order:
        at, size = 0, aligned(sizes[number])
        taken = sorted(
            (addresses[other], addresses[other] + aligned(sizes[other]))
            for other in conflicts[number]
            if other in addresses
        )
        for begin, end in taken:
            if begin - at >= size:
                break
            at = max(at, end)
        addresses[number] = at
        total = max(total, at + size)
    return Placement(tuple(addresses[number] for number in range(len(sizes))), total)


def place(sizes: Sequence[int], conflicts: Conflicts) -> Placement:
    """The best placement that a few orders, and the best of them with single buffers moved to its front, give."""
    least = _heaviest_clique(sizes, conflicts)
    order, best = [], Placement((), 0)
    for candidate in _orders(sizes, conflicts):
        found = first_fit(sizes, conflicts, candidate)
        if not order or found.bytes < best.bytes:
            order, best = candidate, found
        if best.bytes == least:
            return best
    return _improved(sizes, conflicts, order, best, least)


def _orders(sizes: Sequence[int], conflicts: Conflicts) -> Iterator[list[int]]:
    numbers = range(len(sizes))
    # As declared, so that a kernel whose buffers all are in use at once has them in the order of its text.
    yield [*numbers]
    yield sorted(numbers, key=lambda number: -sizes[number])
    weight = [sizes[number] + sum(sizes[other] for other in conflicts[number]) for number in numbers]
    yield sorted(numbers, key=lambda number: (-weight[number], -sizes[number]))
    yield sorted(numbers, key=lambda number: (-len(conflicts[number]), -sizes[number]))


def _improved(sizes: Sequence[int], conflicts: Conflicts, order: list[int], best: Placement, least: int) -> Placement:
    """Move one buffer, or two, to the front of the order for as long as that helps."""
    improved = True
    while improved and best.bytes > least:
        improved = False
        for candidate in _moves(order):
            found = first_fit(sizes, conflicts, candidate)
            if found.bytes < best.bytes:
                order, best, improved = candidate, found, True
                break
    return best


def _moves(order: list[int]) -> Iterator[list[int]]:
    for first in order:
        rest = [number for number in order if number != first]
        yield [first, *rest]
        for second in rest:
            yield [first, second, *(number for number in rest if number != second)]


def _heaviest_clique(sizes: Sequence[int], conflicts: Conflicts) -> int:
    """Bytes of buffers that all are in use together, of the most that are found greedily: no placement has less."""
    heaviest = 0
    for start in range(len(sizes)):
        weight, common = aligned(sizes[start]), set(conflicts[start])
        while common:
            largest = max(common, key=lambda number: (sizes[number], -number))
            weight += aligned(sizes[largest])
            common &= conflicts[largest]
        heaviest = max(heaviest, weight)
    return heaviest
