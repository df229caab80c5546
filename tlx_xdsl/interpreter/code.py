"""Planned code: functions, blocks and operations with a slot in a frame for every value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias, cast

from xdsl.dialects import builtin, cf, func
from xdsl.ir import Block, Operation, SSAValue

from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.errors import CompilationError, internal_error, let_through
from tlx_xdsl.layouts.encodings import Ints
from tlx_xdsl.numerics.arrays import Array

from .engine import InFlight
from .faults import fault_at
from .grid import Program
from .registry import Coroutine, Kind, Run, Waiting
from .threads import uniform

Function: TypeAlias = tt.FuncOp | func.FuncOp
"""A function of Triton, or of upstream MLIR."""


class Runner(Protocol):
    """A task, as far as the code that it runs uses it."""

    frame: list[Any]
    """The value of each SSA value of the function that runs, by its slot."""
    op: Operation | None
    """The operation that it is at."""
    active: Array | None
    """A bool for each thread: whether it runs; None where they all do."""

    def spend(self, loop: Operation, operations: int) -> None:
        """Count a turn of a loop; raises Fault where there are too many."""
        ...


class Watcher(Protocol):
    """Receives operations with effects."""

    def watches(self, op: Operation) -> bool:
        """Return whether it wants to know of `op`; asked once, when the operation is planned."""
        ...

    def runs(self, task: Any, op: Operation, operands: tuple[Any, ...], turns: Ints) -> None:
        """`op` is about to run; `turns` says for each `scf.for` around it how many of its turns are over."""
        ...


class Debugger(Protocol):
    """Stands between a plan and what runs its operations, and sees the turns of tasks, too (`machine.Observer`)."""

    def kept(self, make: Callable[[], Plan]) -> Plan:
        """Return the plan, which `make` makes once for all runs."""
        ...

    def wrapped(self, op: Operation, kind: Kind, run: Run, slot: Callable[[SSAValue], int]) -> tuple[Kind, Run]:
        """Return what runs `op` in the place of `run`; `slot` gives the slot of a value in its function's frame."""
        ...

    def chosen(self, firsts: Sequence[Program]) -> Sequence[Program]:
        """Return which of the clusters, by their first programs, are to run."""
        ...


@dataclass(eq=False, slots=True)
class Step:
    """One operation, ready to run."""

    op: Operation
    kind: Kind
    run: Run
    args: Ints
    """Slots of the operands."""
    results: Ints
    """Slots of the results."""


@dataclass(eq=False, slots=True)
class Body:
    """A block, ready to run: it takes the values of its arguments and gives those of its terminator's operands."""

    block: Block
    arguments: Ints
    """Slots of the block's arguments."""
    steps: list[Step] = field(default_factory=list[Step])
    suspends: bool = False
    """True if other tasks may have their turn inside."""
    terminator: Operation | None = None
    yields: Ints = ()
    """Slots of the terminator's operands."""

    def call(self, task: Runner, *values: Any) -> list[Any]:
        """Run a body that does not suspend.

        Not by way of `run`, and with no call for what both do: operations inside of loops pass here most often.
        """
        frame = task.frame
        for slot, value in zip(self.arguments, values, strict=True):
            frame[slot] = value
        for step in self.steps:
            arguments = [frame[slot] for slot in step.args]
            value: Any
            try:
                value = step.run(*arguments) if step.kind == Kind.PURE else step.run(task, *arguments)
            except CompilationError:
                raise
            except Exception as error:
                raise fault_of(step.op, arguments, error) from error
            if len(step.results) == 1:
                frame[step.results[0]] = value
            elif step.results:
                for slot, result in zip(step.results, value, strict=True):
                    frame[slot] = result
        return [frame[slot] for slot in self.yields]

    def run(self, task: Runner, *values: Any) -> Coroutine:
        """Run the body; the coroutine returns the values of the terminator's operands."""
        frame = task.frame
        for slot, value in zip(self.arguments, values, strict=True):
            frame[slot] = value
        for step in self.steps:
            arguments = [frame[slot] for slot in step.args]
            value: Any
            try:
                if step.kind == Kind.PURE:
                    value = step.run(*arguments)
                elif step.kind == Kind.EFFECT:
                    value = step.run(task, *arguments)
                else:
                    task.op = step.op
                    value = cast(Any, (yield from step.run(task, *arguments)))
            except CompilationError:
                raise
            except Exception as error:
                raise fault_of(step.op, arguments, error) from error
            if len(step.results) == 1:
                frame[step.results[0]] = value
            elif step.results:
                for slot, result in zip(step.results, value, strict=True):
                    frame[slot] = result
        return [frame[slot] for slot in self.yields]


