"""Sums of several words (PTX ISA, "Extended-Precision Integer Arithmetic Instructions").

`add.cc`, `sub.cc` and `mad.cc` leave a carry or a borrow, `addc`, `subc` and `madc` take it. The reader appends the
register that holds it (`CARRY`) to the operands of both kinds: as the last one that is written, or read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tlx_xdsl.numerics.arrays import Array

from .arithmetic.kinds import KINDS, PLAIN, TYPES
from .steps import Context, Step

CARRY = "%carry"
"""The name of the register, and its type."""
CARRY_TYPE = "u32"
NAMES = ("addc", "subc", "madc")
"""The instructions that take a carry."""


def takes(opcode: str) -> bool:
    """Return whether an instruction takes a carry."""
    return opcode.partition(".")[0] in NAMES


def leaves(opcode: str) -> bool:
    """Return whether an instruction leaves a carry."""
    return "cc" in opcode.split(".")[1:]


def build(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    """The step of an instruction that takes or leaves a carry; None for a form that is not known."""
    name, opcode = context.instruction.name, context.instruction.opcode
    kind = KINDS[TYPES[types[0]]] if len(types) == 1 else None
    is_product = name in ("mad", "madc")
    halves = [part for part in modifiers if part in ("lo", "hi")]
    if kind is None or kind.dtype.kind not in "ui" or kind.size < 4 or kind.lanes > 1:
        return None
    if len(halves) != is_product or set(modifiers) - {"cc", *halves}:
        return None
    context.expect(3 + is_product + takes(opcode) + leaves(opcode))
    plain = PLAIN[kind.size]
    read = kind.name if halves == ["hi"] else plain
    operands = list(context.instruction.operands)
    carry = operands.pop() if takes(opcode) else None
    left = operands.pop() if leaves(opcode) else None
    reads = [context.value(each, read if is_product and at < 2 else plain) for at, each in enumerate(operands[1:])]
    if carry is not None:
        reads.append(context.value(carry, "u4"))
    writes = context.result(operands[0], plain)
    if left is not None:
        writes = (*writes, context.single_result(left, "u4"))
    run = _run(name.removesuffix("c"), halves == ["hi"], KINDS[plain].dtype.type, takes(opcode), leaves(opcode))
    listed = ",".join(f"{{{place}}}" for place in range(len(reads)))
    return Step(tuple(reads), writes, f"run({listed})", {"run": run}, arrays=True)


def _run(name: str, high: bool, word: Any, takes_carry: bool, leaves_carry: bool) -> Any:
    def run(*values: Array) -> Any:
        *operands, carry = values if takes_carry else (*values, np.zeros(1, np.uint32))
        a, b = operands[-2:]
        if name == "mad":
            a = _high(operands[0], operands[1], word) if high else operands[0] * operands[1]
            b = operands[2]
        carried = carry.astype(word)
        if name == "sub":
            first = a - b
            result, out = first - carried, (a < b) | (first < carried)
        else:
            first = a + b
            result, out = first + carried, (first < b) | (first + carried < carried)
        return (result, out.astype(np.uint32)) if leaves_carry else result

    return run


def _high(a: Array, b: Array, word: Any) -> Array:
    """The upper half of a product of words with or without a sign."""
    bits = 8 * a.dtype.itemsize
    if bits == 32:
        wide = np.int64 if a.dtype.kind == "i" else np.uint64
        return (a.astype(wide) * b.astype(wide) >> wide(bits)).astype(word)
    exact = a.astype(object) * b.astype(object) >> bits
    return np.array([int(each) & (1 << bits) - 1 for each in exact], word)
