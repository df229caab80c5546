"""Numbers that differ between the threads of a task, and operations that only some of its threads run.

A task runs an operation as a whole, since nearly all that a kernel computes with is a tensor, or one number for all
threads. `tlx.thread_id` is neither, nor is `tlx.warp_any`: in a kernel with them, a number can be an array with one
for each thread of the task, which arithmetic takes like any array. What needs one number for all is a fault where
threads disagree.

A branch that not all threads take is run for those that do (`Task.active`). In it

- a thread computes, loads, prints and stores what it holds; of a tensor, its layout says what that is;
- all else that has an effect is done by the first thread of the task, as stock Triton compiles stores of numbers,
  arrivals and copies, and is a fault where that thread does not run;
- what threads do together, such as a reduction or a vote, is a fault.

Only modules that read a thread's index or a vote pay for this: in others nothing is looked at.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import Pure

from tlx_xdsl.dialects import gpu, nvvm, regions, tlx
from tlx_xdsl.dialects.base import Sync, as_tensor, is_elementwise, sync_of
from tlx_xdsl.numerics.arrays import Array

from .faults import Fault, fault_at
from .registry import THREADWISE, Built, Coroutine, Kind, Run

_FEW = 4
"""Numbers that a message shows."""


def reads_threads(module: ModuleOp) -> bool:
    """True if numbers may differ between the threads of a task: they are an index, or a vote of a warp."""
    return any(_differs_by_thread(op) for op in module.walk())


def _differs_by_thread(op: Operation) -> bool:
    match op:
        case tlx.VoteBallotOp():
            return as_tensor(op.result.type) is None and as_tensor(op.pred.type) is not None
        case nvvm.InlinePtxOp():
            return "vote.sync" in op.ptx_code.data
        case _:
            return isinstance(op, gpu.ThreadIdOp)


def is_scalar_code(op: Operation) -> bool:
    """True in a region that computes with single elements of tensors, whose numbers are arrays of elements."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, regions.SCALAR_CODE):
        parent = parent.parent_op()
    return parent is not None


def differs(value: Any) -> bool:
    """True if a number, not a tensor, is an array with one for each thread of the task."""
    return isinstance(value, np.ndarray) and value.ndim == 1


def of_first(value: Any) -> Any:
    """The number of the task's first thread."""
    return value[0] if differs(value) else value


def uniform(op: Operation, value: Any, active: Array | None) -> Any:
    """The one number of all threads that run; what is no array of their numbers stays.

    Raises Fault where they do not agree.
    """
    if not differs(value):
        return value
    held = value if active is None else value[active]
    if (held != held[0]).any():
        found = list(dict.fromkeys(held.tolist()))
        listed = ", ".join(map(str, found[:_FEW])) + (", ..." if len(found) > _FEW else "")
        raise fault_at(
            op,
            f"'{op.name}' takes one number for all threads of the task, and theirs differ: {listed}",
            ("a thread can compute with a number of its own, take an `if` without a return, vote, and splat it",),
        )
    return held[0]


def by_threads(op: Operation, kind: Kind, run: Run) -> Built:
    """Return what runs `op` for the threads that are to run, given what runs it for all."""
    is_tensor = [as_tensor(value.type) is not None for value in op.operands]
    if type(op) in THREADWISE or (is_elementwise(op) and not any(is_tensor)):
        return kind, run
    numbers = [number for number, has in enumerate(is_tensor) if not has]
    together = any(is_tensor) and not is_elementwise(op)
    meets = Sync.THREADS in sync_of(op)
    by_first = kind != Kind.PURE and not op.has_trait(Pure) and bool(op.operands)

    def checked(task: Any, operands: tuple[Any, ...]) -> list[Any]:
        if task.active is not None:
            if together:
                raise fault_at(op, f"all threads of the task do '{op.name}' together, and only some run here")
            if meets:
                running = f"{int(task.active.sum())} of {task.threads}"
                raise fault_at(
                    op,
                    f"all threads of the task meet at this barrier, and only {running} run here: others can't arrive",
                    ("a condition on tlx.thread_id keeps them out: put the barrier after the branch",),
                )
            if by_first and not task.active[0]:
                raise first_is_missing(op)
        values = list(operands)
        for number in numbers:
            values[number] = uniform(op, values[number], task.active)
        return values

    def step(task: Any, *operands: Any) -> Coroutine:
        return cast(Any, (yield from run(task, *checked(task, operands))))

    def effect(task: Any, *operands: Any) -> Any:
        values = checked(task, operands)
        return run(*values) if kind == Kind.PURE else run(task, *values)

    return (Kind.STEP, step) if kind == Kind.STEP else (Kind.EFFECT, effect)


def first_is_missing(op: Operation) -> Fault:
    """The fault of what the first thread of a task does for all, where that thread does not run."""
    return fault_at(op, f"the first thread of the task does '{op.name}' for all, and it does not run here")
