"""Matrix multiplication, of register tensors and of Hopper's tensor cores, and accesses to tensor memory."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import NoneAttr

from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.dialects.base import layout_attr, layout_of
from tlx_xdsl.layouts.encodings import DistributedLayout, DotOperandLayout, NvidiaMmaLayout
from tlx_xdsl.transforms.layout.resolve_placeholder_layouts import tensor_memory_encoding
from tlx_xdsl.transforms.rewriting import retype, with_layout

from .converter import Converter, handles


@handles(tt.DotOp)
def dot(converter: Converter, op: tt.DotOp) -> None:
    """A and B have the layouts of operands of the result's; upstream Triton then picks the instruction."""
    converter.settle(op.d)
    encoding = ttg.tensor_type(op.d.type).encoding
    parent = cast(DistributedLayout, layout_of(encoding))
    for index in range(2):
        converter.require(op, index, layout_attr(DotOperandLayout(index, parent)))
    converter.require(op, 2, encoding)


@handles(tt.DotScaledOp)
def dot_scaled(converter: Converter, op: tt.DotScaledOp) -> None:
    """Require the result's layout of the accumulator alone: upstream Triton decomposes the dot and picks the others."""
    converter.settle(op.d)
    converter.require(op, list(op.operands).index(op.c), ttg.tensor_type(op.d.type).encoding)


@handles(ttg.Fp4ToFpOp)
def fp4_to_fp(converter: Converter, op: ttg.Fp4ToFpOp) -> None:
    """A thread holds the two numbers of a byte."""
    converter.settle(op.result)


@handles(ttng.WarpGroupDotOp)
def warp_group_dot(converter: Converter, op: ttng.WarpGroupDotOp) -> None:
    """The accumulator has the instruction's layout, and a register operand A that of its dot operand."""
    converter.settle(op.d)
    encoding = ttg.tensor_type(op.d.type).encoding
    converter.require(op, 2, encoding)
    if (a := ttg.as_tensor(op.a.type)) is not None:
        layout = layout_of(encoding)
        assert isinstance(layout, NvidiaMmaLayout)
        # Two elements of 16 bits, or one of 32, in each register.
        width = 32 // ttg.element_bits(a.element_type)
        converter.require(op, 0, layout_attr(DotOperandLayout(0, layout, width)))


@handles(ttng.WarpGroupDotWaitOp)
def warp_group_dot_wait(_converter: Converter, op: ttng.WarpGroupDotWaitOp) -> None:
    """The wait changes no value."""
    for before, after in zip(op.inputs, op.outputs, strict=True):
        retype(after, before.type)


@handles(ttng.TMEMLoadOp)
def tmem_load(converter: Converter, op: ttng.TMEMLoadOp) -> None:
    """The result has a layout that tensor memory can be loaded into."""
    encoding = op.result.type.encoding
    if isinstance(encoding, NoneAttr):
        retype(op.result, with_layout(op.result.type, tensor_memory_encoding(op, op.src)))
    if op.red is not None:
        converter.settle(op.red)


@handles(ttng.TMEMStoreOp)
def tmem_store(converter: Converter, op: ttng.TMEMStoreOp) -> None:
    """The source is brought to a layout that tensor memory can be stored from."""
    index = list(op.operands).index(op.src)
    converter.require(op, index, tensor_memory_encoding(op, op.dst))


@handles(ttng.TMEMAllocOp)
def tmem_alloc(converter: Converter, op: ttng.TMEMAllocOp) -> None:
    """An initial value is stored."""
    if op.src is not None:
        converter.require(op, 0, tensor_memory_encoding(op, op.result))
