"""Tensors as the pages that a Tenstorrent device holds: tilized, in shards, or row by row.

A tile of 32x32 elements lies in memory as four faces of 16x16, each row-major, the faces row-major too; so the host
rearranges a matrix before a kernel runs and back after it. Edges that do not fill a tile are padded with zeros.

The pages of a tensor, in the order of their numbers:

- `tiled`: one page a tile, tiles row-major over the tensor;
- `sharded`: the same, but the tiles of a shard (row-major within it) lie together, shards row-major over the grid;
- `interleaved`: one page a row of the matrix, without padding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from tlx_xdsl.element_types import BY_MLIR
from tlx_xdsl.errors import InputError
from tlx_xdsl.numerics.arrays import Array, numpy_type

from .language.tensors import DTYPES

TILE = 32
"""Rows, and columns, of a tile."""

FACE = 16
"""Rows, and columns, of a face: a quarter of a tile."""

NUMPY = {name: numpy_type(BY_MLIR[name]) for name in DTYPES}
"""The numpy types of elements, by MLIR's names."""


@dataclass(frozen=True)
class PageLayout:
    """Division of a matrix into pages; `grid` and `tiles_per_shard` (rows, columns) are those of `sharded`."""

    kind: Literal["tiled", "interleaved", "sharded"] = "tiled"
    grid: tuple[int, int] = (1, 1)
    tiles_per_shard: tuple[int, int] = (1, 1)

    @property
    def tiles(self) -> tuple[int, int]:
        """Rows and columns of tiles in all shards together."""
        return self.grid[0] * self.tiles_per_shard[0], self.grid[1] * self.tiles_per_shard[1]

    def padded(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns of a matrix of `shape` with its padding."""
        if self.kind == "interleaved":
            return shape
        rows, columns = -(-shape[0] // TILE), -(-shape[1] // TILE)
        if self.kind == "sharded":
            if rows > self.tiles[0] or columns > self.tiles[1]:
                held = "x".join(map(str, self.tiles))
                raise InputError(f"a matrix of {rows}x{columns} tiles does not fit into shards of {held} tiles in all")
            rows, columns = self.tiles
        return rows * TILE, columns * TILE

    def page_count(self, shape: tuple[int, int]) -> int:
        """The number of pages of a matrix of `shape`."""
        rows, columns = self.padded(shape)
        return rows if self.kind == "interleaved" else rows * columns // TILE**2

    def page_elements(self, shape: tuple[int, int]) -> int:
        """The number of elements in a page of a matrix of `shape`."""
        return shape[1] if self.kind == "interleaved" else TILE**2


TILED = PageLayout()
INTERLEAVED = PageLayout("interleaved")


def page_bytes(shape: tuple[int, int], dtype: str, layout: PageLayout = TILED) -> int:
    """The bytes of a page of a matrix of `shape`."""
    return layout.page_elements(shape) * NUMPY[dtype].itemsize


def to_pages(array: Array, dtype: str, layout: PageLayout = TILED) -> Array:
    """A matrix as an array of bytes [page, byte].

    Numbers are rounded to `dtype`, to nearest with ties to even. An array of uint16 is taken for the bit patterns of
    bf16 where that is the type.
    """
    matrix = _elements(_matrix(array), dtype)
    shape = cast(tuple[int, int], matrix.shape)
    rows, columns = layout.padded(shape)
    matrix = np.pad(matrix, ((0, rows - shape[0]), (0, columns - shape[1])))
    if layout.kind != "interleaved":
        tiles = matrix.reshape(rows // TILE, TILE, columns // TILE, TILE).swapaxes(1, 2)
        matrix = to_faces(_in_shards(tiles, layout))
    return np.ascontiguousarray(matrix).view(np.uint8).reshape(layout.page_count(shape), -1)


def from_pages(pages: Array, shape: tuple[int, int], dtype: str, layout: PageLayout = TILED) -> Array:
    """The matrix of `shape` that pages hold: of f32 numbers when they are floats (which holds each of them)."""
    values = np.ascontiguousarray(pages).reshape(-1).view(NUMPY[dtype])
    rows, columns = layout.padded(shape)
    if values.size != rows * columns:
        raise InputError(f"expected {rows * columns} elements in the pages of a matrix of {shape}, found {values.size}")
    if layout.kind == "interleaved":
        matrix = values.reshape(rows, columns)
    else:
        tiles = _out_of_shards(from_faces(values.reshape(-1, TILE**2)), rows // TILE, columns // TILE, layout)
        matrix = tiles.swapaxes(1, 2).reshape(rows, columns)
    cut = matrix[: shape[0], : shape[1]]
    return cut.astype(np.int32 if dtype.startswith("i") else np.float32)


def to_faces(tiles: Array) -> Array:
    """Tiles [..., 32, 32] as the elements [..., 1024] in the order in which they lie in memory."""
    lead = tiles.shape[:-2]
    side = TILE // FACE
    return tiles.reshape(*lead, side, FACE, side, FACE).swapaxes(-3, -2).reshape(*lead, TILE**2)


def from_faces(elements: Array) -> Array:
    """Return what `to_faces` was given."""
    lead = elements.shape[:-1]
    side = TILE // FACE
    return elements.reshape(*lead, side, side, FACE, FACE).swapaxes(-3, -2).reshape(*lead, TILE, TILE)


def _matrix(array: Array) -> Array:
    if array.ndim != 2:
        raise InputError(f"expected a matrix, found an array of {array.ndim} dimensions: reshape it first")
    return array


def _elements(matrix: Array, dtype: str) -> Array:
    if dtype not in DTYPES:
        raise InputError(f"expected one of the types {', '.join(DTYPES)}, found {dtype!r}")
    if dtype == "bf16" and matrix.dtype == np.uint16:
        return matrix.view(NUMPY[dtype])
    return matrix.astype(NUMPY[dtype])


def _in_shards(tiles: Array, layout: PageLayout) -> Array:
    """Tiles [row, column, ...] in the order of the pages."""
    if layout.kind != "sharded":
        return tiles.reshape(-1, TILE, TILE)
    (grid_rows, grid_columns), (rows, columns) = layout.grid, layout.tiles_per_shard
    return tiles.reshape(grid_rows, rows, grid_columns, columns, TILE, TILE).swapaxes(1, 2).reshape(-1, TILE, TILE)


def _out_of_shards(tiles: Array, rows: int, columns: int, layout: PageLayout) -> Array:
    """Tiles in the order of the pages as [row, column, ...]."""
    if layout.kind != "sharded":
        return tiles.reshape(rows, columns, TILE, TILE)
    cut = tiles.reshape(*layout.grid, *layout.tiles_per_shard, TILE, TILE)
    return cut.swapaxes(1, 2).reshape(rows, columns, TILE, TILE)
