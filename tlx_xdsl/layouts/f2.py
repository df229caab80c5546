"""Linear algebra over F2, the field of two elements: a vector is an integer, its coordinates are the bits, addition
is XOR.

A linear map is the list of its columns: `columns[i]` is the image of the unit vector 2**i.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


def bits_of(vector: int) -> Iterator[int]:
    """The positions of the ones of `vector`, lowest first."""
    while vector:
        lowest = vector & -vector
        yield lowest.bit_length() - 1
        vector ^= lowest


def image(columns: Sequence[int], vector: int) -> int:
    """The image of `vector`: the sum of the columns that its ones select."""
    total = 0
    for bit in bits_of(vector):
        total ^= columns[bit]
    return total


@dataclass(frozen=True, slots=True)
class Elimination:
    """The columns of a map brought to echelon form (Gauss), with the record of how.

    `pivots` maps the highest bit of each reduced column to that column and to the columns whose sum it is.
    `free` has a one for every column that is a sum of earlier ones: moving along it can be undone by the others.
    """

    pivots: dict[int, tuple[int, int]]
    free: int

    @staticmethod
    def of(columns: Sequence[int]) -> Elimination:
        """Eliminate `columns`, first to last; O(columns * rank) XORs."""
        result = Elimination({}, 0)
        free = 0
        for index, column in enumerate(columns):
            rest, used = result.reduce(column)
            if rest:
                result.pivots[rest.bit_length() - 1] = (rest, used ^ (1 << index))
            else:
                free |= 1 << index
        return Elimination(result.pivots, free)

    @property
    def rank(self) -> int:
        """The dimension of the map's image."""
        return len(self.pivots)

    def reduce(self, vector: int) -> tuple[int, int]:
        """Return what is left of `vector` after adding pivots, and the columns that were added.

        `(rest, used)` obeys `image(columns, used) ^ rest == vector`; rest is 0 if and only if `vector` is in the image.
        """
        used = 0
        rest = vector
        for bit in range(vector.bit_length() - 1, -1, -1):
            if rest >> bit & 1 and bit in self.pivots:
                pivot, columns = self.pivots[bit]
                rest ^= pivot
                used ^= columns
        return rest, used

    def solve(self, vector: int) -> int | None:
        """The x with `image(columns, x) == vector` that has zeros in all free columns; None if there is no x."""
        rest, used = self.reduce(vector)
        return None if rest else used
