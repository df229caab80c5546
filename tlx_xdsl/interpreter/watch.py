"""Watching operations run: with which operands, in which program, and in which turn of the loops around them.

A watcher is given to `make_plan`, which puts it in front of the operations that it asks for. What nobody watches runs
as it always does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from xdsl.dialects import scf
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt
from tlx_xdsl.interpreter.registry import Run
from tlx_xdsl.interpreter.task import Task

if TYPE_CHECKING:
    from tlx_xdsl.interpreter.plan import Planner


class Watcher(Protocol):
    """Is told of operations with effects."""

    def watches(self, op: Operation) -> bool:
        """Whether it wants to know of `op`; asked once, when the operation is planned."""
        ...

    def runs(self, task: Task, op: Operation, operands: tuple[Any, ...], turns: tuple[int, ...]) -> None:
        """`op` is about to run; `turns` says for each `scf.for` around it how many of its turns are over."""
        ...


def watched(op: Operation, run: Run, planner: Planner, watcher: Watcher) -> Run:
    """What tells `watcher`, and then runs `op`; `run` takes the task."""
    turns = _turns_of(op, planner)

    def tell_and_run(task: Task, *operands: Any) -> Any:
        watcher.runs(task, op, operands, turns(task))
        return run(task, *operands)

    return tell_and_run


def _turns_of(op: Operation, planner: Planner) -> Callable[[Task], tuple[int, ...]]:
    """What gives the turns of the loops around `op` in its function, outermost first."""
    slots: list[tuple[int, int, int]] = []
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, tt.FuncOp):
        if isinstance(parent, scf.ForOp):
            index = parent.body.block.args[0]
            slots.append((planner.slot(index), planner.slot(parent.lb), planner.slot(parent.step)))
        parent = parent.parent_op()
    slots.reverse()

    def turns(task: Task) -> tuple[int, ...]:
        frame = task.frame
        return tuple((int(frame[index]) - int(frame[first])) // int(frame[step]) for index, first, step in slots)

    return turns
