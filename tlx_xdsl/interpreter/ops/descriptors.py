"""Loads and stores of blocks through tensor descriptors, before the passes that give them buffers and barriers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base.tensors import shape_of_tensor
from tlx_xdsl.dialects.tt.enums import PaddingOption
from tlx_xdsl.interpreter.descriptor import Descriptor
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.ops.tma import gather_rows, reduce_block, scatter_rows
from tlx_xdsl.interpreter.registry import Run, effect, pure
from tlx_xdsl.numerics.arrays import Array


@pure(tt.MakeTensorDescOp)
def make_descriptor(op: tt.MakeTensorDescOp) -> Run:
    """A descriptor of a tensor in memory."""
    type_, count = op.result.type, len(op.shape)
    dtype, is_nan = dtype_of(type_.element_type), PaddingOption(op.padding.value.data) is PaddingOption.PAD_NAN
    block = tuple(type_.shape)

    def run(base: np.int64, *extents: Any) -> Descriptor:
        numbers = tuple(int(extent) for extent in extents)
        return Descriptor(int(base), numbers[:count], numbers[count:], block, dtype, is_nan)

    return run


@effect(tt.DescriptorLoadOp)
def load(op: tt.DescriptorLoadOp) -> Run:
    """What is outside of the tensor is 0, or NaN.

    Raises Fault for a tensor that TMA cannot address.
    """
    shape, dtype = shape_of_tensor(op.result.type), dtype_of(op.result.type)

    def run(task: Task, desc: Descriptor, *corner: Any) -> Array:
        desc.check(op)
        values = desc.load(op, task.block.cluster.launch.memory, [int(at) for at in corner])
        return values.reshape(shape).view(dtype)

    return run


@effect(tt.DescriptorStoreOp)
def store(op: tt.DescriptorStoreOp) -> Run:
    """What is outside of the tensor is dropped."""

    def run(task: Task, desc: Descriptor, values: Array, *corner: Any) -> None:
        desc.check(op)
        place = [int(at) for at in corner]
        desc.store(op, task.block.cluster.launch.memory, place, np.ascontiguousarray(values).view(desc.dtype))

    return run


@effect(tt.DescriptorReduceOp)
def reduce(op: tt.DescriptorReduceOp) -> Run:
    """The block is combined with what is in memory."""
    kind = op.kind.value.data

    def run(task: Task, desc: Descriptor, values: Array, *corner: Any) -> None:
        desc.check(op)
        reduce_block(task, op, desc, [int(at) for at in corner], np.ascontiguousarray(values), kind)

    return run


@effect(tt.DescriptorGatherOp)
def gather(op: tt.DescriptorGatherOp) -> Run:
    """Rows at any numbers; those outside of the tensor are zeros."""
    dtype = dtype_of(op.result.type)

    def run(task: Task, desc: Descriptor, rows: Array, column: np.int32) -> Array:
        desc.check(op)
        return gather_rows(task, op, desc, rows, int(column)).view(dtype)

    return run


@effect(tt.DescriptorScatterOp)
def scatter(op: tt.DescriptorScatterOp) -> Run:
    """Rows to any numbers; those outside of the tensor are dropped."""

    def run(task: Task, desc: Descriptor, rows: Array, column: np.int32, values: Array) -> None:
        desc.check(op)
        scatter_rows(task, op, desc, rows, int(column), np.ascontiguousarray(values))

    return run
