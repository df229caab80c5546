"""Tensor memory."""

from __future__ import annotations

from xdsl.dialects.builtin import NoneAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects import ttng
from tlx_xdsl.dialects.ttg.attrs import layout_attr
from tlx_xdsl.dialects.ttg.types import memdesc_type
from tlx_xdsl.dialects.ttng.tmem import tensor_memory_layout
from tlx_xdsl.layouts.distributed import tensor_memory_register_layout
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import retype
from tlx_xdsl.transforms.tritongpu.conversion.converter import Converter, handles, with_layout


def _register_layout(converter: Converter, op: Operation, buffer: SSAValue) -> Attribute:
    """The layout in which the region's warps load and store a buffer in tensor memory."""
    type_ = memdesc_type(buffer.type)
    if (layout := tensor_memory_layout(type_)) is None:
        raise error_at(op, f"the layout of this buffer in tensor memory is not chosen: {type_}")
    try:
        return layout_attr(tensor_memory_register_layout(layout, type_.shape, converter.warps))
    except ValueError as error:
        raise error_at(op, str(error)) from error


@handles(ttng.TMEMLoadOp)
def tmem_load(converter: Converter, op: ttng.TMEMLoadOp) -> None:
    """The result has a layout that tensor memory can be loaded into."""
    encoding = op.result.type.encoding
    if isinstance(encoding, NoneAttr):
        retype(op.result, with_layout(op.result.type, _register_layout(converter, op, op.src)))
    if op.red is not None:
        converter.settle(op.red)


@handles(ttng.TMEMStoreOp)
def tmem_store(converter: Converter, op: ttng.TMEMStoreOp) -> None:
    """The source is brought to a layout that tensor memory can be stored from."""
    index = list(op.operands).index(op.src)
    converter.require(op, index, _register_layout(converter, op, op.dst))


@handles(ttng.TMEMAllocOp)
def tmem_alloc(converter: Converter, op: ttng.TMEMAllocOp) -> None:
    """An initial value is stored."""
    if op.src is not None:
        converter.require(op, 0, _register_layout(converter, op, op.result))
