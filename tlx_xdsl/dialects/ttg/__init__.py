"""The `ttg` dialect: layouts, buffers in shared memory, warp specialisation."""

from __future__ import annotations

from xdsl.ir import Dialect

from tlx_xdsl.dialects.ttg.asynchronous import AsyncCommitGroupOp, AsyncCopyGlobalToLocalOp, AsyncWaitOp
from tlx_xdsl.dialects.ttg.attrs import LAYOUT_ATTRS, PartitionedSharedEncodingAttr, SharedMemorySpaceAttr
from tlx_xdsl.dialects.ttg.local import (
    LocalAllocOp,
    LocalAtomicScatterRMWOp,
    LocalDeallocOp,
    LocalGatherOp,
    LocalLoadOp,
    LocalScatterOp,
    LocalStoreOp,
)
from tlx_xdsl.dialects.ttg.registers import (
    BarrierOp,
    ConvertLayoutOp,
    Fp4ToFpOp,
    GlobalScratchAllocOp,
    InlineAsmOp,
    LocalBarrierOp,
    MaskOp,
    MaskReturnOp,
    PredicateStageOp,
    WarpIdOp,
)
from tlx_xdsl.dialects.ttg.types import AsyncTokenType, MemDescType
from tlx_xdsl.dialects.ttg.views import (
    MemDescIndexOp,
    MemDescReinterpretOp,
    MemDescReshapeOp,
    MemDescSubsliceOp,
    MemDescTransOp,
)
from tlx_xdsl.dialects.ttg.warp_specialize import (
    WarpReturnOp,
    WarpSpecializeOp,
    WarpSpecializePartitionsOp,
    WarpYieldOp,
)

TTG = Dialect(
    "ttg",
    [
        AsyncCommitGroupOp,
        AsyncCopyGlobalToLocalOp,
        AsyncWaitOp,
        BarrierOp,
        ConvertLayoutOp,
        Fp4ToFpOp,
        GlobalScratchAllocOp,
        InlineAsmOp,
        LocalAllocOp,
        LocalAtomicScatterRMWOp,
        LocalBarrierOp,
        LocalDeallocOp,
        LocalGatherOp,
        LocalLoadOp,
        LocalScatterOp,
        LocalStoreOp,
        MaskOp,
        MaskReturnOp,
        MemDescIndexOp,
        MemDescReinterpretOp,
        MemDescReshapeOp,
        MemDescSubsliceOp,
        MemDescTransOp,
        PredicateStageOp,
        WarpIdOp,
        WarpReturnOp,
        WarpSpecializeOp,
        WarpSpecializePartitionsOp,
        WarpYieldOp,
    ],
    [*LAYOUT_ATTRS, PartitionedSharedEncodingAttr, SharedMemorySpaceAttr, MemDescType, AsyncTokenType],
)
