"""Steps of instructions, as the generator of code takes them: operands with their views, and a Python expression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from .read.faults import PtxError, error_on_line
from .read.syntax import (
    SINK,
    Address,
    Arguments,
    Function,
    Instruction,
    Module,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)

if TYPE_CHECKING:
    from .read.symbols import Symbols

Read: TypeAlias = "tuple[Operand, str]"
Write: TypeAlias = "tuple[Register | None, str]"
"""A register and the view of what goes into it; None for a result that is not wanted."""


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction, ready to become code.

    `code` is an expression of Python with `{0}`, `{1}`, ... for the operands that are read; of several results it is a
    tuple. What has an effect is called as `effect(cohort, mask, *operands)`, where the mask is None when all threads
    of the cohort run it; it returns what it writes: nothing, an array, or a tuple of arrays.
    """

    reads: tuple[Read, ...] = ()
    writes: tuple[Write, ...] = ()
    code: str = ""
    names: Mapping[str, Any] = field(default_factory=dict[str, Any])
    effect: Callable[..., Any] | None = None
    arrays: bool = False
    """True if the expression takes arrays only: constants are spread over the threads."""
    suspends: bool = False
    """True if it may have to wait. The effect then gives None as long as it does."""


NOTHING = Step()
"""The step of a hint."""


@dataclass(frozen=True)
class Context:
    """An instruction and its surroundings, for the builders of steps."""

    module: Module
    function: Function
    symbols: Symbols
    instruction: Instruction

    def refuse(self, why: str = "") -> PtxError:
        """The error for an instruction that is not known, or not in this form."""
        opcode = self.instruction.opcode
        return error_on_line(
            self.module, self.instruction.line, f"the instruction '{opcode}' is not known{why and ': ' + why}"
        )

    def operand(self, number: int) -> Operand:
        """An operand by its place."""
        if number >= len(self.instruction.operands):
            raise self.refuse(f"it has {len(self.instruction.operands)} operands")
        return self.instruction.operands[number]

    def expect(self, *counts: int) -> None:
        """Check the number of operands."""
        if len(self.instruction.operands) not in counts:
            raise self.refuse(f"it has {len(self.instruction.operands)} operands, not {' or '.join(map(str, counts))}")

    def result(self, operand: Operand, kind: str) -> tuple[Write, ...]:
        """The results that an operand names: one, or those of a vector."""
        match operand:
            case Vector(items=items):
                return tuple(self.single_result(item, kind) for item in items)
            case _:
                return (self.single_result(operand, kind),)

    def written(self, number: int, kind: str) -> tuple[Write, ...]:
        """The operand at a place, as `result` has it."""
        return self.result(self.operand(number), kind)

    def single_result(self, operand: Operand, kind: str) -> Write:
        """A result that must be a register, or `_`."""
        if operand == SINK:
            return None, kind
        if not isinstance(operand, Register):
            raise self.refuse("its result is no register")
        return operand, kind

    def value(self, operand: Operand, kind: str) -> Read:
        """An operand that is read, which must be a single value."""
        if isinstance(operand, Vector | Address | Arguments | Pair) or operand == SINK:
            raise self.refuse("an operand is no value")
        return operand, kind

    def read(self, number: int, kind: str) -> Read:
        """The operand at a place, as `value` has it."""
        return self.value(self.operand(number), kind)

    def values(self, operand: Operand, kind: str) -> tuple[Read, ...]:
        """The values of a vector, or a single one."""
        items = operand.items if isinstance(operand, Vector) else (operand,)
        return tuple(self.value(item, kind) for item in items)

    def address(self, operand: Operand, kind: str) -> tuple[Read, int]:
        """The base of an address, and the bytes after it."""
        if not isinstance(operand, Address):
            raise self.refuse("it has no address in brackets")
        base = operand.base
        if isinstance(base, Symbol):
            return self.value(Symbol(base.name, base.offset + operand.offset), kind), 0
        return self.value(base, kind), operand.offset

    def parts(self, operand: Operand) -> tuple[Operand, ...]:
        """Return what follows the base of an address."""
        return operand.parts if isinstance(operand, Address) else ()


Builder: TypeAlias = Callable[[Context], Step]
Builders: TypeAlias = dict[str, Builder]
"""The builders by the first part of the operation code."""
