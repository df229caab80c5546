"""Views that are as large as the allocation behind them: what Triton 3.8 demands of every `ttg.memdesc_reinterpret`.

A view gets as many buffers as fit in the allocation; those behind its own are never addressed. An allocation that is
no whole number of a view's buffers grows to the next size that is one for all of its views, with a remark that says by
how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm, prod

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import SSAValue

from tlx_xdsl.dialects.tlx import LocalAliasOp
from tlx_xdsl.dialects.ttg import (
    LocalAllocOp,
    MemDescIndexOp,
    MemDescReinterpretOp,
    WarpSpecializePartitionsOp,
)
from tlx_xdsl.dialects.ttg.attrs import layout_of
from tlx_xdsl.dialects.ttg.types import MemDescType, memdesc_type
from tlx_xdsl.dialects.ttng import TMEMAllocOp
from tlx_xdsl.dialects.ttng.attrs import TensorMemorySpaceAttr
from tlx_xdsl.dialects.ttng.tmem import COLUMNS, ROWS, columns_of
from tlx_xdsl.layouts.conversion.shared import buffer_rank
from tlx_xdsl.layouts.encodings import SharedLayout, TensorMemoryLayout
from tlx_xdsl.text.diagnostics import error_at, report_remark
from tlx_xdsl.transforms.rewriting import insert_before, replace, retype


def rewrite_whole(allocation: LocalAllocOp | TMEMAllocOp, aliases: Sequence[LocalAliasOp]) -> None:
    """Turn `aliases` of `allocation` into views of all of its memory.

    Raises CompilationError when an operation would see an array grow that it uses as a whole, and when tensor memory
    is too small for what the allocation must grow to.
    """
    views = [_as_array(memdesc_type(alias.result.type)) for alias in aliases]
    size = _grow(allocation, lcm(*(_logical_bits(view.shape[1:], view) for view in views)))
    for alias, view in zip(aliases, views, strict=True):
        whole = view.with_shape((size // _logical_bits(view.shape[1:], view), *view.shape[1:]))
        if len(memdesc_type(alias.result.type).shape) == len(view.shape):
            reinterpreted = replace(alias, MemDescReinterpretOp(operands=[allocation.result], result_types=[whole]))
            _let_carriers_know(reinterpreted.result)
            continue
        # A single buffer is the first one of an array.
        array = insert_before(alias, MemDescReinterpretOp(operands=[allocation.result], result_types=[whole]))
        zero = insert_before(alias, ConstantOp(IntegerAttr(0, i32)))
        replace(alias, MemDescIndexOp(operands=[array.result, zero.result], result_types=[alias.result.type]))


def _grow(allocation: LocalAllocOp | TMEMAllocOp, step: int) -> int:
    """Make the allocation a multiple of `step` bits; the bits that it has then."""
    type_ = _as_array(memdesc_type(allocation.result.type))
    buffer = _logical_bits(type_.shape[1:], type_)
    size = type_.shape[0] * buffer
    if size % step == 0:
        return size
    whole = lcm(step, buffer)
    grown = -(-size // whole) * whole
    new_type = type_.with_shape((grown // buffer, *type_.shape[1:]))
    if len(memdesc_type(allocation.result.type).shape) != len(new_type.shape):
        raise error_at(allocation, f"Triton 3.8 needs {grown // 8} bytes here for the views of this single buffer")
    retype(allocation.result, new_type)
    _let_carriers_know(allocation.result)
    unit, per_unit = ("bytes", 8)
    if isinstance(type_.memory_space, TensorMemorySpaceAttr):
        unit, per_unit = ("columns of tensor memory", 32)
        if (columns := columns_of(new_type)) > COLUMNS:
            raise error_at(
                allocation, f"takes {columns} columns of tensor memory under Triton 3.8, there are {COLUMNS}"
            )
    report_remark(
        allocation,
        f"this allocation grows by {(grown - size) // per_unit} {unit}, from {size // per_unit} to "
        f"{grown // per_unit}: Triton 3.8 takes only views that are as large as their allocation",
    )
    return grown


def _as_array(type_: MemDescType) -> MemDescType:
    """The type with a leading dimension that counts buffers."""
    layout = layout_of(type_.encoding)
    rank = buffer_rank(layout) if isinstance(layout, SharedLayout) else 2
    return type_ if len(type_.shape) > rank else type_.with_shape((1, *type_.shape))


def _logical_bits(shape: Sequence[int], type_: MemDescType) -> int:
    """Bits of a buffer as Triton 3.8 counts them: in tensor memory those of one row, where 128 rows share a block."""
    layout = layout_of(type_.encoding)
    if not isinstance(type_.memory_space, TensorMemorySpaceAttr):
        return prod(shape) * type_.element_bits
    stride = layout.col_stride if isinstance(layout, TensorMemoryLayout) else 1
    return prod(shape[:-2]) * -(-shape[-2] // ROWS) * shape[-1] * type_.element_bits * stride


def _let_carriers_know(array: SSAValue) -> None:
    """Give what carries `array` its type; indexing it needs nothing."""
    pending = [array]
    for value in pending:
        for use in list(value.uses):
            op = use.operation
            if isinstance(op, MemDescIndexOp | MemDescReinterpretOp | LocalAliasOp):
                continue
            if not isinstance(op, WarpSpecializePartitionsOp):
                name = array.name_hint or "this array"
                raise error_at(
                    op,
                    f"under Triton 3.8 the array {name} grows to the size of its allocation, and '{op.name}' on the "
                    "whole array cannot be rewritten",
                )
            for region in op.partition_regions:
                argument = region.blocks[0].args[use.index]
                retype(argument, value.type)
                pending.append(argument)
