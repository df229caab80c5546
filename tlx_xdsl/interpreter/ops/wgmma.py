"""Matrix products of Hopper's tensor cores (PTX ISA, "wgmma")."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlx_xdsl.dialects import ttng
from tlx_xdsl.dialects.tt.enums import InputPrecision
from tlx_xdsl.interpreter.engine import Queue, Transfer
from tlx_xdsl.interpreter.flight import InFlight
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.matmul import multiply
from tlx_xdsl.interpreter.memory import View
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.ops.tma import check_tile
from tlx_xdsl.interpreter.registry import Coroutine, Run, step
from tlx_xdsl.numerics.arrays import Array


def _queue(task: Task) -> Queue:
    return task.queue("wgmma", in_order=True)


@step(ttng.WarpGroupDotOp)
def warp_group_dot(op: ttng.WarpGroupDotOp) -> Run:
    """Each product is a group of its own; a synchronous one waits for it, and for all before."""
    dtype = dtype_of(op.d.type)
    is_async = bool(op.is_async.value.data)
    tf32 = op.input_precision.value.data == InputPrecision.TF32.value

    def run(task: Task, a: View | Array, b: View, c: Any, use_c: Any = True) -> Coroutine:
        yield None
        queue = _queue(task)
        actor, clock = queue.actor(op), queue.knowledge(task.clock)
        for operand in (a, b):
            if isinstance(operand, View):
                check_tile(op, operand)
                operand.cell.read(actor, clock, operand.name)
        result = InFlight(queue, queue.issued + 1, op)
        # Registers are read when the product is issued, shared memory at any time until it is complete.
        if not isinstance(a, View):
            a = np.asarray(a)

        def finish(_transfer: Transfer) -> None:
            left = a.read(op) if isinstance(a, View) else a
            added = (c.value if isinstance(c, InFlight) else c) if use_c else None
            result.value = multiply(left, b.read(op), added, dtype, tf32=tf32)

        task.issue(queue, op, finish)
        if is_async:
            return result
        yield from task.wait_for(queue, result.number, op)
        return result.value

    return run


@step(ttng.WarpGroupDotWaitOp)
def warp_group_dot_wait(op: ttng.WarpGroupDotWaitOp) -> Run:
    """Results of groups that are complete become values; others stay in flight."""
    pendings = op.pendings.value.data
    single = len(op.outputs) == 1

    def run(task: Task, *values: Any) -> Coroutine:
        queue = _queue(task)
        number = max(queue.issued - pendings, 0)
        yield from task.wait_for(queue, number, op)
        results = [value.value if isinstance(value, InFlight) and value.number <= number else value for value in values]
        return results[0] if single else results

    return run
