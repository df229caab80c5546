"""Allocations of plain bytes or columns, for views of any kind.

Upstream Triton requires powers of two in the dimensions of a layout, but not in the number of buffers: the total is
split into buffers of the largest power of two that divides it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i8, i32

from tlx_xdsl.dialects.base.layouts import layout_attr
from tlx_xdsl.dialects.ttg import LocalAllocOp, SharedMemorySpaceAttr
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.dialects.ttng import TMEMAllocOp
from tlx_xdsl.dialects.ttng.attrs import TensorMemorySpaceAttr
from tlx_xdsl.layouts.encodings import TensorMemoryLayout
from tlx_xdsl.layouts.shared import unswizzled_layout

LARGEST_ROW = 1024
"""Bytes in a row of the backing allocation. Any power of two would do; this one divides the sizes of most tiles."""

LARGEST_BLOCK = 256
"""Columns of a block of the backing allocation: no more than an accumulator has (PTX ISA, "tcgen05.mma")."""


def allocate_bytes(size: int, alignment: int) -> LocalAllocOp:
    """`size` bytes of shared memory at an address that is a multiple of `alignment`."""
    row = min(LARGEST_ROW, size & -size)
    type_ = MemDescType.get(
        (size // row, row), i8, layout_attr(unswizzled_layout(1)), SharedMemorySpaceAttr(), mutable=True
    )
    return LocalAllocOp(operands=[None], properties={"alignment": IntegerAttr(alignment, i32)}, result_types=[type_])


def allocate_columns(rows: int, count: int) -> TMEMAllocOp:
    """`count` columns of tensor memory, of 64 or 128 rows."""
    block = min(LARGEST_BLOCK, count & -count)
    layout = layout_attr(TensorMemoryLayout(rows, block, 1))
    type_ = MemDescType.get((count // block, rows, block), i32, layout, TensorMemorySpaceAttr(), mutable=True)
    return TMEMAllocOp(operands=[None], result_types=[type_, None])
