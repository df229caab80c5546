"""Symbols of polynomials: program ids, arguments, positions, counters, and values that are not known."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, auto

from xdsl.ir import Operation, SSAValue

AXES = "xyz"


@dataclass(frozen=True)
class Pid:
    """The program's place in the grid along an axis (0 to 2)."""

    axis: int

    def __str__(self) -> str:
        """Return the name of the program id: `pid_x`."""
        return f"pid_{AXES[self.axis]}"


@dataclass(frozen=True)
class NumPrograms:
    """The grid's size along an axis (0 to 2)."""

    axis: int

    def __str__(self) -> str:
        """Return the name of the size: `num_programs_x`."""
        return f"num_programs_{AXES[self.axis]}"


@dataclass(frozen=True)
class Argument:
    """An integer that the kernel is given."""

    value: SSAValue
    name: str

    def __str__(self) -> str:
        """Return the argument's name: `%n`."""
        return f"%{self.name}"


_SIGNS = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "*", "arith.divsi": "/", "arith.remsi": "%"}
_DEEPEST = 3
"""Operations of a value without a name that are spelled out."""


def spelled(value: SSAValue, depth: int = _DEEPEST) -> str:
    """A value by its name, or by what it is computed from, for people."""
    op = value.owner
    if isinstance(op, Operation) and op.name == "arith.constant":
        return str(op.properties["value"]).split(" :")[0]
    if value.name_hint is not None:
        return f"%{value.name_hint}"
    if not isinstance(op, Operation) or not depth:
        return "%?"
    if (sign := _SIGNS.get(op.name)) is not None:
        return f"({f' {sign} '.join(spelled(operand, depth - 1) for operand in op.operands)})"
    return f"{op.name}({', '.join(spelled(operand, depth - 1) for operand in op.operands)})"


@dataclass(frozen=True)
class Scalar:
    """A scalar of the function, as it is computed there."""

    value: SSAValue

    def __str__(self) -> str:
        """Return the scalar's name, or the expression that computes it."""
        return spelled(self.value)


@dataclass(frozen=True)
class Extent:
    """A number in a tensor descriptor that the kernel is given: along dimension `dim` its size, or its stride.

    Both count elements.
    """

    descriptor: SSAValue
    name: str
    what: str
    """`shape` or `stride`."""
    dim: int

    def __str__(self) -> str:
        """Return the name of the size or stride: `%desc.stride.0`."""
        return f"%{self.name}.{self.what}.{self.dim}"


@dataclass(frozen=True)
class Lane:
    """The position of an element along a dimension of the tensor that the polynomial is about: 0 to `extent - 1`."""

    dim: int
    extent: int

    def __str__(self) -> str:
        """Return the name of the position: `i0`."""
        return f"i{self.dim}"


@dataclass(frozen=True)
class Counter:
    """The number of iterations of a loop that are over: 0 in the first one."""

    loop: Operation
    name: str

    def __str__(self) -> str:
        """Return the counter's name."""
        return self.name


class Causes(Flag):
    """Causes that a value may depend on."""

    PID = auto()
    """It may differ between programs by their ids."""
    MEMORY = auto()
    """Contents of memory, of which nothing is known."""
    LANES = auto()
    """It may differ between the elements of a tensor."""


NOTHING, ANYTHING = Causes(0), ~Causes(0)


@dataclass(frozen=True)
class Unknown:
    """The value of an operation of which no expression is known; in a loop, that of the current iteration."""

    value: SSAValue
    name: str
    causes: Causes
    bits: int = 64
    through: tuple[SSAValue, ...] = ()
    """The tensors into which operations on shapes have put it, one after the other: a position means another element
    in each."""

    def __str__(self) -> str:
        """Return the value's name, marked as unknown: `?x`."""
        return f"?{self.name}"
