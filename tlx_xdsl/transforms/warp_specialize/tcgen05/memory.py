"""Memory that is allocated before tasks, and handed to them."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.dialects import ttg, ttng
from tlx_xdsl.dialects.base import layout_attr
from tlx_xdsl.dialects.ttg import MemDescType
from tlx_xdsl.layouts.shared import unswizzled_layout

from ..products.numbers import number


def before_tasks(tasks: ttg.WarpSpecializeOp, op: Operation, located_at: Operation) -> Operation:
    """Insert an operation before the tasks."""
    Rewriter.insert_op(op, InsertPoint.before(tasks))
    op.location = located_at.location
    return op


def barriers_before(tasks: ttg.WarpSpecializeOp, count: int, name: str, located_at: Operation) -> SSAValue:
    """Allocate and initialise barriers that one arrival completes."""
    type_ = MemDescType.get((count, 1), i64, layout_attr(unswizzled_layout(1)), ttg.SharedMemorySpaceAttr())
    array = before_tasks(tasks, ttg.LocalAllocOp(operands=[None], result_types=[type_]), located_at).results[0]
    array.name_hint = name
    one = MemDescType.get((1,), i64, type_.encoding, type_.memory_space)
    for index in range(count):
        view = ttg.MemDescIndexOp(operands=[array, number(tasks, index)], result_types=[one])
        before_tasks(tasks, view, located_at)
        start = ttng.InitBarrierOp(operands=[view.result], properties={"count": IntegerAttr(1, i32)})
        before_tasks(tasks, start, located_at)
    return array


def capture(tasks: ttg.WarpSpecializeOp, index: int, value: SSAValue) -> SSAValue:
    """Give a value of the code around to all partitions; return the argument of one of them."""
    partitions = tasks.partitions
    partitions.operands = [*partitions.operands, value]
    for region in partitions.partition_regions:
        block = region.blocks[0]
        argument = block.insert_arg(value.type, len(block.args))
        argument.name_hint = value.name_hint
    return partitions.partition_regions[index].blocks[0].args[-1]
