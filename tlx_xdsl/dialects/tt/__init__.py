"""The `tt` dialect: functions, tensors, pointers and descriptors."""

from __future__ import annotations

from xdsl.ir import Dialect

from tlx_xdsl.dialects.tt.func import FuncOp, GetNumProgramsOp, GetProgramIdOp, ReturnOp
from tlx_xdsl.dialects.tt.ops import (
    AddPtrOp,
    BroadcastOp,
    ExpandDimsOp,
    LoadOp,
    MakeRangeOp,
    SplatOp,
    StoreOp,
)
from tlx_xdsl.dialects.tt.shape_ops import ReshapeOp, SplitOp, TransOp
from tlx_xdsl.dialects.tt.types import PointerType, TensorDescType

TT = Dialect(
    "tt",
    [
        AddPtrOp,
        BroadcastOp,
        ExpandDimsOp,
        FuncOp,
        GetNumProgramsOp,
        GetProgramIdOp,
        LoadOp,
        MakeRangeOp,
        ReshapeOp,
        ReturnOp,
        SplatOp,
        SplitOp,
        StoreOp,
        TransOp,
    ],
    [PointerType, TensorDescType],
)
