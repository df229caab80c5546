"""Layouts that the user pins on tensors, carried to what is computed from them.

A `tlx.release_layout` with `pin` gives its result a layout, which spreads over elementwise operations, reductions,
votes, changes of shape, accesses through pointers, loops and branches until a release without `pin`, and is converted
from where something else takes the tensor. Of an access the pointers decide: masks and what is stored come in theirs.
Where two pinned layouts meet, the first operand's goes on. The accumulator of a dot in flight may not be touched, so
that no layout but the instruction's enters its web (`tritongpu/accumulators.py`).
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, NoneAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue, Use
from xdsl.rewriter import Rewriter

from tlx_xdsl.analysis.value_classes import ValueClasses
from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.dialects.base import (
    EachElement,
    LayoutAttr,
    as_tensor,
    bare,
    is_elementwise,
    layout_attr,
    like,
    tensor_type,
)
from tlx_xdsl.dialects.tlx import (
    AssertSameLayoutExpectedOp,
    AssertSameLayoutOp,
    DumpLayoutOp,
    ReleaseLayoutOp,
    RequireLayoutOp,
    VoteBallotOp,
)
from tlx_xdsl.layouts.distributed import joined_layout, reshaped_layout, split_layout, transposed_layout
from tlx_xdsl.layouts.encodings import DistributedLayout, SliceLayout

from ..rewriting import (
    forward,
    insert_after_definition,
    insert_before,
    ops_of,
    replace,
    retype,
    retyped,
    with_layout,
)

_TAKES_ANY_LAYOUT = (
    ttg.ConvertLayoutOp,
    ttg.LocalStoreOp,
    ttg.LocalAllocOp,
    tt.ReduceOp,
    tt.PrintOp,
    tt.AssertOp,
    tt.DescriptorStoreOp,
    DumpLayoutOp,
    AssertSameLayoutOp,
    AssertSameLayoutExpectedOp,
    RequireLayoutOp,
    ReleaseLayoutOp,
    VoteBallotOp,
)
"""Operations that take a tensor in any layout."""

_IN_FLIGHT = (ttng.WarpGroupDotOp, ttng.WarpGroupDotWaitOp)


def lower_tensor_requirements(module: ModuleOp) -> None:
    """Spread pinned layouts, and turn all requirements and releases of tensors into conversions."""
    marks = ops_of(module, RequireLayoutOp, ReleaseLayoutOp)
    pins = [op for op in marks if isinstance(op, ReleaseLayoutOp) and op.pin is not None]
    if pins:
        spread = _Spread(module)
        for op in pins:
            retype(op.result, op.src.type)
            spread.from_(op.result)
        spread.convert_borders()
    for op in marks:
        _lower(op)
    for op in ops_of(module, ttg.LocalAllocOp):
        _fold_round_trip(op)


class _Spread:
    """Values that get the layout of a pinned one."""

    def __init__(self, module: ModuleOp):
        self._classes = ValueClasses.of(module, TensorType)
        self._values: list[SSAValue] = []
        """All values with such a layout, in the order in which they got it."""
        self._known: set[SSAValue] = set()

    def from_(self, value: SSAValue) -> None:
        """Spread the layout of `value`."""
        pending = [value]
        while pending:
            at = pending.pop()
            if at in self._known:
                continue
            self._known.add(at)
            self._values.append(at)
            encoding = tensor_type(at.type).encoding
            pending += self._carry(at, encoding)
            for use in list(at.uses):
                if not isinstance(use.operation, tt.LoadOp) or use.operation.ptr == at:
                    pending += self._compute(use.operation, encoding)

    def _carry(self, value: SSAValue, encoding: Attribute) -> list[SSAValue]:
        """The names under which `value` arrives elsewhere."""
        members = self._classes.members(value)
        if len(members) < 2 or any(isinstance(name.owner, _IN_FLIGHT) for name in members):
            return []
        return [name for name in members if name in self._classes.successor_inputs and self._give(name, encoding)]

    def _give(self, value: SSAValue, encoding: Attribute) -> bool:
        """Give `value` the layout unless it has one."""
        type_ = as_tensor(value.type)
        if type_ is None or not isinstance(type_.encoding, NoneAttr):
            return False
        retype(value, with_layout(type_, encoding))
        return True

    def _compute(self, op: Operation, encoding: Attribute) -> list[SSAValue]:
        """The results of `op` that get a layout because its operand has `encoding`."""
        if (found := result_layout(op, encoding)) is None:
            return []
        return [result for result in op.results if self._give(result, found)]

    # --- borders ---------------------------------------------------------------------------------------------------

    def convert_borders(self) -> None:
        """Convert what goes into operations and names with a pinned layout, and what leaves them."""
        free: dict[SSAValue, SSAValue] = {}
        carried: set[SSAValue] = set()
        for value in self._values:
            for use in list(value.uses):
                if self._is_left(use):
                    use.operation.operands[use.index] = _released(value, free)
                elif isinstance(use.operation, tt.StoreOp):
                    _convert_operands(use.operation, tensor_type(use.operation.ptr.type).encoding)
            owner = value.owner
            if isinstance(owner, Operation):
                _convert_operands(owner, tensor_type(value.type).encoding)
            if (first := self._classes.representative(value)) in carried:
                continue
            carried.add(first)
            for name in self._classes.members(value):
                for use in list(name.uses):
                    if use.operation in self._classes.forwarding:
                        self._bring(use)

    def _is_left(self, use: Use) -> bool:
        """True if a use of a value with a pinned layout requires it without."""
        op = use.operation
        if isinstance(op, _TAKES_ANY_LAYOUT):
            return False
        if op in self._classes.forwarding and not isinstance(op, tt.ReturnOp) and not is_elementwise(op):
            return not any(
                name in self._known
                for name in self._classes.members(op.operands[use.index])
                if name in self._classes.successor_inputs
            )
        if isinstance(op, tt.StoreOp):
            return op.ptr not in self._known
        encoding = tensor_type(use.operation.operands[use.index].type).encoding
        found = result_layout(op, encoding)
        return found is None or not any(result in self._known for result in op.results)

    def _bring(self, use: Use) -> None:
        """Convert a value that is carried to names with a pinned layout."""
        value = use.operation.operands[use.index]
        if isinstance(use.operation, tt.ReturnOp) or is_elementwise(use.operation):
            return
        targets = [name for name in self._classes.members(value) if name in self._classes.successor_inputs]
        target = next((name for name in targets if name in self._known), None)
        if target is not None:
            _convert_operand(use.operation, use.index, tensor_type(target.type).encoding)


def _keeps_layout(op: Operation) -> bool:
    """True if all tensors that `op` takes and gives have one layout."""
    if is_elementwise(op) or isinstance(op, tt.BroadcastOp | VoteBallotOp):
        return True
    return op.has_trait(EachElement, value_if_unregistered=False)


def result_layout(op: Operation, encoding: Attribute) -> Attribute | None:
    """The layout of the results of `op` when an operand has `encoding`; None when it does not follow."""
    if _keeps_layout(op):
        return encoding
    layout = bare(encoding)
    if not isinstance(layout, LayoutAttr):
        return None
    data = cast(DistributedLayout, layout.data)
    found: DistributedLayout | None = None
    if isinstance(op, tt.ReduceOp):
        if all(as_tensor(result.type) is None for result in op.results):
            return None
        found = SliceLayout(op.axis.value.data, data)
    elif isinstance(op, tt.TransOp):
        order = tuple(int(dim) for dim in op.order.get_values())
        found = transposed_layout(data, tensor_type(op.src.type).get_shape(), order)
    elif isinstance(op, tt.ReshapeOp) and op.allow_reorder is None:
        found = reshaped_layout(data, tensor_type(op.src.type).get_shape(), tensor_type(op.result.type).get_shape())
    elif isinstance(op, tt.JoinOp):
        found = joined_layout(data, tensor_type(op.lhs.type).get_shape())
    elif isinstance(op, tt.SplitOp):
        found = split_layout(data, tensor_type(op.src.type).get_shape())
    elif isinstance(op, tt.ExpandDimsOp) and isinstance(data, SliceLayout) and data.dim == op.axis.value.data:
        found = data.parent
    return None if found is None else like(encoding, layout_attr(found))


# --- conversions ----------------------------------------------------------------------------------------------------


def _convert_operands(op: Operation, encoding: Attribute) -> None:
    """Bring all operands of an operation that computes in the layout `encoding` to it."""
    if isinstance(op, tt.ReduceOp):
        encoding = tensor_type(op.srcs[0].type).encoding
    elif isinstance(op, tt.JoinOp):
        halves = [tensor_type(value.type).encoding for value in op.operands]
        encoding = next(half for half in halves if result_layout(op, half) == encoding)
    elif not _keeps_layout(op):
        return
    for index in range(len(op.operands)):
        _convert_operand(op, index, encoding)


def _convert_operand(op: Operation, index: int, encoding: Attribute) -> None:
    value = op.operands[index]
    type_ = as_tensor(value.type)
    if type_ is None or type_.encoding == encoding:
        return
    op.operands[index] = insert_before(op, _conversion(value, with_layout(type_, encoding))).result


def _conversion(value: SSAValue, type_: TensorType[Attribute]) -> ConstantOp | ttg.ConvertLayoutOp:
    owner = value.owner
    if isinstance(owner, ConstantOp) and isinstance(owner.value, DenseIntOrFPElementsAttr):
        # A constant can be made in any layout.
        return ConstantOp(retyped(owner.value, type_))
    return ttg.ConvertLayoutOp(operands=[value], result_types=[type_])


def _released(value: SSAValue, known: dict[SSAValue, SSAValue]) -> SSAValue:
    """`value` without its layout, from one conversion after its definition."""
    if value not in known:
        free = with_layout(tensor_type(value.type), NoneAttr())
        convert = ttg.ConvertLayoutOp(operands=[value], result_types=[free])
        known[value] = insert_after_definition(value, convert).result
    return known[value]


def _lower(op: RequireLayoutOp | ReleaseLayoutOp) -> None:
    """Turn a requirement or release of a tensor's layout into a conversion, or into nothing."""
    if op.parent is None or as_tensor(op.result.type) is None:
        return
    if op.src.type == op.result.type:
        forward(op, op.src)
        return
    source, type_ = op.src, tensor_type(op.result.type)
    owner = source.owner
    is_free = isinstance(tensor_type(source.type).encoding, NoneAttr) and source.has_one_use()
    if isinstance(op, RequireLayoutOp) and isinstance(owner, ttg.LocalLoadOp) and is_free:
        # Shared memory can be loaded into any layout.
        retype(source, type_)
        forward(op, source)
        return
    replace(op, _conversion(source, type_))


def _fold_round_trip(alloc: ttg.LocalAllocOp) -> None:
    """Convert in registers what is stored to a buffer for nothing but loading it again."""
    uses = list(alloc.result.uses)
    if alloc.src is None or not uses:
        return
    loads = [use.operation for use in uses if isinstance(use.operation, ttg.LocalLoadOp) and not use.operation.token]
    if len(loads) != len(uses):
        return
    for load in loads:
        if load.result.type == alloc.src.type:
            forward(load, alloc.src)
        else:
            replace(load, ttg.ConvertLayoutOp(operands=[alloc.src], result_types=[load.result.type]))
    Rewriter.erase_op(alloc)
