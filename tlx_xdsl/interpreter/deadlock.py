"""The report of a deadlock: who waits for what, and who could have brought it about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import BlockArgument, Operation, SSAValue

from tlx_xdsl.dialects.ttg import MemDescIndexOp, WarpSpecializePartitionsOp
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.interpreter.faults import Deadlock, fault_at, place

if TYPE_CHECKING:
    from tlx_xdsl.interpreter.machine import Cluster
    from tlx_xdsl.interpreter.task import Task

_NOT_ARRIVING = (
    "ttg.local_alloc", "ttg.memdesc_index", "ttg.warp_specialize.partitions", "ttng.init_barrier",
    "ttng.inval_barrier", "ttng.wait_barrier", "ttg.local_dealloc",
)  # fmt: skip
"""What uses a barrier without arriving at it."""


def deadlock(cluster: Cluster) -> Deadlock:
    """The report: the first blocked task is where it is located, every task has its note."""
    blocked = [task for task in cluster.tasks if task.waiting is not None]
    notes = [note for task in blocked for note in _notes(task)]
    notes.append("deadlock of this schedule: every task is blocked and nothing is in flight that could release one")
    first = blocked[0]
    assert first.waiting is not None
    told = fault_at(first.waiting.op, f"deadlock: {first.label} {first.waiting.reason()}", notes, Deadlock)
    assert isinstance(told, Deadlock)
    return told


def _notes(task: Task) -> list[str]:
    waiting = task.waiting
    assert waiting is not None
    notes = [f"{place(waiting.op)}: {task.label} {waiting.reason()}"]
    if waiting.barrier is not None:
        for op in _arrivals(task.block.cluster.plan.module, waiting.barrier.family.op):
            notes.append(f"{place(op)}: '{op.name}' could release it")
    return notes


def _arrivals(module: Operation, allocation: Operation) -> list[Operation]:
    """What arrives at a barrier of that allocation, in program order, one for each line."""
    found: dict[str, Operation] = {}
    for op in module.walk():
        if op.name in _NOT_ARRIVING:
            continue
        for operand in op.operands:
            if isinstance(operand.type, MemDescType) and _origin(operand) is allocation:
                found.setdefault(place(op), op)
    return list(found.values())


def _origin(value: SSAValue) -> Operation | None:
    """What allocates the buffer that a value is a view of, as far as indices and captures lead."""
    while True:
        if isinstance(value, BlockArgument):
            holder = value.block.parent_op()
            if not isinstance(holder, WarpSpecializePartitionsOp):
                return None
            value = holder.explicit_captures[value.index]
        elif isinstance(value.owner, MemDescIndexOp):
            value = value.owner.src
        else:
            return value.owner if isinstance(value.owner, Operation) else None
