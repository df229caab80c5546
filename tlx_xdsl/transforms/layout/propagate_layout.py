"""`tlx-propagate-layout`: propagate required layouts to allocations.

Buffers: after the pass no `tlx.require_layout` of one is left. A requirement reaches the allocation through views,
control flow, calls and captures, and every view between has the layout that follows. Where threads alone read and
write a view, any layout will do, so that such a requirement yields to others; else two requirements of one buffer
are an error that names both. A layout of the user's (`#tlx.user_layout`) stays. A `#tlx.dummy_tmem_layout` becomes
what its users require.

Tensors: what is computed from a tensor whose `tlx.release_layout` has `pin` keeps its layout
(`pinned_tensors`); what is left of requirements and releases are conversions.

Before:
```mlir
%a = ttg.local_alloc : () -> !ttg.memdesc<2x64x128xf16, #row_major, #smem, mutable>
%a0 = ttg.memdesc_index %a[%c0] : ... -> !ttg.memdesc<64x128xf16, #row_major, ...>
%t = ttg.memdesc_trans %a0 {order = array<i32: 1, 0>} : ... -> !ttg.memdesc<128x64xf16, #column_major, ...>
%r = tlx.require_layout %t : ... -> !ttg.memdesc<128x64xf16, #tile_transposed, ...>
ttng.async_use %r
```
After:
```mlir
%a = ttg.local_alloc : () -> !ttg.memdesc<2x64x128xf16, #tile, #smem, mutable>
%a0 = ttg.memdesc_index %a[%c0] : ... -> !ttg.memdesc<64x128xf16, #tile, ...>
%t = ttg.memdesc_trans %a0 {order = array<i32: 1, 0>} : ... -> !ttg.memdesc<128x64xf16, #tile_transposed, ...>
ttng.async_use %t
```
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue, Use

from tlx_xdsl.dialects import tlx, ttg
from tlx_xdsl.dialects.base import Space, accesses_of, chosen_layout
from tlx_xdsl.layouts.buffer_views import splits_swizzle
from tlx_xdsl.layouts.conversion.shared import buffer_rank
from tlx_xdsl.layouts.encodings import SharedLayout
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass, forward, ops_of
from .buffer_layouts import BufferLayouts, Reason
from .needs import Need, needs_of
from .pinned_tensors import lower_tensor_requirements
from .views import is_view


class PropagateLayoutPass(Pass):
    """Carry required layouts to allocations, and pinned ones to what is computed from them."""

    name = "tlx-propagate-layout"

    def run(self, op: ModuleOp) -> None:
        """Settle buffers, then tensors."""
        _settle_buffers(op)
        lower_tensor_requirements(op)


def _settle_buffers(module: ModuleOp) -> None:
    requirements = [op for op in ops_of(module, tlx.RequireLayoutOp) if is_view(op)]
    needs = [need for op in module.walk() for need in needs_of(op)]
    chosen = [
        value for value in _allocated(module) if isinstance(ttg.memdesc_type(value.type).encoding, tlx.UserLayoutAttr)
    ]
    unknown = [value for value in _allocated(module) if _is_dummy(value)]
    if not (requirements or chosen or unknown):
        return
    layouts = BufferLayouts(module)
    _require(layouts, chosen, requirements, needs)
    _check(module, layouts, needs, unknown)
    layouts.retag()
    for op in requirements:
        forward(op, op.src)


def _require(
    layouts: BufferLayouts, chosen: list[SSAValue], requirements: list[tlx.RequireLayoutOp], needs: list[Need]
) -> None:
    """Collect what is required, the least negotiable first."""
    for value in chosen:
        reason = Reason(value, "this buffer has the layout that the user chose")
        layouts.require(value, ttg.memdesc_type(value.type).encoding, reason)
    for op in requirements:
        if not _yields(op):
            layouts.require(op.src, ttg.memdesc_type(op.result.type).encoding, _reason(op))
    for need in needs:
        if _is_dummy(need.buffer) and layouts.choice(need.buffer) is None:
            layouts.require(need.buffer, need.wanted, Reason(need.op, need.what))
    for op in requirements:
        if layouts.choice(op.src) is None:
            layouts.require(op.src, ttg.memdesc_type(op.result.type).encoding, _reason(op))


def _check(module: ModuleOp, layouts: BufferLayouts, needs: list[Need], unknown: list[SSAValue]) -> None:
    """Check that the layouts will do for all operations and parts, and that none is missing."""
    for need in needs:
        _satisfy(need, layouts)
    for op in ops_of(module, ttg.MemDescSubsliceOp):
        _check_part(op, layouts)
    for value in unknown:
        if layouts.choice(value) is None:
            raise error_at(value, "DummyTMEMLayoutAttr was not resolved during layout propagation")


def _is_dummy(value: SSAValue) -> bool:
    return isinstance(ttg.memdesc_type(value.type).encoding, tlx.DummyTMEMLayoutAttr)


def _allocated(module: ModuleOp) -> Iterator[SSAValue]:
    """The buffers that operations make which are no views of others."""
    for op in module.walk():
        if not is_view(op):
            yield from (result for result in op.results if isinstance(result.type, ttg.MemDescType))


def _yields(op: tlx.RequireLayoutOp) -> bool:
    """True if threads alone access the buffer in the layout that `op` asks for, so that any other will do."""
    if op.pin is not None:
        return False
    pending: list[SSAValue] = [op.result]
    while pending:
        for use in pending.pop().uses:
            if is_view(use.operation):
                pending += use.operation.results
            elif not _is_by_threads(use):
                return False
    return True


def _is_by_threads(use: Use) -> bool:
    """True if threads access a buffer of their own CTA, which they can in any layout."""
    buffer = use.operation.operands[use.index]
    found = [access for access in accesses_of(use.operation) or () if access.value is buffer]
    return bool(found) and not any(access.is_async or access.space is Space.CLUSTER for access in found)


def _reason(op: tlx.RequireLayoutOp) -> Reason:
    """The reason of `op`: the operation that uses it, or the user."""
    needs = (need for use in op.result.uses for need in needs_of(use.operation) if need.buffer is op.result)
    need = next(needs, None)
    if op.pin is not None or need is None:
        return Reason(op, "this layout is asked for")
    return Reason(need.op, need.what)


def _check_part(op: ttg.MemDescSubsliceOp, layouts: BufferLayouts) -> None:
    """Refuse to cut a part out of a buffer whose layout has come to split parts."""
    choice = layouts.choice(op.src)
    layout = None if choice is None else chosen_layout(choice.encoding)
    if choice is None or not isinstance(layout, SharedLayout):
        return
    part, whole = op.result.type.shape, ttg.memdesc_type(op.src.type).alloc_shape
    rank = buffer_rank(layout)
    if splits_swizzle(layout, whole[len(whole) - rank :], part[len(part) - rank :]):
        raise error_at(
            op,
            f"parts of {list(part)} elements split the swizzle of the buffer, whose layout is required to be "
            f"{choice.encoding}",
            [choice.reason.note],
        )


def _satisfy(need: Need, layouts: BufferLayouts) -> None:
    """Give the layout that was chosen for a buffer the attribute that an operation expects.

    Raises CompilationError when it does not do for that operation.
    """
    choice = layouts.choice(need.buffer)
    if choice is None or need.is_met_by(choice.encoding):
        return
    same = need.in_other_words(choice.encoding)
    if same is None:
        raise error_at(need.op, f"{need.what}, found {choice.encoding}", [choice.reason.note])
    layouts.respell(need.buffer, same)
