"""Arguments of kernels: tensors in the device's memory, their element types and layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tlx_xdsl.element_types import BY_MLIR
from tlx_xdsl.errors import InputError, InputTypeError

__all__ = [
    "TILE_SHAPE",
    "Layout",
    "TensorSpec",
    "bfloat4_b",
    "bfloat8_b",
    "bfloat16",
    "dtype",
    "float16",
    "float32",
    "int8",
    "int16",
    "int32",
    "interleaved",
    "sharded",
    "tensor",
    "tiled",
    "uint16",
    "uint32",
]

TILE = 32
TILE_SHAPE = (TILE, TILE)
"""Rows and columns of a tile, in elements."""


@dataclass(frozen=True)
class dtype:
    """The type of an element."""

    name: str
    """MLIR's spelling, such as `f32`, or `bfp8_b` and `bfp4_b`."""
    data_format: str
    """TT-Metalium's name of tiles of such elements, a case of `tt::DataFormat`."""

    @property
    def is_block_float(self) -> bool:
        """Return whether neighbours share their exponent: there are no single elements, only tiles."""
        return self.name.startswith("bfp")

    def __str__(self) -> str:
        """Return MLIR's spelling."""
        return self.name


float32 = dtype("f32", "Float32")
bfloat16 = dtype("bf16", "Float16_b")
float16 = dtype("f16", "Float16")
int32 = dtype("i32", "Int32")
int16 = dtype("i16", "UInt16")
int8 = dtype("i8", "UInt8")
uint32 = dtype("ui32", "UInt32")
uint16 = dtype("ui16", "UInt16")
bfloat8_b = dtype("bfp8_b", "Bfp8_b")
"""16 neighbours in a row share an exponent, each has a sign and 7 bits: a tile of 1088 bytes. Elements of the host are
f32; `ttl.tensor(shape, ttl.bfloat8_b)` says that a tensor has it."""
bfloat4_b = dtype("bfp4_b", "Bfp4_b")
"""The same with a sign and 3 bits, in 576 bytes."""

_TABLE = (float32, bfloat16, float16, int32, int16, int8)
DTYPES = {each.name: each for each in (*_TABLE, uint32, uint16, bfloat8_b, bfloat4_b)}
"""The element types by their names."""

_SPELLINGS = {
    spelling: each
    for each in _TABLE
    for spelling in (each.name, BY_MLIR[each.name].library, *BY_MLIR[each.name].aliases)
} | {
    "uint32": uint32, "ui32": uint32, "uint16": uint16, "ui16": uint16,
    "bfloat8_b": bfloat8_b, "bfp8_b": bfloat8_b, "bfloat4_b": bfloat4_b, "bfp4_b": bfloat4_b,
}  # fmt: skip


def as_dtype(given: Any) -> dtype:
    """The element type that `given` says: one of ours, or that of NumPy, PyTorch or ttnn, or its name.

    Raises InputTypeError for what a tile can't hold.
    """
    if isinstance(given, dtype):
        return given
    spelled = given if isinstance(given, str) else getattr(given, "__name__", str(given))
    name = spelled.rsplit(".", 1)[-1].lower()
    if (found := _SPELLINGS.get(name)) is None:
        expected = "float32, bfloat16, float16, bfloat8_b, bfloat4_b, int32, uint32, uint16, int16 or int8"
        raise InputTypeError(f"elements of a tensor are {expected}, found {spelled}")
    return found


@dataclass(frozen=True)
class Layout:
    """Division of a tensor into pages, the units in which it lies in memory."""

    kind: str
    """`tiled`, `interleaved` or `sharded`."""
    grid: tuple[int, int] | None = None
    """Of a sharded tensor: shards along the rows and the columns of the tensor."""
    tiles_per_shard: tuple[int, int] | None = None
    """Of a sharded tensor: rows and columns of a shard, in tiles."""

    def __str__(self) -> str:
        """Return what users write."""
        if self.kind != "sharded":
            return f"ttl.{self.kind}"
        return f"ttl.sharded(grid={self.grid}, tiles_per_shard={self.tiles_per_shard})"


tiled = Layout("tiled")
"""Pages are tiles of 32x32 elements, dealt out over the memory's banks. Tile `(r, c)` is page `r * columns + c`."""

interleaved = Layout("interleaved")
"""Pages are rows of single elements, dealt out over the memory's banks."""


def sharded(grid: Sequence[int], tiles_per_shard: Sequence[int]) -> Layout:
    """The layout of a tensor in `grid` shards (along its rows, its columns) of `tiles_per_shard` tiles (rows, columns).

    Shards are numbered row by row; the last ones may be larger than what is left of the tensor. A tensor of more than
    two dimensions is cut as if its matrices lay one below the other.

    Raises InputError for what is not two positive integers each.
    """
    return Layout("sharded", _pair("grid", grid), _pair("tiles_per_shard", tiles_per_shard))


def _pair(name: str, given: Any) -> tuple[int, int]:
    match given:
        case (int() as first, int() as second) if first >= 1 and second >= 1:
            return first, second
        case _:
            raise InputError(f"'{name}' of ttl.sharded is two positive integers (rows, columns), found {given!r}")


