"""`tlx-lower-scale-arrays`: arrays of buffers with scales become arrays of columns of tensor memory.

Upstream Triton allows no more than one buffer with a layout of scales in an allocation. An array of them takes as many
32-bit columns as it would, and each buffer is a view of its columns.

Before:
```mlir
%s = ttng.tmem_alloc : () -> !ttg.memdesc<2x128x4xi8, #tmem_scales, #ttng.tensor_memory, mutable>
%s1 = ttg.memdesc_index %s[%i] : !ttg.memdesc<2x128x4xi8, ...> -> !ttg.memdesc<128x4xi8, #tmem_scales, ...>
```
After:
```mlir
%s = ttng.tmem_alloc : () -> !ttg.memdesc<2x128x4xi32, #tmem, #ttng.tensor_memory, mutable>
%0 = ttg.memdesc_index %s[%i] : !ttg.memdesc<2x128x4xi32, ...> -> !ttg.memdesc<128x4xi32, #tmem, ...>
%s1 = ttg.memdesc_reinterpret %0 : !ttg.memdesc<128x4xi32, ...> -> !ttg.memdesc<128x4xi8, #tmem_scales, ...>
```
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.ir import Attribute

from tlx_xdsl.dialects.base import bare, chosen_layout, layout_attr
from tlx_xdsl.dialects.ttg import MemDescIndexOp, MemDescReinterpretOp, MemDescType
from tlx_xdsl.dialects.ttng import ROWS, columns_of
from tlx_xdsl.layouts.encodings import TensorMemoryLayout, TensorMemoryScalesLayout
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass, insert_adaptor, retype
from .encodings import map_types
from .views import is_view


class LowerScaleArraysPass(Pass):
    """Turn arrays of buffers with scales into arrays of columns."""

    name = "tlx-lower-scale-arrays"

    def run(self, op: ModuleOp) -> None:
        """Change all types of such arrays, and view the columns where one of the buffers is taken."""
        indices: list[MemDescIndexOp] = []
        for inner in op.walk():
            if not any(_is_array_of_scales(operand.type) for operand in inner.operands):
                continue
            if isinstance(inner, MemDescIndexOp):
                indices.append(inner)
            elif is_view(inner):
                raise error_at(inner, f"'{inner.name}' can't see a part of an array of scales: take one buffer first")
        map_types(op, _columns)
        for index in indices:
            _view_scales(index)


def _is_array_of_scales(type_: Attribute) -> bool:
    if not isinstance(type_, MemDescType) or len(type_.shape) != 3:
        return False
    return isinstance(chosen_layout(bare(type_.encoding)), TensorMemoryScalesLayout)


def _columns(type_: Attribute) -> Attribute:
    """The array of columns for one of scales; other types stay."""
    if not isinstance(type_, MemDescType) or not _is_array_of_scales(type_):
        return type_
    columns = columns_of(type_.with_shape(type_.shape[1:]))
    return MemDescType.get(
        (type_.shape[0], ROWS, columns),
        i32,
        layout_attr(TensorMemoryLayout(ROWS, columns, 1)),
        type_.memory_space,
        mutable=type_.is_mutable,
    )


def _view_scales(index: MemDescIndexOp) -> None:
    scales, array = index.result.type, index.src.type
    assert isinstance(array, MemDescType)
    view = insert_adaptor(index.result, MemDescReinterpretOp(operands=[index.result], result_types=[scales]))
    view.result.name_hint, index.result.name_hint = index.result.name_hint, None
    retype(index.result, array.with_shape(array.shape[1:]))
