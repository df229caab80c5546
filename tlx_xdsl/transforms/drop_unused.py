"""Removal of what nothing needs: pure operations, and values that loops carry only to compute them again.

A pointer that a loop moves on has a user in each turn, the addition that makes the next one. So a value is needed only
if something with an effect takes it, or something that makes a needed value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue, SSAValues
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects.regions import forwarded


def drop_unused(root: Operation) -> None:
    """Remove the pure operations inside of `root` and the carried values of its loops that nothing needs."""
    operations = list(root.walk())
    needed = _needed(operations)
    loops = [op for op in operations if isinstance(op, scf.ForOp)]
    for loop in loops:
        _drop_operands(loop, needed)
    for op in reversed(operations):
        if op is not root and _is_pure(op) and not any(result in needed for result in op.results):
            Rewriter.erase_op(op)
    for loop in loops:
        _drop_inputs(loop, needed)


def _is_pure(op: Operation) -> bool:
    return bool(op.results) and not op.regions and is_side_effect_free(op)


def _needed(operations: list[Operation]) -> set[SSAValue]:
    """The values that something with an effect needs."""
    needed: set[SSAValue] = set()
    makers: dict[SSAValue, list[SSAValue]] = {}
    pending: list[SSAValue] = []
    for op in operations:
        defined = {number: op.results for number in range(len(op.operands))} if _is_pure(op) else _carries(op)
        for number, operand in enumerate(op.operands):
            for value in defined.get(number, ()):
                makers.setdefault(value, []).append(operand)
            if number not in defined:
                pending.append(operand)
    # What a loop gives is what it carries: neither goes without the other.
    for loop in operations:
        for argument, result in _carried(loop) if isinstance(loop, scf.ForOp) else ():
            makers.setdefault(argument, []).append(result)
            makers.setdefault(result, []).append(argument)
    while pending:
        value = pending.pop()
        if value not in needed:
            needed.add(value)
            pending += makers.get(value, ())
    return needed


def _carries(op: Operation) -> Mapping[int, Sequence[SSAValue]]:
    """The values that a loop, or the end of its body, carries on, by the number of the operand."""
    is_end = isinstance(op, scf.YieldOp) and isinstance(op.parent_op(), scf.ForOp)
    return forwarded(op) if is_end or isinstance(op, scf.ForOp) else {}


def _carried(loop: scf.ForOp) -> list[tuple[SSAValue, SSAValue]]:
    return list(zip(loop.body.block.args[1:], loop.results, strict=True))


def _gone(loop: scf.ForOp, needed: set[SSAValue]) -> set[int]:
    return {number for number, (argument, _) in enumerate(_carried(loop)) if argument not in needed}


def _drop_operands(loop: scf.ForOp, needed: set[SSAValue]) -> None:
    gone, end = _gone(loop, needed), loop.body.block.last_op
    assert end is not None, "a loop's body ends in a yield"
    end.operands = [value for number, value in enumerate(end.operands) if number not in gone]
    loop.operands = [value for number, value in enumerate(loop.operands) if number - 3 not in gone]


def _drop_inputs(loop: scf.ForOp, needed: set[SSAValue]) -> None:
    gone = _gone(loop, needed)
    for number in sorted(gone, reverse=True):
        loop.body.block.erase_arg(loop.body.block.args[number + 1])
    kept = [result for number, result in enumerate(loop.results) if number not in gone]
    for index, result in enumerate(kept):
        result.index = index
    loop.results = SSAValues(kept)
