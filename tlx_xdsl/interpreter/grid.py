"""The programs of a grid, in the order in which they are launched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias, overload

from tlx_xdsl.errors import InputError

MOST_PROGRAMS = 1 << 24
"""Programs of a launch: at 0.1 ms for each, which is little, that many take half an hour."""

Program: TypeAlias = tuple[int, ...]
"""A program: its coordinates along x, y and z, and its rank after them where a kernel runs on several GPUs."""

First: TypeAlias = Program
"""The first program of a cluster."""


def program_text(program: Program, launch: int = 0) -> str:
    """Return a program as reports name it: `(0, 1, 0)`, `(0, 1, 0) of rank 2`, or with `in its launch 2` after it.

    `launch` is the number of the launch among those of its GPU, from 0.
    """
    text = f"{program[:3]} of rank {program[3]}" if len(program) > 3 else f"{program}"
    return f"{text} in its launch {launch + 1}" if launch else text


@dataclass(frozen=True)
class Firsts(Sequence[First]):
    """The first program of each cluster of a part of a grid, each made when it is asked for."""

    grid: tuple[int, int, int]
    cluster: tuple[int, int, int]
    numbers: range
    """The numbers of the clusters in the grid, the x axis fastest; with several ranks, the rank is faster still."""
    ranks: int = 0
    """GPUs that run the grid, each all of it; 0 where there is one, and programs have no rank."""

    def __len__(self) -> int:
        """Return the number of clusters."""
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> First: ...
    @overload
    def __getitem__(self, index: slice) -> Firsts: ...
    def __getitem__(self, index: int | slice) -> First | Firsts:
        """Return one element, or some as a sequence of the same kind."""
        if isinstance(index, slice):
            return replace(self, numbers=self.numbers[index])
        number, of_rank = self.numbers[index], ()
        if self.ranks:
            number, rank = divmod(number, self.ranks)
            of_rank = (rank,)
        columns, rows = self.grid[0] // self.cluster[0], self.grid[1] // self.cluster[1]
        place = (number % columns, number // columns % rows, number // columns // rows)
        x, y, z = (at * size for at, size in zip(place, self.cluster, strict=True))
        return x, y, z, *of_rank


class Unlaunched:
    """The clusters of one GPU that are not launched yet: they go in order, and only the first ones.

    Of several launches in a row, each has all of them.
    """

    def __init__(self, firsts: Sequence[First], rank: int = 0, launches: int = 1):
        self.rank = rank
        self._firsts = firsts
        self._launches = launches
        self._next = 0

    def __len__(self) -> int:
        """Return how many are left."""
        return len(self._firsts) * self._launches - self._next

    @property
    def launch(self) -> int:
        """The number of the launch that the next one is of, from 0."""
        return self._next // len(self._firsts)

    def take(self) -> First:
        """Take the next one."""
        self._next += 1
        return self._firsts[(self._next - 1) % len(self._firsts)]


def by_rank(firsts: Sequence[First], launches: int = 1) -> list[Unlaunched]:
    """The clusters that each GPU has to launch, in each of `launches`; one GPU where programs have no rank."""
    if not firsts or len(firsts[0]) == 3:
        return [Unlaunched(firsts)]
    ranks: dict[int, list[First]] = {}
    for first in firsts:
        ranks.setdefault(first[3], []).append(first)
    return [Unlaunched(ranks[rank], rank, launches) for rank in sorted(ranks)]


def firsts_of(grid: tuple[int, int, int], cluster: tuple[int, int, int], ranks: int = 0) -> Firsts:
    """The first program of each cluster of a grid, which each of `ranks` GPUs runs.

    Raises ValueError where clusters do not fill the grid, and for a grid that takes too long to run.
    """
    for axis, programs, blocks in zip("xyz", grid, cluster, strict=True):
        if programs < 0 or blocks < 1 or programs % blocks:
            raise InputError(f"the grid has {programs} programs along {axis}, no multiple of the cluster's {blocks}")
    if (programs := prod(grid) * max(ranks, 1)) > MOST_PROGRAMS:
        raise InputError(f"the grid has {programs:,} programs, and the interpreter runs at most {MOST_PROGRAMS:,}")
    return Firsts(grid, cluster, range(programs // prod(cluster)), ranks)
