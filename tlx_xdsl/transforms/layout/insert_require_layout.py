"""`tlx-insert-require-layout`: make layout requirements explicit where a buffer has another layout.

Buffers of the tensor cores, of copies by TMA and to tensor memory; and tensors that are loaded from shared memory to
be operands of a `tt.dot` whose layout is known. What a placeholder stands for is left to `tlx-propagate-layout`.

Before, with a `#padded` that gives each pair of fp4 values two bytes:
```mlir
ttng.tc_gen5_mma_scaled %a, %b, %d, %as, %bs, %use, %pred lhs = e2m1 rhs = e4m3 : !ttg.memdesc<128x64xi8, #tile, ...>
```
After:
```mlir
%0 = tlx.require_layout %a : !ttg.memdesc<128x64xi8, #tile, ...> -> !ttg.memdesc<128x64xi8, #padded, ...>
ttng.tc_gen5_mma_scaled %0, %b, %d, %as, %bs, %use, %pred lhs = e2m1 rhs = e4m3 : !ttg.memdesc<128x64xi8, #padded, ...>
```
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation

from tlx_xdsl.dialects import tlx, tt, ttg
from tlx_xdsl.dialects.base import LayoutAttr, bare, layout_attr
from tlx_xdsl.layouts.encodings import DistributedLayout, DotOperandLayout, NvidiaMmaLayout

from ..rewriting import Pass, insert_before, with_layout
from .needs import Need, needs_of

REGISTER_BITS = 32
"""Bits of a register, which the tensor cores' operands fill."""


class InsertRequireLayoutPass(Pass):
    """Put a `tlx.require_layout` before each operand that an operation requires in another layout."""

    name = "tlx-insert-require-layout"

    def run(self, op: ModuleOp) -> None:
        """Look at every operation of the module."""
        for inner in list(op.walk()):
            for need in needs_of(inner):
                _require_buffer(need)
            if isinstance(inner, tt.DotOp):
                _require_operands(inner)


def _require_buffer(need: Need) -> None:
    type_ = ttg.memdesc_type(need.buffer.type)
    if need.is_met_by(type_.encoding) or isinstance(type_.encoding, tlx.DummyTMEMLayoutAttr):
        return
    _require(need.op, list(need.op.operands).index(need.buffer), type_.with_encoding(need.wanted))


def _require_operands(dot: tt.DotOp) -> None:
    """Ask for loads straight into the layout of an operand."""
    encoding = bare(ttg.tensor_type(dot.d.type).encoding)
    if not isinstance(encoding, LayoutAttr) or not isinstance(encoding.data, DistributedLayout):
        return
    for index, operand in enumerate((dot.a, dot.b)):
        if not isinstance(operand.owner, ttg.LocalLoadOp):
            continue
        type_ = ttg.tensor_type(operand.type)
        width = 0
        if isinstance(encoding.data, NvidiaMmaLayout):
            bits = ttg.memdesc_type(operand.owner.src.type).element_bits
            width = max(1, REGISTER_BITS // bits)
        wanted = layout_attr(DotOperandLayout(index, encoding.data, width))
        if type_.encoding != wanted:
            _require(dot, index, with_layout(type_, wanted))


def _require(op: Operation, index: int, type_: ttg.MemDescType | TensorType) -> None:
    require = insert_before(op, tlx.RequireLayoutOp(operands=[op.operands[index]], result_types=[type_]))
    op.operands[index] = require.result
