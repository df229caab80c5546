"""Views that are as large as their allocation, which Triton 3.8 requires of every `ttg.memdesc_reinterpret`.

A view gets as many buffers as fit in the allocation; those after its own are never addressed. An allocation that is
no whole number of a view's buffers grows to the next size that is one for all of its views, with a remark that says by
how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm, prod
from typing import TypeAlias

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.rewriter import Rewriter

from tlx_xdsl.analysis.overlap_tree import IndexMap
from tlx_xdsl.dialects.base import layout_of
from tlx_xdsl.dialects.tlx import LocalAliasOp
from tlx_xdsl.dialects.ttg import LocalAllocOp, MemDescIndexOp, MemDescReinterpretOp, MemDescType, memdesc_type
from tlx_xdsl.dialects.ttng import COLUMNS, ROWS, TensorMemorySpaceAttr, TMEMAllocOp, rows_of
from tlx_xdsl.layouts.conversion.shared import buffer_rank
from tlx_xdsl.layouts.encodings import SharedLayout, TensorMemoryLayout
from tlx_xdsl.layouts.shared import required_alignment
from tlx_xdsl.text.diagnostics import error_at, report_remark

from ..rewriting import insert_before, replace
from .array_views import ArrayPlace, allocate_bytes, allocate_columns
from .index_rewriting import array_place

Allocation: TypeAlias = LocalAllocOp | TMEMAllocOp

_DENSE = IndexMap(1, 1, 0)


def view_whole(allocation: Allocation, aliases: Sequence[LocalAliasOp]) -> list[ArrayPlace]:
    """Turn `aliases` of `allocation` into views, and say how many buffers each must get (`rewrite_indices`).

    Raises CompilationError when tensor memory is too small for what the allocation must grow to.
    """
    size = _bits(allocation.result.type)
    step = lcm(*(_bits_of_buffer(alias.result.type) for alias in aliases))
    if size % step:
        step = lcm(step, _bits_of_buffer(allocation.result.type))
        grown = -(-size // step) * step
        allocation, own = _grown(allocation, size, grown)
        aliases, size = [*own, *aliases], grown
    return [place for alias in aliases for place in _view(alias, allocation, size)]


def _view(alias: LocalAliasOp, allocation: Allocation, size: int) -> list[ArrayPlace]:
    """Replace an alias by a view of `size` bits."""
    type_ = alias.result.type
    view, slots = _as_array(type_), size // _bits_of_buffer(type_)
    if view == type_:
        array = replace(alias, MemDescReinterpretOp(operands=[allocation.result], result_types=[view]))
        return [array_place(array.result, _DENSE, slots)]
    # A single buffer is the first one of an array.
    whole = view.with_shape((slots, *view.shape[1:]))
    array = insert_before(alias, MemDescReinterpretOp(operands=[allocation.result], result_types=[whole]))
    zero = insert_before(alias, ConstantOp(IntegerAttr(0, i32)))
    replace(alias, MemDescIndexOp(operands=[array.result, zero.result], result_types=[type_]))
    return []


def _grown(allocation: Allocation, size: int, grown: int) -> tuple[Allocation, list[LocalAliasOp]]:
    """A larger allocation instead of `allocation`, and an alias that is what the old one was if that is used."""
    type_ = allocation.result.type
    if isinstance(allocation, TMEMAllocOp):
        unit, bits = "columns of tensor memory", 32
        if grown // bits > COLUMNS:
            raise error_at(
                allocation, f"takes {grown // bits} columns of tensor memory under Triton 3.8, there are {COLUMNS}"
            )
        backing: Allocation = allocate_columns(rows_of(type_), grown // bits)
    else:
        unit, bits = "bytes", 8
        backing = allocate_bytes(grown // bits, _alignment(allocation))
    report_remark(
        allocation,
        f"this allocation grows by {(grown - size) // bits} {unit}, from {size // bits} to {grown // bits}: "
        "Triton 3.8 takes only views that are as large as their allocation",
    )
    insert_before(allocation, backing)
    backing.result.name_hint = allocation.result.name_hint
    own: list[LocalAliasOp] = []
    for use in list(allocation.result.uses):
        if isinstance(use.operation, LocalAliasOp):
            use.operation.operands[use.index] = backing.result
    if allocation.result.first_use is not None:
        own = [replace(allocation, LocalAliasOp(operands=[backing.result], result_types=[type_]))]
    else:
        Rewriter.erase_op(allocation)
    return backing, own


def _alignment(allocation: LocalAllocOp) -> int:
    if allocation.alignment is not None:
        return allocation.alignment.value.data
    type_ = memdesc_type(allocation.result.type)
    layout = layout_of(type_.encoding)
    return required_alignment(layout, type_.element_bits) if isinstance(layout, SharedLayout) else 16


def _as_array(type_: MemDescType) -> MemDescType:
    """The type with a leading dimension that counts buffers."""
    layout = layout_of(type_.encoding)
    rank = buffer_rank(layout) if isinstance(layout, SharedLayout) else 2
    return type_ if len(type_.shape) > rank else type_.with_shape((1, *type_.shape))


def _bits(type_: MemDescType) -> int:
    """Bits of an allocation as Triton 3.8 counts them."""
    return _as_array(type_).shape[0] * _bits_of_buffer(type_)


def _bits_of_buffer(type_: MemDescType) -> int:
    """Bits of one buffer as Triton 3.8 counts them: in tensor memory those of one row, of 128 or fewer.

    Found by asking Triton 3.8.0: a view of 64 rows counts as one of 128, unpacked elements count their gaps, and a
    column that is half used counts half.
    """
    *outer, rows, columns = (1, *_as_array(type_).shape[1:])
    if not isinstance(type_.memory_space, TensorMemorySpaceAttr):
        return prod(outer) * rows * columns * type_.element_bits
    layout = layout_of(type_.encoding)
    stride = layout.col_stride if isinstance(layout, TensorMemoryLayout) else 1
    return prod(outer) * -(-rows // ROWS) * columns * type_.element_bits * stride
