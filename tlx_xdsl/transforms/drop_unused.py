"""Removal of what nothing needs: pure operations, and values that loops carry only to compute them again.

A pointer that a loop moves on has a user in each turn, the addition that makes the next one. So a value is needed only
if something with an effect takes it, or something that makes a needed value.
"""

from __future__ import annotations

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
    needed: set[SSAValue] = set()
    # The operands that define a value, if it is needed.
    makers: dict[SSAValue, list[SSAValue]] = {}
    pending: list[SSAValue] = []
    for op in operations:
        if _is_pure(op):
            for result in op.results:
                makers.setdefault(result, []).extend(op.operands)
            continue
        carried = forwarded(op) if isinstance(op, scf.ForOp) or isinstance(op.parent_op(), scf.ForOp) else {}
        for number, operand in enumerate(op.operands):
            if number in carried and (isinstance(op, scf.ForOp) or op.next_op is None):
                for value in carried[number]:
                    makers.setdefault(value, []).append(operand)
            else:
                pending.append(operand)
    while pending:
        value = pending.pop()
        if value not in needed:
            needed.add(value)
            pending += makers.get(value, ())
    # What a loop gives is what it carries: neither goes without the other.
    pairs = [pair for op in operations if isinstance(op, scf.ForOp) for pair in _carried(op)]
    while True:
        halves = [pair for pair in pairs if (pair[0] in needed) != (pair[1] in needed)]
        if not halves:
            return needed
        pending = [value for pair in halves for value in pair]
        while pending:
            value = pending.pop()
            if value not in needed:
                needed.add(value)
                pending += makers.get(value, ())


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
