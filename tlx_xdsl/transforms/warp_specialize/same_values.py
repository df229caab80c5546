"""Values that are computed in the same way of the same values, each for itself."""

from __future__ import annotations

from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.traits import is_side_effect_free


def is_same(first: SSAValue, second: SSAValue) -> bool:
    """Say whether two values that are both there have the same bits."""
    return _is_same(first, second, {})


def _is_same(first: SSAValue, second: SSAValue, known: dict[tuple[SSAValue, SSAValue], bool]) -> bool:
    if first is second:
        return True
    if (first, second) in known:
        return known[first, second]
    a, b = first.owner, second.owner
    known[first, second] = (
        isinstance(first, OpResult)
        and isinstance(second, OpResult)
        and isinstance(a, Operation)
        and isinstance(b, Operation)
        and not a.regions
        and (type(a), first.index, first.type, a.properties) == (type(b), second.index, second.type, b.properties)
        and is_side_effect_free(a)
        and len(a.operands) == len(b.operands)
        and all(_is_same(x, y, known) for x, y in zip(a.operands, b.operands, strict=True))
    )
    return known[first, second]
