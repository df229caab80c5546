"""Pointers to blocks of a tensor in global memory: `tt.make_tensor_ptr` and `tt.advance`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import pointee_type, shape_of_tensor
from tlx_xdsl.dialects.tt.block_pointer import boundaries_of, padding_of
from tlx_xdsl.layouts.encodings import Ints
from tlx_xdsl.numerics.arrays import Array, is_float

from ..machine import Task
from ..numbers import dtype_of
from ..registry import immediate


@dataclass(frozen=True)
class BlockPointer:
    """A tensor in global memory, and the place of a block in it; all but the address in elements."""

    address: int
    shape: Ints
    strides: Ints
    offsets: Ints

    def elements(self, op: tt.LoadOp | tt.StoreOp) -> tuple[Array, Array]:
        """The address of each element, and whether it is inside along the dimensions that `op` checks."""
        type_ = pointee_type(op.ptr.type)
        block, size = shape_of_tensor(type_), dtype_of(type_).itemsize
        checked = boundaries_of(op) or ()
        addresses, inside = np.full(block, self.address, np.int64), np.ones(block, np.bool_)
        for dim, places in enumerate(np.ogrid[tuple(slice(count) for count in block)]):
            at = places.astype(np.int64) + self.offsets[dim]
            addresses += at * self.strides[dim] * size
            if dim in checked:
                inside &= (at >= 0) & (at < self.shape[dim])
        return addresses, inside


def padding(op: tt.LoadOp, unchecked: Any) -> Any:
    """Return what elements are that are not inside; `unchecked` where the load does not say."""
    dtype = dtype_of(op.result.type)
    if (option := padding_of(op)) is None:
        return unchecked
    return dtype.type(np.nan if option is tt.PaddingOption.PAD_NAN and is_float(dtype) else 0)


@immediate(tt.MakeTensorPtrOp)
def make_tensor_ptr(_task: Task, op: tt.MakeTensorPtrOp, base: np.int64, *numbers: Any) -> BlockPointer:
    """A pointer to a block."""
    rank, extents = len(op.shape), tuple(map(int, numbers))
    return BlockPointer(int(base), extents[:rank], extents[rank : 2 * rank], extents[2 * rank :])


@immediate(tt.AdvanceOp)
def advance(_task: Task, _op: tt.AdvanceOp, pointer: BlockPointer, *steps: Any) -> BlockPointer:
    """The block that lies so many elements away."""
    return replace(pointer, offsets=tuple(at + int(step) for at, step in zip(pointer.offsets, steps, strict=True)))
