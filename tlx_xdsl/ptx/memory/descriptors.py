"""Matrices in shared memory, as descriptors name them (PTX ISA, "Matrix-Descriptor", "Shared memory descriptor").

Fields of 64 bits: the start in units of 16 bytes (bits 0 to 13), the leading dimension's byte offset (16 to 29), the
stride dimension's (32 to 45), and the swizzle: of wgmma 1, 2 and 3 for 128, 64 and 32 bytes (62 to 63), of tcgen05 2, 4
and 6 (61 to 63), which also has the constant 1 (46 to 48).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Array

from .surroundings import Trap

WIDTHS = (16, 32, 64, 128)
"""Bytes of a row that is permuted, by the mode: none, 32, 64 and 128 bytes."""


def swizzled(addresses: Array, mode: int) -> Array:
    """The address in shared memory of each byte or unit that a tile has at `addresses`.

    PTX ISA, "Tensor swizzling modes": units of 16 bytes are permuted by higher bits of their address. With a width of
    32, 64 or 128 bytes, the lowest 1, 2 or 3 bits of the number of the unit are flipped by the bits from 7 on.
    """
    if mode == 0:
        return addresses
    return addresses ^ (addresses >> 7 & ((1 << mode) - 1)) << 4


UNIT = 16
_WGMMA = {0: 0, 1: 3, 2: 2, 3: 1}
_TCGEN05 = {0: 0, 2: 3, 4: 2, 6: 1}
_ROWS = 8


@dataclass(frozen=True, slots=True)
class Matrix:
    """The fields of a descriptor, in bytes; the mode of the swizzle is that of a tensor map."""

    start: int
    leading: int
    stride: int
    mode: int


def of_wgmma(descriptor: int) -> Matrix:
    """The fields of a descriptor of wgmma.

    Raises Trap for a base offset, which only matrices have that do not begin where their swizzle does.
    """
    if descriptor >> 49 & 7:
        raise Trap(f"the matrix descriptor {descriptor:#x} has a base offset, which is not known")
    return Matrix(*_fields(descriptor), _WGMMA[descriptor >> 62 & 3])


def of_tcgen05(descriptor: int) -> Matrix:
    """The fields of a descriptor of tcgen05.

    Raises Trap for another form.
    """
    mode = _TCGEN05.get(descriptor >> 61 & 7)
    # Without a swizzle the base offset (bits 49 to 51) plays no part.
    if mode is None or descriptor >> 46 & 7 != 1 or (mode and descriptor >> 49 & 15):
        raise Trap(f"the shared memory descriptor {descriptor:#x} has a form that is not known")
    return Matrix(*_fields(descriptor), mode)


def _fields(descriptor: int) -> tuple[int, int, int]:
    start, leading, stride = ((descriptor >> at & 0x3FFF) * UNIT for at in (0, 16, 32))
    return start, leading, stride


@lru_cache(maxsize=4096)
def units(matrix: Matrix, outer: int, inner_bytes: int, *, k_major: bool, size: int) -> NDArray[np.int64]:
    """The units of 16 bytes of an operand: those of each of the `outer` rows along K, as [outer, units].

    Where M or N is contiguous, `inner_bytes / size` rows of K, each with the units of its `outer` elements.
    """
    width = UNIT << matrix.mode
    if k_major:
        row, part = np.arange(outer)[:, None], np.arange(0, inner_bytes, UNIT)[None, :]
        if matrix.mode:
            places = row // _ROWS * matrix.stride + row % _ROWS * width + part
        else:
            places = row // _ROWS * matrix.stride + part // UNIT * matrix.leading + row % _ROWS * UNIT
    else:
        row, part = np.arange(inner_bytes // size)[:, None], np.arange(0, outer * size, UNIT)[None, :]
        if matrix.mode:
            places = part // width * matrix.leading + row // _ROWS * matrix.stride + row % _ROWS * width + part % width
        else:
            places = part // UNIT * matrix.stride + row // _ROWS * matrix.leading + row % _ROWS * UNIT
    return swizzled(matrix.start + places.astype(np.int64), matrix.mode) // UNIT
