"""Cluster launch control: a running cluster takes over one that has not been launched (PTX ISA,
"clusterlaunchcontrol").

The response is opaque in PTX. Here its low half has the indices x and y of the cluster's first thread block, its high
half z, and above it a bit that says that there is a cluster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects import tlx, ttng
from tlx_xdsl.dialects.base import LAUNCH_CONTROL, effects_of
from tlx_xdsl.numerics.arrays import Array

from ..engine import Queue, Transfer
from ..faults import fault_at
from ..machine import Task
from ..memory import View
from ..registry import Coroutine, Unary, action, blocking, pure
from ..touches import LAUNCHES, Touch
from .barriers import deliver, usable_barrier

FOUND = 1 << 96
"""The bit of a response that brings a cluster."""
TAKEN = 0.8
"""Probability that a request finds a cluster that is left, where chance decides: otherwise all are just launched."""
BYTES = 16
"""Size of a response."""


def is_request(op: Operation) -> bool:
    """Return whether an operation asks for a cluster."""
    return effects_of(op).by is LAUNCH_CONTROL or isinstance(op, ttng.CLCTryCancelSyncOp)


def _response(task: Task) -> Array:
    """Take the next cluster over, if there is one that the hardware has not launched in the meantime."""
    waiting, chance = task.cluster.waiting_clusters, task.cluster.chance
    if task.order is not None:
        task.order.touch(Touch(LAUNCHES, None))
    number = 0
    if waiting and (chance is None or chance.random() < TAKEN):
        x, y, z = waiting.take()
        number = FOUND | z << 64 | y << 32 | x
    return np.frombuffer(number.to_bytes(BYTES, "little"), np.int64)


def _queue(task: Task, op: Operation) -> Queue:
    """The requests of the cluster.

    Raises Fault for a request after one that is known to have failed (PTX ISA: undefined).
    """
    queue = task.cluster.requests
    if queue is None:
        kind = "request to cluster launch control"
        over = "it is over when the phase of its barrier is complete"
        queue = task.cluster.requests = task.queue(kind, in_order=True, over=over)
    failed = task.cluster.failed_request
    if failed is not None and task.clock.knows(queue.agent, failed):
        raise fault_at(op, "a cluster is asked for again after a response which said that there is none")
    return queue


def request(task: Task, op: Operation, target: View, barrier: View, *, for_all: bool) -> None:
    """Ask for a cluster: `target` gets the answer, and `barrier` its bytes; `for_all` CTAs of this cluster their own.

    Raises Fault for a request after one that is known to have failed.
    """
    queue = _queue(task, op)
    memories = [block.shared for block in task.cluster.blocks] if for_all else [target.memory]
    places = [(target.elsewhere(memory), barrier.elsewhere(memory)) for memory in memories]
    for here, there in places:
        for view in (here, there):
            task.reach(op, view, queue.agent, queue.issued + 1)
        usable_barrier(task, op, there)
        # PTX promises no order of requests.
        here.cell.overwrite(queue.actor(op), task.clock, here.name)

    def finish(transfer: Transfer) -> None:
        values = _answer(task, transfer.number)
        for here, there in places:
            here.write(values)
            deliver(task, transfer, there, BYTES)

    task.issue(queue, op, finish)


def _answer(task: Task, number: int) -> Array:
    values = _response(task)
    if not values.any() and task.cluster.failed_request is None:
        task.cluster.failed_request = number
    return values


@action(ttng.CLCTryCancelOp)
def try_cancel(task: Task, op: ttng.CLCTryCancelOp, target: View, barrier: View) -> None:
    """Request a cancellation for the thread block that asks."""
    request(task, op, target, barrier, for_all=False)


@action(tlx.CLCTryCancelOp)
def try_cancel_for_all(task: Task, op: tlx.CLCTryCancelOp, target: View, barrier: View, pred: np.bool_) -> None:
    """Request a cancellation for all thread blocks of the cluster."""
    if pred:
        request(task, op, target, barrier, for_all=True)


@blocking(ttng.CLCTryCancelSyncOp)
def try_cancel_sync(task: Task, op: ttng.CLCTryCancelSyncOp) -> Coroutine:
    """Ask, and wait for the response."""
    queue = _queue(task, op)
    response: list[Array] = []
    task.issue(queue, op, lambda transfer: response.append(_answer(task, transfer.number)))
    yield from task.wait_for(queue, queue.issued, op)
    return response[0]


@action(ttng.CLCLoadResultOp)
def load_result(task: Task, op: ttng.CLCLoadResultOp, view: View) -> Any:
    """The response as one number."""
    view.cell.read(task.actor(op, view), task.clock, view.name)
    # A launch that only warns of uninitialized memory would go on with a cluster that there is not.
    view.check_written(op)
    return int.from_bytes(view.read(op).tobytes(), "little")


@pure(ttng.CLCIsCanceledOp)
def is_canceled(_op: ttng.CLCIsCanceledOp) -> Unary:
    """True if there is a cluster."""
    return lambda response: np.bool_(response & FOUND)


@pure(ttng.CLCGetProgramIdOp)
def get_program_id(op: ttng.CLCGetProgramIdOp) -> Unary:
    """An index of its first thread block; -1 where there is no cluster, for which PTX defines no value."""
    shift = 32 * op.dim.value.data

    def run(response: Any) -> np.int32:
        return np.int32(response >> shift & 0x7FFFFFFF if response & FOUND else -1)

    return run
