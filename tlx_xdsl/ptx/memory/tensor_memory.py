"""Tensor memory of Blackwell's CTAs: 128 lanes of 512 columns of 32 bits (PTX ISA, "Tensor Memory").

An address has the lane in its upper 16 bits and the column in the lower ones. Columns are allocated in powers of two
from 32 on; what was not allocated, or not written, may not be read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Integers

from .surroundings import Surroundings, Trap

LANES, COLUMNS = 128, 512
LEAST = 32
"""Columns that are allocated together at least."""


class TensorMemory:
    """Tensor memory of all CTAs of a wave."""

    def __init__(self, wave: Surroundings):
        self.wave = wave
        self.words: NDArray[np.uint32] = np.zeros((wave.ctas, LANES, COLUMNS), np.uint32)
        self.written: NDArray[np.bool_] = np.zeros((wave.ctas, LANES, COLUMNS), np.bool_)
        self.owner: Integers = np.full((wave.ctas, COLUMNS), -1)
        """The first column of the allocation that has a column; -1 for none."""

    def allocate(self, cta: int, count: int) -> int | None:
        """The first of so many columns; None where there are none free.

        Raises Trap for a number that cannot be allocated.
        """
        if count < LEAST or count > COLUMNS or count & (count - 1):
            raise Trap(f"tensor memory is allocated in 32 to 512 columns, a power of two, found {count}")
        for first in range(0, COLUMNS, count):
            if (self.owner[cta, first : first + count] < 0).all():
                self.owner[cta, first : first + count] = first
                self.written[cta, :, first : first + count] = False
                return first
        return None

    def free(self, cta: int, first: int, count: int) -> None:
        """Give columns back.

        Raises Trap for columns that are no allocation.
        """
        if not 0 <= first < COLUMNS or not (self.owner[cta, first : first + count] == first).all() or not count:
            raise Trap(f"{count} columns from {first} on were not allocated together")
        self.owner[cta, first : first + count] = -1

    def ended(self, cta: int) -> None:
        """Check that a CTA that has ended has given all columns back (PTX ISA, "tcgen05.alloc").

        Raises Trap.
        """
        held = np.flatnonzero(self.owner[cta] >= 0)
        if len(held):
            raise Trap(
                f"the CTA ends with {len(held)} columns of tensor memory, from {int(held[0])} on, not given back"
            )

    def check(self, cta: int, lanes: Integers, columns: Integers, what: str) -> None:
        """Check that columns are allocated, and lanes are there.

        Raises Trap.
        """
        if not lanes.size or not columns.size:
            return
        low, high = int(columns.min()), int(columns.max())
        if int(lanes.max()) >= LANES or high >= COLUMNS or low < 0:
            raise Trap(f"{what} of lane {int(lanes.max())}, column {high} of tensor memory, which has 128 and 512")
        if (self.owner[cta, columns.ravel()] < 0).any():
            wrong = columns.ravel()[self.owner[cta, columns.ravel()] < 0]
            raise Trap(f"{what} of column {int(wrong[0])} of tensor memory, which is not allocated")

    def read(self, cta: int, lanes: Integers, columns: Integers, what: str) -> NDArray[np.uint32]:
        """Words, at lanes and columns that are broadcast against each other.

        Raises Trap for what was not allocated or not written.
        """
        self.check(cta, lanes, columns, what)
        if not self.wave.machine.allows_uninitialized and not (marks := self.written[cta, lanes, columns]).all():
            at = tuple(np.argwhere(~marks)[0])
            lane, column = (np.broadcast_to(each, marks.shape)[at] for each in (lanes, columns))
            raise Trap(f"{what} of lane {int(lane)}, column {int(column)} of tensor memory, which nothing has written")
        return self.words[cta, lanes, columns]

    def write(self, cta: int, lanes: Integers, columns: Integers, values: NDArray[Any], what: str) -> None:
        """Write words at lanes and columns that are broadcast against each other.

        Raises Trap for what was not allocated.
        """
        self.check(cta, lanes, columns, what)
        self.words[cta, lanes, columns] = values
        self.written[cta, lanes, columns] = True


def memory_of(wave: Surroundings) -> TensorMemory:
    """The tensor memory of a wave, which is made when it is first used."""
    if (found := wave.state.get(TensorMemory)) is None:
        found = wave.state[TensorMemory] = TensorMemory(wave)
    return found
