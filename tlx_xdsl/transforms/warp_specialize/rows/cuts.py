"""Cuts of a function: the values that each group of warps has a part of, when groups share the rows of the products.

From the products on, a cut spreads over operations by their ties (`dialects/dimensions.py`) and over control flow by
its edges: to the operands that give the rows, and to everything that is made of them. What can be computed again of
numbers is not drawn in (offsets, masks, pointers, constants, a loaded row of scales): it is computed once as a whole
and once in parts, where both are used. What a cut does not get to, each group has whole.

A cut ends in a refusal where an operation combines rows with each other, or where a value would be cut along two
dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import regions, tt
from tlx_xdsl.dialects.base import is_set
from tlx_xdsl.dialects.dimensions import Side, Tie, shape_of_value, ties
from tlx_xdsl.dialects.scf import LOOPS

from ..refusal import refusal_at

PRODUCTS = (tt.DotOp, tt.DotScaledOp)


class Cuts:
    """The cut of a function into `groups` parts, along dimension `axis` of its products, counted from the last one."""

    def __init__(self, function: tt.FuncOp, groups: int, axis: int) -> None:
        self.groups = groups
        self._what = "rows" if axis == -2 else "columns"
        self.dims: dict[SSAValue, int] = {}
        """The dimension along which each value is cut that there is once."""
        self.parts: dict[SSAValue, set[int]] = {}
        """The dimensions along which parts of values are computed, beside the whole where that is used."""
        self.tied: dict[Operation, Tie] = {}
        """The operations of which each group does a part."""
        self._work: list[SSAValue] = []
        leaving = [edge for op in function.walk() for edge in regions.edges(op) or ()]
        self._incoming = regions.incoming(leaving)
        for product in _products(function):
            result = product.results[0]
            if result not in self.dims:
                self._cut(result, len(shape_of_value(result)) + axis, product)
            while self._work:
                self._spread(self._work.pop())

    def dim_of(self, op: Operation, index: int) -> int | None:
        """Return the dimension along which an operation takes a part of one of its operands; None for the whole."""
        tie = self.tied.get(op)
        if tie is not None:
            return next((side.dim for side in tie if not side.is_result and side.number == index), None)
        inputs = regions.forwarded(op).get(index, ())
        return next((self.dims[value] for value in inputs if value in self.dims), None)

    def operands_of_part(self, value: OpResult, dim: int) -> dict[int, int]:
        """Return the operands that give a part of a value that is computed again, each with its dimension."""
        side = Side(True, value.index, dim)
        tie = next(tie for tie in ties(value.op) if side in tie)
        return {each.number: each.dim for each in tie if not each.is_result}

    def _cut(self, value: SSAValue, dim: int, user: Operation) -> None:
        """Cut a value along `dim`, which `user` asks for."""
        if shape_of_value(value)[dim] % self.groups:
            raise refusal_at(
                value, f"{shape_of_value(value)[dim]} {self._what} can't be shared by {self.groups} groups"
            )
        if is_recomputable(value):
            if dim not in self.parts.setdefault(value, set()):
                self.parts[value].add(dim)
                assert isinstance(value, OpResult)
                self._tie(value.op, Side(True, value.index, dim), note=False)
        elif value not in self.dims:
            self.dims[value] = dim
            self._work.append(value)
        elif (known := self.dims[value]) != dim:
            raise refusal_at(user, f"{_name(value)} would be cut along its dimensions {known} and {dim}")

    def _spread(self, value: SSAValue) -> None:
        """Cut what `value` is made of, and what is made of it."""
        dim = self.dims[value]
        for use in list(value.uses):
            inputs = regions.forwarded(use.operation).get(use.index)
            if inputs is None:
                self._tie(use.operation, Side(False, use.index, dim))
            else:
                self._follow(inputs, dim, use.operation)
        if value in self._incoming:
            self._follow(self._incoming[value], dim, _owner(value))
        elif isinstance(value, OpResult):
            self._tie(value.op, Side(True, value.index, dim))
        elif not isinstance(value.type, tt.DescriptorType):
            raise refusal_at(value, f"{_name(value)} comes from where its {self._what} can't be chosen")

    def _follow(self, values: Sequence[SSAValue], dim: int, user: Operation) -> None:
        for value in values:
            if self.dims.get(value) != dim:
                self._cut(value, dim, user)

    def _tie(self, op: Operation, side: Side, *, note: bool = True) -> None:
        """Cut everything that is tied to one side of `op`."""
        tie = next((each for each in ties(op) if side in each), None)
        if tie is None:
            raise refusal_at(op, f"'{op.name}' needs all {self._what} of {_name(side.value(op))} at once")
        if note and self.tied.setdefault(op, tie) != tie:
            raise refusal_at(op, f"'{op.name}' would have to be cut along rows and columns")
        for each in tie:
            if each != side:
                self._follow((each.value(op),), each.dim, op)


def is_recomputable(value: SSAValue) -> bool:
    """Say whether a tensor or a descriptor follows from numbers by pure operations, and may be computed again.

    A row or a column that is loaded at places that do so may be loaded again, too: that is cheap.
    """
    stack, seen = [value], set[SSAValue]()
    while stack:
        each = stack.pop()
        if each in seen or not shape_of_value(each):
            continue
        seen.add(each)
        op = each.owner
        if isinstance(op, Block) or op.regions or isinstance(op, PRODUCTS):
            return False
        if not is_side_effect_free(op) and not _is_load_of_a_line(op):
            return False
        stack.extend(op.operands)
    return True


def _is_load_of_a_line(op: Operation) -> bool:
    """Say whether an operation loads one row or column by threads, in no order with anything else."""
    if not isinstance(op, tt.LoadOp) or is_set(op, "isVolatile"):
        return False
    return sum(size > 1 for size in shape_of_value(op.result)) <= 1


def _products(function: tt.FuncOp) -> list[Operation]:
    """Return the products of a function, those first that a loop carries."""
    found = [op for op in function.walk() if isinstance(op, PRODUCTS)]
    return sorted(found, key=lambda op: not _is_carried(op))


def _is_carried(product: Operation) -> bool:
    """Say whether a loop carries the result of a product, as it is."""
    users = [use.operation for use in product.results[0].uses]
    return any(isinstance(user, scf.YieldOp) and isinstance(user.parent_op(), LOOPS) for user in users)


def _owner(value: SSAValue) -> Operation:
    """Return the operation that gives a value, or the one around the block that has it as an argument."""
    owner = value.owner
    if isinstance(owner, Operation):
        return owner
    parent = owner.parent_op()
    assert parent is not None, "blocks stand in a function"
    return parent


def _name(value: SSAValue) -> str:
    """Return the name of a value, for a message."""
    return f"'{value.name_hint}'" if value.name_hint else f"a value of type {value.type}"
