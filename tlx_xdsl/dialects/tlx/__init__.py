"""The `tlx` dialect: storage aliasing, and layouts that the user asks for."""

from __future__ import annotations

from xdsl.ir import Dialect

from tlx_xdsl.dialects.tlx.layouts import LAYOUT_ATTRS, LAYOUT_OPS
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
    [LocalAliasOp, ReuseGroupOp, SetBufferOverlapOp, StorageAliasLocalAllocOp, StorageAliasSpecOp, *LAYOUT_OPS],
    [ReuseGroupKindAttr, ReuseGroupType, StorageAliasSpecType, StorageKindAttr, *LAYOUT_ATTRS],
)
