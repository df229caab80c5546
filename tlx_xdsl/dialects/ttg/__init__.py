"""The `ttg` dialect: layouts, buffers in shared memory, warp specialisation."""

from __future__ import annotations

from xdsl.ir import Dialect

from tlx_xdsl.dialects.ttg.attrs import LAYOUT_ATTRS, SharedMemorySpaceAttr
from tlx_xdsl.dialects.ttg.ops import (
    ConvertLayoutOp,
    LocalAllocOp,
    LocalDeallocOp,
    LocalLoadOp,
    LocalStoreOp,
    MemDescIndexOp,
    MemDescReinterpretOp,
    MemDescTransOp,
)
from tlx_xdsl.dialects.ttg.types import AsyncTokenType, MemDescType
from tlx_xdsl.dialects.ttg.warp_specialize import (
    WarpReturnOp,
    WarpSpecializeOp,
    WarpSpecializePartitionsOp,
    WarpYieldOp,
)

TTG = Dialect(
    "ttg",
    [
        ConvertLayoutOp,
        LocalAllocOp,
        LocalDeallocOp,
        LocalLoadOp,
        LocalStoreOp,
        MemDescIndexOp,
        MemDescReinterpretOp,
        MemDescTransOp,
        WarpReturnOp,
        WarpSpecializeOp,
        WarpSpecializePartitionsOp,
        WarpYieldOp,
    ],
    [*LAYOUT_ATTRS, SharedMemorySpaceAttr, MemDescType, AsyncTokenType],
)
