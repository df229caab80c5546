"""`tlx-ws-stage-stores`: tasks store blocks from shared memory by TMA, which writes them while the task goes on.

Before, in a partition with two copies:
```mlir
tt.descriptor_store %c[%i, %j], %sum : !tt.tensordesc<64x128xf16>, tensor<64x128xf16>
```
After, with `%staging = ttg.local_alloc : () -> !ttg.memdesc<2x64x128xf16, ...>` before the tasks:
```mlir
%own = ttg.memdesc_index %staging[%replica] : ...
ttg.local_store %sum, %own : ...
ttng.fence_async_shared {bCluster = false}
ttng.async_tma_copy_local_to_global %c[%i, %j] %own : ...
ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
```
The wait stands where the buffer is written next, so in a loop over tiles before the next tile is staged, and at the end
of the task. Where blocks may overlap (`store_order.py`), it waits for the writes to global memory as well: their order
stays. A block that the kernel accesses in other ways, too, is stored as before, and so are all blocks where the kernel
has atomic operations, which may signal other programs that a block is stored.

Where a product reads the block from shared memory, TMA stores it from there (`operand_buffers.py`). With `alias`, the
buffers lie in the memory of rings that are done, where the stores come after all reads of them (`dead_rings.py`), and
without it where there would not be enough memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, ModuleOp, StringAttr, UnitAttr, i32
from xdsl.ir import Operation, Region, SSAValue

from tlx_xdsl.analysis.module_attrs import module_target
from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.dialects.base import (
    Kind,
    Space,
    accesses_of,
    effects_of,
    enclosing,
    global_access,
    layout_attr,
    layout_of,
    outermost,
    scalar_type,
    shape_of_tensor,
)
from tlx_xdsl.dialects.scf import LOOPS
from tlx_xdsl.dialects.tlx import ReplicaIdOp
from tlx_xdsl.dialects.tt import descriptor_type
from tlx_xdsl.dialects.ttg import MemDescType, memdesc_type
from tlx_xdsl.layouts.buffer_views import reshaped_buffer_layout
from tlx_xdsl.layouts.encodings import Ints, SharedLayout
from tlx_xdsl.layouts.shared import default_shared_layout
from tlx_xdsl.targets import target_named

from ...captures import isolate
from ...rewriting import Pass, insert_before, ops_of
from ..origins import origins_of
from ..outer_values import use_captured_values
from ..products.numbers import number
from ..refusal import refusal_at
from ..rings import SMEM
from ..tasks import RESERVED_BYTES
from ..tasks_of import NOTE, TILES, copies_of
from .dead_rings import overlay_rings
from .operand_buffers import to_operand_buffer
from .pieces import buffers_of_pieces, store_in_pieces
from .store_order import may_overlap, may_overlap_over_turns


@dataclass(frozen=True)
class StageStoresPass(Pass):
    """Stage the blocks that tasks store."""

    name = "tlx-ws-stage-stores"

    alias: bool = False
    """Staging buffers lie in the memory of rings that are done."""
    pieces: int = 1
    """Pieces of its columns in which a block is stored, through a buffer of one piece."""

    def run(self, op: ModuleOp) -> None:
        """Handle all tasks of the module."""
        for function in ops_of(op, tt.FuncOp):
            for tasks in ops_of(function, ttg.WarpSpecializeOp):
                _stage(function, tasks, self)
            for loop in ops_of(function, scf.ForOp):
                loop.attributes.pop(TILES, None)


def _stage(function: tt.FuncOp, tasks: ttg.WarpSpecializeOp, options: StageStoresPass) -> None:
    use_captured_values(tasks)
    regions = [(tasks.default_region, 1)]
    regions += [(region, copies_of(tasks, i)) for i, region in enumerate(tasks.partitions.partition_regions)]
    if not any(_orders_memory(op) for op in function.body.walk()):
        for region, copies in regions:
            stores = [op for op in region.walk() if isinstance(op, tt.DescriptorStoreOp)]
            stores = [op for op in stores if not _is_accessed_otherwise(op, stores, function)]
            if options.pieces > 1:
                stores = store_in_pieces(function, stores, options.pieces)
            _stage_in(tasks, region, copies, stores, alias=options.alias)
    tasks.partitions.operands = isolate(tasks.partitions.partition_regions)


def _orders_memory(op: Operation) -> bool:
    """Say whether an operation may signal other programs, or other threads, that memory is written."""
    effects = effects_of(op)
    if effects.accesses is None and not isinstance(op, ttg.WarpSpecializeOp):
        return True
    return any(access.space is Space.GLOBAL and Kind.ATOMIC in access.kind for access in accesses_of(op) or ())


def _is_accessed_otherwise(
    store: tt.DescriptorStoreOp, stores: Sequence[tt.DescriptorStoreOp], function: tt.FuncOp
) -> bool:
    """Say whether the kernel may access what `store` writes by anything but `stores`."""
    origins = origins_of(store.desc)
    accesses = [access for op in function.body.walk() if op not in stores and (access := global_access(op)) is not None]
    others = [origins_of(access.value) for access in accesses]
    return origins is None or any(other is None or other & origins for other in others)


def _stage_in(
    tasks: ttg.WarpSpecializeOp, task: Region, copies: int, stores: Sequence[tt.DescriptorStoreOp], *, alias: bool
) -> None:
    """Stage stores of one task."""
    keys = _buffer_keys(stores)
    loops = _loops_by_themselves(stores, task)
    for loop, inside in loops.items():
        if stores[0] not in inside or enclosing(loop.parent_op(), *LOOPS) is not None:
            insert_before(loop, _wait(read_only=False))
    written = {store: write for store in stores if (write := to_operand_buffer(store, stores, loops)) is not None}
    stores = [op for op in task.walk() if isinstance(op, tt.DescriptorStoreOp) and op in stores]
    waits = {store: _wait_before(store, loops.get(_owner(store), stores), keys, task) for store in stores}
    first_uses: dict[_Key, tt.DescriptorStoreOp] = {}
    for store in stores:
        if store not in written:
            first_uses.setdefault(keys[store], store)
    arrays = [_buffers(tasks, store, copies) for store in first_uses.values()]
    if arrays and task is not tasks.default_region and (alias or not _fit(tasks)):
        arrays = overlay_rings(tasks, stores, arrays)
        if alias and not _fit(tasks):
            raise refusal_at(stores[0], "it has no memory of its own, and rings whose memory it could have are in use")
    by_key = dict(zip(first_uses, arrays, strict=True))
    for store in stores:
        write = written.get(store)
        if (wait := waits[store]) is not None:
            insert_before(store if write is None else write, wait, located_at=store)
        if write is not None:
            _copy_from(_in_shape(write.dst, descriptor_type(store.desc.type).shape, store), store)
        else:
            _store_through(by_key[keys[store]], _copy(task, copies, store), store)
    if stores and (end := task.blocks[-1].last_op) is not None:
        insert_before(end, _wait(read_only=True), located_at=stores[-1])
    for store in stores:
        store.detach()
        store.erase()


def _loops_by_themselves(
    stores: Sequence[tt.DescriptorStoreOp], task: Region
) -> Mapping[Operation, Sequence[tt.DescriptorStoreOp]]:
    """Return the loops before which a task waits for its other stores, each with those that its body does.

    Of two loops that follow each other, each turn then waits for what the same loop has stored, and for no more.
    """
    found: dict[Operation, Sequence[tt.DescriptorStoreOp]] = {}
    for store in stores:
        loop = enclosing(store.parent_op(), *LOOPS)
        if loop is None or not task.is_ancestor(loop) or loop in found:
            continue
        inside = [other for other in stores if loop.is_ancestor(other)]
        if len(inside) < len(stores) and all(_owner(other) is loop for other in inside):
            found[loop] = inside
    return found


def _owner(store: Operation) -> Operation:
    """Return the operation whose region a store stands in."""
    parent = store.parent_op()
    assert parent is not None, "a store stands in a task"
    return parent


_Key: TypeAlias = tuple[SSAValue, int]
"""The stores that share a buffer: their descriptor, and one of two where many blocks follow each other."""


def _buffer_keys(stores: Sequence[tt.DescriptorStoreOp]) -> dict[Operation, _Key]:
    """Deal stores to buffers: many through one descriptor have two of them in turn."""
    found: dict[Operation, _Key] = {}
    numbers: Counter[SSAValue] = Counter()
    in_all = Counter(store.desc for store in stores)
    for store in stores:
        found[store] = store.desc, numbers[store.desc] % buffers_of_pieces(in_all[store.desc])
        numbers[store.desc] += 1
    return found


def _fit(tasks: ttg.WarpSpecializeOp) -> bool:
    """Say whether the arrays before the tasks fit into shared memory, beside what the backend adds."""
    assert tasks.parent is not None
    arrays = [memdesc_type(op.result.type) for op in tasks.parent.ops if isinstance(op, ttg.LocalAllocOp)]
    used = sum(prod(array.shape) * array.element_bits // 8 for array in arrays)
    module = outermost(tasks)
    target = module_target(module) if isinstance(module, ModuleOp) else None
    return used + RESERVED_BYTES <= (target or target_named("sm_90a")).shared_bytes


def _wait_before(
    store: tt.DescriptorStoreOp, stores: Sequence[tt.DescriptorStoreOp], keys: Mapping[Operation, _Key], task: Region
) -> ttng.AsyncTMAStoreWaitOp | None:
    """Make the wait for earlier stores that `store` needs: none where they write elsewhere, and from other buffers."""
    number = stores.index(store)
    before = stores[:number]
    if any(may_overlap(other, store) for other in before):
        return _wait(read_only=False)
    loop = enclosing(store.parent_op(), *LOOPS)
    is_in_loop = loop is not None and task.is_ancestor(loop)
    beside = [other for other in stores if other.parent is store.parent]
    if beside != list(stores):
        # Which of them run is not known.
        is_first = is_in_loop and beside[0] is store
        needs = is_first or any(keys[other] == keys[store] for other in before)
        return _wait(read_only=not is_first) if needs else None
    if is_in_loop and any(may_overlap_over_turns(each, beside, task) for each in beside):
        # The first one waits for the turn before; those after it need not.
        needs = number and any(keys[other] == keys[store] for other in before)
        return _wait(read_only=bool(number)) if needs or not number else None
    earlier = [*(beside[number:] if is_in_loop else ()), *before]
    since = next((count for count, other in enumerate(reversed(earlier)) if keys[other] == keys[store]), None)
    return None if since is None else _wait(read_only=True, pendings=since)


def _wait(*, read_only: bool, pendings: int = 0) -> ttng.AsyncTMAStoreWaitOp:
    flag = UnitAttr() if read_only else None
    return ttng.AsyncTMAStoreWaitOp(properties={"pendings": IntegerAttr(pendings, i32), "read_only": flag})


def _buffers(tasks: ttg.WarpSpecializeOp, store: tt.DescriptorStoreOp, copies: int) -> SSAValue:
    """Allocate the staging buffers of the stores through one descriptor, one for each copy of the task."""
    block = descriptor_type(store.desc.type)
    layout = layout_attr(default_shared_layout(block.shape, block.element_bits))
    type_ = MemDescType.get((copies, *block.shape), scalar_type(store.src.type), layout, SMEM)
    buffers = insert_before(tasks, ttg.LocalAllocOp(operands=[None], result_types=[type_]), located_at=store)
    buffers.result.name_hint = f"{(store.desc.name_hint or 'out').removesuffix('_desc')}_staging"
    buffers.attributes[NOTE] = StringAttr("TMA stores from here, while the task goes on")
    return buffers.result


def _copy(task: Region, copies: int, store: Operation) -> SSAValue:
    """Return the number of the copy of a task."""
    if copies == 1:
        return number(store, 0)
    first = task.blocks[0].first_op
    assert first is not None, "a task ends in an operation"
    if isinstance(first, ReplicaIdOp):
        return first.result
    made = insert_before(first, ReplicaIdOp(), located_at=store).result
    made.name_hint = "replica"
    return made


def _store_through(buffers: SSAValue, copy: SSAValue, store: tt.DescriptorStoreOp) -> None:
    """Write what `store` stores to the buffer of a copy, and let TMA store it."""
    view = _in_shape(_at(buffers, copy, store), shape_of_tensor(store.src.type), store)
    insert_before(store, ttg.LocalStoreOp(operands=[store.src, view]))
    insert_before(store, ttng.FenceAsyncSharedOp(properties={"bCluster": BoolAttr.from_bool(False)}))
    _copy_from(_at(buffers, copy, store), store)


def _copy_from(view: SSAValue, store: tt.DescriptorStoreOp) -> None:
    """Let TMA store a buffer where `store` does."""
    operands = [store.desc, store.indices, view]
    insert_before(store, ttng.AsyncTMACopyLocalToGlobalOp(operands=operands, properties={"cachePolicy": None}))


def _at(buffers: SSAValue, index: SSAValue, before: Operation) -> SSAValue:
    """Take one buffer of an array."""
    type_ = memdesc_type(buffers.type)
    one = MemDescType.get(type_.shape[1:], type_.element_type, type_.encoding, type_.memory_space)
    return insert_before(before, ttg.MemDescIndexOp(operands=[buffers, index], result_types=[one])).result


def _in_shape(view: SSAValue, shape: Ints, before: Operation) -> SSAValue:
    """View a buffer in another shape: a block may have more dimensions than the tensor, of size 1."""
    type_ = memdesc_type(view.type)
    if type_.shape == shape:
        return view
    layout = layout_of(type_.encoding)
    assert isinstance(layout, SharedLayout), "a buffer has the layout of one"
    layout = reshaped_buffer_layout(layout, type_.shape, type_.element_bits, shape)
    wanted = type_.with_shape(shape, layout_attr(layout))
    return insert_before(before, ttg.MemDescReshapeOp(operands=[view], result_types=[wanted])).result
