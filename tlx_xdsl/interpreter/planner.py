"""Planner: a function of the IR becomes code; every operation is looked at once, every value gets a slot.

A watcher sees operations run: with which operands, in which program, and in which iteration of the loops around them.
Other operations run as they always do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from tlx_xdsl.dialects.ttg import MemDescType

from .code import Body, Function, FunctionPlan, Graph, Plan, Runner, Step, Watcher
from .faults import Unsupported, fault_at
from .registry import BUILDERS, Built, Kind, Run
from .threads import by_threads, is_scalar_code


class Planner:
    """Plans a function."""

    def __init__(self, plan: Plan, function: FunctionPlan):
        self.plan = plan
        self.function = function
        self._slots: dict[SSAValue, int] = {}

    def slot(self, value: SSAValue) -> int:
        """The slot of a value."""
        return self._slots.setdefault(value, len(self._slots))

    @property
    def count(self) -> int:
        """The slots so far."""
        return len(self._slots)

    def graph(self, region: Region) -> Graph:
        """All blocks of a region."""
        graph = Graph([self.body(block) for block in region.blocks])
        self.function.slots = len(self._slots)
        return graph

    def body(self, block: Block) -> Body:
        """One block."""
        body = Body(block, tuple(self.slot(argument) for argument in block.args))
        for op in block.ops:
            if op is block.last_op and op.has_trait(IsTerminator):
                body.terminator = op
                body.yields = tuple(self.slot(value) for value in op.operands)
                break
            kind, run = self.build(op)
            body.suspends |= kind == Kind.STEP
            body.steps.append(
                Step(
                    op,
                    kind,
                    run,
                    tuple(self.slot(value) for value in op.operands),
                    tuple(self.slot(value) for value in op.results),
                )
            )
        return body

    def build(self, op: Operation) -> Built:
        """Return what runs one operation."""
        if (builder := BUILDERS.get(type(op))) is None:
            raise fault_at(op, f"the interpreter can't run '{op.name}'", kind=Unsupported)
        uses_buffers = any(isinstance(value.type, MemDescType) for value in (*op.operands, *op.results))
        if self.plan.ctas > 1 and uses_buffers and op.name not in _BY_THREADS:
            raise fault_at(
                op,
                f"tensors span {self.plan.ctas} CTAs here ('ttg.num-ctas'): the interpreter runs these as one program, "
                f"but '{op.name}' works on the memory of one CTA",
                kind=Unsupported,
            )
        kind, run = builder(op, self)
        if self.plan.by_threads and not is_scalar_code(op):
            kind, run = by_threads(op, kind, run)
        if (watcher := self.plan.watcher) is not None and kind != Kind.PURE and watcher.watches(op):
            run = _watched(op, run, self, watcher)
        if (debugger := self.plan.debugger) is not None:
            kind, run = debugger.wrapped(op, kind, run, self.slot)
        return kind, run


_BY_THREADS = frozenset((
    "ttg.local_alloc", "ttg.local_dealloc", "ttg.local_load", "ttg.local_store", "ttg.async_copy_global_to_local",
    "ttg.memdesc_index", "ttg.memdesc_subslice", "ttg.memdesc_trans", "ttg.memdesc_reshape", "ttng.warp_group_dot",
    "ttng.warp_group_dot_wait",
))  # fmt: skip
"""Operations on buffers that are the same for a buffer that is spread over several CTAs."""


def _watched(op: Operation, run: Run, planner: Planner, watcher: Watcher) -> Run:
    """A function that notifies `watcher`, and then runs `op`; `run` takes the task."""
    turns = _turns_of(op, planner)

    def notify_and_run(task: Runner, *operands: Any) -> Any:
        watcher.runs(task, op, operands, turns(task))
        return run(task, *operands)

    return notify_and_run


def _turns_of(op: Operation, planner: Planner) -> Callable[[Runner], tuple[int, ...]]:
    """Return what gives the turns of the loops around `op` in its function, outermost first."""
    slots: list[tuple[int, int, int]] = []
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, Function):
        if isinstance(parent, scf.ForOp):
            index = parent.body.block.args[0]
            slots.append((planner.slot(index), planner.slot(parent.lb), planner.slot(parent.step)))
        parent = parent.parent_op()
    slots.reverse()

    def turns(task: Runner) -> tuple[int, ...]:
        frame = task.frame
        return tuple((int(frame[index]) - int(frame[first])) // int(frame[step]) for index, first, step in slots)

    return turns
