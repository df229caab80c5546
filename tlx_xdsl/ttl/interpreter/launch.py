"""Runs of a kernel in the forms of the `ttl` dialect: with threads as regions, or as functions of a driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from tlx_xdsl.errors import InputError
from tlx_xdsl.interpreter.faults import fault_at, location_of
from tlx_xdsl.numerics.arrays import Array

from ..dialects.ttl.buffers import CopyOp
from ..dialects.ttl.kernel import KernelDriverOp, KernelOp, LaunchThreadOp
from ..dialects.ttl.pipes import CreatePipeOp
from . import blocks, compute, copies, memory_form, pipes as pipe_ops, printing, semaphores
from .pipes import Pipes
from .ttkernel.endings import check_end, check_thread_end
from .ttkernel.exploration import Exploration, explore as explore_runs
from .ttkernel.machine import CircularBuffer, Core, CoreThread, Machine, Semaphore, Tensor, of_thread
from .ttkernel.plan import Report, order_of_transfers, run_machine, tensors_of
from .ttkernel.threads import Thread, make_schedule, state_of
from .ttkernel.translate import Builder, Coroutine, Dialects, Local, integer, translate

Kernel = KernelOp | KernelDriverOp


@dataclass(eq=False)
class BlockMachine(Machine):
    """A machine whose circular buffers hold blocks, and whose tensors are matrices."""

    matrices: dict[Tensor, Array] = field(default_factory=dict[Tensor, Array])
    made: dict[Operation, Any] = field(default_factory=dict[Operation, Any])
    """The pipes of the run."""
    arguments: dict[SSAValue, Tensor] = field(default_factory=dict[SSAValue, Tensor])


@dataclass(frozen=True)
class Plan:
    """A kernel, ready to run."""

    kernel: Kernel
    threads: tuple[tuple[str, Block, Callable[..., Coroutine]], ...]
    buffers: tuple[Operation, ...]
    semaphores: tuple[Operation, ...]
    pipes: tuple[CreatePipeOp, ...]
    synchronized: frozenset[Operation]
    """Pipes whose receivers wait for a semaphore."""

    def machine(
        self,
        arrays: Sequence[Array],
        *,
        grid: tuple[int, int] | None = None,
        checks: bool = True,
        order: np.random.Generator | None = None,
    ) -> BlockMachine:
        """A machine before its first turn; raises InputError for arrays that do not fit."""
        columns, rows = (self.kernel.grid.x, self.kernel.grid.y) if grid is None else grid
        cores = {(x, y): self._core(x, y) for y in range(rows) for x in range(columns)}
        machine = BlockMachine((columns, rows), cores, tensors_of(self.kernel.args, arrays), checks, order=order)
        machine.made = {op: Pipes(op, is_synchronized=op in self.synchronized) for op in self.pipes}
        for op in self.pipes:
            _check_pipe(machine.made[op], cores)
        for core in cores.values():
            for name, _, code in self.threads:
                thread = CoreThread(len(machine.threads), name, core.x, core.y, machine=machine, core=core)
                thread.coroutine = code(thread, *machine.tensors)
                machine.threads.append(thread)
        machine.at_end = _check_thread_end
        machine.who_supplies = lambda thread: _suppliers(self, machine.threads, thread)
        return machine

    def end(self, machine: BlockMachine) -> None:
        """Check what is left when all threads have ended; raises Fault."""
        if machine.checks:
            check_end(machine)
        copies.finish(machine.matrices)

    def _core(self, x: int, y: int) -> Core:
        made: list[CircularBuffer] = []
        for number, op in enumerate(self.buffers):
            base = -(-made[-1].end // 32) * 32 if made else 0
            made.append(blocks.make_buffer(op, number, base, op.results[0].name_hint or ""))
        words = [Semaphore(number, integer(op, "initial", 0)) for number, op in enumerate(self.semaphores)]
        return Core(x, y, {each.index: each for each in made}, words, made[-1].end if made else 0)


def make_plan(module: ModuleOp, kernel: str | None = None) -> Plan:
    """Plan the kernel of a module; `kernel` names it where there are several.

    Raises Fault for operations that the interpreter does not know, and InputError when there is no such kernel.
    """
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp | KernelDriverOp)}
    if kernel is None and len(kernels) == 1:
        (found,) = kernels.values()
    elif kernel in kernels:
        found = kernels[kernel]
    else:
        raise InputError(f"expected the name of a kernel, one of: {', '.join(kernels) or 'none'}")
    inside = list(found.body.block.ops)
    shared = {name: tuple(op for op in inside if op.name in names) for name, names in _SHARED.items()}
    dialects = replace(DIALECTS, builders={**DIALECTS.builders, **_shared_builders(shared)})
    if isinstance(found, KernelOp):
        made: list[_Code] = [(each, each.regions[0].blocks[0], {}) for each in found.threads]
    else:
        made = [_function_of(op, module) for op in inside if isinstance(op, LaunchThreadOp)]
    threads: list[tuple[str, Block, Callable[..., Coroutine]]] = []
    synchronized: set[Operation] = set()
    for number, (op, block, aliases) in enumerate(made):
        symbol = op.properties.get("sym_name")
        name = symbol.data if isinstance(symbol, StringAttr) else f"thread {number}"
        threads.append((name, block, translate([found.body.block, block], dialects, name, aliases)))
        for copy in (inner for outer in block.ops for inner in outer.walk()):
            if isinstance(copy, CopyOp) and copy.synchronized is not None:
                owner = aliases.get(copy.far, copy.far).owner
                synchronized.update([owner] if isinstance(owner, Operation) else [])
    pipes = tuple(op for op in inside if isinstance(op, CreatePipeOp))
    return Plan(found, tuple(threads), shared["buffers"], shared["semaphores"], pipes, frozenset(synchronized))


_Code: TypeAlias = tuple[Operation, Block, dict[SSAValue, SSAValue]]
"""A thread, what it runs, and which values its arguments are."""


def _function_of(op: LaunchThreadOp, module: ModuleOp) -> _Code:
    name = op.callee.root_reference.data
    for function in module.ops:
        if isinstance(function, FuncOp) and function.sym_name.data == name:
            block = function.body.block
            return function, block, dict(zip(block.args, op.arguments, strict=True))
    raise fault_at(op, f"no function '{name}'")


_SHARED = {
    "buffers": ("ttl.create_cb", "ttl.bind_cb"),
    "semaphores": ("ttl.create_semaphore",),
    "pipes": ("ttl.create_pipe",),
}


def _shared_builders(shared: dict[str, tuple[Operation, ...]]) -> dict[str, Builder]:
    """Return what gives the resources of a kernel to its threads."""
    numbers = {op: number for ops in shared.values() for number, op in enumerate(ops)}

    def buffer(op: Operation) -> Local:
        return of_thread(lambda thread: thread.core.buffers[numbers[op]])

    def semaphore(op: Operation) -> Local:
        return of_thread(lambda thread: numbers[op])

    def pipe(op: Operation) -> Local:
        return of_thread(lambda thread: cast(BlockMachine, thread.machine).made[op])

    return {
        "ttl.create_cb": buffer,
        "ttl.bind_cb": buffer,
        "ttl.create_semaphore": semaphore,
        "ttl.create_pipe": pipe,
    }


def _core_number(thread: CoreThread) -> int:
    return thread.x + thread.y * thread.machine.grid[0]


def _accessor(op: Operation) -> Local:
    """The tensor itself."""

    def run(thread: CoreThread, tensor: Tensor) -> Tensor:
        return tensor

    return run


def _core(op: Operation) -> Local:
    if len(op.results) == 2:
        return of_thread(lambda thread: (thread.x, thread.y))
    return _core_number


def _check_pipe(pipes: Pipes, cores: dict[tuple[int, int], Core]) -> None:
    for pipe in pipes.ways:
        missing = [place for place in (pipe.op.src, *pipe.op.destinations) if place not in cores]
        if missing:
            raise fault_at(pipes.op, f"{pipe.label} needs core {missing[0]}, which the grid does not have")


def _check_thread_end(thread: CoreThread) -> None:
    """Updates of semaphores have no barrier of their own in this form."""
    check_thread_end(thread, updates=False)


_ANSWERS = {"ttl.cb_wait": ("pushed", "ttl.cb_push"), "ttl.cb_reserve": ("popped", "ttl.cb_pop")}


def _suppliers(plan: Plan, threads: Sequence[Thread], blocked: Thread) -> list[str]:
    """A line for each operation that could let a thread go on, and what the threads that have it do now."""
    assert blocked.step is not None
    op = blocked.step.op
    if op.name not in _ANSWERS:
        return []
    verb, wanted = _ANSWERS[op.name]
    buffer = blocked.operands[0]
    lines: list[str] = []
    for name, block, _ in plan.threads:
        for each in (inner for outer in block.ops for inner in outer.walk()):
            if each.name == wanted and _is_buffer(plan, block, each.operands[0], buffer):
                states = sorted({state_of(thread) for thread in threads if thread.name == name})
                lines.append(f"it can be {verb} at {location_of(each)} by '{name}', which {' or '.join(states)}")
    return lines or [f"no line of the kernel {'pushes' if verb == 'pushed' else 'pops'} it"]


def _is_buffer(plan: Plan, block: Block, value: SSAValue, buffer: CircularBuffer) -> bool:
    if isinstance(value.owner, Block):
        return True
    return value.owner is plan.buffers[buffer.index]


_BUILDERS: dict[str, Builder] = {
    "ttl.tensor_accessor": _accessor,
    "ttl.get_shard_id": lambda op: _core_number,
    "ttl.core": _core,
    **blocks.BUILDERS,
    **copies.BUILDERS,
    **compute.BUILDERS,
    **memory_form.BUILDERS,
    **semaphores.BUILDERS,
    **printing.BUILDERS,
}
DIALECTS = Dialects(
    _BUILDERS,
    {"ttl.if_src": pipe_ops.if_source, "ttl.if_dst": pipe_ops.if_destination},
    frozenset(("ttl.thread_return", "ttl.kernel_return", "ttl.kernel_driver_return", "ttl.pipe_yield", "func.return")),
    frozenset(("ttl.compute_thread", "ttl.datamovement_thread", "ttl.launch_thread")),
)


def run(
    module: ModuleOp | Plan,
    arrays: Sequence[Array],
    *,
    grid: tuple[int, int] | None = None,
    schedule: str | Sequence[int] = "round-robin",
    seed: int = 0,
    checks: bool = True,
) -> Report:
    """Run a kernel; arrays whose tensors it writes have the results afterwards.

    `grid` is (columns, rows) where it is not the kernel's own; `schedule` is the name of a policy, or the choices of an
    earlier run.

    Raises Fault, Deadlock when no thread can go on, and InputError for arrays that do not fit.
    """
    plan = module if isinstance(module, Plan) else make_plan(module)
    order = order_of_transfers(schedule, seed)
    machine = plan.machine(arrays, grid=grid, checks=checks, order=order)
    return run_machine(machine, lambda: plan.end(machine), arrays, make_schedule(schedule, seed))


def explore(
    module: ModuleOp | Plan, arrays: Sequence[Array], budget: int = 1000, *, grid: tuple[int, int] | None = None
) -> Exploration:
    """Run a kernel in every order that makes a difference, up to the first fault or `budget` runs.

    The arrays stay as they are. A fault comes with the choices that lead to it, which `run` takes as a schedule.
    """
    plan = module if isinstance(module, Plan) else make_plan(module)
    return explore_runs(lambda: plan.machine(arrays, grid=grid), plan.end, budget)
