"""Integer arithmetic on constants, as the frontend folds it: a copied turn of a loop has constants for its number."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ...rewriting import constant_integer
from .numbers import number

_RULES: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.DivSIOp: lambda a, b: a // b,
    arith.RemSIOp: lambda a, b: a % b,
    arith.AndIOp: lambda a, b: a & b,
    arith.XOrIOp: lambda a, b: a ^ b,
}
"""What the operations do to numbers that are not negative."""
_KEEPING_ZERO = (arith.AddiOp, arith.SubiOp)
LIMIT = 1 << 31


def folded(op: Operation, holder: Operation) -> SSAValue | None:
    """Return the value that an operation, not inserted yet, is known to have; `holder` is in the task.

    Sums with zero are the other summand. None where the operation is needed.
    """
    rule = _RULES.get(type(op))
    if rule is None:
        return None
    a, b = map(constant_integer, op.operands)
    if b == 0 and isinstance(op, _KEEPING_ZERO):
        return op.operands[0]
    if a == 0 and isinstance(op, arith.AddiOp):
        return op.operands[1]
    if a is None or b is None or a < 0 or b < 0 or (b == 0 and isinstance(op, arith.DivSIOp | arith.RemSIOp)):
        return None
    result = rule(a, b)
    return number(holder, result, op.results[0].type) if 0 <= result < LIMIT else None
