"""PTX as data: a module, its functions, and their instructions with operands (PTX ISA, "Syntax", "Directives")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from tlx_xdsl.element_types import PTX_TYPES, ElementType


def _is_declared(name: str, element: ElementType, count: int) -> bool:
    """Say whether variables and registers have this type (PTX ISA, "Fundamental Types", "Packed Data Types")."""
    if element.kind != "f":
        return count == 1
    return name != "tf32" and (element.bits == 16 or (element.bits > 16 and count == 1))


SIZES = {
    name: count * element.bytes for name, (element, count) in PTX_TYPES.items() if _is_declared(name, element, count)
} | {"b128": 16}
"""Bytes of a variable or a register, by its type."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the source of a kernel, as `.loc` names it."""

    file: int
    line: int
    column: int
    inlined_at: Place | None = None
    """The call through which the code came here."""


@dataclass(frozen=True, slots=True)
class Register:
    """A register of a function, by its number in `Function.registers`."""

    number: int


@dataclass(frozen=True, slots=True)
class Number:
    """A constant: an integer, or the bits of a float."""

    value: int
    float_bits: int = 0
    """32 or 64 where the text is the hexadecimal form of a float, else 0."""


@dataclass(frozen=True, slots=True)
class Decimal:
    """A floating-point constant in decimal notation, which PTX takes as f64."""

    value: float


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, a parameter, a function, a label or a special register, and bytes after it."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Negated:
    """`!%p`."""

    register: Register


@dataclass(frozen=True, slots=True)
class Vector:
    """`{%r1, %r2}`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """`%r1|%p1`, two results."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Address:
    """`[%r1+16]`, and with coordinates of a tensor `[%rd1, {%r1, %r2}]`."""

    base: Register | Symbol | Number
    offset: int = 0
    parts: tuple[Operand, ...] = ()
    """What follows the base, separated by commas."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """`(param0, param1)` of a call."""

    items: tuple[Operand, ...]


Operand: TypeAlias = Register | Number | Decimal | Symbol | Negated | Vector | Pair | Address | Arguments
SINK = Symbol("_")
"""A result that is not wanted."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction with its guard and its operands."""

    opcode: str
    operands: tuple[Operand, ...]
    line: int
    """Its line in the PTX, from 1."""
    place: Place | None = None
    guard: Register | None = None
    negated: bool = False
    """True if it runs where the guard does not hold."""
    product: Instruction | None = None
    """The product that is one of its summands, and that is not rounded (`contraction.py`)."""

    @property
    def name(self) -> str:
        """Return the first part of the operation code, such as `add`."""
        return self.opcode.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """Return the other parts of the operation code, such as `rn` and `f32`."""
        return tuple(self.opcode.split(".")[1:])


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function: bytes."""

    name: str
    size: int
    alignment: int
    type: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a state space, with its bytes; those of `.extern .shared` have no size."""

    name: str
    space: str
    size: int
    alignment: int
    data: bytes | None = None
    addresses: tuple[tuple[int, Symbol], ...] = ()
    """Where the data hold the address of another variable."""


@dataclass(slots=True)
class Function:
    """A kernel, or a function that kernels call."""

    name: str
    is_entry: bool
    line: int
    parameters: list[Parameter] = field(default_factory=list[Parameter])
    results: list[Parameter] = field(default_factory=list[Parameter])
    registers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Name and type of each register."""
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    """The number of the instruction that follows a label."""
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The labels of each `.branchtargets`."""
    variables: list[Variable] = field(default_factory=list[Variable])
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Performance directives, such as `reqntid`."""
    has_body: bool = True


@dataclass(slots=True)
class Module:
    """A file of PTX."""

    filename: str
    lines: list[str]
    version: str = ""
    target: str = ""
    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    variables: dict[str, Variable] = field(default_factory=dict[str, Variable])
    files: dict[int, str] = field(default_factory=dict[int, str])
    """The paths that `.file` names, by number."""

    def line_text(self, line: int) -> str | None:
        """Return the text of a line."""
        return self.lines[line - 1] if 1 <= line <= len(self.lines) else None
