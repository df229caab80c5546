"""PTX that a pass has written, statement by statement, and barriers and fences as `nvvm` operations.

What computes with registers runs for all threads of the task at once (`interpreter/ptx`); what acts on barriers and
memory is an action (`ptx_actions`), run once for the threads whose guard holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from xdsl.ir import Attribute, Operation

from tlx_xdsl.dialects import nvvm, ttg
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.ops.barriers import named_arrive, named_sync
from tlx_xdsl.interpreter.ops.ptx_actions import Action, Running, action_of
from tlx_xdsl.interpreter.ops.special import register_value
from tlx_xdsl.interpreter.ptx import UnknownInstruction
from tlx_xdsl.interpreter.ptx.program import Compiled, compile_statement, declare, step_statement
from tlx_xdsl.interpreter.ptx.registers import Registers
from tlx_xdsl.interpreter.ptx.text import Statement, parse
from tlx_xdsl.interpreter.registry import Coroutine, Run, effect, one_or_all, step
from tlx_xdsl.numerics.arrays import Array


@step(nvvm.InlinePtxOp)
def inline_ptx(op: nvvm.InlinePtxOp) -> Run:
    """A straight line of PTX; the operands come after the results.

    Raises Fault for instructions that the interpreter does not know, and for results that differ between the threads,
    when it runs.
    """
    results = [value.type for value in op.write_only_args]
    return _code(op, op.ptx_code.data, results, has_predicate=op.predicate is not None)


@step(ttg.InlineAsmOp)
def inline_asm(op: ttg.InlineAsmOp) -> Run:
    """One action; what computes with the elements that a thread holds is a fault, when it runs."""
    code = op.asm_string.data
    run = _code(op, code, [], has_predicate=False)

    def one(task: Task, *values: Any) -> Coroutine:
        if len(statements := parse(code)[0]) != 1 or action_of(statements[0]) is None:
            raise fault_at(op, f"the interpreter can't run the PTX '{code}'")
        yield from run(task, *values)

    return one


def _code(op: Operation, code: str, results: Sequence[Attribute], *, has_predicate: bool) -> Run:
    dtypes = [dtype_of(type_) for type_ in results]

    def run(task: Task, *values: Any) -> Coroutine:
        yield None
        if has_predicate and not values[-1]:
            return None
        try:
            registers = yield from _run(task, op, code, values[: len(values) - has_predicate], dtypes)
        except UnknownInstruction as error:
            raise fault_at(op, str(error)) from None
        out = [_uniform(op, registers.get(f"${number}"), dtype) for number, dtype in enumerate(dtypes)]
        return one_or_all(out)

    return run


def _run(task: Task, op: Operation, code: str, values: Sequence[Any], dtypes: Sequence[Any]) -> Coroutine:
    def special(name: str) -> int | None:
        read = register_value(name)
        return None if read is None else read(task)

    declared, program = _program(code)
    registers = Registers(task.threads, special)
    declare(registers, declared)
    for number, dtype in enumerate(dtypes):
        registers.declare(f"${number}", 1 if dtype.kind == "b" else 8 * dtype.itemsize)
    others: dict[str, Any] = {}
    for number, value in enumerate(values, len(dtypes)):
        if isinstance(value, np.generic | np.ndarray):
            registers.set(f"${number}", np.broadcast_to(_bits(value), task.threads))
        else:
            others[f"${number}"] = value
    for statement, action, compute in program:
        where = None
        if statement.guard is not None:
            where = registers.get(statement.guard) != statement.negated
        if compute is not None:
            step_statement(registers, statement, compute)
        elif action is not None and (where is None or where.any()):
            yield from action(Running(task, op, registers, others, statement, where))
    return registers


@cache
def _program(code: str) -> tuple[Mapping[str, str], tuple[tuple[Statement, Action | None, Compiled | None], ...]]:
    """The registers that a text declares, and each statement with its action, or else with what it computes.

    A text is run by many threads, many times. Raises UnknownInstruction.
    """
    statements, declared = parse(code)
    return declared, tuple(
        (each, action, None if action is not None else compile_statement(each))
        for each in statements
        for action in [action_of(each)]
    )


def _bits(value: Any) -> Array:
    held = np.asarray(value)
    return held if held.dtype.kind == "b" else held.view(f"u{held.dtype.itemsize}")


def _uniform(op: Operation, bits: Array, dtype: np.dtype[Any]) -> Any:
    """The value of a result, which all threads of the task have.

    Raises Fault where they do not agree.
    """
    if (bits != bits[0]).any():
        found = ", ".join(f"{int(number):#x}" for number in dict.fromkeys(bits[::32].tolist()))
        raise fault_at(op, f"the threads of a task get different results, and it has one value for all: {found}")
    return bits[:1].view(np.bool_ if dtype.kind == "b" else dtype)[0]


@effect(nvvm.FenceProxyOp)
def fence_proxy(_op: nvvm.FenceProxyOp) -> Run:
    """What the task knows becomes visible to the async proxy."""

    def run(task: Task) -> None:
        task.fence()

    return run


@step(nvvm.BarrierOp)
def barrier(op: nvvm.BarrierOp) -> Run:
    """Without a number of threads the task meets only itself, as Triton lowers it."""
    has_id, has_threads = op.barrier_id is not None, op.number_of_threads is not None

    def run(task: Task, *values: Any) -> Coroutine:
        yield None
        if has_threads:
            yield from named_sync(task, op, int(values[0]) if has_id else 0, int(values[-1]))

    return run


@step(nvvm.BarrierArriveOp)
def barrier_arrive(op: nvvm.BarrierArriveOp) -> Run:
    """Arrive with all threads of the task."""
    has_id = op.barrier_id is not None

    def run(task: Task, *values: Any) -> Coroutine:
        yield None
        named_arrive(task, op, int(values[0]) if has_id else 0, int(values[-1]))

    return run
