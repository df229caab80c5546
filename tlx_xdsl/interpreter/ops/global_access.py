"""Pointers, and loads and stores through them."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base.pointer import PointerType
from tlx_xdsl.dialects.base.tensors import as_tensor, element_bits, scalar_type
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.registry import Binary, Run, Unary, effect, pure
from tlx_xdsl.numerics.arrays import Array, poison


@pure(tt.AddPtrOp)
def add_pointer(op: tt.AddPtrOp) -> Binary:
    """Offsets count elements of what is pointed to, an i1 as a byte."""
    pointer = scalar_type(op.ptr.type)
    assert isinstance(pointer, PointerType)
    size = np.int64(-(-element_bits(pointer.pointee) // 8))
    if size == 1:
        return lambda pointers, offsets: pointers + offsets.astype(np.int64)
    return lambda pointers, offsets: pointers + offsets.astype(np.int64) * size


@pure(tt.IntToPtrOp, tt.PtrToIntOp)
def pointer_bits(_op: Operation) -> Unary:
    """A pointer is held as its address."""
    return lambda value: value


@effect(tt.LoadOp)
def load(op: tt.LoadOp) -> Run:
    """What is masked and has no other value has every bit set: it is NaN, or -1, so that its use is seen.

    Raises Fault for an address outside of all arrays, or one that is not a multiple of the element.
    """
    dtype = dtype_of(op.result.type)
    has_mask, has_other = op.mask is not None, op.other is not None
    undefined = poison((), dtype)[()]

    is_scalar = as_tensor(op.result.type) is None

    def run(task: Task, pointers: Array, *rest: Any) -> Array:
        mask = rest[0] if has_mask else None
        other = rest[-1] if has_other else undefined
        loaded = task.block.cluster.launch.memory.load(op, pointers, dtype, mask, other)
        # A masked load of a scalar gives an array without dimensions.
        return loaded[()] if is_scalar else loaded

    return run


@effect(tt.StoreOp)
def store(op: tt.StoreOp) -> Run:
    """Write where the mask holds; where several elements have one address, any of them may win.

    Raises Fault as `load` does.
    """
    dtype = dtype_of(op.value.type)

    def run(task: Task, pointers: Array, values: Array, mask: Array | None = None) -> None:
        task.block.cluster.launch.memory.store(op, pointers, values, dtype, mask)

    return run
