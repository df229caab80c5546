"""`tlx-lower-scale-copies`: view scales in shared memory as the matrix that they are in tensor memory.

The hardware copies blocks of 128 x 4 scales, each as 32 lines of 16 bytes, and a kernel allocates and fills such lines.
Upstream Triton requires both sides of a copy to be one matrix: a linear layout gives its offsets in the lines.

Before:
```mlir
ttng.tmem_copy %s, %t : !ttg.memdesc<32x16xi8, #lines, #smem, mutable>, !ttg.memdesc<128x4xi8, #tmem_scales, ...>
```
After:
```mlir
%0 = ttg.memdesc_reinterpret %s : !ttg.memdesc<32x16xi8, #lines, ...> -> !ttg.memdesc<128x4xi8, #linear, ...>
ttng.tmem_copy %0, %t : !ttg.memdesc<128x4xi8, #linear, #smem, mutable>, !ttg.memdesc<128x4xi8, #tmem_scales, ...>
```
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.dialects.base import chosen_layout, layout_attr
from tlx_xdsl.dialects.ttg import MemDescReinterpretOp, memdesc_type
from tlx_xdsl.dialects.ttng import TMEMCopyOp
from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.encodings import TensorMemoryScalesLayout
from tlx_xdsl.layouts.shared import scale_blocks_layout, unswizzled_layout
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass, insert_before, ops_of
from .views import same_layout


class LowerScaleCopiesPass(Pass):
    """Give the source of each copy of scales the shape of its target."""

    name = "tlx-lower-scale-copies"

    def run(self, op: ModuleOp) -> None:
        """Look at every copy to tensor memory."""
        for inner in ops_of(op, TMEMCopyOp):
            _view_lines(inner)


def _view_lines(op: TMEMCopyOp) -> None:
    source, target = memdesc_type(op.src.type), memdesc_type(op.dst.type)
    is_scales = isinstance(chosen_layout(target.encoding), TensorMemoryScalesLayout)
    if not is_scales or source.shape == target.shape:
        return
    lines = layout_attr(unswizzled_layout(len(source.shape)))
    if source.alloc_shape != source.shape or not same_layout(source.encoding, lines, source):
        raise error_at(op, f"scales are copied from lines that follow each other in shared memory, found {source}")
    try:
        layout = layout_attr(scale_blocks_layout(target.shape))
    except InputError as error:
        raise error_at(op, str(error)) from error
    view = MemDescReinterpretOp(operands=[op.src], result_types=[source.with_shape(target.shape, layout)])
    op.operands[0] = insert_before(op, view).result
