"""Tensors of a kernel as memory: its arguments, and the blocks that its circular buffers give."""

from __future__ import annotations

from math import prod
from typing import TypeVar

from xdsl.dialects.builtin import FunctionType, MemRefType, StridedLayoutAttr
from xdsl.ir import Attribute

from tlx_xdsl.dialects.base.tensors import as_tensor
from tlx_xdsl.transforms.rewriting import ops_of, retype
from tlx_xdsl.ttl.dialects import ttl

AcquireOpT = TypeVar("AcquireOpT", bound=ttl.AcquireOp)


def retype_arguments(kernel: ttl.KernelOp) -> None:
    """Let the arguments of a kernel, and the accessors of them, be memory in the place that their encodings state."""
    for argument in kernel.args:
        if (type_ := as_tensor(argument.type)) is not None:
            retype(argument, MemRefType(type_.element_type, type_.get_shape(), memory_space=type_.encoding))
    kernel.function_type = FunctionType.from_lists([each.type for each in kernel.args], [])
    for op in ops_of(kernel, ttl.TensorAccessorOp):
        retype(op.result, ttl.TensorAccessorType(op.tensor.type))


def retype_views(kernel: ttl.KernelOp) -> None:
    """Let blocks of circular buffers be memory."""
    for op in ops_of(kernel, ttl.AcquireOp):
        retype(op.view, _memory(op.view.type))
    for op in ops_of(kernel, ttl.BlockOp):
        retype(op.result, _memory(op.result.type, is_one_of_several=True))


def view_of(op: AcquireOpT) -> AcquireOpT:
    """The operation with its block as memory."""
    retype(op.view, _memory(op.view.type))
    return op


def _memory(type_: Attribute, *, is_one_of_several: bool = False) -> Attribute:
    """A block as memory; one of several begins anywhere."""
    tensor = as_tensor(type_)
    if tensor is None:
        return type_
    shape = tensor.get_shape()
    if not is_one_of_several:
        return MemRefType(tensor.element_type, shape)
    strides = [prod(shape[dim + 1 :]) for dim in range(len(shape))]
    return MemRefType(tensor.element_type, shape, StridedLayoutAttr(strides, None))
