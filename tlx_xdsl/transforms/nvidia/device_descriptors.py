"""Tensor descriptors that the program writes to memory of its own choice.

The fields are those that upstream Triton gives its own descriptors: boxes and swizzle follow the layout
of the tile in shared memory, sizes and strides count from the fastest dimension, and strides are in bytes.

Before:
```mlir
%d = tlx.make_tensor_descriptor %where, %p, [%m, %n], [%s, %one] : <i8>, <f16>, <64x64xf16, #shared>
```
After:
```mlir
ttng.tensormap_create %where, %p, [%c64, %c64], [%n, %m], [%bytes], [%c1, %c1] {elem_type = 6 : i32, ...} : ...
ttng.tensormap_fenceproxy_acquire %where : !tt.ptr<i8>
%d = ttng.reinterpret_tensor_descriptor %where : !tt.ptr<i8> to !tt.tensordesc<64x64xf16, #shared>
```
"""

from __future__ import annotations

from xdsl.dialects.arith import MuliOp
from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tlx_xdsl.dialects import tlx, tt, ttng
from tlx_xdsl.dialects.base import element_type_of, layout_of
from tlx_xdsl.element_types import BY_NAME
from tlx_xdsl.layouts.conversion.shared import tma_box
from tlx_xdsl.layouts.encodings import NvmmaSharedLayout, SharedLayout
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import insert_before
from .emit.integers import Integers

_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
"""Numbers of swizzles by the bytes of their rows (PTX ISA, "tensormap.replace", table of `.swizzle_mode`)."""


def _number_of(element: Attribute, bits: int) -> int:
    """The number of a type in a tensor map; types of 8 bits and integers count as unsigned ones of their width."""
    found = element_type_of(element)
    if found is None or found.kind != "f" or found.tensor_map is None:
        found = BY_NAME[f"uint{bits}"]
    assert found.tensor_map is not None, "unsigned integers have one"
    return found.tensor_map


class LowerDeviceDescriptor(RewritePattern):
    """Writes a descriptor with Triton's operations.

    Raises CompilationError for one whose tiles TMA can't write.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.MakeTensorDescOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        type_ = op.result.type
        layout = layout_of(type_.encoding)
        if not isinstance(layout, SharedLayout):
            raise error_at(op, f"a descriptor needs the layout of its tiles in shared memory here, found {type_}")
        integers, width = Integers(op), 0
        if isinstance(layout, NvmmaSharedLayout):
            width = layout.swizzling_byte_width
            if layout.transposed:
                raise error_at(op, "TMA writes no tile whose first dimension is the fastest one in shared memory")
        box = tma_box(layout, type_.shape, type_.element_bits)
        fields = {
            "elem_type": _number_of(type_.element_type, type_.element_bits),
            "interleave_layout": 0,
            "swizzle_mode": _SWIZZLES[width],
            "fill_mode": int(tt.PaddingOption(op.padding.value.data) is tt.PaddingOption.PAD_NAN),
        }
        create = ttng.TensormapCreateOp(
            operands=[
                op.desc_ptr,
                op.base,
                [integers.value(size) for size in reversed(box)],
                list(reversed(op.shape)),
                [_bytes(op, stride) for stride in reversed(op.strides[:-1])],
                [integers.value(1) for _ in box],
            ],
            properties={name: IntegerAttr(value, i32) for name, value in fields.items()},
        )
        insert_before(op, create)
        insert_before(op, ttng.TensormapFenceproxyAcquireOp(operands=[op.desc_ptr]))
        rewriter.replace(op, ttng.ReinterpretTensorDescOp(operands=[op.desc_ptr], result_types=[type_]))


def _bytes(op: tlx.MakeTensorDescOp, stride: SSAValue) -> SSAValue:
    size = Integers(op).value(op.result.type.element_bits // 8, i64)
    return insert_before(op, MuliOp(stride, size)).result
