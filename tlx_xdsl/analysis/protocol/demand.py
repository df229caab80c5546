"""Demands of a kernel's synchronisation: the values that it depends on, and the modulus of each.

A counter of which only the remainder by the length of a ring is used may be kept as that remainder: so a path through
a loop that carries it comes back to where it was. Asked for are the bounds of loops, conditions, parities and the
numbers of buffers; from there demands go up to operands, around loops and out of captures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import lcm

from xdsl.dialects import arith as upstream, builtin, scf
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import arith, regions, tt, ttg
from tlx_xdsl.dialects.base import view_of

from ..integers.transfer import bits_of

EXACT = 0
"""The modulus of values that must be known as they are."""

MOST_FACTOR = 64
"""The greatest factor of which it is assumed that a counter times it does not wrap around."""

_PASSING = (upstream.AddiOp, upstream.SubiOp, upstream.MuliOp, arith.ExtSIOp, arith.ExtUIOp, upstream.IndexCastOp)
"""The remainder of what they compute follows from those of the operands."""


class Demands:
    """The modulus of each value that is asked for; values that are not in it do not matter."""

    def __init__(self, root: Operation, roots: Iterable[SSAValue]):
        self.moduli: dict[SSAValue, int] = {}
        self.sources = _sources(root)
        """The values that control flow passes on as each argument of a block and result of an operation."""
        self._todo: list[SSAValue] = []
        for value in roots:
            self._ask(value, EXACT)
        while self._todo:
            value = self._todo.pop()
            modulus = self.moduli[value]
            for source in self.sources.get(value, ()):
                self._ask(source, modulus)
            if isinstance(value.owner, Operation):
                self._ask_operands(value.owner, modulus)

    def __contains__(self, value: SSAValue) -> bool:
        """Return whether a value matters."""
        return value in self.moduli

    def may_be_kept(self, value: SSAValue) -> bool:
        """Return whether a part of a value may be kept as a remainder; the other parts have signs of their own."""
        if isinstance(value.owner, _PASSING):
            return any(map(self.may_be_kept, value.owner.operands))
        return self.moduli.get(value, EXACT) != EXACT and value in self.sources

    def _ask(self, value: SSAValue, modulus: int) -> None:
        known = self.moduli.get(value)
        if 1 < (bits_of(value) or 0) < 32:
            # It wraps around, after which remainders by other numbers are no longer what they were.
            modulus = EXACT
        new = modulus if known is None else lcm(known, modulus)
        if new != known:
            self.moduli[value] = new
            self._todo.append(value)

    def _ask_operands(self, op: Operation, modulus: int) -> None:
        match op:
            case _ if (needed := _modulus_of_dividend(op, modulus)) is not None:
                self._ask(op.operands[0], needed)
                self._ask(op.operands[1], EXACT)
            case arith.SelectOp():
                condition, *choices = op.operands
                self._ask(condition, EXACT)
                for choice in choices:
                    self._ask(choice, modulus)
            case arith.TruncIOp() | upstream.IndexCastOp() if (bits := _narrowed(op)) is not None:
                self._ask(op.operands[0], 1 << bits)
            case _ if isinstance(op, _PASSING) and not _may_turn_negative(op):
                for operand in op.operands:
                    self._ask(operand, modulus)
            case scf.IfOp():
                self._ask(op.cond, EXACT)
            case scf.ForOp():
                # Bounds are roots if the loop is in the code; else it is a function of them.
                pass
            case _:
                for operand in op.operands:
                    self._ask(operand, EXACT)


def _modulus_of_dividend(op: Operation, modulus: int) -> int | None:
    """The modulus by which the first operand of a division by a number must be known; None for other operations."""
    number = constant(op.operands[1]) if len(op.operands) == 2 else None
    match op, number:
        case ((upstream.RemSIOp() | upstream.RemUIOp()), int()) if number > 0:
            return number
        case ((upstream.DivSIOp() | upstream.DivUIOp()), int()) if number > 0:
            return modulus * number
        case ((upstream.ShRSIOp() | upstream.ShRUIOp()), int()) if number >= 0:
            return modulus << number
        case upstream.AndIOp(), int() if number & (number + 1) == 0 < number:
            return number + 1
        case _:
            return None


def _may_turn_negative(op: Operation) -> bool:
    """Return whether the result may be negative where the operands' remainders say otherwise, or is a single bit."""
    match op:
        case upstream.SubiOp():
            return constant(op.rhs) is None
        case upstream.MuliOp():
            numbers = [number for each in op.operands if (number := constant(each)) is not None]
            return any(not 0 <= number <= MOST_FACTOR for number in numbers)
        case _:
            return bits_of(op.results[0]) == 1


def _narrowed(op: Operation) -> int | None:
    """The width to which an operation brings a number; None where it had no more."""
    before, after = bits_of(op.operands[0]), bits_of(op.results[0])
    return after if before is not None and after is not None and after < before else None


def constant(value: SSAValue) -> int | None:
    """The number that a value is; None for others."""
    owner = value.owner
    if isinstance(owner, upstream.ConstantOp) and isinstance(owner.value, builtin.IntegerAttr):
        return owner.value.value.data
    return None


def _sources(root: Operation) -> Mapping[SSAValue, list[SSAValue]]:
    """The values that control flow passes on as each argument of a block and result of an operation with regions."""
    return regions.incoming(edge for op in root.walk() for edge in regions.edges(op) or ())


def is_followed(value: SSAValue) -> bool:
    """Return whether values of that type are followed: integers, buffers and pointers that lead to integers."""
    return isinstance(value.type, ttg.MemDescType | tt.PointerType) or bits_of(value) is not None


def is_view(op: Operation) -> bool:
    """Return whether an operation makes a view of a buffer."""
    return view_of(op) is not None
