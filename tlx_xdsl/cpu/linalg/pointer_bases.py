"""The bases of the pointers that control flow carries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import BlockArgument, Operation, SSAValue

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base import as_tensor, scalar_type

from .slots import Slot


@dataclass(frozen=True)
class Bases:
    """The bases that a slot may have, arguments of the function; none if others are among them, or no one is known."""

    known: tuple[SSAValue, ...]


def bases_of(slots: Sequence[Slot]) -> dict[Slot, Bases]:
    """The bases of each slot."""
    by_input = {input_: slot for slot in slots for input_ in slot.inputs}
    found: dict[Slot, dict[SSAValue, None]] = {slot: {} for slot in slots}
    waiting: dict[Slot, set[Slot]] = {slot: set() for slot in slots}
    mixed: set[Slot] = set()
    for slot in slots:
        for value in slot.values:
            reached = _followed(value, by_input.__contains__)
            if len(reached) > 1:
                mixed.add(slot)
            for base in reached:
                if base in by_input:
                    waiting[slot].add(by_input[base])
                else:
                    found[slot][base] = None
    changed = True
    while changed:
        changed = False
        for slot in slots:
            for other in waiting[slot]:
                # More bases than these are as many as any number.
                if len(found[slot]) <= MOST_BASES and not found[other].keys() <= found[slot].keys():
                    found[slot] |= found[other]
                    changed = True
                if other in mixed and slot not in mixed:
                    mixed.add(slot)
                    changed = True
    return {slot: _known(list(bases), of_elements=slot in mixed) for slot, bases in found.items()}


MOST_BASES = 8
"""Bases of one tensor of pointers that a loop carries."""


def _followed(value: SSAValue, stop: Callable[[SSAValue], bool]) -> list[SSAValue]:
    """The bases, or slots, that a pointer comes from; a choice for each element is followed on both ways."""
    found: list[SSAValue] = []
    pending = [value]
    while pending:
        value = pending.pop()
        op = value.owner
        if stop(value) or not isinstance(op, Operation):
            found.append(value)
        elif isinstance(op, arith.SelectOp) and as_tensor(op.condition.type) is not None:
            pending += [op.false_value, op.true_value]
        elif isinstance(op, tt.CatOp | tt.JoinOp):
            pending += [op.rhs, op.lhs]
        elif isinstance(op, tt.AddPtrOp) or rearranges(op):
            pending.append(op.operands[0])
        else:
            found.append(value)
    return found


def _known(bases: list[SSAValue], *, of_elements: bool) -> Bases:
    """Bases that are there wherever control flow leads: arguments of the function.

    Where all elements have one, which may change, that is carried itself.
    """
    known = all(
        isinstance(base, BlockArgument)
        and isinstance(base.block.parent_op(), tt.FuncOp)
        and isinstance(base.type, tt.PointerType)
        for base in bases
    )
    return Bases(tuple(bases) if known and (len(bases) == 1 or (of_elements and len(bases) <= MOST_BASES)) else ())


def rearranges(op: Operation) -> bool:
    """True if the elements of the result are elements of the only operand: a splat, a broadcast, a transpose."""
    return len(op.operands) == len(op.results) == 1 and scalar_type(op.operands[0].type) == scalar_type(
        op.results[0].type
    )
