"""Tensors are made, reshaped and rearranged; the numbers in them stay."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.dialects.base import shape_of_tensor
from tlx_xdsl.numerics.arrays import Array, poison

from ..engine import InFlight
from ..faults import fault_at
from ..machine import Task
from ..numbers import dtype_of
from ..registry import Binary, Run, Unary, effect, pure, threadwise
from ..threads import differs
from .thread_registers import spread


@pure(tt.MakeRangeOp)
def make_range(op: tt.MakeRangeOp) -> Run:
    """The same tensor each time, which is read only."""
    held = np.arange(op.start.value.data, op.end.value.data, dtype=np.int32)
    return lambda: held


@threadwise(tt.SplatOp, tt.BroadcastOp)
@pure(tt.SplatOp, tt.BroadcastOp)
def broadcast(op: Operation) -> Unary:
    """One number in all elements, or dimensions of size 1 are repeated; they are held once.

    Raises Fault for a number that differs between threads where it is unknown which element they hold.
    """
    shape, is_splat = shape_of_tensor(op.results[0].type), isinstance(op, tt.SplatOp)

    def run(value: Array) -> Array:
        if is_splat and differs(value):
            return spread(op, op.results[0], value)
        return np.broadcast_to(value, shape)

    return run


@pure(tt.UnsplatOp)
def unsplat(_op: tt.UnsplatOp) -> Unary:
    """The only element."""
    return lambda value: value.reshape(-1)[0]


@threadwise(tt.ExpandDimsOp)
@pure(tt.ReshapeOp, tt.ExpandDimsOp)
def reshape(op: Operation) -> Unary:
    """Reshape in row-major order, even where any order is allowed; a new dimension has size 1."""
    shape = shape_of_tensor(op.results[0].type)
    return lambda value: value.reshape(shape)


@pure(tt.TransOp)
def trans(op: tt.TransOp) -> Unary:
    """The dimensions in another order."""
    order = tuple(int(dim) for dim in op.order.get_values())
    return lambda value: value.transpose(order)


@pure(tt.JoinOp)
def join(_op: tt.JoinOp) -> Binary:
    """Pairs in a new last dimension."""
    return lambda a, b: np.stack((a, b), -1)


@pure(tt.SplitOp)
def split(_op: tt.SplitOp) -> Unary:
    """The first and the second elements of pairs."""
    return lambda value: (value[..., 0], value[..., 1])


@pure(tt.CatOp)
def cat(op: tt.CatOp) -> Binary:
    """One after the other, though any order is allowed."""
    shape = shape_of_tensor(op.result.type)
    return lambda a, b: np.concatenate((a.reshape(-1), b.reshape(-1))).reshape(shape)


@pure(ttg.ConvertLayoutOp)
def convert_layout(op: ttg.ConvertLayoutOp) -> Unary:
    """Numbers stay where the layout changes, but they must be there.

    Raises Fault for the result of an asynchronous dot that was not waited for.
    """

    def run(value: Any) -> Array:
        if isinstance(value, InFlight):
            raise value.misused(op)
        return value

    return run


@effect(tt.GatherOp)
def gather(op: tt.GatherOp) -> Run:
    """Picked along one axis; beside it, an element comes from its own place.

    Raises Fault for an index outside of the source, for which the hardware gives anything. With `unwritten="poison"`
    the index -1 is what a masked load leaves, and picks an element with every bit set.
    """
    axis, dtype = op.axis.value.data, dtype_of(op.result.type)
    source, wanted = shape_of_tensor(op.src.type), shape_of_tensor(op.indices.type)
    inside = tuple(slice(None) if dim == axis else slice(0, size) for dim, size in enumerate(wanted))
    undefined = poison((), dtype)

    def run(task: Task, values: Array, indices: Array) -> Array:
        masked = (indices == -1) & task.cluster.launch.poisons_masked
        held = np.where(masked, 0, indices).astype(np.int64)
        _check_indices(op, held, source[axis], axis)
        picked = np.take_along_axis(values[inside], held, axis)
        return np.where(masked, undefined, picked) if masked.any() else picked

    return run


def _check_indices(op: Operation, indices: Array, size: int, axis: int) -> None:
    wrong = (indices < 0) | (indices >= size)
    if wrong.any():
        at = np.argwhere(wrong)[0]
        raise fault_at(
            op,
            f"index {int(indices[tuple(at)])} (element {at.tolist()} of the indices) is outside of the {size} elements "
            f"of dimension {axis} of the source",
        )


@pure(tt.HistogramOp)
def histogram(op: tt.HistogramOp) -> Run:
    """Count how often each number occurs; numbers without a bin count nowhere."""
    bins = shape_of_tensor(op.result.type)[0]

    def run(values: Array, mask: Array | None = None) -> Array:
        if mask is not None:
            values = values[mask]
        values = values.reshape(-1)
        inside = (values >= 0) & (values < bins)
        return np.bincount(values[inside].astype(np.int64), minlength=bins).astype(np.int32)

    return run
