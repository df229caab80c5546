"""Tensor memory: allocation, loads, stores, and copies from shared memory (PTX ISA, "tcgen05.ld", ".st", ".cp").

Loads and stores are complete when their operation is: the compiler puts the waits after them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects import ttng
from tlx_xdsl.dialects.ttg.types import memdesc_type
from tlx_xdsl.dialects.ttng.enums import TMEMLoadReduceModifier
from tlx_xdsl.dialects.ttng.tmem import tensor_memory_layout
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.memory import View
from tlx_xdsl.interpreter.ops.buffers import allocate
from tlx_xdsl.interpreter.ops.tma import check_tile
from tlx_xdsl.interpreter.registry import Coroutine, Run, Unary, action, effect, step
from tlx_xdsl.interpreter.tensor_core import issue
from tlx_xdsl.layouts.encodings import TensorMemoryLayout
from tlx_xdsl.numerics.arrays import Array

WARPS = 4
"""Warps of a warp group."""
SCALE_ROWS, SCALE_COLUMNS = 128, 4
"""Scales of one block (PTX ISA, "tcgen05 scale factor layout")."""
LANES = 32
"""Lanes that hold the scales of a block, each with those of four rows."""


def check_warps(task: Task, op: Operation) -> None:
    """Check that the task can reach all lanes: each warp of a warp group reaches 32 of them.

    Raises Fault for part of a warp group.
    """
    if task.warps % WARPS:
        raise fault_at(
            op,
            f"it takes whole warp groups, {WARPS} warps each, to read and write tensor memory: {task.label} has "
            f"{task.warps}",
        )


@step(ttng.TMEMAllocOp)
def tmem_alloc(op: ttng.TMEMAllocOp) -> Run:
    """Without an initial value it is poison."""
    type_ = memdesc_type(op.result.type)
    with_token = op.token is not None

    def run(task: Task, *values: Array) -> Coroutine:
        view = allocate(task, op, task.block.tensor, type_)
        if values:
            check_warps(task, op)
            task.write(op, view, values[0])
            yield None
        return (view, None) if with_token else view

    return run


@step(ttng.TMEMLoadOp)
def tmem_load(op: ttng.TMEMLoadOp) -> Run:
    """A reducing load also gives the least or greatest element of each row; NaN counts only where it is asked for."""
    extra = (op.token is not None) + (op.red is not None)
    absolute = op.abs is not None and bool(op.abs.value.data)
    nan_wins = op.nan is not None and bool(op.nan.value.data)
    takes_least = op.red_op is not None and op.red_op.case is TMEMLoadReduceModifier.MIN
    reduce = (np.minimum if nan_wins else np.fmin) if takes_least else (np.maximum if nan_wins else np.fmax)
    reduces, with_token = op.red is not None, op.token is not None

    def run(task: Task, view: View, *_token: Any) -> Coroutine:
        yield None
        check_warps(task, op)
        values = task.read(op, view)
        if not extra:
            return values
        results: list[Any] = [values]
        if with_token:
            results.append(None)
        if reduces:
            results.append(reduce.reduce(np.abs(values) if absolute else values, axis=1))
        return results

    return run


@action(ttng.TMEMStoreOp)
def tmem_store(task: Task, op: ttng.TMEMStoreOp, view: View, *rest: Any) -> None:
    """Write a whole buffer where the predicate holds."""
    *_token, values, pred = rest
    if pred:
        check_warps(task, op)
        task.write(op, view, values)


@step(ttng.TMEMCopyOp)
def tmem_copy(op: ttng.TMEMCopyOp) -> Run:
    """Issue a copy; lines of scales are the blocks of the hardware, other elements keep their index."""
    layout = tensor_memory_layout(memdesc_type(op.dst.type))
    shape = memdesc_type(op.dst.type).shape
    of_scales = not isinstance(layout, TensorMemoryLayout)
    if of_scales and (shape[-2] % SCALE_ROWS or shape[-1] % SCALE_COLUMNS):
        raise fault_at(
            op, f"scales are copied in blocks of {SCALE_ROWS} x {SCALE_COLUMNS}, found {shape[-2]} x {shape[-1]}"
        )

    def run(task: Task, source: View, target: View) -> Coroutine:
        yield None
        check_tile(op, source)

        def finish(_transfer: Any) -> None:
            values = source.read(op)
            target.write(_scales(values, target.shape) if of_scales and values.shape != target.shape else values)

        issue(task, op, None, [source], [target], finish)

    return run


def _scales(values: Array, shape: tuple[int, ...]) -> Array:
    """Scales in the order of shared memory as a matrix: in each block, row r + 32 j is in line r, as its j-th four."""
    rows, columns = shape[-2] // SCALE_ROWS, shape[-1] // SCALE_COLUMNS
    blocks = values.reshape(rows, columns, LANES, SCALE_ROWS // LANES, SCALE_COLUMNS)
    return blocks.transpose(0, 3, 2, 1, 4).reshape(shape)


@effect(ttng.TMEMWaitOp)
def tmem_wait(_op: ttng.TMEMWaitOp) -> Unary:
    """Loads and stores are complete already."""
    return lambda _task: None
