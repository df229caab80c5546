"""Integers that are constant, and blocks that control never reaches: sparse conditional constant propagation.

Wegman and Zadeck (TOPLAS 1991), as MLIR's `sccp`: what no edge reaches contributes nothing, so a constant is found
through loops and branches whose conditions it decides itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from tlx_xdsl.dialects import arith
from tlx_xdsl.dialects.regions import Edge, Edges, condition_of, edges

from .integers.functions import COMPARISONS, DIVISIONS, apply
from .integers.transfer import Domain, bits_of, shape_of, transfer

_SHIFTS = ("shl", "shr")
_ZERO_OF_EQUALS = ("sub", "xor")
_TRUE_OF_EQUALS = ("==", "<=", ">=")


class Constants:
    """Constants of a function, or of any other operation with regions, when nothing outside of it is known."""

    def __init__(self, root: Operation):
        self._states: dict[SSAValue, int | None] = {}
        self._reached: set[Block] = set()
        self._defines: dict[SSAValue, list[SSAValue]] = {}
        """The successor inputs to which the edges that are taken forward a value."""
        self._queue, self._pending = deque[Operation | SSAValue]([root]), set[Operation | SSAValue]([root])
        # A state changes at most twice and a block is reached once, so everything is visited a few times. States belong
        # to values, not to points of the function: `ForwardWalk` would hand all of them on at each operation.
        while self._queue:
            item = self._queue.popleft()
            self._pending.remove(item)
            if isinstance(item, Operation):
                self._visit(item)
            else:
                self._spread(item)

    def of(self, value: SSAValue) -> int | None:
        """The number that a scalar integer always is, signed but for single bits; None where it is not constant.

        Also None where control never gets to its definition.
        """
        return self._states.get(value)

    def reaches(self, block: Block) -> bool:
        """Return False if control never gets to `block`."""
        return block in self._reached

    def taken(self, op: Operation) -> Edges | None:
        """Return the edges that may be taken from `op`; None where its control flow is not known."""
        found, chooses = edges(op), condition_of(op)
        if found is None or chooses is None:
            return found
        condition = self.of(chooses)
        if condition is not None:
            return (found[0 if condition else 1],)
        return found if chooses in self._states else ()

    def _visit(self, op: Operation) -> None:
        if not _directs_control(op):
            self._compute(op)
        elif (found := self.taken(op)) is None:
            self._assume_anything(op)
        else:
            for edge in found:
                self._arrive(edge)

    def _spread(self, value: SSAValue) -> None:
        """Hand the new state of `value` on to where it is used."""
        for defined in self._defines.get(value, ()):
            self._join(defined, self._states[value])
        for use in value.uses:
            op = use.operation
            # What an operation forwards is known; nothing but its condition changes the edges that are taken.
            if op.parent in self._reached and (not _directs_control(op) or condition_of(op) is value):
                self._soon(op)

    def _compute(self, op: Operation) -> None:
        if all(operand in self._states for operand in op.operands):
            known = None
            if len(op.results) == 1 and not shape_of(op.results[0]) and bits_of(op.results[0]) is not None:
                known = transfer(_DOMAIN, op, [self._states[operand] for operand in op.operands])
            for result in op.results:
                self._join(result, known)

    def _arrive(self, edge: Edge) -> None:
        target = edge.target
        if isinstance(target, Block):
            self._reach(target)
        for operand, value in edge.pairs:
            self._defines.setdefault(operand, []).append(value)
            if operand in self._states:
                self._join(value, self._states[operand])
        defined = set(edge.inputs)
        for value in target.args if isinstance(target, Block) else target.results:
            if value not in defined:
                self._join(value, None)

    def _assume_anything(self, op: Operation) -> None:
        for block in (block for region in op.regions for block in region.blocks):
            self._reach(block)
            for argument in block.args:
                self._join(argument, None)
        for result in op.results:
            self._join(result, None)
        for successor in op.successors:
            self._reach(successor)
            for argument in successor.args:
                self._join(argument, None)

    def _reach(self, block: Block) -> None:
        if block not in self._reached:
            self._reached.add(block)
            for op in block.ops:
                self._soon(op)

    def _join(self, value: SSAValue, known: int | None) -> None:
        if value not in self._states:
            self._states[value] = known
        elif self._states[value] not in (None, known):
            self._states[value] = None
        else:
            return
        self._soon(value)

    def _soon(self, item: Operation | SSAValue) -> None:
        if item not in self._pending:
            self._pending.add(item)
            self._queue.append(item)


def _directs_control(op: Operation) -> bool:
    """Return True if control goes elsewhere from `op`, or into it, than to the next operation."""
    return bool(op.regions or op.successors) or (op.next_op is None and op.has_trait(IsTerminator))


class _Domain(Domain["int | None"]):
    """Numbers, or None where a value is not constant."""

    def constant(self, op: Operation, numbers: Sequence[int], bits: int) -> int | None:
        return _wrapped(numbers[0], bits)

    def binary(self, op: Operation, function: str, left: int | None, right: int | None, *, signed: bool) -> int | None:
        bits = bits_of(op.results[0]) or 0
        ones = _wrapped(-1, bits)
        known = (left, right)
        if (function in ("mul", "and") and 0 in known) or (function in ("mod", "truncmod") and right == 1):
            return 0
        if function == "or" and ones in known:
            return ones
        if function in _ZERO_OF_EQUALS and op.operands[0] is op.operands[1]:
            return 0
        if left is None or right is None or (function in DIVISIONS and right == 0):
            return None
        if function in _SHIFTS and not 0 <= right < bits:
            return None
        match function:
            case "add":
                return _wrapped(left + right, bits)
            case "sub":
                return _wrapped(left - right, bits)
            case "mul":
                return _wrapped(left * right, bits)
            case "shl":
                return _wrapped(left << right, bits)
            case _:
                numbers = [left, right] if signed else [each & ((1 << bits) - 1) for each in known if each is not None]
                return None if max(numbers) >= 1 << 63 else _wrapped(int(apply(function, numbers)), bits)

    def compare(self, op: Operation, sign: str, left: int | None, right: int | None, *, signed: bool) -> int | None:
        if op.operands[0] is op.operands[1]:
            return int(sign in _TRUE_OF_EQUALS)
        if left is None or right is None:
            return None
        if not signed:
            mask = (1 << (bits_of(op.operands[0]) or 0)) - 1
            left, right = left & mask, right & mask
        return int(COMPARISONS[sign](left, right))

    def select(self, op: arith.SelectOp, condition: int | None, left: int | None, right: int | None) -> int | None:
        if condition is None:
            return left if left == right else None
        return left if condition else right

    def extend(self, op: Operation, value: int | None, *, signed: bool) -> int | None:
        if value is None:
            return None
        bits = bits_of(op.operands[0]) or 0
        unsigned = value & ((1 << bits) - 1)
        is_negative = signed and unsigned >> (bits - 1)
        return _wrapped(unsigned - (1 << bits) if is_negative else unsigned, bits_of(op.results[0]) or 0)

    def truncate(self, op: Operation, value: int | None) -> int | None:
        return None if value is None else _wrapped(value, bits_of(op.results[0]) or 0)


_DOMAIN = _Domain()


def _wrapped(number: int, bits: int) -> int:
    """`number` modulo 2^bits, as a signed number; a single bit is 0 or 1."""
    low = number & ((1 << bits) - 1)
    return low - (1 << bits) if bits > 1 and low >> (bits - 1) else low
