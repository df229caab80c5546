"""The `tlx` dialect: storage aliasing."""

from __future__ import annotations

from xdsl.ir import Dialect

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
    [LocalAliasOp, ReuseGroupOp, SetBufferOverlapOp, StorageAliasLocalAllocOp, StorageAliasSpecOp],
    [ReuseGroupKindAttr, ReuseGroupType, StorageAliasSpecType, StorageKindAttr],
)
