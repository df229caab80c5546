"""Branches: `if` statements and conditional expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import cf, scf
from xdsl.ir import Block, Region

from tlx_xdsl.errors import CompilationError

from . import semantic
from .carry import (
    TypeMismatch,
    all_parts,
    assigned_names,
    bind_names,
    carried,
    forget,
    merged,
    runtime,
)
from .functions import refuse_early_return
from .values import Constexpr, Tensor, Value, Values, parts, rebuild
from .visitor import Visitor


def contains_return(statements: Sequence[ast.stmt]) -> bool:
    """Say whether there is a `return` in the statements."""
    return any(isinstance(node, ast.Return) for statement in statements for node in ast.walk(statement))


@dataclass
class _Side:
    """A branch of an `if` after the walk through it."""

    block: Block
    """The block in which the branch ends."""
    names: Values
    returned: bool = False


def visit_if(visitor: Visitor, node: ast.If) -> bool:
    """A compile-time condition picks a branch, a runtime one becomes a branch of the IR.

    Returns whether control never reaches the code after the `if` because all paths return.
    """
    test = visitor.expression(node.test)
    if isinstance(test, Constexpr):
        return visitor.visit_body(node.body if test.value else node.orelse)
    if isinstance(test, Tensor) and test.shape and prod(test.shape) == 1:
        test = _only_element(visitor, node.test, test)
    condition = visitor.branch_condition(node.test, test, "a branch")
    visitor.locate(node)
    if contains_return((*node.body, *node.orelse)):
        if not visitor.builder.can_branch:
            refuse_early_return(visitor, node)
        return _branch(visitor, node, condition)
    _emit_if(visitor, node, condition)
    return False


def _only_element(visitor: Visitor, node: ast.expr, test: Tensor) -> Tensor:
    """The number in a block of one element, which Triton takes for a condition, with a warning."""
    scalar: Tensor = visitor.semantic(node, semantic.unsplat, test)
    way = f"write ({ast.unparse(node)}).item()"
    visitor.warn(scalar, f"the condition of this branch is {test.describe()}, not a scalar: {way}")
    return scalar


def _branch(visitor: Visitor, node: ast.If, condition: Tensor) -> bool:
    """An `if` that returns, in the body of a function: blocks and `cf` branches."""
    builder = visitor.builder
    location, outer, declared = builder.location, dict(visitor.names), visitor.declared
    starts = [builder.new_block(), builder.new_block()]
    builder.insert(cf.ConditionalBranchOp(condition.ssa, starts[0], [], starts[1], []))
    sides: list[_Side] = []
    visitor.branches += 1
    for start, body in zip(starts, (node.body, node.orelse), strict=True):
        visitor.names, visitor.declared = dict(outer), declared
        builder.move_to(start)
        returned = visitor.visit_body(body)
        sides.append(_Side(builder.block, visitor.names, returned))
    visitor.branches -= 1
    builder.location = location
    going_on = [side for side in sides if not side.returned]
    if len(going_on) < 2:
        if going_on:
            builder.move_to(going_on[0].block)
            visitor.names = going_on[0].names
        return not going_on
    names, like = _merge(visitor, node, going_on)
    mismatch = _mismatch(visitor, node)
    join: Block | None = None
    for side in going_on:
        builder.move_to(side.block)
        values = all_parts([carried(visitor, side.names[n], v, mismatch(n)) for n, v in zip(names, like, strict=True)])
        builder.location = location
        if join is None:
            join = builder.new_block([value.type for value in values])
        builder.insert(cf.BranchOp(join, *values))
    assert join is not None
    builder.move_to(join)
    _leave(visitor, node, outer, going_on)
    bind_names(visitor, names, like, join.args)
    return False


def _emit_if(visitor: Visitor, node: ast.If, condition: Tensor) -> None:
    builder = visitor.builder
    location, outer, declared = builder.location, dict(visitor.names), visitor.declared
    sides: list[_Side] = []
    for body in (node.body, node.orelse):
        visitor.names, visitor.declared = dict(outer), declared
        block = Block()
        with builder.at_end_of(block):
            visitor.visit_body(body)
        sides.append(_Side(block, visitor.names))
    builder.location = location
    names, like = _merge(visitor, node, sides)
    mismatch = _mismatch(visitor, node)
    types = [value.type for value in all_parts(like)]
    for side in sides:
        with builder.at_end_of(side.block):
            values = [carried(visitor, side.names[n], v, mismatch(n)) for n, v in zip(names, like, strict=True)]
            builder.location = location
            builder.insert(scf.YieldOp(*all_parts(values)))
    op = scf.IfOp(condition.ssa, types, Region(sides[0].block), Region(sides[1].block))
    builder.insert(op)
    _leave(visitor, node, outer, sides)
    bind_names(visitor, names, like, op.results)


def _merge(visitor: Visitor, node: ast.If, sides: Sequence[_Side]) -> tuple[list[str], list[Value]]:
    """Names that leave the sides with another value than they came with, and a value of the type of each."""
    names: list[str] = []
    like: list[Value] = []
    for name in assigned_names((*node.body, *node.orelse)):
        if any(name not in side.names for side in sides) or _is_none_once(name, sides):
            # It does not exist afterwards: see `_leave`.
            continue
        values = [side.names[name] for side in sides]
        if all(value is values[0] for value in values):
            continue
        names.append(name)
        like.append(merged(visitor, node, values, _mismatch(visitor, node)(name)))
    return names, like


def _is_none_once(name: str, sides: Sequence[_Side]) -> bool:
    """Say whether a name is None on one side and has a value on the other: afterwards it is neither."""
    values = [side.names.get(name) for side in sides]
    is_none = [isinstance(value, Constexpr) and value.value is None for value in values]
    return None not in values and any(is_none) and not all(is_none)


def _mismatch(visitor: Visitor, node: ast.If) -> Callable[[str], TypeMismatch]:
    """The error that a name is of different types after the sides of the `if`."""

    def of_name(name: str) -> TypeMismatch:
        return lambda one, other: visitor.error(
            node,
            f"Mismatched type for {name}: it is {one.describe()} on one side of this 'if' and {other.describe()} on "
            "the other",
        )

    return of_name


def _leave(visitor: Visitor, node: ast.If, outer: Values, sides: Sequence[_Side]) -> None:
    """Restore the names after the branches: what was there before, and what all sides agree on without a merge."""
    new: Values = {}
    for name, value in sides[0].names.items():
        if all(side.names.get(name) is value for side in sides):
            new[name] = value
    nones = [name for name in outer if _is_none_once(name, sides)]
    # What a side has no value of any more, the code after it has not either.
    gone = {*nones, *(name for name in outer if any(name not in side.names for side in sides))}
    visitor.names = {name: value for name, value in {**outer, **new}.items() if name not in gone}
    one_sided = [name for side in sides for name in side.names if name not in visitor.names]
    forget(visitor, one_sided, f"it is assigned on one side only of the 'if' in line {node.lineno}")
    forget(visitor, nones, f"it is None on one side only of the 'if' in line {node.lineno}")


def visit_ternary(visitor: Visitor, node: ast.IfExp) -> Value:
    """`x if condition else y`: like an `if`, for a scalar condition."""
    test = visitor.expression(node.test)
    if isinstance(test, Constexpr):
        return visitor.expression(node.body if test.value else node.orelse)
    if isinstance(test, Tensor) and test.shape:
        raise visitor.error(
            node.test, f"a condition must be a scalar, found {test.describe()}: choose by element with tl.where"
        )
    condition = visitor.branch_condition(node.test, test, "a conditional expression")
    builder = visitor.builder
    visitor.locate(node)
    location = builder.location
    blocks, values = [Block(), Block()], list[Value]()
    for block, expression in zip(blocks, (node.body, node.orelse), strict=True):
        with builder.at_end_of(block):
            values.append(runtime(visitor, expression, visitor.expression(expression)))

    def mismatch(one: Value, other: Value) -> CompilationError:
        return visitor.error(
            node,
            "Ternary expression with dynamic condition has inconsistent type: "
            f"found {one.describe()} and {other.describe()}",
        )

    like = merged(visitor, node, values, mismatch)
    for block, value in zip(blocks, values, strict=True):
        with builder.at_end_of(block):
            builder.location = location
            builder.insert(scf.YieldOp(*parts(carried(visitor, value, like, mismatch))))
    types = [value.type for value in parts(like)]
    op = scf.IfOp(condition.ssa, types, Region(blocks[0]), Region(blocks[1]))
    builder.insert(op)
    return rebuild(like, iter(op.results))
