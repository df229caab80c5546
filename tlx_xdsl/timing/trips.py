"""Trips that loops have left, from the registers of a warp that is in them.

A run for the clock may stop after a few tiles of a persistent kernel. What is left of the loop over tiles is then read
off its exit: a comparison of a register that grows by a constant with one that the loop does not change.

    loop:   ...
            add.s32     %r2, %r2, 132;
            setp.lt.s32 %p1, %r2, %r9;     with %r2 = 528 and %r9 = 2048 it goes round 12 times more
            @%p1 bra    loop;

Loops are natural ones: an edge to a block that dominates its source, with all blocks that reach the edge without that
block (Aho, Lam, Sethi, Ullman, "Compilers", section 9.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

from tlx_xdsl.ptx.flow import EXIT
from tlx_xdsl.ptx.program import Program
from tlx_xdsl.ptx.read.syntax import Instruction, Number, Operand, Register

_MOST_MOVES = 16
"""Moves and additions between two values of a register that counts, at most."""


@dataclass(frozen=True, slots=True)
class Exit:
    """A comparison that ends a loop: a register that counts, what it grows by each time round, and the end."""

    counter: int
    step: int
    strides: tuple[int, ...]
    """Registers that the loop does not change, and that it grows by, too."""
    bound: Register | Number
    is_signed: bool


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop, by its blocks."""

    header: int
    blocks: frozenset[int]
    exits: tuple[Exit, ...]


class Trips:
    """The loops of a program that count."""

    def __init__(self, program: Program):
        self._program = program

    @cached_property
    def loops(self) -> list[Loop]:
        """The loops whose trips can be counted, inner ones first."""
        found: dict[int, set[int]] = {}
        before: dict[int, list[int]] = {}
        blocks = self._program.blocks
        for block in blocks:
            for successor in block.successors:
                before.setdefault(successor, []).append(block.number)
        dominators = self._dominators(before)
        for block in blocks:
            for header in block.successors:
                if header in dominators.get(block.number, ()):
                    found.setdefault(header, {header}).update(_reaching(block.number, header, before))
        loops = [Loop(header, frozenset(held), self._exits(held)) for header, held in found.items()]
        return sorted((loop for loop in loops if loop.exits), key=lambda loop: len(loop.blocks))

    def _dominators(self, before: dict[int, list[int]]) -> dict[int, set[int]]:
        """The blocks that are on every way to a block from the first one, by the block."""
        found: dict[int, set[int]] = {0: {0}}
        changed = True
        while changed:
            changed = False
            for block in self._program.blocks[1:]:
                known = [found[each] for each in before.get(block.number, ()) if each in found]
                if not known:
                    continue
                new = reduce(lambda a, b: a & b, known) | {block.number}
                if new != found.get(block.number):
                    found[block.number] = new
                    changed = True
        return found

    def _exits(self, held: set[int]) -> tuple[Exit, ...]:
        instructions = self._program.function.instructions
        writers: dict[int, list[Instruction]] = {}
        for number in held:
            block = self._program.blocks[number]
            for at in range(block.first, block.last):
                step = self._program.steps[at]
                for register, _ in () if step is None else step.writes:
                    if register is not None:
                        writers.setdefault(register.number, []).append(instructions[at])
        found: list[Exit] = []
        for number in held:
            block = self._program.blocks[number]
            guard = instructions[block.last - 1].guard
            leaves = any(each not in held for each in block.successors)
            if guard is None or not leaves or len(made := writers.get(guard.number, [])) != 1:
                continue
            if made[0].name != "setp" or len(made[0].operands) != 3:
                continue
            for counter, bound in (made[0].operands[1:], made[0].operands[:0:-1]):
                if (steps := _steps(counter, writers)) and (_is_fixed(bound, writers) or isinstance(bound, Number)):
                    assert isinstance(counter, Register)
                    assert isinstance(bound, Register | Number)
                    is_signed = any(part in ("s32", "s64") for part in made[0].modifiers)
                    found.append(Exit(counter.number, *steps, bound, is_signed))
        return tuple(found)

    def around(self, block: int, registers: Sequence[Any], thread: int) -> list[tuple[Loop, int]]:
        """The loops around a block, inner ones first, each with how often it goes round yet, this time included.

        `registers` are those of a cohort, `thread` a place in it. Loops that do not count are left out.
        """
        found: list[tuple[Loop, int]] = []
        for loop in self.loops if block != EXIT else ():
            if block in loop.blocks:
                counts = [_trips(each, registers, thread) for each in loop.exits]
                if known := [each for each in counts if each is not None]:
                    found.append((loop, min(known)))
        return found


def _reaching(block: int, header: int, before: dict[int, list[int]]) -> set[int]:
    """The blocks that lead to one without the header."""
    found = {header, block}
    work = [block]
    while work:
        number = work.pop()
        if number != header:
            work += (new := [each for each in before.get(number, ()) if each not in found])
            found.update(new)
    return found


def _steps(counter: Operand, writers: dict[int, list[Instruction]]) -> tuple[int, tuple[int, ...]] | None:
    """Find what a register grows by each time round a loop: a constant, and registers; None if it does not count."""
    if not isinstance(counter, Register):
        return None
    total, strides, at = 0, (), counter
    for _ in range(_MOST_MOVES):
        made = writers.get(at.number, [])
        if len(made) != 1 or made[0].guard is not None or made[0].name not in ("add", "mov"):
            return None
        source, *more = made[0].operands[1:]
        for other in more:
            if isinstance(source, Number) or _is_fixed(source, writers):
                source, other = other, source
            if isinstance(other, Number):
                bits = 64 if made[0].opcode.endswith("64") else 32
                total += (other.value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
            elif isinstance(other, Register) and _is_fixed(other, writers):
                strides = (*strides, other.number)
            else:
                return None
        if not isinstance(source, Register):
            return None
        at = source
        if at == counter:
            return (total, strides) if total or strides else None
    return None


def _is_fixed(operand: Operand, writers: dict[int, list[Instruction]]) -> bool:
    return isinstance(operand, Register) and operand.number not in writers


def _trips(each: Exit, registers: Sequence[Any], thread: int) -> int | None:
    def value(register: int) -> int | None:
        return _value(registers[register], thread, is_signed=each.is_signed)

    counter = value(each.counter)
    bound = each.bound.value if isinstance(each.bound, Number) else value(each.bound.number)
    strides = [value(stride) for stride in each.strides]
    if counter is None or bound is None or None in strides:
        return None
    step = each.step + sum(stride for stride in strides if stride is not None)
    left = -(-(bound - counter) // step) if step else -1
    return left if left >= 0 else None


def _value(held: Any, thread: int, *, is_signed: bool) -> int | None:
    if held is None or thread >= len(held):
        return None
    value, bits = int(held[thread]), 8 * held.dtype.itemsize
    value %= 1 << bits
    return value - (1 << bits) if is_signed and value >> bits - 1 else value
