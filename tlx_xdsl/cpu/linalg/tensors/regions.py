"""Regions of reductions, scans and maps, as bodies of other operations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import cf, scf
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import tt

from .emitter import Emitter


def moved(emit: Emitter, region: Region, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Move the operations of a region to where `emit` is, with `values` for its arguments; gives what it returns.

    A region of several blocks becomes an `scf.execute_region`.
    """
    if len(region.blocks) > 1:
        return _as_execute_region(emit, region, values)
    block = region.block
    for argument, value in zip(block.args, values, strict=True):
        argument.replace_all_uses_with(value)
    last = block.last_op
    assert last is not None
    for op in list(block.ops):
        if op is not last:
            op.detach()
            Rewriter.insert_op(op, emit.at)
    return tuple(last.operands)


def _as_execute_region(emit: Emitter, region: Region, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """The region as an operation, whose ends all lead to one last block: upstream bufferizes one `scf.yield` only."""
    entry = region.blocks[0]
    for argument, value in zip(entry.args, values, strict=True):
        argument.replace_all_uses_with(value)
    for argument in tuple(entry.args):
        entry.erase_arg(argument)
    ends = [last for block in region.blocks if isinstance(last := block.last_op, tt.MapElementwiseReturnOp)]
    types = [value.type for value in ends[0].operands]
    exit_ = emit.block_of(types, lambda _inner, arguments: arguments, scf.YieldOp)
    for end in ends:
        branch = cf.BranchOp(exit_, *end.operands)
        branch.location = end.location
        Rewriter.replace_op(end, branch, [])
    body = Region()
    region.move_blocks(body)
    body.add_block(exit_)
    return emit.add(scf.ExecuteRegionOp(types, body)).results


def only_operation(block: Block) -> Operation | None:
    """The operation of a region that returns what one operation makes of its two arguments."""
    first = block.first_op
    if first is None or first.next_op is not block.last_op or len(block.args) != 2:
        return None
    last = block.last_op
    assert last is not None
    if [*last.operands] != [*first.results] or {*first.operands} != {*block.args}:
        return None
    return first
