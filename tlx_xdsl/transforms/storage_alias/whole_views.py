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

from tlx_xdsl.analysis.overlap_tree import IndexMap
from tlx_xdsl.dialects.tlx import LocalAliasOp
from tlx_xdsl.dialects.ttg import (
    LocalAllocOp,
    MemDescIndexOp,
    MemDescReinterpretOp,
)
from tlx_xdsl.dialects.ttg.attrs import layout_of
from tlx_xdsl.dialects.ttg.types import MemDescType, memdesc_type
from tlx_xdsl.dialects.ttng import TMEMAllocOp
from tlx_xdsl.dialects.ttng.attrs import TensorMemorySpaceAttr
from tlx_xdsl.dialects.ttng.tmem import COLUMNS, ROWS, columns_of
from tlx_xdsl.layouts.conversion.shared import buffer_rank
from tlx_xdsl.layouts.encodings import SharedLayout, TensorMemoryLayout
from tlx_xdsl.text.diagnostics import error_at, report_remark
from tlx_xdsl.transforms.rewriting import insert_before, replace
from tlx_xdsl.transforms.storage_alias.array_views import ArrayPlace
from tlx_xdsl.transforms.storage_alias.index_rewriting import array_place

DENSE_PLACES = IndexMap(1, 1, 0)
"""Buffers stay where they are when an array gets more of them."""


def rewrite_whole(allocation: LocalAllocOp | TMEMAllocOp, aliases: Sequence[LocalAliasOp]) -> list[ArrayPlace]:
    """Turn `aliases` of `allocation` into views of all of its memory, once `rewrite_indices` has got the result.

    Raises CompilationError when tensor memory is too small for what the allocation must grow to.
    """
    views = [_as_array(memdesc_type(alias.result.type)) for alias in aliases]
    size, grown = _grown(allocation, lcm(*(_logical_bits(view.shape[1:], view) for view in views)))
    places = [grown]
    for alias, view in zip(aliases, views, strict=True):
        array = MemDescReinterpretOp(operands=[allocation.result], result_types=[view])
        if len(memdesc_type(alias.result.type).shape) == len(view.shape):
            replace(alias, array)
        else:
            # A single buffer is the first one of an array.
            insert_before(alias, array)
            zero = insert_before(alias, ConstantOp(IntegerAttr(0, i32)))
            replace(alias, MemDescIndexOp(operands=[array.result, zero.result], result_types=[alias.result.type]))
        places.append(array_place(array.result, DENSE_PLACES, size // _logical_bits(view.shape[1:], view)))
    return places


def _grown(allocation: LocalAllocOp | TMEMAllocOp, step: int) -> tuple[int, ArrayPlace]:
    """The bits of the allocation, and the buffers in it, when it is made a multiple of `step` bits."""
    type_ = _as_array(memdesc_type(allocation.result.type))
    buffer = _logical_bits(type_.shape[1:], type_)
    size = type_.shape[0] * buffer
    if size % step == 0:
        return size, array_place(allocation.result, DENSE_PLACES)
    whole = lcm(step, buffer)
    grown = -(-size // whole) * whole
    new_type = type_.with_shape((grown // buffer, *type_.shape[1:]))
    if len(memdesc_type(allocation.result.type).shape) != len(new_type.shape):
        raise error_at(allocation, f"Triton 3.8 needs {grown // 8} bytes here for the views of this single buffer")
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
    return grown, array_place(allocation.result, DENSE_PLACES, new_type.shape[0])


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
