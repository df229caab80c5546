"""Staging buffers in the memory of rings that are done, so that rings can be deeper.

Where the only consumer task stores after all of its reads of rings, each of its copies arrives at a barrier there, and
waits for the others. By then each copy has waited for all slots that the producer fills, so that no load is in flight,
and none of them reads a ring any more.

```python
storage = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
a, b = tlx.local_alloc(..., reuse=storage), tlx.local_alloc(..., reuse=storage)
c_staging = tlx.local_alloc(..., reuse=storage)
ring = tlx.reuse_group(a, b, group_type=tlx.reuse_group_type.distinct)
storage.set_buffer_overlap(tlx.reuse_group(ring, c_staging, group_type=tlx.reuse_group_type.shared))
```
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i1, i32, i64
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import ttg, ttng
from tlx_xdsl.dialects.base import layout_attr
from tlx_xdsl.dialects.tlx import (
    ReuseGroupKind,
    ReuseGroupOp,
    SetBufferOverlapOp,
    StorageAliasLocalAllocOp,
    StorageAliasSpecOp,
    StorageKind,
)
from tlx_xdsl.dialects.ttg import MemDescType, memdesc_type
from tlx_xdsl.layouts.shared import unswizzled_layout

from ...rewriting import constant, insert_before, replace
from ..products.numbers import number
from ..rings import SMEM
from ..tasks_of import NOTE, copies_of


def overlay_rings(
    tasks: ttg.WarpSpecializeOp, stores: Sequence[Operation], buffers: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """Give the staging buffers of `stores` the memory of the rings where that is possible; return the buffers.

    The partitions use outer values, not captures.
    """
    rings = _rings(tasks)
    if len(tasks.num_warps) != 1 or not rings or not stores:
        return buffers
    (task,) = tasks.partitions.partition_regions
    if len(task.blocks) != 1 or any(store.parent is not task.block for store in stores):
        return buffers
    first = next(op for op in task.block.ops if op in stores)
    if not _is_done_before(first, {*rings, *_barriers(tasks)}):
        return buffers
    _meet(tasks, first, copies_of(tasks, 0))
    return _share_memory(tasks, rings, buffers)


def _rings(tasks: ttg.WarpSpecializeOp) -> Sequence[SSAValue]:
    """Return the arrays that the tasks fill by TMA, in the order of their allocations."""
    copies = [op for op in tasks.walk() if isinstance(op, ttng.AsyncTMACopyGlobalToLocalOp)]
    filled = {_array(op.result) for op in copies}
    block = tasks.parent
    assert block is not None, "tasks stand in a function"
    found = [op.result for op in block.ops if isinstance(op, ttg.LocalAllocOp) and op.result in filled]
    return found if len(found) == len(filled) else []


def _barriers(tasks: ttg.WarpSpecializeOp) -> set[SSAValue]:
    """Return the arrays of mbarriers that rings have."""
    filling = (ttng.AsyncTMACopyGlobalToLocalOp, ttng.BarrierExpectOp, ttng.WaitBarrierOp)
    ops = [op for op in tasks.default_region.walk() if isinstance(op, filling)]
    return {_array(operand) for op in ops for operand in op.operands if isinstance(operand.type, MemDescType)}


def _array(view: SSAValue) -> SSAValue:
    """Return the array of buffers that a view is a view of."""
    while isinstance(op := view.owner, Operation):
        viewed = [operand for operand in op.operands if isinstance(operand.type, MemDescType)]
        if len(viewed) != 1:
            break
        (view,) = viewed
    return view


def _is_done_before(first: Operation, arrays: set[SSAValue]) -> bool:
    """Say whether a task needs none of `arrays` from `first` on, and no product reads one of them any more."""
    op: Operation | None = first
    while op is not None:
        used = (operand for inner in op.walk() for operand in inner.operands if isinstance(operand.type, MemDescType))
        if any(_array(operand) in arrays for operand in used):
            return False
        op = op.next_op
    return not _is_in_flight(_before(first))


def _before(op: Operation) -> Iterator[Operation]:
    assert op.parent is not None
    for other in op.parent.ops:
        if other is op:
            return
        yield other


def _is_in_flight(ops: Iterator[Operation], at_start: bool = False) -> bool:
    """Say whether a product may be in flight after `ops`."""
    flying = at_start
    for op in ops:
        if isinstance(op, ttng.WarpGroupDotOp) and op.is_async.value.data:
            flying = True
        elif isinstance(op, ttng.WarpGroupDotWaitOp) and not op.pendings.value.data:
            flying = False
        elif op.regions:
            ends = [_is_in_flight(iter(region.block.ops), flying) for region in op.regions if region.blocks]
            # A loop may make no turn, and an 'if' without 'else' do nothing.
            flying = any(ends) or flying
    return flying


def _meet(tasks: ttg.WarpSpecializeOp, first: Operation, copies: int) -> None:
    """Let all copies of the task wait for each other before `first`."""
    type_ = MemDescType.get((1, 1), i64, layout_attr(unswizzled_layout(1)), SMEM)
    array = insert_before(tasks, ttg.LocalAllocOp(operands=[None], result_types=[type_]), located_at=first).result
    array.name_hint = "rings_are_done"
    zero = insert_before(tasks, constant(0, i32), located_at=first).result
    count = IntegerAttr(copies, i32)
    insert_before(tasks, ttng.InitBarrierOp(operands=[_only(array, zero, tasks)], properties={"count": count}))
    one = IntegerAttr(1, i32)
    zero = number(first, 0)
    arrival = ttng.ArriveBarrierOp(operands=[_only(array, zero, first), None], properties={"count": one})
    arrival.attributes[NOTE] = StringAttr("all slots were waited for and read: their memory is free when all are here")
    insert_before(first, arrival)
    wait = ttng.WaitBarrierOp(operands=[_only(array, zero, first), zero, number(first, 1, i1), []])
    insert_before(first, wait)


def _only(array: SSAValue, zero: SSAValue, before: Operation) -> SSAValue:
    """Take the only barrier of an array."""
    type_ = memdesc_type(array.type)
    one = MemDescType.get(type_.shape[1:], type_.element_type, type_.encoding, type_.memory_space)
    return insert_before(before, ttg.MemDescIndexOp(operands=[array, zero], result_types=[one])).result


def _share_memory(
    tasks: ttg.WarpSpecializeOp, rings: Sequence[SSAValue], buffers: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """Put rings and staging buffers into one region: the rings side by side, and the buffers over them."""
    first = rings[0].owner
    assert isinstance(first, Operation)
    storage = insert_before(first, StorageAliasSpecOp(StorageKind.SMEM)).result
    storage.name_hint = "storage"
    arrays = [_in_storage(array, storage) for array in (*rings, *buffers)]
    parts = [
        _group(tasks, arrays[: len(rings)], ReuseGroupKind.DISTINCT),
        _group(tasks, arrays[len(rings) :], ReuseGroupKind.DISTINCT),
    ]
    whole = insert_before(tasks, ReuseGroupOp(parts, ReuseGroupKind.SHARED)).result
    insert_before(tasks, SetBufferOverlapOp(operands=[storage, whole]))
    return arrays[len(rings) :]


def _in_storage(array: SSAValue, storage: SSAValue) -> SSAValue:
    """Allocate an array in the region."""
    op = array.owner
    assert isinstance(op, ttg.LocalAllocOp)
    note = op.attributes.get(NOTE)
    made = replace(op, StorageAliasLocalAllocOp(operands=[storage], result_types=[array.type]))
    if note is not None:
        made.attributes[NOTE] = note
    return made.result


def _group(tasks: ttg.WarpSpecializeOp, arrays: Sequence[SSAValue], kind: ReuseGroupKind) -> SSAValue:
    """Group arrays, each with all of its buffers as one."""
    wholes = [
        insert_before(tasks, ReuseGroupOp([array], ReuseGroupKind.SHARED, memdesc_type(array.type).shape[0])).result
        for array in arrays
    ]
    return wholes[0] if len(wholes) == 1 else insert_before(tasks, ReuseGroupOp(wholes, kind)).result
