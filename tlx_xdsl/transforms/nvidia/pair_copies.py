"""Copies of block scales to the tensor memory of both CTAs of a pair (PTX ISA, "tcgen05.cp", `.cta_group::2`).

The even CTA issues them: each CTA gets what lies at that place in its own shared memory. They and the products of the
pair take effect in the order in which one thread issues them, a copy before a product.

Before:
```mlir
ttng.tmem_copy %s, %t : !ttg.memdesc<128x4xi8, #linear, #smem, mutable>, !ttg.memdesc<128x4xi8, #tmem_scales, ...>
```
After, for each block of 128 x 4 scales:
```mlir
nvvm.inline_ptx "{ ... @p tcgen05.cp.cta_group::2.32x128b.warpx4 [$3+0], s; }" ro(...)
```
"""

from __future__ import annotations

from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import ttg, ttng
from tlx_xdsl.dialects.base import chosen_layout, layout_attr
from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.encodings import TensorMemoryScalesLayout
from tlx_xdsl.layouts.matrix_descriptors import SCALE_HIGH, SCALE_LOW
from tlx_xdsl.layouts.offset_terms import offset_of
from tlx_xdsl.layouts.shared import scale_blocks_layout
from tlx_xdsl.text.diagnostics import error_at

from ..layout.views import same_layout
from .emit.integers import Integers
from .emit.pair_instructions import LANES, issues_here, low_half, refuse
from .emit.ptx import run_in_one_thread, wait_for_region
from .emit.shared_address import address_terms, shared_address, tensor_memory_address


def lower_copy(op: ttng.TMEMCopyOp) -> None:
    """Replace a copy of scales.

    Raises CompilationError for one of something else, and of scales that are in another order.
    """
    source, target = ttg.memdesc_type(op.src.type), ttg.memdesc_type(op.dst.type)
    if not isinstance(chosen_layout(target.encoding), TensorMemoryScalesLayout):
        refuse(op, "no copies to tensor memory but those of scales beside it")
    try:
        blocks = layout_attr(scale_blocks_layout(target.shape))
    except InputError as error:
        raise error_at(op, str(error)) from error
    if source.shape != target.shape or not same_layout(source.encoding, blocks, source):
        refuse(op, "scales that lie in blocks of 32 lines of 16 bytes in shared memory, one after the other,")
    rows, columns = target.shape
    start, terms = shared_address(op, op.src), address_terms(op, op.src)
    room, issues, integers = tensor_memory_address(op, op.dst), issues_here(op), Integers(op)
    wait_for_region(op)
    for down in range(0, rows, ttng.SCALE_BLOCK_ROWS):
        for right in range(0, columns, ttng.SCALE_BLOCK_COLUMNS):
            # A word of all rows, in columns of 32 rows each, is before the next word.
            column = (down + right // ttng.SCALE_BLOCK_COLUMNS * rows) // LANES
            code = (
                f".reg .b32 h; .reg .b64 s; mov.b32 h, {SCALE_HIGH}; mov.b64 s, {{{{{{0}}, h}}}}; "
                f"@p tcgen05.cp.cta_group::2.32x128b.warpx4 [{{1}}+{column}], s;"
            )
            block = low_half(integers, start, offset_of(terms, (down, right)), SCALE_LOW)
            run_in_one_thread(op, code, [block, room], predicate=issues)
    Rewriter.erase_op(op)
