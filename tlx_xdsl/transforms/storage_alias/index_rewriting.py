"""Map every index into an array to the slot of its buffer.

The buffers of an array that shares a region may lie apart, or after other buffers (`IndexMap`). Then the type of
the array counts all slots up to the last buffer, under every name that the array has: results and block arguments of
control flow, captures of partitions, arguments and results of calls, views. And each `ttg.memdesc_index` gets its
index mapped; a constant one stays a constant. What cannot be rewritten is a located error.

An index is taken as not negative, as in Python's `buffers[i]` with `0 <= i < number of buffers`: a division of a
negative one would round the wrong way. Constants are checked.

Before, with one buffer of another array between the buffers of `%a`:
```mlir
%r = scf.for %k = ... iter_args(%x = %a) -> (!ttg.memdesc<2x64x64xf32, ...>) {
  %x_k = ttg.memdesc_index %x[%k] : !ttg.memdesc<2x64x64xf32, ...> -> !ttg.memdesc<64x64xf32, ...>
```
After:
```mlir
%r = scf.for %k = ... iter_args(%x = %a) -> (!ttg.memdesc<3x64x64xf32, ...>) {
  %c2_i32 = arith.constant 2 : i32
  %0 = arith.muli %k, %c2_i32 : i32
  %x_k = ttg.memdesc_index %x[%0] : !ttg.memdesc<3x64x64xf32, ...> -> !ttg.memdesc<64x64xf32, ...>
```
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.arith import AddiOp, ConstantOp, DivUIOp, MuliOp, RemUIOp
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, SymbolRefAttr, i32
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.rewriter import Rewriter

from tlx_xdsl.analysis.overlap_tree import IndexMap
from tlx_xdsl.dialects.ttg import (
    MemDescIndexOp,
    MemDescReinterpretOp,
    MemDescReshapeOp,
    MemDescSubsliceOp,
    MemDescTransOp,
    memdesc_type,
)
from tlx_xdsl.dialects.ttng import TMEMSubSliceOp
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import constant_integer, insert_before, replace, retype, update_signature
from .array_places import FunctionPlaces, ModulePlaces
from .array_views import (
    ArrayPlace,
    Piece,
    all_of_first_dimension,
    allocated_at,
    buffer_type,
    slice_of_buffer,
    with_slots,
)


def array_place(array: SSAValue, places: IndexMap, slots: int | None = None) -> ArrayPlace:
    """The slots of `array`, whose type counts its own buffers, in a region where buffer i lies at `places(i)`.

    `slots` buffers of its size are in the region; without it the type will count as many as it needs.
    """
    return ArrayPlace(places, places(memdesc_type(array.type).shape[0] - 1) + 1 if slots is None else slots, array)


def rewrite_indices(module: ModuleOp, arrays: Sequence[ArrayPlace]) -> None:
    """Rewrite what uses `arrays`, by the slots of each; their types, and those of all their names, count the slots.

    Raises CompilationError, before anything is changed, where a use does not follow the buffers.
    """
    moved = {array.origin: array for array in arrays if not _is_dense(array)}
    if not moved:
        return
    for function in ModulePlaces(module, moved).functions:
        _rewrite(function)


def _is_dense(array: ArrayPlace) -> bool:
    return array.places.is_identity and array.slots == memdesc_type(array.origin.type).shape[0]


def _rewrite(function: FunctionPlaces) -> None:
    for first, place in function.by_class.items():
        for value in function.values.members(first):
            for use in list(value.uses):
                if isinstance(use.operation, MemDescIndexOp):
                    use.operation.operands[1] = _physical_index(use.operation, place)
            retype(value, with_slots(memdesc_type(value.type), place.slots))
    for op, view in function.views.items():
        if view.piece is not None:
            _begin_with(op, view.piece)
        elif isinstance(op, MemDescSubsliceOp | TMEMSubSliceOp):
            all_of_first_dimension(op)
            _slice_buffers(op)
        elif isinstance(op, MemDescTransOp | MemDescReshapeOp):
            # Stock Triton has these for a buffer only, and dies of an array whose dimensions are no powers of two.
            replace(op, MemDescReinterpretOp(operands=[op.src], result_types=[op.result.type]))
    for call, callee in function.calls.items():
        call.callee = SymbolRefAttr(callee.func.sym_name.data)
    update_signature(function.func)


def _begin_with(op: Operation, piece: Piece) -> None:
    """Replace a view that begins after the start of the region by one of the buffer that it begins with."""
    source = op.operands[0]
    if piece.regrouped is not None:
        array = MemDescReinterpretOp(operands=[source], result_types=[piece.regrouped])
        source = insert_before(op, array).result
    index = _constant(op, piece.index)
    buffer = MemDescIndexOp(operands=[source, index], result_types=[buffer_type(memdesc_type(source.type))])
    if piece.regrouped is not None:
        replace(op, buffer)
        return
    insert_before(op, buffer)
    replace(op, MemDescReinterpretOp(operands=[buffer.result], result_types=[op.results[0].type]))


def _slice_buffers(op: MemDescSubsliceOp | TMEMSubSliceOp) -> None:
    """Let an index into parts of all buffers be a part of one: stock Triton indexes arrays of whole buffers only."""
    source, part = memdesc_type(op.src.type), memdesc_type(op.result.type)
    if part.shape[1:] == source.shape[1:] or source.alloc_shape != source.shape:
        return
    for use in list(op.result.uses):
        index = use.operation
        if isinstance(index, MemDescIndexOp) and index.result.type.alloc_shape == source.shape[1:]:
            buffer = MemDescIndexOp(operands=[op.src, index.index], result_types=[buffer_type(source)])
            replace(index, slice_of_buffer(op, insert_before(index, buffer).result, index.result.type))
    if op.result.first_use is None:
        Rewriter.erase_op(op)


# --- arithmetic -----------------------------------------------------------------------------------------------------


def _physical_index(op: MemDescIndexOp, place: ArrayPlace) -> SSAValue:
    """The index that `op` must use instead of its own."""

    def emit(new_op: IRDLOperation) -> SSAValue:
        return insert_before(op, new_op).results[0]

    index, places = op.index, place.places
    if (known := constant_integer(index)) is not None:
        return index if places.is_identity else _constant(op, places(_checked(op, known, place)))
    if places.group_size > 1:
        size = _constant(op, places.group_size)
        group, member = emit(DivUIOp(index, size)), emit(RemUIOp(index, size))
        index = emit(AddiOp(emit(MuliOp(group, _constant(op, places.group_stride))), member))
    elif places.group_stride > 1:
        index = emit(MuliOp(index, _constant(op, places.group_stride)))
    if places.offset:
        index = emit(AddiOp(index, _constant(op, places.offset)))
    return index


def _constant(anchor: Operation, value: int) -> SSAValue:
    result = insert_before(anchor, ConstantOp(IntegerAttr(value, i32))).result
    result.name_hint = f"c{value}_i32"
    return result


def _checked(op: MemDescIndexOp, index: int, place: ArrayPlace) -> int:
    """`index`, which is one of the array's buffers: the next slot belongs to another allocation."""
    count = memdesc_type(op.src.type).shape[0]
    if not 0 <= index < count:
        raise error_at(
            op, f"buffer {index} of {place.name} does not exist, it has {count}", [allocated_at(place.origin)]
        )
    return index
