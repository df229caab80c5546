"""The `ttng` dialect: mbarriers, TMA, wgmma, tcgen05 and tensor memory of NVIDIA GPUs."""

from __future__ import annotations

from xdsl.ir import Dialect

from tlx_xdsl.dialects.ttng.attrs import (
    TMEM_LAYOUT_ATTRS,
    CachePolicyAttr,
    TensorMemoryScalesBlockRepOrderAttr,
    TensorMemorySpaceAttr,
    TMEMLoadReduceModifierAttr,
)
from tlx_xdsl.dialects.ttng.barrier import (
    ArriveBarrierOp,
    AsyncCopyMbarrierArriveOp,
    AsyncSharedStoreOp,
    BarrierExpectOp,
    InitBarrierOp,
    InvalBarrierOp,
    WaitBarrierOp,
)
from tlx_xdsl.dialects.ttng.cluster import (
    CLCGetProgramIdOp,
    CLCIsCanceledOp,
    CLCLoadResultOp,
    CLCTryCancelOp,
    CLCTryCancelSyncOp,
    ClusterArriveOp,
    ClusterBarrierOp,
    ClusterWaitOp,
    FenceAsyncSharedOp,
    FenceMBarrierInitReleaseClusterOp,
)
from tlx_xdsl.dialects.ttng.mma import PackedArithOp, WarpGroupDotOp, WarpGroupDotWaitOp
from tlx_xdsl.dialects.ttng.tcgen05 import TCGen5CommitOp, TCGen5MMAOp, TCGen5MMAScaledOp
from tlx_xdsl.dialects.ttng.tensormap import (
    ReinterpretTensorDescOp,
    TensormapCreateOp,
    TensormapFenceproxyAcquireOp,
)
from tlx_xdsl.dialects.ttng.tma import (
    AsyncTMACopyGlobalToLocalOp,
    AsyncTMACopyLocalToGlobalOp,
    AsyncTMAGatherOp,
    AsyncTMAReduceOp,
    AsyncTMAScatterOp,
    AsyncTMAStoreWaitOp,
)
from tlx_xdsl.dialects.ttng.tmem import (
    TMEMAllocOp,
    TMEMCopyOp,
    TMEMLoadOp,
    TMEMStoreOp,
    TMEMSubSliceOp,
    TMEMWaitOp,
)
from tlx_xdsl.dialects.ttng.types import TensorDescIm2ColType

TTNG = Dialect(
    "ttng",
    [
        ArriveBarrierOp,
        AsyncCopyMbarrierArriveOp,
        AsyncSharedStoreOp,
        AsyncTMACopyGlobalToLocalOp,
        AsyncTMACopyLocalToGlobalOp,
        AsyncTMAGatherOp,
        AsyncTMAReduceOp,
        AsyncTMAScatterOp,
        AsyncTMAStoreWaitOp,
        BarrierExpectOp,
        CLCGetProgramIdOp,
        CLCIsCanceledOp,
        CLCLoadResultOp,
        CLCTryCancelOp,
        CLCTryCancelSyncOp,
        ClusterArriveOp,
        ClusterBarrierOp,
        ClusterWaitOp,
        FenceAsyncSharedOp,
        FenceMBarrierInitReleaseClusterOp,
        InitBarrierOp,
        InvalBarrierOp,
        PackedArithOp,
        ReinterpretTensorDescOp,
        TCGen5CommitOp,
        TCGen5MMAOp,
        TCGen5MMAScaledOp,
        TMEMAllocOp,
        TMEMCopyOp,
        TMEMLoadOp,
        TMEMStoreOp,
        TMEMSubSliceOp,
        TMEMWaitOp,
        TensormapCreateOp,
        TensormapFenceproxyAcquireOp,
        WaitBarrierOp,
        WarpGroupDotOp,
        WarpGroupDotWaitOp,
    ],
    [
        *TMEM_LAYOUT_ATTRS,
        CachePolicyAttr,
        TMEMLoadReduceModifierAttr,
        TensorMemoryScalesBlockRepOrderAttr,
        TensorMemorySpaceAttr,
        TensorDescIm2ColType,
    ],
)
