"""The programs of a grid, in the order in which they are launched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias, overload

from tlx_xdsl.errors import InputError

MOST_PROGRAMS = 1 << 24
"""Programs of a launch: at 0.1 ms for each, which is little, that many take half an hour."""

First: TypeAlias = tuple[int, int, int]
"""The first program of a cluster."""


@dataclass(frozen=True)
class Firsts(Sequence[First]):
    """The first program of each cluster of a part of a grid, each made when it is asked for."""

    grid: tuple[int, int, int]
    cluster: tuple[int, int, int]
    numbers: range
    """The numbers of the clusters in the grid, the x axis fastest."""

    def __len__(self) -> int:
        """Return the number of clusters."""
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> First: ...
    @overload
    def __getitem__(self, index: slice) -> Firsts: ...
    def __getitem__(self, index: int | slice) -> First | Firsts:
        """One of them, or some as a sequence of the same kind."""
        if isinstance(index, slice):
            return replace(self, numbers=self.numbers[index])
        number = self.numbers[index]
        columns, rows = self.grid[0] // self.cluster[0], self.grid[1] // self.cluster[1]
        place = (number % columns, number // columns % rows, number // columns // rows)
        x, y, z = (at * size for at, size in zip(place, self.cluster, strict=True))
        return x, y, z


class Unlaunched:
    """The clusters that are not launched yet: they go in order, and only the first ones."""

    def __init__(self, firsts: Sequence[First]):
        self._firsts = firsts
        self._next = 0

    def __len__(self) -> int:
        """Return how many are left."""
        return len(self._firsts) - self._next

    def take(self) -> First:
        """Take the next one."""
        self._next += 1
        return self._firsts[self._next - 1]


def firsts_of(grid: First, cluster: First) -> Firsts:
    """The first program of each cluster of a grid.

    Raises ValueError where clusters do not fill the grid, and for a grid that takes too long to run.
    """
    for axis, programs, blocks in zip("xyz", grid, cluster, strict=True):
        if programs < 0 or blocks < 1 or programs % blocks:
            raise InputError(f"the grid has {programs} programs along {axis}, no multiple of the cluster's {blocks}")
    if (programs := prod(grid)) > MOST_PROGRAMS:
        raise InputError(f"the grid has {programs:,} programs, and the interpreter runs at most {MOST_PROGRAMS:,}")
    return Firsts(grid, cluster, range(programs // prod(cluster)))
