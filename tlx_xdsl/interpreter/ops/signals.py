"""Waits for signals of other GPUs."""

from __future__ import annotations

from typing import NoReturn

from tlx_xdsl.dialects import tlx
from tlx_xdsl.dialects.tlx.signals import Reached
from tlx_xdsl.numerics.arrays import Array

from ..faults import fault_at
from ..machine import Task
from ..numbers import dtype_of
from ..polls import element_at
from ..registry import Coroutine, Waiting, blocking, immediate
from .atomics import Order


@blocking(tlx.WaitSignalOp)
def wait_signal(task: Task, op: tlx.WaitSignalOp, address: Array, value: Array, *_limit: Array) -> Coroutine:
    """Waits until the counter is reached. No limit is ever over: a signal that does not come is a deadlock."""
    dtype, order, memory = dtype_of(op.value.type), Order(op), task.global_memory
    equal = Reached(op.reached.value.data) is Reached.EQ
    yield None

    def ready() -> bool:
        found = memory.load(op, address, dtype, None, value)
        return bool(found == value if equal else found >= value)

    def reason() -> str:
        if (found := element_at(memory, int(address), dtype)) is None:
            return "waits for a signal"
        number, name, held = found
        wanted = f"{'' if equal else 'at least '}{int(value)}"
        return f"waits until signal {number} of '{name}' is {wanted}, and it stays {int(held)}"

    yield Waiting(op, ready, reason, spins=True, polled=int(address))
    order.apply(task, address)


@immediate(tlx.LeaveOp)
def leave(_task: Task, op: tlx.LeaveOp) -> NoReturn:
    """Raises Fault: what is not reached in time has no place here, where no time passes."""
    raise fault_at(op, "the thread block gives up, and leaves what it was to do undone")
