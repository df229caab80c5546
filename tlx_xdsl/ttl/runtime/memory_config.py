"""Memory configurations with the names of `ttnn`: `MemoryConfig`, `ShardSpec`, and arrays that have one.

```python
memory = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec((32, 64)))
kernel(placed(a, memory), out)
```
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from tlx_xdsl.errors import InputError
from tlx_xdsl.numerics.arrays import Array

from ..language.tensors import Layout, place_in


class BufferType(Enum):
    """The memory: the device's DRAM, or the cores' own."""

    DRAM = 0
    L1 = 1


class TensorMemoryLayout(Enum):
    """Division of a tensor: into pages that are dealt out, or into shards of rows, of columns, or of both."""

    INTERLEAVED = 0
    HEIGHT_SHARDED = 2
    WIDTH_SHARDED = 3
    BLOCK_SHARDED = 4


@dataclass(frozen=True)
class ShardSpec:
    """Rows and columns of a shard, in elements."""

    shape: tuple[int, int]


@dataclass(frozen=True)
class MemoryConfig:
    """The memory of a tensor, and its division there."""

    memory_layout: TensorMemoryLayout = TensorMemoryLayout.INTERLEAVED
    buffer_type: BufferType = BufferType.DRAM
    shard_spec: ShardSpec | None = None


class PlacedArray(np.ndarray[Any, Any]):
    """An array that says where it lies as a tensor of `ttnn` does; `placed` makes one."""

    _memory = MemoryConfig()
    layout = "TILE"

    def memory_config(self) -> MemoryConfig:
        """Return where the tensor lies."""
        return self._memory


def placed(array: Array, memory: MemoryConfig, layout: str = "TILE") -> PlacedArray:
    """A view of an array that says where it lies; `layout` is `TILE` or `ROW_MAJOR`."""
    found = array.view(PlacedArray)
    found._memory, found.layout = memory, layout  # pyright: ignore[reportPrivateUsage]
    return found


def place_of(name: str, tensor: Any) -> tuple[Layout, str]:
    """Return where a tensor of `ttnn`, or a placed array, lies: its layout, and `DRAM` or `L1`.

    Raises InputError for shards that are not of tiles, or not what their strategy says.
    """
    return place_in(tensor.memory_config(), tensor.shape, name, is_tiled="TILE" in str(tensor.layout))


_SPELLED = re.compile(r"(?:(height|width|block)_sharded\[(\d+),(\d+)\])?@?(dram|l1)?")


def memory_named(text: str) -> MemoryConfig:
    """The memory that a word of the command line names: `l1`, `dram` or `height_sharded[32,64]@l1`.

    Raises InputError for another word.
    """
    found = _SPELLED.fullmatch(text)
    if found is None or not text:
        raise InputError(
            f"expected l1, dram, or height_sharded[ROWS,COLUMNS] (width_, block_) with @l1 or @dram, found '{text}'"
        )
    strategy, rows, columns, memory = found.groups()
    space = BufferType[(memory or ("l1" if strategy else "dram")).upper()]
    if strategy is None:
        return MemoryConfig(buffer_type=space)
    layout = TensorMemoryLayout[f"{strategy.upper()}_SHARDED"]
    return MemoryConfig(layout, space, ShardSpec((int(rows), int(columns))))
