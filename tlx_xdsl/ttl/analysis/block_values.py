"""Blocks of tiles as values: which of them live in DST registers only, and which must be in a circular buffer."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import memref

from ..dialects import ttl


def needs_buffer(value: SSAValue) -> bool:
    """Return whether a computed block must be written to a circular buffer before it is used.

    That is so when a user reads its operand from a buffer only, or when `value` is made by a loop over another
    dimension than those of the block, into which its users can't be fused. A store is a buffer already.
    """
    if (op := computes(value)) is None:
        return False
    users = [use for use in value.uses if not isinstance(use.operation, ttl.RequireDSTOp)]
    if any(reads_buffer(use.operation, use.index) for use in users):
        return True
    is_root = issubclass(op.TILE, ttl.TileAccumulatingOp)
    return is_root and (len(users) > 1 or any(not isinstance(use.operation, ttl.StoreOp) for use in users))


def needs_dst(value: SSAValue) -> bool:
    """Return whether tiles of `value` are in DST registers for one of the operations that use it."""
    return any(
        _reads_tiles(use.operation, use.index) and not reads_buffer(use.operation, use.index) for use in value.uses
    )


def _reads_tiles(op: Operation, operand: int) -> bool:
    """Return whether an operation does something with the tiles of an operand."""
    return isinstance(op, ttl.BlockComputeOp) or (isinstance(op, ttl.StoreOp) and operand == 0)


def computes(value: SSAValue) -> ttl.BlockComputeOp | None:
    """The operation that computes `value`, or None where it is no result of one."""
    return value.owner if isinstance(value.owner, ttl.BlockComputeOp) else None


def reads_buffer(op: Operation, operand: int) -> bool:
    """Return whether an operation can take an operand from a circular buffer only."""
    return isinstance(op, ttl.BlockComputeOp) and operand in op.TILE.CB_OPERANDS


def acquired_by(view: SSAValue) -> ttl.AcquireOp | None:
    """The `cb_wait` or `cb_reserve` of which `view` is a block."""
    while isinstance(view.owner, ttl.BlockOp | memref.SubviewOp):
        view = view.owner.operands[0]
    return view.owner if isinstance(view.owner, ttl.AcquireOp) else None
