"""The `ttng` dialect: mbarriers, TMA and wgmma."""

from __future__ import annotations

from xdsl.ir import Dialect

from tlx_xdsl.dialects.ttng.barrier import (
    ArriveBarrierOp,
    BarrierExpectOp,
    FenceAsyncSharedOp,
    InitBarrierOp,
    InvalBarrierOp,
    WaitBarrierOp,
)
from tlx_xdsl.dialects.ttng.mma import WarpGroupDotOp, WarpGroupDotWaitOp
from tlx_xdsl.dialects.ttng.tma import (
    AsyncTMACopyGlobalToLocalOp,
    AsyncTMACopyLocalToGlobalOp,
    AsyncTMAStoreWaitOp,
)

TTNG = Dialect(
    "ttng",
    [
        ArriveBarrierOp,
        AsyncTMACopyGlobalToLocalOp,
        AsyncTMACopyLocalToGlobalOp,
        AsyncTMAStoreWaitOp,
        BarrierExpectOp,
        FenceAsyncSharedOp,
        InitBarrierOp,
        InvalBarrierOp,
        WaitBarrierOp,
        WarpGroupDotOp,
        WarpGroupDotWaitOp,
    ],
)
