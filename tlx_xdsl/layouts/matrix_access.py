"""Shared memory by matrix instructions: where ldmatrix and stmatrix fit two layouts, and what they cost."""

from __future__ import annotations

from functools import lru_cache

from .encodings import DistributedLayout, Ints, PaddedSharedLayout, SharedLayout
from .linear_layout import log2
from .shared_access import (
    WORD_BYTES,
    Offsets,
    SharedAccess,
    conflict_ways,
    element_offsets,
    shared_access,
)

MATRIX_ROW_BYTES = 16
"""A row of the 8 x 8 matrices of 16-bit elements that ldmatrix and stmatrix move (PTX ISA, "ldmatrix")."""

MAX_MATRICES = 4
"""Matrices that one instruction moves at most."""


@lru_cache(maxsize=4096)
def matrix_access(
    layout: DistributedLayout,
    buffer: SharedLayout,
    shape: Ints,
    element_bits: int,
    *,
    store: bool,
    alloc_shape: Ints | None = None,
) -> SharedAccess | None:
    """The cost of the same access by ldmatrix, or by stmatrix; None where these do not fit the layouts.

    Lane i holds word i mod 4 of row i div 4 of a matrix; transposed, elements 2 (i mod 4) and the next one of column
    i div 4. Only rows must lie in one piece; each may start anywhere at a multiple of 16 bytes. Eight rows are served
    together, so that each matrix takes one wavefront at least.
    Raises ValueError if a layout does not fit the shape.
    """
    found = _matrices(layout, buffer, shape, element_bits, alloc_shape)
    if found is None:
        return None
    rows, left, kind = found
    ways = conflict_ways(row_bytes(rows, element_bits))
    matrices = 1 << left
    together = min(matrices, MAX_MATRICES)
    name = f"{'stmatrix' if store else 'ldmatrix'}{kind}"
    return SharedAccess(name, 32 * together, matrices // together, matrices * ways, matrices)


def matrix_rows(
    layout: DistributedLayout, buffer: SharedLayout, shape: Ints, element_bits: int, alloc_shape: Ints | None = None
) -> Ints | None:
    """The bytes, as bases, that one wavefront of ldmatrix or stmatrix moves; None where these do not fit the layouts.

    Raises ValueError if a layout does not fit the shape.
    """
    found = _matrices(layout, buffer, shape, element_bits, alloc_shape)
    return None if found is None else row_bytes(found[0], element_bits)


def row_bytes(rows: Ints, element_bits: int) -> Ints:
    """The bytes, as bases, of the words in rows of 16 bytes that begin at the sums of the elements `rows`."""
    inside = (1 << bit for bit in range(log2(WORD_BYTES), log2(MATRIX_ROW_BYTES)))
    return (*(each * element_bits // 8 for each in rows), *inside)


def _matrices(
    layout: DistributedLayout, buffer: SharedLayout, shape: Ints, element_bits: int, alloc_shape: Ints | None
) -> tuple[Ints, int, str] | None:
    """The offsets of a matrix's rows, the bits of the number of matrices, and the suffix of the instruction."""
    if isinstance(buffer, PaddedSharedLayout) or element_bits not in (8, 16, 32):
        return None
    offsets = element_offsets(layout, buffer, shape, alloc_shape)
    row = 8 * MATRIX_ROW_BYTES // element_bits
    plain = _plain_matrix(offsets, element_bits, row)
    if plain is not None:
        return plain, len(offsets.registers) - log2(32 // element_bits), ""
    turned = _transposed_matrix(offsets, row) if element_bits == 16 else None
    return None if turned is None else (turned, len(offsets.registers) - 1, ".trans")


def _plain_matrix(offsets: Offsets, element_bits: int, row: int) -> Ints | None:
    """The offsets of a matrix's rows, if a register holds a word, four lanes a row and eight such quads the rows."""
    held = {1 << bit for bit in range(log2(32 // element_bits))}
    word = 32 // element_bits
    rest = [each for each in offsets.registers if each not in held]
    fits = held <= set(offsets.registers) and offsets.lanes[:2] == (word, 2 * word)
    aligned = not any(each & (row - 1) for each in (*rest, *offsets.lanes[2:], *offsets.warps))
    return offsets.lanes[2:] if fits and aligned else None


def _transposed_matrix(offsets: Offsets, row: int) -> Ints | None:
    """The same for the transposed matrix: eight lanes hold a row, a register two elements of a column."""
    fits = offsets.lanes[2:] == tuple(1 << bit for bit in range(log2(row))) and offsets.registers
    aligned = not any(each & (row - 1) for each in (*offsets.registers, *offsets.lanes[:2], *offsets.warps))
    return (offsets.registers[0], *offsets.lanes[:2]) if fits and aligned else None


def best_access(
    layout: DistributedLayout,
    buffer: SharedLayout,
    shape: Ints,
    element_bits: int,
    *,
    store: bool,
    alloc_shape: Ints | None = None,
) -> SharedAccess:
    """The cheaper of `shared_access` and `matrix_access`, by wavefronts and then by instructions.

    Raises ValueError if a layout does not fit the shape.
    """
    vector = shared_access(layout, buffer, shape, element_bits, alloc_shape)
    matrix = matrix_access(layout, buffer, shape, element_bits, store=store, alloc_shape=alloc_shape)
    if matrix is not None and (matrix.wavefronts, matrix.instructions) < (vector.wavefronts, vector.instructions):
        return matrix
    return vector
