"""Products that ptxas contracts with an addition into one fused operation (PTX ISA, "add", "mul": no rounding mode).

`mul` and `add` without a rounding mode may be fused, and ptxas does so where a product is only added: what LLVM has
left are mostly divisions, `div.full` and `div.approx`, whose last step is a product with the reciprocal. Only pairs in
one basic block are looked for, and with no guarded instruction between them: ptxas does not see beyond. The product
stays, and the addition gets it as `Instruction.product`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from tlx_xdsl.numerics.arrays import Array

from .arithmetic.approximate import quotient_factors
from .arithmetic.floats import flush, fma
from .flow import is_branch
from .read.syntax import Address, Arguments, Function, Instruction, Negated, Operand, Pair, Register, Vector
from .steps import Context, Step

_SUMS = {f"{name}{ftz}.f32": ftz for name in ("add", "sub") for ftz in ("", ".ftz")}
_PRODUCTS = {f"{name}{ftz}.f32": ftz for name in ("mul", "div.full", "div.approx") for ftz in ("", ".ftz")}

_Pair: TypeAlias = tuple[Instruction, list[int]]


def contract(function: Function) -> None:
    """Mark the additions of a kernel that have a product in them."""
    instructions = function.instructions
    if not any(each.opcode in _PRODUCTS for each in instructions):
        return
    uses = Counter(register for each in instructions for register in _registers_of(each))
    for product, sums in _pairs(function):
        # The product is written at one place, and only these additions read it.
        if uses[_target(product)] == 1 + len(sums):
            for number in sums:
                # Of two products the first is fused.
                if instructions[number].product is None:
                    instructions[number] = replace(instructions[number], product=product)


def _pairs(function: Function) -> list[_Pair]:
    """Products, and the additions after them in the same block that read them while their operands are as they were."""
    found: list[_Pair] = []
    held: dict[Register, _Pair] = {}
    starts = set(function.labels.values())
    for number, instruction in enumerate(function.instructions):
        if number in starts or instruction.guard is not None:
            held.clear()
        if instruction.opcode in _SUMS:
            _add_to_pairs(number, instruction, held)
        _forget_written(instruction, held)
        if is_branch(instruction):
            held.clear()
        elif instruction.opcode in _PRODUCTS and instruction.guard is None:
            target = _target(instruction)
            if isinstance(target, Register) and target not in instruction.operands[1:]:
                found.append((instruction, []))
                held[target] = found[-1]
    return found


def _add_to_pairs(number: int, addition: Instruction, held: dict[Register, _Pair]) -> None:
    for operand in set(addition.operands[1:]):
        pair = held.get(operand) if isinstance(operand, Register) else None
        if pair is not None and _PRODUCTS[pair[0].opcode] == _SUMS[addition.opcode]:
            pair[1].append(number)


def _forget_written(instruction: Instruction, held: dict[Register, _Pair]) -> None:
    if not held or not instruction.operands:
        return
    written = set(_registers(instruction.operands[0]))
    for target, (product, _) in list(held.items()):
        if not written.isdisjoint(_registers_of(product)):
            del held[target]


def _target(product: Instruction) -> Any:
    return product.operands[0]


# The fused operation -------------------------------------------------------------------------------------------------


def build(context: Context, product: Instruction) -> Step:
    """The step of an addition with a product in it: one rounding."""
    total = context.instruction
    target = product.operands[0]
    is_first = total.operands[1] == target
    rest = total.operands[2 if is_first else 1]
    a, b = product.operands[1:]
    reads = tuple((operand, "f4") for operand in (a, b, rest))
    run = _fused_step(product.opcode, total.name == "sub", is_first=is_first)
    return Step(reads, context.result(total.operands[0], "f4"), "run({0},{1},{2})", {"run": run}, arrays=True)


def _fused_step(opcode: str, is_difference: bool, *, is_first: bool) -> Callable[[Array, Array, Array], Array]:
    sign = np.float32(-1 if is_difference and not is_first else 1)
    negates = is_difference and is_first
    is_flushed = "ftz" in opcode
    factors = _factors(opcode)

    def run(a: Array, b: Array, c: Array) -> Array:
        a, b = factors(a, b)
        if is_flushed:
            return flush(fma(sign * flush(a), flush(b), flush(-c if negates else c)))
        return fma(sign * a, b, -c if negates else c)

    return run


def _factors(opcode: str) -> Callable[[Array, Array], tuple[Array, Array]]:
    """The factors of a product, or of the last step of a division."""
    if opcode.startswith("mul"):
        return lambda a, b: (a, b)
    is_full, is_flushed = "full" in opcode, "ftz" in opcode
    return lambda dividend, divisor: quotient_factors(dividend, divisor, is_full=is_full, is_flushed=is_flushed)


# Registers -----------------------------------------------------------------------------------------------------------


def _registers_of(instruction: Instruction) -> Iterator[Register]:
    if instruction.guard is not None:
        yield instruction.guard
    for operand in instruction.operands:
        yield from _registers(operand)


def _registers(operand: Operand) -> Iterator[Register]:
    match operand:
        case Register():
            yield operand
        case Vector(items=items) | Arguments(items=items):
            for item in items:
                yield from _registers(item)
        case Pair(first=first, second=second):
            yield from _registers(first)
            yield from _registers(second)
        case Negated(register=register):
            yield register
        case Address(base=base, parts=parts):
            yield from _registers(base)
            for part in parts:
                yield from _registers(part)
        case _:
            pass
