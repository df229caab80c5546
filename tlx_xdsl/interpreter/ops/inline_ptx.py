"""PTX that a pass has written, statement by statement, and barriers and fences as `nvvm` operations.

What computes with registers runs for all threads of the task at once (`interpreter/ptx`); what acts on barriers and
memory is an action (`ptx_actions`), run once for the threads whose guard holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from xdsl.ir import Attribute, Operation

from tlx_xdsl.dialects import nvvm, tt, ttg
from tlx_xdsl.dialects.base import as_tensor
from tlx_xdsl.numerics.arrays import Array, Dtype
from tlx_xdsl.numerics.ptx.instructions import ACROSS_LANES

from ..faults import Unsupported, fault_at
from ..machine import Task
from ..numbers import dtype_of
from ..ptx import Program, UnknownInstruction
from ..ptx.program import Compiled, compile_statement, declare, step_statement
from ..ptx.registers import Registers
from ..ptx.text import Statement, parse
from ..registry import Coroutine, Run, action, blocking, effect, one_or_all, step, threadwise
from ..threads import uniform
from .barriers import named_arrive, named_sync
from .ptx_actions import Action, Running, action_of
from .special import read_register
from .thread_registers import give_to_elements, held_elements


@threadwise(nvvm.InlinePtxOp)
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
            raise fault_at(op, f"the interpreter can't run the PTX '{code}'", kind=Unsupported)
        yield from run(task, *values)

    return one


def _code(op: Operation, code: str, results: Sequence[Attribute], *, has_predicate: bool) -> Run:
    dtypes = [dtype_of(type_) for type_ in results]

    def run(task: Task, *values: Any) -> Coroutine:
        yield None
        if has_predicate and not uniform(op, values[-1], task.active):
            return None
        try:
            registers = yield from _run(task, op, code, values[: len(values) - has_predicate], dtypes)
        except UnknownInstruction as error:
            raise fault_at(op, str(error), kind=Unsupported) from None
        out = [_of_task(task, op, registers.get(f"${number}"), dtype) for number, dtype in enumerate(dtypes)]
        return one_or_all(out)

    return run


def _run(task: Task, op: Operation, code: str, values: Sequence[Any], dtypes: Sequence[Any]) -> Coroutine:
    declared, program = _program(code)
    registers = Registers(task.threads, partial(read_register, task))
    declare(registers, declared)
    for number, dtype in enumerate(dtypes):
        registers.declare(f"${number}", 1 if dtype.kind == "b" else 8 * dtype.itemsize)
    others: dict[str, Any] = {}
    for number, value in enumerate(values, len(dtypes)):
        if isinstance(value, np.generic | np.ndarray):
            registers.set(f"${number}", np.broadcast_to(_bits(value), task.threads))
        else:
            others[f"${number}"] = value
    for statement, act, compute in program:
        where = task.active
        if where is not None and statement.name in ACROSS_LANES:
            raise fault_at(op, f"all threads of a warp do '{statement.text}', and only some of the task's run here")
        if statement.guard is not None:
            guarded = registers.get(statement.guard) != statement.negated
            where = guarded if where is None else where & guarded
        if compute is not None:
            step_statement(registers, statement, compute)
        elif act is not None and (where is None or where.any()):
            yield from act(Running(task, op, registers, others, statement, where))
    return registers


@cache
def _program(code: str) -> tuple[Mapping[str, str], tuple[tuple[Statement, Action | None, Compiled | None], ...]]:
    """The registers that a text declares, and each statement with its action, or else with what it computes.

    A text is run by many threads, many times. Raises UnknownInstruction.
    """
    statements, declared = parse(code)
    return declared, tuple(
        (each, act, None if act is not None else compile_statement(each))
        for each in statements
        for act in [action_of(each)]
    )


def _bits(value: Any) -> Array:
    held = np.asarray(value)
    return held if held.dtype.kind == "b" else held.view(f"u{held.dtype.itemsize}")


def _of_task(task: Task, op: Operation, bits: Array, dtype: Dtype) -> Any:
    """The value of a result, which all threads of the task have; that of each in a kernel that looks at threads.

    Raises Fault where they do not agree.
    """
    if (bits != bits[0]).any():
        if task.cluster.launch.plan.by_threads and isinstance(op, nvvm.InlinePtxOp):
            return bits.view(np.bool_ if dtype.kind == "b" else dtype)
        found = ", ".join(f"{int(number):#x}" for number in dict.fromkeys(bits[::32].tolist()))
        raise fault_at(op, f"the threads of a task get different results, and it has one value for all: {found}")
    return bits[:1].view(np.bool_ if dtype.kind == "b" else dtype)[0]


@blocking(nvvm.BarrierOp)
def barrier(task: Task, op: nvvm.BarrierOp, *values: Any) -> Coroutine:
    """Meet at a barrier: without a number of threads the task meets only itself, as Triton lowers it."""
    has_id, has_threads = op.barrier_id is not None, op.number_of_threads is not None
    yield None
    if has_threads:
        yield from named_sync(task, op, int(values[0]) if has_id else 0, int(values[-1]))


@action(nvvm.BarrierArriveOp)
def barrier_arrive(task: Task, op: nvvm.BarrierArriveOp, *values: Any) -> None:
    """Arrive with all threads of the task."""
    has_id = op.barrier_id is not None
    named_arrive(task, op, int(values[0]) if has_id else 0, int(values[-1]))


# Inline assembly over the elements of tensors ------------------------------------------------------------------------

_WIDTHS = {"h": 16, "r": 32, "f": 32, "l": 64, "d": 64}
"""Bits of the registers that a constraint stands for (LLVM language reference, "NVPTX")."""


@dataclass(frozen=True)
class _Slot:
    """The registers of one operand or result: each holds `per_register` elements of a pack."""

    names: tuple[str, ...]
    bits: int
    per_register: int
    dtype: Dtype

    def split(self, values: Array, pack: int) -> dict[str, Array]:
        """The bits of each register; the last pack is filled up with zeros."""
        flat = np.ravel(values)
        flat = np.concatenate((flat, np.zeros(-len(flat) % pack, flat.dtype))).reshape(-1, pack)
        result: dict[str, Array] = {}
        for number, name in enumerate(self.names):
            part = flat[:, number * self.per_register : (number + 1) * self.per_register]
            result[name] = _joined(part, self.bits)
        return result

    def join(self, registers: dict[str, Array], pack: int, count: int) -> Array:
        """The first `count` elements of what registers hold."""
        columns: list[Array] = []
        for name in self.names:
            bits = np.ascontiguousarray(registers[name]).reshape(-1, 1)
            raw = bits.view(f"u{self.dtype.itemsize}")[:, : self.per_register]
            columns.append(raw != 0 if self.dtype.kind == "b" else np.ascontiguousarray(raw).view(self.dtype))
        return np.concatenate(columns, 1)[:, :pack].reshape(-1)[:count]


def _joined(part: Array, bits: int) -> Array:
    """Neighbours side by side in integers of `bits`, the first one lowest."""
    held = np.zeros((len(part), bits // 8), np.uint8)
    raw = np.ascontiguousarray(part).view(np.uint8).reshape(len(part), -1)
    held[:, : raw.shape[1]] = raw
    return held.view(f"u{bits // 8}").reshape(-1)


def _slots(op: tt.ElementwiseInlineAsmOp) -> tuple[list[_Slot], list[_Slot]]:
    """The registers of the results and of the arguments.

    Raises UnknownInstruction where constraints and values do not fit.
    """
    pack = op.packed_element.value.data
    texts = [text.strip() for text in op.constraints.data.split(",") if text.strip()]
    texts = [text for text in texts if not text.startswith("~")]
    at, slots = 0, list[_Slot]()
    for value in (*op.result, *op.args):
        dtype = dtype_of(value.type)
        if at >= len(texts):
            raise UnknownInstruction(f"the constraints '{op.constraints.data}' are too few")
        text = texts[at].lstrip("=&+")
        # A number says that the register is that of a result.
        letter = texts[int(text)].lstrip("=&+") if text.isdigit() else text
        if letter not in _WIDTHS:
            raise UnknownInstruction(f"the interpreter can't read the constraint '{texts[at]}'")
        bits = _WIDTHS[letter]
        per_register = max(min(bits, 32) // (8 * dtype.itemsize), 1)
        count = -(-pack // per_register)
        slots.append(_Slot(tuple(f"${at + number}" for number in range(count)), bits, per_register, dtype))
        at += count
    return slots[: len(op.result)], slots[len(op.result) :]


def _tied(op: tt.ElementwiseInlineAsmOp) -> dict[str, str]:
    """Pair the names of each argument and the result whose register it shares."""
    texts = [text.strip() for text in op.constraints.data.split(",")]
    return {f"${number}": f"${text}" for number, text in enumerate(texts) if text.isdigit()}


def _threads(op: tt.ElementwiseInlineAsmOp, program: Program) -> tuple[Array, ...] | None:
    """The element that each thread holds in each register, where that counts.

    Raises UnknownInstruction where it counts and is unknown.
    """
    if not program.crosses_lanes:
        return None
    if (holders := held_elements(op.result[0])) is None:
        raise UnknownInstruction("the threads of a warp exchange something, and without a layout it is unknown what")
    return holders


def _of_threads(held: Array, pack: int) -> Array:
    """Return what threads hold, by register, warp and lane, in the order of packs: a row for each pack of each thread.

    The lanes of a warp are neighbours. The last pack of a thread is filled up with zeros.
    """
    count, warps, lanes = held.shape
    filled = np.concatenate((held, np.zeros((-count % pack, warps, lanes), held.dtype)))
    return filled.reshape(-1, pack, warps, lanes).transpose(0, 2, 3, 1).reshape(-1)


def _to_threads(rows: Array, pack: int, shape: tuple[int, ...]) -> Array:
    """The way back, to registers, warps and lanes."""
    count, warps, lanes = shape
    return rows.reshape(-1, warps, lanes, pack).transpose(0, 3, 1, 2).reshape(-1, warps, lanes)[:count]


@effect(tt.ElementwiseInlineAsmOp)
def elementwise_inline_asm(op: tt.ElementwiseInlineAsmOp) -> Run:
    """A straight line of PTX for each pack of elements; packs are made of neighbours in row-major order.

    Where the threads of a warp exchange something, packs are made of the elements that a thread holds.
    Raises Fault for an instruction that the interpreter does not know, when it is to run, and for an exchange between
    threads whose values are unknown.
    """
    pack = op.packed_element.value.data
    tensor = as_tensor(op.result[0].type)
    shape = () if tensor is None else tensor.get_shape()
    count = int(np.prod(shape))
    prepared: list[tuple[Program, list[_Slot], list[_Slot], tuple[Array, ...] | None]] = []

    def run(task: Task, *arguments: Array) -> Any:
        try:
            if not prepared:
                prepared.append((program := Program(op.asm_string.data), *_slots(op), _threads(op, program)))
            program, results, sources, holders = prepared[0]
            size = count if holders is None else _of_threads(holders[0], pack).size
            given: dict[str, Array] = {}
            for slot, value in zip(sources, arguments, strict=True):
                spread = np.broadcast_to(value, shape)
                given |= slot.split(spread if holders is None else _of_threads(spread[holders], pack), pack)
            given |= {result: given[name] for name, result in _tied(op).items()}
            wanted = {name: slot.bits for slot in results for name in slot.names}
            registers = program.run(-(-size // pack), given, wanted, partial(read_register, task))
        except UnknownInstruction as error:
            raise fault_at(op, str(error), kind=Unsupported) from None
        values = [slot.join(registers, pack, size) for slot in results]
        if holders is not None:
            held = [_to_threads(value, pack, holders[0].shape) for value in values]
            values = [give_to_elements(op, holders, value, shape) for value in held]
        values = [value.reshape(shape)[()] for value in values]
        return one_or_all(values)

    return run
