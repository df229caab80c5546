"""From a function of the IR to what runs it: every operation is looked at once, every value gets a slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects import cf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base.operation import module_integer
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.errors import CompilationError, internal_error
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.flight import InFlight
from tlx_xdsl.interpreter.ops import register_all
from tlx_xdsl.interpreter.registry import BUILDERS, Kind, Run
from tlx_xdsl.interpreter.task import Coroutine, Task, Waiting
from tlx_xdsl.interpreter.watch import Watcher, watched


class Step:
    """One operation, ready to run."""

    __slots__ = ("args", "kind", "op", "results", "run")

    def __init__(self, op: Operation, kind: Kind, run: Run, args: tuple[int, ...], results: tuple[int, ...]):
        self.op = op
        self.kind = kind
        self.run = run
        self.args = args
        """Slots of the operands."""
        self.results = results
        """Slots of the results."""


class Body:
    """A block, ready to run: it takes the values of its arguments and gives those of its terminator's operands."""

    __slots__ = ("arguments", "block", "steps", "suspends", "terminator", "yields")

    def __init__(self, block: Block, arguments: tuple[int, ...]):
        self.block = block
        self.arguments = arguments
        """Slots of the block's arguments."""
        self.steps: list[Step] = []
        self.suspends = False
        """Whether other tasks may have their turn inside."""
        self.terminator: Operation | None = None
        self.yields: tuple[int, ...] = ()
        """Slots of the terminator's operands."""

    def call(self, task: Task, *values: Any) -> list[Any]:
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
            except Exception as error:
                raise fault_of(step.op, arguments, error) from error
            if len(step.results) == 1:
                frame[step.results[0]] = value
            elif step.results:
                for slot, result in zip(step.results, value, strict=True):
                    frame[slot] = result
        return [frame[slot] for slot in self.yields]

    def run(self, task: Task, *values: Any) -> Coroutine:
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
            except Exception as error:
                raise fault_of(step.op, arguments, error) from error
            if len(step.results) == 1:
                frame[step.results[0]] = value
            elif step.results:
                for slot, result in zip(step.results, value, strict=True):
                    frame[slot] = result
        return [frame[slot] for slot in self.yields]


def fault_of(op: Operation, arguments: Sequence[Any], error: Exception) -> CompilationError:
    """What to tell the user of an exception while an operation ran."""
    if isinstance(error, CompilationError):
        return error
    for value in arguments:
        if isinstance(value, InFlight):
            return value.misused(op)
    if isinstance(error, MemoryError):
        return fault_at(op, f"out of memory: {error}")
    told = internal_error(error)
    return fault_at(op, told.message, told.notes)


class Graph:
    """The blocks of a region with branches between them."""

    def __init__(self, bodies: Sequence[Body]):
        self.bodies = bodies
        self.suspends = any(body.suspends for body in bodies)

    def run(self, task: Task, *values: Any) -> Coroutine:
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
                    if results[0]:
                        index, arguments = targets[op.then_block], results[1 : 1 + count]
                    else:
                        index, arguments = targets[op.else_block], results[1 + count :]
                case _:
                    return results
            if index in entered:
                # A loop of branches, as of `scf.while`.
                yield Waiting(body.terminator, lambda: True, lambda: "repeats a loop", spins=True)
            entered.add(index)


@dataclass
class FunctionPlan:
    """A function, ready to run."""

    op: tt.FuncOp
    graph: Graph | None = None
    slots: int = 0
    """Values of the function."""

    def call(self, task: Task, arguments: Sequence[Any]) -> Coroutine:
        """Run the function in a frame of its own; the coroutine returns its results."""
        assert self.graph is not None
        caller = task.frame
        task.frame = [None] * self.slots
        results = yield from self.graph.run(task, *arguments)
        task.frame = caller
        return results


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

    def build(self, op: Operation) -> tuple[Kind, Run]:
        """What runs one operation."""
        if (builder := BUILDERS.get(type(op))) is None:
            raise fault_at(op, f"the interpreter can't run '{op.name}'")
        uses_buffers = any(isinstance(value.type, MemDescType) for value in (*op.operands, *op.results))
        if self.plan.ctas > 1 and uses_buffers and op.name not in _BY_THREADS:
            raise fault_at(
                op,
                f"tensors span {self.plan.ctas} CTAs here ('ttg.num-ctas'): the interpreter runs these as one program, "
                f"but '{op.name}' works on the memory of one CTA",
            )
        kind, run = builder(op, self)
        if (watcher := self.plan.watcher) is not None and kind != Kind.PURE and watcher.watches(op):
            run = watched(op, run, self, watcher)
        return kind, run


_BY_THREADS = frozenset((
    "ttg.local_alloc", "ttg.local_dealloc", "ttg.local_load", "ttg.local_store", "ttg.async_copy_global_to_local",
    "ttg.memdesc_index", "ttg.memdesc_subslice", "ttg.memdesc_trans", "ttg.memdesc_reshape", "ttng.warp_group_dot",
    "ttng.warp_group_dot_wait",
))  # fmt: skip
"""Operations on buffers that are the same for a buffer that is spread over several CTAs."""


@dataclass
class Plan:
    """A module, ready to run."""

    module: ModuleOp
    function: tt.FuncOp
    """The kernel."""
    warps: int
    """Of the kernel, outside of partitions."""
    ctas: int = 1
    """Thread blocks that hold one tensor together. They run as one program, since all operations on tensors are the
    same for that, and so are those on buffers that each thread does for its own elements; barriers and engines are not,
    because they count what one thread block does."""
    functions: dict[str, FunctionPlan] = field(default_factory=dict[str, FunctionPlan])
    facts: dict[type, Any] = field(default_factory=dict[type, Any])
    """What operations have found out about the whole module, by its class."""
    watcher: Watcher | None = None
    """Is told of what runs."""

    @property
    def kernel(self) -> FunctionPlan:
        """The kernel, ready to run."""
        return self.functions[self.function.sym_name.data]


def make_plan(module: ModuleOp, kernel: str | None = None, *, watcher: Watcher | None = None) -> Plan:
    """Plan a module of any stage of the pipeline.

    `kernel` is the name of the function to run, by default the only public one; `watcher` is told of what runs.
    Raises Fault for operations that the interpreter does not know, and ValueError when there is no such kernel.
    """
    register_all()
    warps, ctas = module_integer(module, "ttg.num-warps") or 4, module_integer(module, "ttg.num-ctas") or 1
    plan = Plan(module, kernel_of(module, kernel), warps, ctas, watcher=watcher)
    for op in module.ops:
        if isinstance(op, tt.FuncOp):
            plan.functions[op.sym_name.data] = FunctionPlan(op)
    for made in plan.functions.values():
        made.graph = Planner(plan, made).graph(made.op.body)
    return plan


def kernel_of(module: ModuleOp, name: str | None = None) -> tt.FuncOp:
    """The function of that name, by default the only public one.

    Raises ValueError when there is none.
    """
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, tt.FuncOp)}
    if name is not None:
        if name not in functions:
            raise ValueError(f"no function '{name}', there are {', '.join(functions) or 'none'}")
        return functions[name]
    public = [op for op in functions.values() if _visibility(op) != "private"]
    if len(public) != 1:
        raise ValueError(f"expected one public function, found {', '.join(functions) or 'none'}: name the kernel")
    return public[0]


def _visibility(op: tt.FuncOp) -> str:
    attribute = cast(Any, op.sym_visibility)
    return "public" if attribute is None else attribute.data
