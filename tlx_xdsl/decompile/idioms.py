"""Arithmetic that has a function in the language: slots and phases of rings, and divisions that round up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from .function import Function
from .types import Text, call, literal, number_of, shape_of

Idiom = Callable[[Function, Any], Text | None]
"""The expression of an operation with what it stands for; None where it is written as any other."""


def slots_of(op: Operation) -> int | None:
    """The slots of a ring of which an operation gives the one that is next: what `tlx.get_bufidx_phase` divides by."""
    slots = number_of(op.operands[1]) if op.name == "arith.remsi" else None
    is_runtime = slots is not None and number_of(op.operands[0]) is None and not shape_of(op.operands[0])
    return slots if isinstance(slots, int) and slots > 1 and is_runtime else None


def phases_of(op: Operation) -> list[tuple[Operation, list[Operation]]]:
    """The divisions that tell how often a ring was filled, each with the operations that make a phase of it."""
    slots, block = slots_of(op), op.parent
    if slots is None or block is None:
        return []
    found: list[tuple[Operation, list[Operation]]] = []
    for each in _like(op, "arith.divsi", block, slots):
        users = [use.operation for use in each.results[0].uses]
        is_phase = all(
            user.name == "arith.andi" and user.parent is block and number_of(user.operands[1]) == 1 for user in users
        )
        if users and is_phase and each.results[0].name_hint is None:
            found.append((each, users))
    return found


def _like(op: Operation, name: str, block: Block, slots: int) -> Iterator[Operation]:
    """Yield the operations after `op` that divide what it divides."""
    for use in list(op.operands[0].uses):
        other = use.operation
        if other.name != name or use.index or other.parent is not block or number_of(other.operands[1]) != slots:
            continue
        if op.is_before_in_block(other):
            yield other


def slot_and_phase(fn: Function, op: Operation) -> bool:
    """Write `stage, phase = tlx.get_bufidx_phase(n, slots)` where the code divides like that; say whether it did."""
    phases = phases_of(op)
    ends = [user for _, users in phases for user in users]
    slots = slots_of(op)
    if not ends or slots is None:
        return False
    same = [op, *_like(op, "arith.remsi", op.parent, slots)] if op.parent is not None else [op]
    if any(each.results[0] in fn.wanted for each in (*same, *ends)):
        return False
    stage = fn.shared_name([each.results[0] for each in same], "stage")
    phase = fn.shared_name([each.results[0] for each in ends], "phase")
    fn.write(f"{stage}, {phase} = {call('tlx.get_bufidx_phase', fn.typed(op.operands[0]), fn.depth(slots))}")
    fn.module.skipped.update([*same, *(division for division, _ in phases), *ends])
    return True


def rounded_up(fn: Function, op: Operation) -> Text | None:
    """Return `tl.cdiv(n, d)` for `(n + (d - 1)) // d`."""
    value, divisor = op.operands[0], number_of(op.operands[1])
    if not isinstance(divisor, int) or divisor < 2 or shape_of(value) or not _is_addition_of(value, divisor - 1):
        return None
    owner = value.owner
    assert isinstance(owner, Operation)
    if owner.parent is not op.parent or not value.has_one_use() or value.name_hint is not None:
        return None
    number = owner.operands[0]
    return None if number_of(number) is not None else call("tl.cdiv", fn.typed(number), literal(divisor))


def _is_addition_of(value: SSAValue, number: int) -> bool:
    owner = value.owner
    return isinstance(owner, Operation) and owner.name == "arith.addi" and number_of(owner.operands[1]) == number
