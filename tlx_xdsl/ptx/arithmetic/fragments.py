"""Matrices that are spread over the registers of warps (PTX ISA, "Matrix Fragments for mma", "wgmma").

With g = lane // 4 and t = lane % 4, and p elements in 32 bits:

    C, D   register 4j + 2h + e has row g + 8h, column 8j + 2t + e; 16-bit ones have both e in a register
    A      register 2c + h      has row g + 8h, columns 4pc + pt to 4pc + pt + p
    B      register c           has column g,   rows    4pc + pt to 4pc + pt + p

Four warps of a wgmma have 16 rows each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tlx_xdsl.numerics.arrays import Array, Dtype


def accumulator(registers: Sequence[Array], dtype: Dtype) -> Array:
    """The matrix of [warps, 16, columns] that registers hold."""
    held = np.stack([each.view(dtype) for each in registers])
    if dtype.itemsize == 2:
        count = len(held) // 2
        whole = held.reshape(count, 2, -1, 8, 4, 2)
        return whole.transpose(2, 1, 3, 0, 4, 5).reshape(-1, 16, 8 * count)
    count = len(held) // 4
    whole = held.reshape(count, 2, 2, -1, 8, 4)
    return whole.transpose(3, 1, 4, 0, 5, 2).reshape(-1, 16, 8 * count)


def to_registers(matrix: Array) -> tuple[Array, ...]:
    """The registers of a matrix of [warps, 16, columns]; those of 16 bits as u4."""
    warps, _, columns = matrix.shape
    whole = matrix.reshape(warps, 2, 8, columns // 8, 4, 2)
    if matrix.dtype.itemsize == 2:
        packed = np.ascontiguousarray(whole.transpose(3, 1, 0, 2, 4, 5)).reshape(columns // 4, -1)
        return tuple(packed.view(np.uint32))
    return tuple(np.ascontiguousarray(whole.transpose(3, 1, 5, 0, 2, 4)).reshape(columns // 2, -1))


def left(registers: Sequence[Array], dtype: Dtype) -> Array:
    """The A of [warps, 16, K] that registers hold."""
    held = np.stack(registers)
    parts = held.view(dtype).reshape(len(held) // 2, 2, -1, 8, 4, max(held.dtype.itemsize // dtype.itemsize, 1))
    moved = parts.transpose(2, 1, 3, 0, 4, 5)
    return moved.reshape(moved.shape[0], 16, -1)


def right(registers: Sequence[Array], dtype: Dtype) -> Array:
    """The B of [warps, K, 8] that registers hold."""
    held = np.stack(registers)
    parts = held.view(dtype).reshape(len(held), -1, 8, 4, max(held.dtype.itemsize // dtype.itemsize, 1))
    moved = parts.transpose(1, 0, 3, 4, 2)
    return moved.reshape(moved.shape[0], -1, 8)
