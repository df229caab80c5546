"""Blocks that lie in shared memory already, because a product reads them there: TMA stores them from the same buffer.

Before, in a task:
```mlir
tt.descriptor_store %h[%i, %j], %state : ...
ttg.local_store %state, %operand : ...
ttng.fence_async_shared {bCluster = false}
```
After `to_operand_buffer`, where TMA can read the buffer:
```mlir
ttg.local_store %state, %operand : ...
ttng.fence_async_shared {bCluster = false}
tt.descriptor_store %h[%i, %j], %state : ...
```
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.ir import Operation

from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.dialects.base import layout_attr, shape_of_tensor
from tlx_xdsl.dialects.tt import descriptor_type
from tlx_xdsl.dialects.ttg import memdesc_type
from tlx_xdsl.layouts.shared import default_shared_layout

from ..origins import origins_of
from ..products.products_in_flight import in_block
from ..same_values import is_same


def to_operand_buffer(
    store: tt.DescriptorStoreOp, stores: Sequence[tt.DescriptorStoreOp], loops: Collection[Operation]
) -> ttg.LocalStoreOp | None:
    """Move a store to the write of its block to a buffer that TMA can read; return the write, or None.

    Before each of `loops` all of `stores` outside of it have ended.
    """
    block = store.parent
    assert block is not None, "a store stands in a task"
    order = {op: place for place, op in enumerate(block.ops)}
    for write in block.ops:
        if (
            not isinstance(write, ttg.LocalStoreOp)
            or not is_same(write.src, store.src)
            or not _is_fit(write, store, loops)
        ):
            continue
        first, last = sorted((order[store], order[write]))
        if any(
            other is not store and first < order[in_block(other, block)] < last and _may_share_memory(other, store)
            for other in stores
            if block.is_ancestor(other)
        ):
            continue
        fence = write.next_op
        if isinstance(fence, ttng.FenceAsyncSharedOp) and all(
            order.get(index.owner, -1) < order[write] for index in store.indices if isinstance(index.owner, Operation)
        ):
            store.detach()
            block.insert_op_after(store, fence)
            return write
    return None


def _may_share_memory(first: tt.DescriptorStoreOp, second: tt.DescriptorStoreOp) -> bool:
    a, b = origins_of(first.desc), origins_of(second.desc)
    return a is None or b is None or bool(a & b)


def _is_fit(write: ttg.LocalStoreOp, store: tt.DescriptorStoreOp, loops: Collection[Operation]) -> bool:
    """Say whether a buffer has the layout of blocks for TMA, and is written in this turn alone."""
    view = write.dst.owner
    if not isinstance(view, ttg.MemDescIndexOp):
        return False
    block, buffer = descriptor_type(store.desc.type), memdesc_type(write.dst.type)
    layouts = [layout_attr(default_shared_layout(shape, block.element_bits)) for shape in (block.shape, buffer.shape)]
    if not any(buffer.encoding == each for each in layouts) or buffer.shape != shape_of_tensor(store.src.type):
        return False
    views = [use.operation for use in view.src.uses]
    uses = [use.operation for each in views for result in each.results for use in result.uses]
    writes = [op for op in uses if isinstance(op, ttg.LocalStoreOp)]
    others = {op.parent_op() for op in writes if op is not write}
    is_alone = not others or (write.parent_op() not in others and {write.parent_op(), *others} <= {*loops})
    return is_alone and all(isinstance(each, ttg.MemDescIndexOp) for each in views)
