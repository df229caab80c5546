"""Waits for signals of other GPUs, and thread blocks that give up."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.dialects import tlx, ttg
from tlx_xdsl.dialects.base import enclosing
from tlx_xdsl.dialects.tlx.signals import Reached
from tlx_xdsl.numerics.arrays import Array

from ..faults import Left, Unsupported, fault_at
from ..machine import Task
from ..numbers import dtype_of
from ..polls import element_at
from ..ptx.text import Statement
from ..registry import Coroutine, Waiting, blocking, immediate
from .atomics import Order
from .ptx_actions import Action, Running, acts


@blocking(tlx.WaitSignalOp)
def wait_signal(
    task: Task, op: tlx.WaitSignalOp, address: Array, value: Array, limit: np.int64 | None = None
) -> Coroutine:
    """Waits until the counter is reached, or until a limit is over: when nothing can move, the time passes."""
    dtype, order, memory = dtype_of(op.value.type), Order(op), task.global_memory
    equal = Reached(op.reached.value.data) is Reached.EQ
    yield None
    time = task.cluster.launch.time
    deadline = None if limit is None else time.now + int(limit) + 1

    def ready() -> bool:
        found = memory.load(op, address, dtype, None, value)
        is_reached = bool(found == value if equal else found >= value)
        return is_reached or (deadline is not None and time.now >= deadline)

    def reason() -> str:
        if (found := element_at(memory, int(address), dtype)) is None:
            return "waits for a signal"
        number, name, held = found
        wanted = f"{'' if equal else 'at least '}{int(value)}"
        return f"waits until signal {number} of '{name}' is {wanted}, and it stays {int(held)}"

    yield Waiting(op, ready, reason, spins=True, polled=int(address), deadline=deadline)
    order.apply(task, address)


@immediate(tlx.LeaveOp)
def leave(task: Task, op: tlx.LeaveOp) -> NoReturn:
    """Ends the thread block; raises Fault in a kernel with tasks, whose launch ends with an error."""
    module = enclosing(op, ModuleOp)
    assert module is not None
    if any(isinstance(each, ttg.WarpSpecializeOp) for each in module.walk()):
        raise _trapped(task, op)
    _end(task, op)


@acts("exit", "trap")
def ending(statement: Statement) -> Action:
    """The end of all threads of a thread block, or of the launch."""

    def run(running: Running) -> Coroutine:
        yield from ()
        if statement.name == "trap":
            raise _trapped(running.task, running.op)
        if running.where is not None and not running.where.all():
            raise fault_at(running.op, "some threads of the task end, and others go on", kind=Unsupported)
        _end(running.task, running.op)

    return run


def _trapped(task: Task, op: Operation) -> Exception:
    return fault_at(op, f"{task.label} gives up: in a kernel with tasks, the launch ends with an error (PTX: trap)")


def _end(task: Task, op: Operation) -> NoReturn:
    """Raise Left; raises Fault where other tasks or thread blocks would go on without this one."""
    if task.cluster.tasks != [task]:
        raise fault_at(op, f"{task.label} gives up, and others of its cluster go on without it", kind=Unsupported)
    raise Left
