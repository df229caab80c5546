"""Inline assembly over the elements of tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base.tensors import as_tensor
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.ops.special import register_value
from tlx_xdsl.interpreter.ops.thread_registers import give_to_elements, held_elements
from tlx_xdsl.interpreter.ptx import Program, UnknownInstruction
from tlx_xdsl.interpreter.registry import Run, effect, one_or_all
from tlx_xdsl.numerics.arrays import Array

_WIDTHS = {"h": 16, "r": 32, "f": 32, "l": 64, "d": 64}
"""Bits of the registers that a constraint stands for (LLVM language reference, "NVPTX")."""


@dataclass(frozen=True)
class _Slot:
    """The registers of one operand or result: each holds `per_register` elements of a pack."""

    names: tuple[str, ...]
    bits: int
    per_register: int
    dtype: np.dtype[Any]

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
    """For each argument that shares the register of a result, the two names."""
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
def inline_asm(op: tt.ElementwiseInlineAsmOp) -> Run:
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
        def special(name: str) -> int | None:
            read = register_value(name)
            return None if read is None else read(task)

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
            registers = program.run(-(-size // pack), given, wanted, special)
        except UnknownInstruction as error:
            raise fault_at(op, str(error)) from None
        values = [slot.join(registers, pack, size) for slot in results]
        if holders is not None:
            held = [_to_threads(value, pack, holders[0].shape) for value in values]
            values = [give_to_elements(op, holders, value, shape) for value in held]
        values = [value.reshape(shape)[()] for value in values]
        return one_or_all(values)

    return run
