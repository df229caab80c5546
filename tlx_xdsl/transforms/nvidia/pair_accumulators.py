"""`tlx-lower-pair-accumulators`: accumulators of 64 rows in each CTA of a pair, as buffers of 128 rows.

With M = 128 a pair of CTAs has 64 rows of the accumulator in each. The right half of the columns lies in lanes 64 to
127 (PTX ISA, "tcgen05.mma", "Layout B"): the memory of a buffer of 128 rows and half of the columns. Upstream Triton
has that layout (`twoCTAs` with blocks of 64 rows) only for tensors that both CTAs share, so the buffers become those of
128 rows, and what threads load from them and store to them is rearranged in registers.

Before:
```mlir
%v = ttng.tmem_load %d : !ttg.memdesc<64x128xf32, #pair, ...> -> tensor<64x128xf32>
```
After:
```mlir
%0 = ttng.tmem_load %d : !ttg.memdesc<128x64xf32, #halves, ...> -> tensor<128x64xf32>
%1 = tt.reshape %0 : tensor<128x64xf32> -> tensor<2x64x64xf32>
%2 = tt.trans %1 {order = array<i32: 1, 0, 2>} : tensor<2x64x64xf32> -> tensor<64x2x64xf32>
%v = tt.reshape %2 : tensor<64x2x64xf32> -> tensor<64x128xf32>
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, NoneAttr, TensorType, UnitAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.dialects.base import layout_attr, layout_of, module_integer, tensor_type
from tlx_xdsl.layouts.encodings import Ints, TensorMemoryLayout
from tlx_xdsl.text.diagnostics import error_at

from ..layout.encodings import map_types
from ..layout.resolve_placeholder_layouts import tensor_memory_encoding
from ..rewriting import Pass, ops_of, retype, with_layout

ROWS = 64
"""Of such an accumulator in each CTA."""


class LowerPairAccumulatorsPass(Pass):
    """Replace accumulators of 64 rows in each CTA of a pair."""

    name = "tlx-lower-pair-accumulators"

    def run(self, op: ModuleOp) -> None:
        """Handle a module whose CTAs have tensors of their own.

        Raises CompilationError for a part of such an accumulator, which is in no rows of the memory.
        """
        if module_integer(op, "ttg.num-ctas") not in (1, None):
            return
        loads = [inner for inner in ops_of(op, ttng.TMEMLoadOp) if _is_of_pair(inner.src.type)]
        stores = [inner for inner in ops_of(op, ttng.TMEMStoreOp) if _is_of_pair(inner.dst.type)]
        for part in ops_of(op, ttng.TMEMSubSliceOp):
            if _is_of_pair(part.result.type):
                raise error_at(
                    part,
                    f"an accumulator of {ROWS} rows in each CTA of a pair is loaded and stored as a whole: half of its "
                    "columns are in the lanes of other rows",
                )
        for inner in op.walk():
            if any(map(_is_of_pair, (value.type for value in inner.results))):
                inner.attributes[ttng.PAIR_HALVES] = UnitAttr()
        map_types(op, _halved)
        for load in loads:
            _load(load)
        for store in stores:
            _store(store)


def _is_of_pair(type_: Attribute) -> bool:
    """True for the type of a buffer in tensor memory whose columns are halved among the lanes of a pair's CTA."""
    if not isinstance(type_, ttg.MemDescType) or not isinstance(type_.memory_space, ttng.TensorMemorySpaceAttr):
        return False
    layout = layout_of(type_.encoding)
    return isinstance(layout, TensorMemoryLayout) and layout.halves_columns


def _halved(type_: Attribute) -> Attribute:
    if not _is_of_pair(type_):
        return type_
    type_ = cast(ttg.MemDescType, type_)
    layout = layout_of(type_.encoding)
    assert isinstance(layout, TensorMemoryLayout)
    width = type_.shape[-1] // 2
    whole = replace(layout, block_m=2 * ROWS, block_n=min(layout.block_n, width))
    return ttg.MemDescType.get(
        _swapped(type_.shape), type_.element_type, layout_attr(whole), type_.memory_space,
        mutable=type_.is_mutable, alloc_shape=_swapped(type_.alloc_shape),
    )  # fmt: skip


def _swapped(shape: Sequence[int]) -> Ints:
    return (*shape[:-2], 2 * shape[-2], shape[-1] // 2)


def _load(op: ttng.TMEMLoadOp) -> None:
    if op.red_op is not None:
        raise error_at(op, f"an accumulator of {ROWS} rows in each CTA of a pair can't be reduced by its load")
    wanted = tensor_type(op.result.type)
    rows, columns = wanted.get_shape()
    uses = list(op.result.uses)
    held = TensorType(wanted.element_type, (2 * rows, columns // 2), tensor_memory_encoding(op, op.src))
    retype(op.result, held)
    after = _Chain(op, InsertPoint.after(op))
    first = after.converted(op.result, NoneAttr())
    halves = after.swapped(after.reshaped(first, (2, rows, columns // 2)))
    result = after.converted(after.reshaped(halves, (rows, columns)), wanted.encoding)
    for use in uses:
        use.operation.operands[use.index] = result


def _store(op: ttng.TMEMStoreOp) -> None:
    rows, columns = tensor_type(op.src.type).get_shape()
    before = _Chain(op, InsertPoint.before(op))
    whole = before.converted(op.src, NoneAttr())
    halves = before.swapped(before.reshaped(whole, (rows, 2, columns // 2)))
    stored = before.converted(before.reshaped(halves, (2 * rows, columns // 2)), tensor_memory_encoding(op, op.dst))
    op.operands[list(op.operands).index(op.src)] = stored


class _Chain:
    """Operations on a tensor, one after the other, with the location of `op`."""

    def __init__(self, op: Operation, point: InsertPoint):
        self._op = op
        self._point = point

    def _insert(self, made: Operation) -> SSAValue:
        made.location = self._op.location
        Rewriter.insert_op(made, self._point)
        self._point = InsertPoint.after(made)
        return made.results[0]

    def reshaped(self, value: SSAValue, shape: Ints) -> SSAValue:
        """The same elements in another shape."""
        type_ = TensorType(tensor_type(value.type).element_type, shape)
        return self._insert(tt.ReshapeOp(operands=[value], result_types=[type_]))

    def swapped(self, value: SSAValue) -> SSAValue:
        """The first two of three dimensions exchanged."""
        type_ = tensor_type(value.type)
        first, second, third = type_.get_shape()
        order = DenseArrayBase.from_list(i32, [1, 0, 2])
        result = TensorType(type_.element_type, (second, first, third))
        return self._insert(tt.TransOp(operands=[value], properties={"order": order}, result_types=[result]))

    def converted(self, value: SSAValue, encoding: Attribute) -> SSAValue:
        """The tensor in another layout, or in one that is to be chosen."""
        result = with_layout(tensor_type(value.type), encoding)
        return self._insert(ttg.ConvertLayoutOp(operands=[value], result_types=[result]))
