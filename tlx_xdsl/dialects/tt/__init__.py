"""The `tt` dialect: functions, tensors, pointers and descriptors."""

from __future__ import annotations

from xdsl.ir import Dialect

from tlx_xdsl.dialects.tt.atomic import (
    AtomicCASOp,
    AtomicLoadOp,
    AtomicPollOp,
    AtomicRMWOp,
    AtomicStoreOp,
)
from tlx_xdsl.dialects.tt.attrs import CachePolicyAttr
from tlx_xdsl.dialects.tt.debug import AssertOp, PrintOp
from tlx_xdsl.dialects.tt.descriptor import (
    DescriptorGatherOp,
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorScatterOp,
    DescriptorStoreOp,
    MakeTensorDescOp,
)
from tlx_xdsl.dialects.tt.dot import DotOp, DotScaledOp
from tlx_xdsl.dialects.tt.elementwise import (
    ApproxDivFOp,
    BitcastOp,
    ClampFOp,
    ElementwiseInlineAsmOp,
    ExternElementwiseOp,
    FpToFpOp,
    IntToPtrOp,
    MapElementwiseOp,
    MapElementwiseReturnOp,
    MulhiUIOp,
    PreciseDivFOp,
    PreciseSqrtOp,
    PtrToIntOp,
)
from tlx_xdsl.dialects.tt.func import CallOp, FuncOp, GetNumProgramsOp, GetProgramIdOp, ReturnOp
from tlx_xdsl.dialects.tt.memory import (
    AddPtrOp,
    GridDependencyLaunchDependentsOp,
    GridDependencyWaitOp,
    LoadOp,
    StoreOp,
)
from tlx_xdsl.dialects.tt.reduce import ReduceOp, ReduceReturnOp, ScanOp, ScanReturnOp
from tlx_xdsl.dialects.tt.shape import (
    BroadcastOp,
    CatOp,
    ExpandDimsOp,
    GatherOp,
    HistogramOp,
    JoinOp,
    MakeRangeOp,
    ReshapeOp,
    SplatOp,
    SplitOp,
    TransOp,
    UnsplatOp,
)
from tlx_xdsl.dialects.tt.types import PointerType, TensorDescType

TT = Dialect(
    "tt",
    [
        AddPtrOp,
        ApproxDivFOp,
        AssertOp,
        AtomicCASOp,
        AtomicLoadOp,
        AtomicPollOp,
        AtomicRMWOp,
        AtomicStoreOp,
        BitcastOp,
        BroadcastOp,
        CallOp,
        CatOp,
        ClampFOp,
        DescriptorGatherOp,
        DescriptorLoadOp,
        DescriptorReduceOp,
        DescriptorScatterOp,
        DescriptorStoreOp,
        DotOp,
        DotScaledOp,
        ElementwiseInlineAsmOp,
        ExpandDimsOp,
        ExternElementwiseOp,
        FpToFpOp,
        FuncOp,
        GatherOp,
        GetNumProgramsOp,
        GetProgramIdOp,
        GridDependencyLaunchDependentsOp,
        GridDependencyWaitOp,
        HistogramOp,
        IntToPtrOp,
        JoinOp,
        LoadOp,
        MakeRangeOp,
        MakeTensorDescOp,
        MapElementwiseOp,
        MapElementwiseReturnOp,
        MulhiUIOp,
        PreciseDivFOp,
        PreciseSqrtOp,
        PrintOp,
        PtrToIntOp,
        ReduceOp,
        ReduceReturnOp,
        ReshapeOp,
        ReturnOp,
        ScanOp,
        ScanReturnOp,
        SplatOp,
        SplitOp,
        StoreOp,
        TransOp,
        UnsplatOp,
    ],
    [CachePolicyAttr, PointerType, TensorDescType],
)
