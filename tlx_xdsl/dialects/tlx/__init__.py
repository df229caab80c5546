"""The `tlx` dialect: what TLX has and no version of stock Triton's dialects has an operation for.

Storage aliasing (`storage_alias`), layouts that the user asks for (`layouts`), named barriers and fences (`barriers`),
clusters of CTAs with tensors of their own (`cluster`), bulk copies and prefetches (`copies`), and single instructions
(`special`).
"""

from __future__ import annotations

from xdsl.ir import Dialect

from tlx_xdsl.dialects.tlx.barriers import (
    ArrivePerThreadOp,
    FenceMBarrierInitClusterOp,
    FenceOp,
    NamedBarrierArriveOp,
    NamedBarrierWaitOp,
)
from tlx_xdsl.dialects.tlx.cluster import (
    ArriveRemoteOp,
    AsyncRemoteCopyOp,
    AsyncRemoteStoreOp,
    ClusterCTARankOp,
    ClusterSizeOp,
    MapToRemoteOp,
    RemoteStoreOp,
    SharedClusterMemoryAttr,
)
from tlx_xdsl.dialects.tlx.copies import (
    AsyncBulkLoadOp,
    AsyncBulkStoreOp,
    AsyncTMALoadOp,
    AsyncTMAPrefetchOp,
    CLCTryCancelOp,
    MakeTensorDescOp,
    PrefetchOp,
    PrefetchTensormapOp,
)
from tlx_xdsl.dialects.tlx.layouts import (
    LAYOUT_ATTRS,
    AssertSameLayoutExpectedOp,
    AssertSameLayoutOp,
    DumpLayoutOp,
    ReleaseLayoutOp,
    RequireLayoutOp,
)
from tlx_xdsl.dialects.tlx.special import (
    Clock64Op,
    MemDescDynamicSubsliceOp,
    StochRoundOp,
    VoteBallotOp,
)
from tlx_xdsl.dialects.tlx.storage_alias import (
    LocalAliasOp,
    ReuseGroupOp,
    SetBufferOverlapOp,
    StorageAliasLocalAllocOp,
    StorageAliasSpecOp,
)
from tlx_xdsl.dialects.tlx.types import (
    ReuseGroupKindAttr,
    ReuseGroupType,
    StorageAliasSpecType,
    StorageKindAttr,
)

TLX = Dialect(
    "tlx",
    [
        ArrivePerThreadOp,
        ArriveRemoteOp,
        AssertSameLayoutExpectedOp,
        AssertSameLayoutOp,
        AsyncBulkLoadOp,
        AsyncBulkStoreOp,
        AsyncRemoteCopyOp,
        AsyncRemoteStoreOp,
        AsyncTMALoadOp,
        AsyncTMAPrefetchOp,
        CLCTryCancelOp,
        Clock64Op,
        ClusterCTARankOp,
        ClusterSizeOp,
        DumpLayoutOp,
        FenceMBarrierInitClusterOp,
        FenceOp,
        LocalAliasOp,
        MakeTensorDescOp,
        MapToRemoteOp,
        MemDescDynamicSubsliceOp,
        NamedBarrierArriveOp,
        NamedBarrierWaitOp,
        PrefetchOp,
        PrefetchTensormapOp,
        ReleaseLayoutOp,
        RemoteStoreOp,
        RequireLayoutOp,
        ReuseGroupOp,
        SetBufferOverlapOp,
        StochRoundOp,
        StorageAliasLocalAllocOp,
        StorageAliasSpecOp,
        VoteBallotOp,
    ],
    [ReuseGroupKindAttr, ReuseGroupType, StorageAliasSpecType, StorageKindAttr, SharedClusterMemoryAttr, *LAYOUT_ATTRS],
)
