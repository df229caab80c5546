"""Pointers to other GPUs' memory, which a kernel reads from the table of a symmetric tensor: what is wrong with one."""

from __future__ import annotations

from xdsl.ir import BlockArgument, Operation, SSAValue

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import PointerType, scalar_type


def out_of_world(op: Operation) -> str:
    """Return what is said of an access out of bounds by the pointer of a peer, or to the table of peers; else nothing.

    After the pointers a table has the rank of its GPU, which is no address.
    """
    if isinstance(op, tt.LoadOp) and any(isinstance(use.operation, tt.IntToPtrOp) for use in op.result.uses):
        return _said(op.ptr)
    for value in op.operands:
        if not _is_pointer(value):
            continue
        found = _origin(value)
        if isinstance(found.owner, tt.IntToPtrOp) and isinstance(table := found.owner.src.owner, tt.LoadOp):
            return _said(table.ptr)
    return ""


def _said(pointer: SSAValue) -> str:
    table = _origin(pointer)
    name = f" of '{table.name_hint}'" if isinstance(table, BlockArgument) and table.name_hint else ""
    return f"; the pointer is that of a peer{name}: a rank outside of the world was asked for"


def _origin(value: SSAValue) -> SSAValue:
    """The pointer that others are offsets to, or copies of."""
    while isinstance(owner := value.owner, Operation):
        before = next((each for each in owner.operands if _is_pointer(each)), None)
        if before is None or owner.results[0] is not value or not _is_pointer(value):
            break
        value = before
    return value


def _is_pointer(value: SSAValue) -> bool:
    return isinstance(scalar_type(value.type), PointerType)