def fault_of(op: Operation, arguments: Sequence[Any], error: Exception) -> CompilationError:
    """The error that reports an exception while an operation ran, which was none of ours."""
    let_through(error)
    for value in arguments:
        if isinstance(value, InFlight):
            return value.misused(op)
    if isinstance(error, MemoryError):
        return fault_at(op, f"out of memory: {error}")
    internal = internal_error(error)
    return fault_at(op, internal.message, internal.notes)


class Graph:
    """The blocks of a region with branches between them."""

    def __init__(self, bodies: Sequence[Body]):
        self.bodies = bodies
        self.suspends = any(body.suspends for body in bodies)

    def run(self, task: Runner, *values: Any) -> Coroutine:
        """Run from the first block to a terminator that leaves the region; gives its operands."""
        index, arguments = 0, list(values)
        entered: set[int] = set()
        targets = {body.block: number for number, body in enumerate(self.bodies)}
        while True:
            body = self.bodies[index]
            results = yield from body.run(task, *arguments)
            match body.terminator:
                case cf.BranchOp(successor=target):
                    index, arguments = targets[target], results
                case cf.ConditionalBranchOp() as op:
                    count = len(op.then_arguments)
                    if uniform(op, results[0], task.active):
                        index, arguments = targets[op.then_block], results[1 : 1 + count]
                    else:
                        index, arguments = targets[op.else_block], results[1 + count :]
                case _:
                    return results
            if index in entered:
                assert body.terminator is not None
                task.spend(body.terminator, len(self.bodies[index].steps) + 1)
                # A loop of branches, as of `scf.while`.
                yield Waiting(body.terminator, lambda: True, lambda: "repeats a loop", spins=True)
            entered.add(index)


@dataclass
class FunctionPlan:
    """A function, ready to run."""

    op: Function
    graph: Graph | None = None
    slots: int = 0
    """Values of the function."""

    def call(self, task: Runner, arguments: Sequence[Any]) -> Coroutine:
        """Run the function in a frame of its own; the coroutine returns its results."""
        assert self.graph is not None
        caller = task.frame
        task.frame = [None] * self.slots
        results = yield from self.graph.run(task, *arguments)
        task.frame = caller
        return results


@dataclass
class Plan:
    """A module, ready to run."""

    module: builtin.ModuleOp
    function: Function
    """The kernel."""
    warps: int
    """Of the kernel, outside of partitions."""
    ctas: int = 1
    """Thread blocks that hold one tensor together. They run as one program, since all operations on tensors are the
    same for that, and so are those on buffers that each thread does for its own elements; barriers and engines are not,
    because they count what one thread block does."""
    functions: dict[str, FunctionPlan] = field(default_factory=dict[str, FunctionPlan])
    coordinates: int = 0
    """Arguments of the kernel that are the program's index, and the sizes of the grid (`tt.program_ids`)."""
    facts: dict[type, Any] = field(default_factory=dict[type, Any])
    """Facts about the whole module that operations have found, by class."""
    watcher: Watcher | None = None
    """Receives what runs."""
    debugger: Debugger | None = None
    """Sees each operation before it runs, and the turns of tasks."""
    by_threads: bool = False
    """True if numbers may differ between the threads of a task (`threads`)."""

    @cached_property
    def most_warps(self) -> int:
        """Warps that run at once, those of the partitions included."""
        tasks = [sum(op.num_warps) for op in self.module.walk() if isinstance(op, ttg.WarpSpecializeOp)]
        return self.warps + max(tasks, default=0)

    @property
    def kernel(self) -> FunctionPlan:
        """The kernel, ready to run."""
        return self.functions[self.function.sym_name.data]
