"""Gathers from buffers in shared memory, scatters to them, and atomic updates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from tlx_xdsl.dialects import ttg
from tlx_xdsl.dialects.tt.enums import RMWOp
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.memory import View
from tlx_xdsl.interpreter.ops.atomics import combining, in_turns
from tlx_xdsl.interpreter.registry import action
from tlx_xdsl.numerics.arrays import Array


def _elements(op: Operation, view: View, indices: Array, axis: int) -> tuple[NDArray[np.int64], ...]:
    """For each index, the element of `view` that it means: all coordinates but the one along `axis` are its own.

    Raises Fault for an index outside of the buffer, and for a dimension in which the buffer is smaller.
    """
    size = view.shape[axis]
    wrong = (indices < 0) | (indices >= size)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise fault_at(
            op,
            f"index {int(indices[at])} at {list(at)} is outside of the {size} elements of '{view.name}' along {axis}",
        )
    if any(
        mine > theirs for dim, (mine, theirs) in enumerate(zip(indices.shape, view.shape, strict=True)) if dim != axis
    ):
        raise fault_at(op, f"indices of shape {list(indices.shape)} don't fit '{view.name}' of {list(view.shape)}")
    where: list[NDArray[np.int64]] = [np.asarray(own) for own in np.indices(indices.shape, np.int64)]
    where[axis] = indices.astype(np.int64)
    return tuple(where)


@action(ttg.LocalGatherOp)
def local_gather(task: Task, op: ttg.LocalGatherOp, view: View, indices: Array, *_token: Any) -> Any:
    """Read the elements that the indices name; for the race checker, the whole buffer."""
    at = _elements(op, view, indices, op.axis.value.data)
    view.cell.read(task.actor(op, view), task.clock, view.name)
    # A part that is read must have been written, another part need not.
    part = View(view.memory, view.offsets[at], view.dtype, view.family, view.name, view.alignment)
    return part.read(op)


@action(ttg.LocalScatterOp)
def local_scatter(task: Task, op: ttg.LocalScatterOp, view: View, values: Array, indices: Array, *_token: Any) -> None:
    """Write the elements that the indices name; of several values for one element, any may stay."""
    at = _elements(op, view, indices, op.axis.value.data)
    view.cell.overwrite(task.actor(op, view), task.clock, view.name)
    View(view.memory, view.offsets[at], view.dtype, view.family, view.name, view.alignment).write(values)


@action(ttg.LocalAtomicScatterRMWOp)
def local_atomic_scatter_rmw(
    task: Task, op: ttg.LocalAtomicScatterRMWOp, view: View, values: Array, indices: Array, *rest: Array
) -> Any:
    """Updates of one element happen one after the other, in row-major order of the indices.

    Each round updates an element at most once, so that there are as many numpy operations as updates of one element.
    What is masked off changes nothing, and its result is 0.
    """
    kind = RMWOp(op.atomic_rmw_op.value.data)
    chosen = np.broadcast_to(rest[0], indices.shape) if rest else np.ones(indices.shape, np.bool_)
    at = _elements(op, view, np.where(chosen, indices, indices.dtype.type(0)), op.axis.value.data)
    view.cell.overwrite(task.actor(op, view), task.clock, view.name)
    combine = combining(kind, view.dtype)
    offsets, new = view.offsets[at][chosen], values[chosen]
    old = np.zeros(len(offsets), view.dtype)
    for turn in in_turns(offsets):
        part = View(view.memory, offsets[turn], view.dtype, view.family, view.name, view.alignment)
        old[turn] = part.read(op)
        part.write(combine(old[turn], new[turn]))
    result = np.zeros(indices.shape, view.dtype)
    result[chosen] = old
    return result
