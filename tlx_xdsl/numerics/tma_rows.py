"""What TMA asks of the tiles that it copies, and what it writes, along the contiguous dimension of a tensor.

Measured on an H200 on 2026-11-23, with tiles of 8 to 64 rows, elements of 1, 2 and 4 bytes, with and without swizzling:

- A copy begins at a multiple of 16 bytes, in whichever direction it goes and whether or not it begins inside of the
  tensor. From elsewhere it is an illegal instruction. (Stock Triton's interpreter asserts the same.)
- Rows are written in units of 16 bytes. Where they end within one, its rest is written, too, with what the tile holds
  there; a reduction is combined with it.

Rows that a gather or a scatter names one by one were not measured: they need a Blackwell GPU.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

UNIT = 16
"""Bytes that a copy begins at multiples of, and that a row is written in."""

_Columns = TypeVar("_Columns", int, NDArray[np.int64])


def written_columns(columns: _Columns, element_bytes: int) -> _Columns:
    """The elements of a row that a store writes of a tensor whose rows have `columns`."""
    return columns + -columns % max(UNIT // element_bytes, 1)
