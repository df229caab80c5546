"""Arithmetic that has a function in the language: slots and phases of rings, and divisions that round up."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from .function import Function
from .rings import divided_like, phases_of, slots_of
from .types import Text, call, literal, number_of, shape_of


def slot_and_phase(fn: Function, op: Operation) -> bool:
    """Write `stage, phase = tlx.get_bufidx_phase(n, slots)` where the code divides like that; say whether it did."""
    phases = phases_of(op)
    ends = [user for _, users in phases for user in users]
    slots = slots_of(op)
    if not ends or slots is None:
        return False
    same = [op, *divided_like(op, "arith.remsi", op.parent, slots)] if op.parent is not None else [op]
    if any(each.results[0] in fn.wanted for each in (*same, *ends)):
        return False
    stage = fn.shared_name([each.results[0] for each in same], "stage")
    phase = fn.shared_name([each.results[0] for each in ends], "phase")
    fn.write(f"{stage}, {phase} = {call('tlx.get_bufidx_phase', fn.typed(op.operands[0]), slots)}")
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
