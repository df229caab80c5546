"""`tlx-ws-transpose-products`: products whose second operand is computed become products whose first one is.

The tensor cores take the first operand from registers, and the second one from shared memory alone. A state that each
turn multiplies, as in a gated delta rule, would go through shared memory in every turn, and all of the turn would wait
for it. Of the transposed product the computed block is the first operand, and the accumulator's registers are it: so
the state is kept transposed, with all that is computed of it. Blocks of rings are read transposed, which is free.

Before:
```mlir
%h = scf.for ... iter_args(%state = %zero) -> (tensor<64x128xf32>) {
  %s = arith.truncf %state : tensor<64x128xf32> to tensor<64x128xf16>
  %u = tt.dot %w, %s, %zero : ...
```
After `tlx-ws-transpose-products`:
```mlir
%h = scf.for ... iter_args(%state = %zero) -> (tensor<128x64xf32>) {
  %s = arith.truncf %state : tensor<128x64xf32> to tensor<128x64xf16>
  %t = tt.trans %w {order = array<i32: 1, 0>} : ...
  %u = tt.dot %s, %t, %zero : ...
```
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, IntegerAttr, ModuleOp, TensorType, i32
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from tlx_xdsl.analysis.module_attrs import module_target
from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.dialects.base import (
    as_tensor,
    element_bits,
    layout_attr,
    like,
    num_warps_of,
    scalar_type,
    shape_of_tensor,
)
from tlx_xdsl.dialects.ttg import memdesc_type
from tlx_xdsl.layouts.buffer_views import transposed_buffer_layout
from tlx_xdsl.layouts.encodings import NvmmaSharedLayout
from tlx_xdsl.targets import Feature
from tlx_xdsl.transforms.drop_unused import drop_unused
from tlx_xdsl.transforms.layout.needs import TRANSPOSABLE_BITS

from ...rewriting import Pass, insert_after_definition, ops_of, retype
from .dot_operands import ROWS_PER_WARP, in_place, why_no_wgmma

ORDER = DenseArrayBase.from_list(i32, [1, 0])


class TransposeProductsPass(Pass):
    """Transpose the products of partitions whose second operands are computed in loops."""

    name = "tlx-ws-transpose-products"

    def run(self, op: ModuleOp) -> None:
        """Handle each partition by itself, on GPUs with wgmma."""
        target = module_target(op)
        if target is not None and not target.has(Feature.WGMMA):
            return
        for tasks in ops_of(op, ttg.WarpSpecializeOp):
            for region in tasks.partitions.partition_regions:
                transposition = _Transposition(region)
                if transposition.is_possible():
                    transposition.apply()
                    drop_unused(tasks)
                    for load in [op for op in region.walk() if isinstance(op, ttg.LocalLoadOp)]:
                        if not load.result.uses.get_length():
                            Rewriter.erase_op(load)


class _Transposition:
    """The values of a partition that are kept transposed."""

    def __init__(self, region: Region):
        dots = [op for op in region.walk() if isinstance(op, tt.DotOp)]
        self.products = [dot for dot in dots if _computes_second(dot)]
        self.slots: dict[BlockArgument, bool] = {}
        """Carried values that are to be transposed; True once that is decided."""
        self.made: dict[SSAValue, SSAValue] = {}

    # --- whether all can be transposed ---------------------------------------------------------------------------

    def is_possible(self) -> bool:
        """Return whether all products can be, and one of them is in a loop that carries its operand."""
        seen: dict[SSAValue, bool] = {}
        possible = all(self._can(value, seen) for dot in self.products for value in (dot.b, dot.c))
        return bool(self.products) and possible and bool(self.slots) and self._only_stores_see(seen)

    def _only_stores_see(self, seen: dict[SSAValue, bool]) -> bool:
        """Return whether in loops nothing but stores takes what is computed as it was: others would pay for that."""
        computed = [value for value in seen if value in self.slots or _is_elementwise(value)]
        for value in [*computed, *(dot.d for dot in self.products)]:
            for use in value.uses:
                op = use.operation
                goes_on = isinstance(op, scf.YieldOp) or (isinstance(op, tt.DotOp) and op in self.products)
                if not goes_on and not any(result in seen for result in op.results) and not _is_stored(op):
                    return False
        return True

    def _can(self, value: SSAValue, seen: dict[SSAValue, bool]) -> bool:
        if value not in seen:
            seen[value] = True
            seen[value] = self._can_anew(value, seen)
        return seen[value]

    def _can_anew(self, value: SSAValue, seen: dict[SSAValue, bool]) -> bool:
        if isinstance(value, BlockArgument):
            loop = value.block.parent_op()
            if not isinstance(loop, scf.ForOp) or not value.index or len(shape_of_tensor(value.type)) != 2:
                return False
            self.slots[value] = True
            end = value.block.last_op
            assert end is not None
            return all(self._can(v, seen) for v in (loop.iter_args[value.index - 1], end.operands[value.index - 1]))
        op = value.owner
        match op:
            case tt.DotOp():
                return op in self.products
            case ConstantOp():
                return _is_splat(op)
            case tt.SplatOp() | tt.ExpandDimsOp():
                return True
            case tt.BroadcastOp():
                return self._can(op.src, seen)
            case tt.TransOp():
                return tuple(op.order.get_values()) == (1, 0)
            case ttg.LocalLoadOp():
                return op.token is None and _transposed_view_type(op) is not None
            case _:
                operands = op.operands if isinstance(op, Operation) else ()
                return _is_elementwise(value) and all(self._can(each, seen) for each in operands)

    # --- the transposed values -----------------------------------------------------------------------------------

    def apply(self) -> None:
        """Compute all transposed, and let other users take that back."""
        for slot in self.slots:
            self._open(slot)
        for dot in self.products:
            self._of(dot.d)
        for slot in self.slots:
            self._close(slot)
        for value, made in self.made.items():
            # What is read or repeated is there as it was, too.
            is_computed = isinstance(value.owner, tt.DotOp) or _is_elementwise(value)
            if is_computed and value.uses.get_length() and made is not value:
                back = _after(
                    made, tt.TransOp.build(operands=[made], properties={"order": ORDER}, result_types=[value.type])
                )
                value.replace_all_uses_with(back)

    def _open(self, slot: BlockArgument) -> None:
        """Give a carried value the transposed type, and its users the value of before."""
        before = slot.type
        retype(slot, _transposed(before))
        back = _after(slot, tt.TransOp.build(operands=[slot], properties={"order": ORDER}, result_types=[before]))
        slot.replace_uses_with_if(back, lambda use: use.operation is not back.owner)
        self.made[back] = slot

    def _close(self, slot: BlockArgument) -> None:
        """Let the loop of a carried value begin with, yield and give the transposed one."""
        loop, end, number = slot.block.parent_op(), slot.block.last_op, slot.index - 1
        assert isinstance(loop, scf.ForOp)
        assert end is not None
        loop.operands[3 + number] = self._of(loop.operands[3 + number])
        end.operands[number] = self._of(end.operands[number])
        result = loop.results[number]
        before = result.type
        retype(result, slot.type)
        if result.uses.get_length():
            back = _after(
                result, tt.TransOp.build(operands=[result], properties={"order": ORDER}, result_types=[before])
            )
            result.replace_uses_with_if(back, lambda use: use.operation is not back.owner)

    def _of(self, value: SSAValue) -> SSAValue:
        """Return the transposed value, computed where `value` is."""
        if value not in self.made:
            self.made[value] = self._make(value)
            if self.made[value].name_hint is None:
                self.made[value].name_hint = value.name_hint
        return self.made[value]

    def _make(self, value: SSAValue) -> SSAValue:
        op = value.owner
        assert isinstance(op, Operation)
        type_ = _transposed(value.type)
        match op:
            case tt.DotOp():
                a, b, c = self._of(op.b), _transpose_before(op.a, op), self._of(op.c)
                return _after(value, tt.DotOp(operands=[a, b, c], properties=dict(op.properties), result_types=[type_]))
            case ConstantOp():
                attribute = op.value
                assert isinstance(attribute, DenseIntOrFPElementsAttr)
                made = ConstantOp.create(
                    properties={"value": DenseIntOrFPElementsAttr(type_, attribute.data)},  # pyright: ignore
                    result_types=[type_],
                )
                return _after(value, made)
            case tt.TransOp():
                return op.src
            case tt.ExpandDimsOp():
                axis = IntegerAttr(1 - op.axis.value.data, i32)
                made = tt.ExpandDimsOp.build(operands=[op.src], properties={"axis": axis}, result_types=[type_])
                return _after(value, made)
            case tt.BroadcastOp():
                return _after(value, tt.BroadcastOp.build(operands=[self._of(op.src)], result_types=[type_]))
            case ttg.LocalLoadOp():
                view = ttg.MemDescTransOp.build(
                    operands=[op.src], properties={"order": ORDER}, result_types=[_transposed_view_type(op)]
                )
                view.location = op.location
                block = op.parent
                assert block is not None
                block.insert_op_before(view, op)
                return _after(value, ttg.LocalLoadOp(operands=[view.result, None], result_types=[type_]))
            case _:
                operands = [v if as_tensor(v.type) is None else self._of(v) for v in op.operands]
                return _after(
                    value,
                    type(op).create(
                        operands=operands,
                        properties=dict(op.properties),
                        attributes=dict(op.attributes),
                        result_types=[type_],
                    ),
                )


def _computes_second(dot: tt.DotOp) -> bool:
    """Return whether the second operand has to be in registers, and the first one may be read in place, transposed."""
    if why_no_wgmma(dot) is not None or element_bits(scalar_type(dot.a.type)) != TRANSPOSABLE_BITS:
        return False
    if in_place(dot.b, rows_run_along_k=False) is not None or in_place(dot.a, rows_run_along_k=True) is None:
        return False
    rows, columns = shape_of_tensor(dot.d.type)
    warps = num_warps_of(dot)
    return warps is not None and columns % (ROWS_PER_WARP * warps) == 0 and rows % 8 == 0


def _is_stored(op: Operation) -> bool:
    """Return whether an operation does nothing but store a block, or lead to that."""
    if isinstance(op, tt.StoreOp | tt.DescriptorStoreOp):
        return True
    leads_on = bool(op.results) and _is_elementwise(op.results[0])
    return leads_on and all(_is_stored(use.operation) for use in op.results[0].uses)


def _is_splat(op: ConstantOp) -> bool:
    value = op.value
    return isinstance(value, DenseIntOrFPElementsAttr) and value.is_splat() and len(shape_of_tensor(value.type)) == 2


def _is_elementwise(value: SSAValue) -> bool:
    """Return whether each element is computed of those at the same place."""
    op = value.owner
    if not isinstance(value, OpResult) or isinstance(op, Block | ConstantOp) or op.regions:
        return False
    shapes = [type_.get_shape() for type_ in map(as_tensor, op.operand_types) if type_ is not None]
    result = as_tensor(value.type)
    is_computed = op.dialect_name() in ("arith", "math") and is_side_effect_free(op) and len(op.results) == 1
    return is_computed and result is not None and bool(shapes) and all(shape == result.get_shape() for shape in shapes)


def _transposed(type_: Attribute) -> TensorType[Attribute]:
    tensor = as_tensor(type_)
    assert tensor is not None
    rows, columns = tensor.get_shape()
    return TensorType(tensor.element_type, [columns, rows])


def _transposed_view_type(load: ttg.LocalLoadOp) -> ttg.MemDescType | None:
    """Return the type of the transposed view of what is loaded; None where the buffer has none."""
    type_ = memdesc_type(load.src.type)
    layout = type_.encoding
    data = getattr(layout, "data", None)
    if len(type_.shape) != 2 or not isinstance(data, NvmmaSharedLayout) or type_.shape != type_.alloc_shape:
        return None
    return type_.with_shape(type_.shape[::-1], like(layout, layout_attr(transposed_buffer_layout(data, (1, 0)))))


def _transpose_before(value: SSAValue, place: Operation) -> SSAValue:
    """Insert the transposition of a value, unless it is one itself."""
    if isinstance(value.owner, tt.TransOp) and tuple(value.owner.order.get_values()) == (1, 0):
        return value.owner.src
    made = tt.TransOp.build(operands=[value], properties={"order": ORDER}, result_types=[_transposed(value.type)])
    made.location = place.location
    block = place.parent
    assert block is not None
    block.insert_op_before(made, place)
    return made.result


def _after(value: SSAValue, op: Operation) -> SSAValue:
    """Insert an operation after the definition of a value; return its result."""
    return insert_after_definition(value, op).results[0]
