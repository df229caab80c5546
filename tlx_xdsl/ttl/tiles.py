"""Tensors as the pages that a Tenstorrent device holds: tilized, in shards, or row by row.

A tile of 32x32 elements lies in memory as four faces of 16x16, each row-major, the faces row-major too; so the host
rearranges a matrix before a kernel runs and back after it. Edges that do not fill a tile are padded with zeros.

A tensor of more than two dimensions is a matrix to the memory: its matrices lie one below the other, each padded.

The pages of a tensor, in the order of their numbers:

- `tiled`: one page a tile, tiles row-major over the matrix;
- `sharded`: the same, but the tiles of a shard (row-major within it) lie together, shards row-major over the grid;
- `interleaved`: one page a row, without padding.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from tlx_xdsl.errors import InputError
from tlx_xdsl.numerics.arrays import Array

from .formats import named
from .language.tensors import DTYPES

TILE = 32
"""Rows, and columns, of a tile."""

FACE = 16
"""Rows, and columns, of a face: a quarter of a tile."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class PageLayout:
    """Division of a tensor into pages; `grid` and `tiles_per_shard` (rows, columns) are those of `sharded`."""

    kind: Literal["tiled", "interleaved", "sharded"] = "tiled"
    grid: tuple[int, int] = (1, 1)
    tiles_per_shard: tuple[int, int] = (1, 1)

    @property
    def tiles(self) -> tuple[int, int]:
        """Rows and columns of tiles in all shards together."""
        return self.grid[0] * self.tiles_per_shard[0], self.grid[1] * self.tiles_per_shard[1]

    def matrix_tiles(self, shape: Shape) -> tuple[int, int]:
        """Rows and columns of tiles of a tensor of `shape`, its matrices one below the other."""
        return prod(shape[:-2]) * -(-shape[-2] // TILE), -(-shape[-1] // TILE)

    def padded(self, shape: Shape) -> tuple[int, int]:
        """Rows and columns of elements of a tensor of `shape` with its padding, as a matrix."""
        if self.kind == "interleaved":
            return prod(shape[:-1]), shape[-1]
        rows, columns = self.matrix_tiles(shape)
        if self.kind == "sharded":
            if rows > self.tiles[0] or columns > self.tiles[1]:
                held = "x".join(map(str, self.tiles))
                raise InputError(f"a tensor of {rows}x{columns} tiles does not fit into shards of {held} tiles in all")
            rows, columns = self.tiles
        return rows * TILE, columns * TILE

    def page_count(self, shape: Shape) -> int:
        """The number of pages of a tensor of `shape`."""
        rows, columns = self.padded(shape)
        return rows if self.kind == "interleaved" else rows * columns // TILE**2

    def page_elements(self, shape: Shape) -> int:
        """The number of elements in a page of a tensor of `shape`."""
        return shape[-1] if self.kind == "interleaved" else TILE**2

    def place(self, tile: int, shape: Shape) -> int:
        """The page that tile number `tile`, counted row by row over the tensor, is."""
        if self.kind != "sharded":
            return tile
        row, column = divmod(tile, self.matrix_tiles(shape)[1])
        (shard_row, row), (shard_column, column) = (
            divmod(each, size) for each, size in zip((row, column), self.tiles_per_shard, strict=True)
        )
        height, width = self.tiles_per_shard
        return ((shard_row * self.grid[1] + shard_column) * height + row) * width + column


TILED = PageLayout()
INTERLEAVED = PageLayout("interleaved")


def page_bytes(shape: Shape, dtype: str, layout: PageLayout = TILED) -> int:
    """The bytes of a page of a tensor of `shape`."""
    return named(dtype).bytes_of(layout.page_elements(shape))


def to_pages(array: Array, dtype: str, layout: PageLayout = TILED) -> Array:
    """A tensor as an array of bytes [page, byte].

    Numbers are rounded to `dtype`, to nearest with ties to even. An array of uint16 is taken for the bit patterns of
    bf16 where that is the type.
    """
    tensor, shape = _elements(array, dtype), array.shape
    rows, columns = layout.padded(shape)
    if layout.kind == "interleaved":
        return named(dtype).pack(tensor.reshape(rows, columns))
    tensor = np.pad(tensor, [*[(0, 0)] * (tensor.ndim - 2), *((0, -size % TILE) for size in shape[-2:])])
    matrix = tensor.reshape(-1, tensor.shape[-1])
    matrix = np.pad(matrix, ((0, rows - matrix.shape[0]), (0, columns - matrix.shape[1])))
    tiles = matrix.reshape(rows // TILE, TILE, columns // TILE, TILE).swapaxes(1, 2)
    return named(dtype).pack(to_faces(_in_shards(tiles, layout)))


def from_pages(pages: Array, shape: Shape, dtype: str, layout: PageLayout = TILED) -> Array:
    """The tensor of `shape` that pages hold: of f32 numbers when they are floats (which holds each of them)."""
    return cut(matrix_of(pages, shape, dtype, layout), shape, layout)


def cut(matrix: Array, shape: Shape, layout: PageLayout) -> Array:
    """The tensor of `shape` in the matrix that the memory has, without the padding."""
    if layout.kind == "interleaved":
        return matrix.reshape(shape)
    rows, columns = layout.matrix_tiles(shape)
    matrix = matrix[: rows * TILE, : columns * TILE]
    return matrix.reshape(*shape[:-2], -1, columns * TILE)[..., : shape[-2], : shape[-1]]


def matrix_of(pages: Array, shape: Shape, dtype: str, layout: PageLayout) -> Array:
    """The elements of all pages of a tensor of `shape`, as the matrix that the memory has, with its padding."""
    rows, columns = layout.padded(shape)
    values = named(dtype).unpack(pages)
    if values.size != rows * columns:
        raise InputError(f"expected {rows * columns} elements in the pages of a tensor of {shape}, found {values.size}")
    if layout.kind == "interleaved":
        return values
    tiles = _out_of_shards(from_faces(values.reshape(-1, TILE**2)), rows // TILE, columns // TILE, layout)
    return tiles.swapaxes(1, 2).reshape(rows, columns)


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


def _elements(tensor: Array, dtype: str) -> Array:
    if dtype not in DTYPES:
        raise InputError(f"expected one of the types {', '.join(DTYPES)}, found {dtype!r}")
    if tensor.ndim < 2:
        raise InputError(f"expected an array of at least two dimensions, found {tensor.ndim}: reshape it first")
    if dtype == "bf16" and tensor.dtype == np.uint16:
        return tensor.view(named(dtype).storage)
    return tensor


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
