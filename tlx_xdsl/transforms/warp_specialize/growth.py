"""Growth of integers with other ones, such as the number of a tile or of a group of warps."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects.arith import ExtSIOp, TruncIOp

from ..rewriting import constant_integer


def growth(value: SSAValue, grows: Callable[[SSAValue], bool]) -> int | None:
    """Return 1 for an integer that never shrinks when others grow, -1 for one that never grows; 0 for one that stays.

    None where that is not known. `grows` says which values grow; what does not follow from them stays the same.
    """
    if grows(value):
        return 1
    op = value.owner
    if not isinstance(op, Operation) or op.regions:
        return 0
    parts = [growth(operand, grows) for operand in op.operands]
    if not any(part != 0 for part in parts):
        return 0
    match op:
        case arith.AddiOp() | arith.MinSIOp() | arith.MaxSIOp():
            return _both(*parts)
        case arith.SubiOp():
            return _both(parts[0], None if parts[1] is None else -parts[1])
        case arith.MuliOp():
            return _scaled(op.lhs, op.rhs, parts) or _scaled(op.rhs, op.lhs, parts[::-1])
        case arith.DivSIOp():
            return parts[0] if (constant_integer(op.rhs) or 0) > 0 else None
        case ExtSIOp() | TruncIOp():
            return parts[0]
        case _:
            return None


def _both(one: int | None, other: int | None) -> int | None:
    """Return how a number goes that goes as two others do."""
    if one is None or other is None or one * other < 0:
        return None
    return one or other


def _scaled(value: SSAValue, factor: SSAValue, parts: list[int | None]) -> int | None:
    known, part = constant_integer(factor), parts[0]
    return None if known is None or part is None else part * ((known > 0) - (known < 0))
