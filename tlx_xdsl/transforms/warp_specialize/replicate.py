"""`tlx-ws-replicate-tasks`: a task with several copies becomes as many tasks, each with its number.

Passes before this one keep one task for all copies, with their count in `tlx.replicas` and `tlx.replica_id` for the
number of the copy, as the source has them: `tlx.async_task(replicate=2)` and `tlx.async_task_replica_id()`. What
results is what the frontend makes of that source.

Before:
```mlir
ttg.warp_specialize(%ring) attributes {requestedRegisters = array<i32: 232>, tlx.replicas = array<i32: 2>}
default {
  ttg.warp_yield
}
partition0(%a: !ttg.memdesc<...>) num_warps(4) {
  %half = tlx.replica_id
  %0 = ttg.memdesc_index %a[%half] : ...
  ttg.warp_return
} : (!ttg.memdesc<...>) -> ()
```
After:
```mlir
ttg.warp_specialize(%ring) attributes {requestedRegisters = array<i32: 232, 232>}
default {
  ttg.warp_yield
}
partition0(%a: !ttg.memdesc<...>) num_warps(4) {
  %c0 = arith.constant 0 : i32
  %0 = ttg.memdesc_index %a[%c0] : ...
  ttg.warp_return
}
partition1(%a: !ttg.memdesc<...>) num_warps(4) {
  %c1 = arith.constant 1 : i32
  %0 = ttg.memdesc_index %a[%c1] : ...
  ttg.warp_return
} : (!ttg.memdesc<...>) -> ()
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseArrayBase, IntegerType, ModuleOp, i32
from xdsl.dialects.scf import ForOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects.tlx import ReplicaIdOp
from tlx_xdsl.dialects.ttg import MemDescIndexOp, WarpSpecializeOp
from tlx_xdsl.text.diagnostics import error_at

from ..captures import isolate
from ..rewriting import Pass, constant, constant_integer, forward, insert_before, ops_of
from .outer_values import use_outer_values_in
from .tasks_of import REPLICAS, TILES


class ReplicateTasksPass(Pass):
    """Write each copy of each task."""

    name = "tlx-ws-replicate-tasks"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError for a `tlx.replica_id` that stands in no task.
        """
        for tasks in ops_of(op, WarpSpecializeOp):
            _replicate(tasks)
        for number in ops_of(op, ReplicaIdOp):
            if number.result.first_use is not None:
                raise error_at(number, "'tlx.replica_id' is the number of a copy of a task, and stands in no task here")
            Rewriter.erase_op(number)
        for loop in ops_of(op, ForOp):
            loop.attributes.pop(TILES, None)


def _replicate(tasks: WarpSpecializeOp) -> None:
    """Write the copies of the partitions of one operation; its default region has no others."""
    _number(tasks.default_region, 0)
    stated = tasks.attributes.pop(REPLICAS, None)
    counts = [1] * len(tasks.num_warps) if stated is None else _integers(stated)
    partitions = tasks.partitions
    # In source these are numbers and elements of arrays, which each task has for itself.
    use_outer_values_in(tasks, but_own=(ConstantOp, MemDescIndexOp))
    copies: list[tuple[int, int]] = []
    for partition, (region, count) in enumerate(zip(list(partitions.partition_regions), counts, strict=True)):
        partitions.detach_region(region)
        for replica in range(count):
            copy = region.clone() if replica + 1 < count else region
            partitions.add_region(copy)
            _number(copy, replica)
            copies.append((partition, replica))
    _state_each(tasks, copies)
    # Of all copies together, the fewest values, as the frontend captures them.
    partitions.operands = isolate(partitions.partition_regions)


def _number(region: Region, replica: int) -> None:
    """Put the number of the copy into a region, as a constant at its start."""
    for number in [op for op in region.walk() if isinstance(op, ReplicaIdOp)]:
        forward(number, _constant_at_start(region.blocks[0], replica))


def _constant_at_start(block: Block, number: int) -> SSAValue:
    """Return the constant of a block, which is made where there is none: the frontend, too, writes a number once."""
    for op in block.ops:
        if isinstance(op, ConstantOp) and op.result.type == i32 and constant_integer(op.result) == number:
            op.detach()
            break
    else:
        op = constant(number, i32)
    first = block.first_op
    assert first is not None, "a task ends in an operation"
    return insert_before(first, op).result


def _state_each(tasks: WarpSpecializeOp, copies: Sequence[tuple[int, int]]) -> None:
    """State for each copy what was stated for its task."""
    warps = tasks.num_warps
    tasks.properties["partitionNumWarps"] = _array([warps[partition] for partition, _ in copies])
    if tasks.requested_registers is not None:
        registers = _integers(tasks.requested_registers)
        tasks.properties["requestedRegisters"] = _array([registers[partition] for partition, _ in copies])
    if tasks.warp_group_start_ids is not None:
        starts = _integers(tasks.warp_group_start_ids)
        tasks.properties["warpGroupStartIds"] = _array(
            [starts[partition] + replica * warps[partition] for partition, replica in copies]
        )


def _integers(array: Attribute) -> tuple[int, ...]:
    assert isinstance(array, DenseArrayBase)
    return tuple(cast(DenseArrayBase[IntegerType], array).get_values())


def _array(numbers: Sequence[int]) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i32, numbers)
