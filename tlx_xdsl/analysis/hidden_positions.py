"""Positions of a loaded block that never reach memory: a walk forward along one of its dimensions.

`tl.load(a + (rows % M)[:, None] * stride + ...)` reads rows beyond the last one from the beginning of the tensor. What
it reads there makes no difference if every value that depends on such a row is the same row of some block, until a
store whose mask hides it. The walk follows one position of a dimension through elementwise operations, changes of
shape, matrix products along their outer dimensions, reductions along other dimensions and control flow; anything else
ends it.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import is_elementwise
from tlx_xdsl.dialects.regions import forwarded

from .integers.transfer import shape_of

Hides = Callable[[SSAValue, int], bool]
"""Says of a mask and a dimension whether it is false at the positions in question."""
_At = tuple[SSAValue, int]
_BY_MASK = (tt.StoreOp, tt.AtomicRMWOp)
"""Operations that do nothing with the elements of a value where their mask is false."""


def reaches(value: SSAValue, dim: int, hides: Hides) -> Operation | None:
    """The first operation by which the positions of `value` along `dim` may make a difference; None if they can't."""
    seen: set[_At] = set()
    pending: list[_At] = [(value, dim)]
    while pending:
        here, along = pending.pop()
        if (here, along) in seen:
            continue
        seen.add((here, along))
        for use in here.uses:
            found = _beyond(use.operation, use.index, along, hides)
            if found is None:
                return use.operation
            pending += found
    return None


def _beyond(op: Operation, number: int, dim: int, hides: Hides) -> list[_At] | None:
    """The values that take over the positions of an operand; None where those may reach others."""
    if (inputs := forwarded(op).get(number)) is not None:
        return [(value, dim) for value in inputs]
    if isinstance(op, _BY_MASK):
        is_hidden = op.mask is not None and op.operands[number] is not op.mask and hides(op.mask, dim)
        # Where an operand is both the value and the pointers, it is no tensor of numbers.
        return [(result, dim) for result in op.results] if is_hidden and op.operands[number] is not op.ptr else None
    if isinstance(op, tt.ReduceOp):
        axis = op.axis.value.data
        return None if axis == dim else [(result, dim - (dim > axis)) for result in op.results]
    if op.regions or not is_side_effect_free(op):
        return None
    if isinstance(op, tt.ElementwiseInlineAsmOp):
        # Assembly of packed elements may mix them.
        return None
    moved = dim if is_elementwise(op) else _moved(op, number, dim)
    return None if moved is None else [(result, moved) for result in op.results]


def _moved(op: Operation, number: int, dim: int) -> int | None:
    """The dimension of the results along which the positions of an operand lie."""
    match op:
        case tt.DotOp():
            rank = len(shape_of(op.d))
            # The dimension of the sum is the last one of the left and the last but one of the right operand.
            summed = {0: rank - 1, 1: rank - 2}.get(number)
            return None if dim == summed else dim
        case tt.ExpandDimsOp():
            return dim + (dim >= op.axis.value.data)
        case tt.BroadcastOp():
            return dim
        case tt.TransOp():
            return [int(each) for each in op.order.get_values()].index(dim)
        case tt.ReshapeOp() if op.allow_reorder is None:
            before, after = shape_of(op.src), shape_of(op.result)
            return dim if before[: dim + 1] == after[: dim + 1] else None
        case tt.SplitOp():
            return dim if dim < len(shape_of(op.src)) - 1 else None
        case tt.JoinOp():
            return dim
        case _:
            return None
