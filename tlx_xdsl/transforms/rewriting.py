"""Small rewriting steps that keep locations, shared by the passes."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

OpT = TypeVar("OpT", bound=Operation)


def retype(value: SSAValue, type_: Attribute) -> None:
    """Give `value` another type in place.

    xDSL's way makes a new value, which loses the location of a block argument and every table that is keyed by
    the value; the type is no part of a value's identity.
    """
    value._type = type_  # pyright: ignore[reportPrivateUsage]


def constant_integer(value: SSAValue) -> int | None:
    """The number that `value` is when it is the result of an integer constant."""
    op = value.owner
    if isinstance(op, ConstantOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data
    return None


def retyped(value: DenseIntOrFPElementsAttr, type_: Attribute) -> DenseIntOrFPElementsAttr:
    """The same elements as a constant of another tensor type, such as one with a layout."""
    # xDSL asks for a tensor type whose elements it knows to be numbers.
    return DenseIntOrFPElementsAttr(cast(Any, type_), value.data)


def insert_before(anchor: Operation, op: OpT, *, located_at: Operation | None = None) -> OpT:
    """Insert `op` before `anchor`, with the location of `located_at` (of `anchor` by default)."""
    op.location = (anchor if located_at is None else located_at).location
    block = anchor.parent_block()
    assert block is not None, "the anchor must stand in a block"
    block.insert_op_before(op, anchor)
    return op


def insert_behind(value: SSAValue, op: OpT) -> OpT:
    """Insert `op` where `value` is first known, with the location of its definition."""
    if isinstance(value, BlockArgument):
        first = value.block.first_op
        assert first is not None, "a block ends in an operation"
        insert_before(first, op)
        op.location = value.location
        return op
    owner = value.owner
    assert isinstance(owner, Operation)
    op.location = owner.location
    block = owner.parent_block()
    assert block is not None, "the value must be defined in a block"
    block.insert_op_after(op, owner)
    return op


def replace(op: Operation, new_op: OpT) -> OpT:
    """Put `new_op` in the place of `op`: same location, its results take over all uses and names."""
    insert_before(op, new_op)
    for old, new in zip(op.results, new_op.results, strict=True):
        old.replace_all_uses_with(new)
    Rewriter.erase_op(op)
    return new_op