@dataclass(frozen=True, init=False)
class TensorSpec:
    """Description of a tensor that a kernel is called with, as the compiler knows it."""

    shape: tuple[int, ...]
    """Rows and columns, in elements, after other dimensions. What is missing of the last tiles is padded with zeros."""
    dtype: dtype
    layout: Layout
    memory_space: str
    """`DRAM`, or `L1`: spread over the cores' own memories."""

    def __init__(
        self, shape: Sequence[int], dtype: Any = float32, layout: Layout = tiled, memory_space: str = "DRAM"
    ) -> None:
        """Describe a tensor of `shape` (..., rows, columns) in elements.

        Raises InputError for fewer than two dimensions, an empty tensor, an unknown memory space, and shards that do
        not make up the tensor, and InputTypeError for elements that no tile holds.
        """
        given: tuple[Any, ...] = tuple(shape)
        if len(given) < 2 or not all(isinstance(size, int) and size >= 1 for size in given):
            raise InputError(
                f"the shape of a kernel's tensor is two or more positive integers (..., rows, columns), found {given}"
            )
        if memory_space not in ("DRAM", "L1"):
            raise InputError(f"the memory space of a kernel's tensor is 'DRAM' or 'L1', found {memory_space!r}")
        object.__setattr__(self, "shape", given)
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "memory_space", memory_space)
        if layout.grid is not None and layout.tiles_per_shard is not None:
            needed = prod(self.tiles[:-1]), self.tiles[-1]
            counts = tuple(-(-each // size) for each, size in zip(needed, layout.tiles_per_shard, strict=True))
            if counts != layout.grid:
                cut = tuple(n * size for n, size in zip(layout.grid, layout.tiles_per_shard, strict=True))
                raise InputError(
                    f"{layout} has {cut[0]}x{cut[1]} tiles, but a tensor of {'x'.join(map(str, given))} elements has "
                    f"{needed[0]}x{needed[1]}"
                )

    @property
    def tiles(self) -> tuple[int, ...]:
        """Rows and columns of the tensor, in tiles, after other dimensions; the last ones may be partly padding."""
        *others, rows, columns = self.shape
        return *others, -(-rows // TILE), -(-columns // TILE)


def place_in(memory: Any, shape: Sequence[int], name: str, *, is_tiled: bool) -> tuple[Layout, str]:
    """Return where a tensor with a memory configuration of ttnn lies: its layout, and `DRAM` or `L1`.

    Raises InputError for shards that are not of tiles, or not what their strategy says; `name` is the tensor's.
    """
    space = "L1" if "L1" in str(memory.buffer_type) else "DRAM"
    strategy = str(memory.memory_layout)
    if "INTERLEAVED" in strategy:
        return tiled if is_tiled else interleaved, space
    if not is_tiled:
        raise InputError(f"'{name}' has shards that are not of tiles: expected a sharded tensor with ttnn.TILE_LAYOUT")
    *others, rows, columns = (int(size) for size in shape)
    of_shard = memory.nd_shard_spec.shard_shape if memory.shard_spec is None else memory.shard_spec.shape
    shard = [int(size) for size in of_shard]
    if len(shard) != 2:
        raise InputError(f"'{name}' has shards of {len(shard)} dimensions: expected two, rows and columns")
    if any(size % TILE for size in shard):
        raise InputError(f"'{name}' has shards of {shard[0]}x{shard[1]} elements: expected multiples of {TILE}")
    shard = [size // TILE for size in shard]
    tiles = [prod(others) * -(-rows // TILE), -(-columns // TILE)]
    grid = [-(-n // size) for n, size in zip(tiles, shard, strict=True)]
    if ("HEIGHT" in strategy and grid[1] > 1) or ("WIDTH" in strategy and grid[0] > 1):
        whole = "columns" if "HEIGHT" in strategy else "rows"
        raise InputError(f"'{name}' is {strategy.rpartition('.')[2]}: a shard has all {whole}, found a grid of {grid}")
    return sharded(grid, shard), space


def tensor(
    shape: Sequence[int],
    dtype: Any = float32,
    layout: Layout = tiled,
    memory_space: str = "DRAM",
    memory_config: Any = None,
) -> TensorSpec:
    """The `TensorSpec` of a tensor, under the name that annotations use: `a: ttl.tensor((64, 96), ttl.bfloat16)`.

    `memory_config` is a `ttnn.MemoryConfig`, which says memory and shards; `ttl.interleaved` beside it is
    `ttnn.ROW_MAJOR_LAYOUT`.

    Raises InputError as `TensorSpec`, for a configuration beside what it says itself, and for shards that it can't
    have.
    """
    if memory_config is not None:
        if layout.kind == "sharded" or memory_space != "DRAM":
            raise InputError("'memory_config' says the shards and the memory of a tensor: leave the other out")
        layout, memory_space = place_in(memory_config, shape, "memory_config", is_tiled=layout.kind == "tiled")
    return TensorSpec(shape, dtype, layout, memory_space)
