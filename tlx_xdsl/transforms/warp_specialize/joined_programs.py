"""Programs of the plain launch that groups of warps do at the same time, one each, because they load the same blocks.

Programs that follow each other along an axis often do: the blocks of queries of one head take all of its keys. In
Python, for three groups and an axis of `grid_x` programs:

    group = tlx.async_task_replica_id()
    for tile in range(first, tl.cdiv(grid_x, 3), programs):
        program = tile * 3 + group
        x = tl.minimum(program, grid_x - 1)
        ...
        if program < grid_x:
            tl.store(...)

A group without a program computes what the last one does, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from tlx_xdsl.dialects import regions, tt
from tlx_xdsl.dialects.arith import CmpiOp
from tlx_xdsl.dialects.base import enclosing
from tlx_xdsl.dialects.dimensions import shape_of_value
from tlx_xdsl.dialects.scf import LOOPS
from tlx_xdsl.dialects.tlx import ReplicaIdOp

from ..rewriting import constant, insert_before, ops_of
from .slices import writes_memory
from .tasks_of import REPLICAS


def shared_axis(function: tt.FuncOp) -> int | None:
    """Return the axis along which programs load the same blocks in loops; None where there is none."""
    ids = ops_of(function, tt.GetProgramIdOp)
    loads = [
        op
        for op in ops_of(function, tt.LoadOp, tt.DescriptorLoadOp)
        if enclosing(op, *LOOPS) is not None and sum(size > 1 for size in shape_of_value(op.results[0])) > 1
    ]
    incoming = regions.incoming([edge for op in function.walk() for edge in regions.edges(op) or ()])
    made_of = [_sources(load, incoming) for load in loads]
    alike = {
        axis: sum(not any(op.axis.value.data == axis and op.result in found for op in ids) for found in made_of)
        for axis in sorted({op.axis.value.data for op in ids})
    }
    best = max(alike, key=lambda axis: alike[axis], default=None)
    return best if best is not None and alike[best] else None


def _sources(load: Operation, incoming: dict[SSAValue, list[SSAValue]]) -> set[SSAValue]:
    """Return the values that decide what a load reads; how often it is done, they do not say."""
    found: set[SSAValue] = set()
    stack = list(load.operands)
    while stack:
        value = stack.pop()
        if value in found:
            continue
        found.add(value)
        owner = value.owner
        if value in incoming:
            stack += incoming[value]
        elif isinstance(value, BlockArgument) and isinstance(loop := value.block.parent_op(), scf.ForOp):
            stack += [loop.lb, loop.step]
        elif isinstance(owner, Operation):
            stack += owner.operands
    return found


def joined_size(end: Operation, size: SSAValue, groups: int) -> SSAValue:
    """Insert how many programs an axis has when each does those of all groups."""
    more = insert_before(end, constant(groups - 1, i32)).result
    divisor = insert_before(end, constant(groups, i32)).result
    joined = insert_before(end, arith.DivSIOp(insert_before(end, arith.AddiOp(size, more)).result, divisor)).result
    joined.name_hint = "joined"
    return joined


def program_of_group(function: tt.FuncOp, anchor: Operation, number: SSAValue, size: SSAValue, groups: int) -> SSAValue:
    """Let what follows `anchor` write memory only for the group's own program; return the program's number."""
    first = function.body.blocks[0].first_op
    assert first is not None, "a function ends in an operation"
    group = insert_before(first, ReplicaIdOp(), located_at=function).result
    group.name_hint = "group"
    function.attributes[REPLICAS] = IntegerAttr(groups, i32)
    return own_program(anchor, number, group, size, groups)


def own_program(anchor: Operation, number: SSAValue, place: SSAValue, size: SSAValue, count: int) -> SSAValue:
    """The same for the one at a `place` among `count`, of groups or of the CTAs of a cluster."""
    block = anchor.parent
    assert block is not None, "an operation of a function"
    writes = [op for op in block.walk() if writes_memory(op)]
    many = insert_before(anchor, constant(count, i32)).result
    before = insert_before(anchor, arith.MuliOp(number, many)).result
    own = insert_before(anchor, arith.AddiOp(before, place)).result
    one = insert_before(anchor, constant(1, i32)).result
    last = insert_before(anchor, arith.SubiOp(size, one)).result
    found = insert_before(anchor, arith.MinSIOp(own, last)).result
    own.name_hint = "program"
    _only_where(insert_before(anchor, CmpiOp("slt", own, size)).result, writes)
    return found


def _only_where(condition: SSAValue, ops: Sequence[Operation]) -> None:
    """Let operations be done only where a condition holds."""
    for op in ops:
        end = scf.YieldOp()
        end.location = op.location
        insert_before(op, scf.IfOp(condition, [], Region(Block([end]))))
        op.detach()
        insert_before(end, op, located_at=op)
