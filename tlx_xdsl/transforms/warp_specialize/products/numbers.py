"""Integer constants at the start of a task, each of which all of its code uses."""

from __future__ import annotations

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, i1, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..slices import is_whole


def number(place: Operation, value: int, type_: Attribute = i32) -> SSAValue:
    """Return an integer constant of the task that `place` lies in; make it where there is none."""
    holder = _holder_of(place)
    entry = holder.parent
    assert entry is not None
    attribute = BoolAttr.from_bool(bool(value)) if type_ == i1 else IntegerAttr(value, type_)  # pyright: ignore
    op = entry.first_op
    while op is not None and op is not holder:
        if isinstance(op, ConstantOp) and op.value == attribute:
            return op.result
        op = op.next_op
    made = ConstantOp(attribute)
    made.location = place.location
    first = entry.first_op
    assert first is not None, "a task ends in an operation"
    Rewriter.insert_op(made, InsertPoint.before(first))
    return made.result


def _holder_of(op: Operation) -> Operation:
    """Return the operation of the first block of the task, or of the function, that holds `op`, or `op` itself."""
    while True:
        parent = op.parent_op()
        assert parent is not None
        if is_whole(parent):
            return op
        op = parent
