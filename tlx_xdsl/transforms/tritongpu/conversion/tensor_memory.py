"""Tensor memory."""

from __future__ import annotations

from xdsl.dialects.builtin import NoneAttr

from tlx_xdsl.dialects import ttng
from tlx_xdsl.transforms.layout.resolve_placeholder_layouts import tensor_memory_encoding
from tlx_xdsl.transforms.rewriting import retype, with_layout

from .converter import Converter, handles


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
