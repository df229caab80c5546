"""Loops and branches."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import i1, i32
from xdsl.ir import Block, Region

from tlx_xdsl.frontend import semantic
from tlx_xdsl.frontend.builder import hint, hint_all
from tlx_xdsl.frontend.types import ir_type
from tlx_xdsl.frontend.values import Constexpr, Tensor, Value
from tlx_xdsl.language.core import builtin_name, int32, pointer_type

if TYPE_CHECKING:
    from tlx_xdsl.frontend.visitor import Visitor


def assigned_names(statements: Sequence[ast.stmt]) -> list[str]:
    """Names that the statements assign, in order of first appearance."""
    names: dict[str, None] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.setdefault(node.id)
    return list(names)


def is_numeric(value: Value) -> bool:
    """Whether a loop can carry `value`: a runtime value, or a number that can become one."""
    return isinstance(value, Tensor) or (isinstance(value, Constexpr) and isinstance(value.value, int | float))


# --- for ------------------------------------------------------------------------------------------------------------


def visit_for(visitor: Visitor, node: ast.For) -> None:
    """A `for` over `range`, `tl.range` or `tl.static_range`."""
    if node.orelse:
        raise visitor.error(node.orelse[0], "a loop in a kernel can't have an 'else'")
    if not isinstance(node.target, ast.Name):
        raise visitor.error(node.target, "a loop in a kernel counts with one name")
    bounds = _range_arguments(visitor, node)
    if bounds is None:
        raise visitor.error(node.iter, "a loop in a kernel runs over range(...), tl.range(...) or tl.static_range(...)")
    is_static, values = bounds
    if is_static:
        _unroll(visitor, node, node.target, values)
    else:
        _emit_for(visitor, node, node.target, values)


def _range_arguments(visitor: Visitor, node: ast.For) -> tuple[bool, list[Value]] | None:
    """Whether the loop is unrolled, and [start, stop, step]; None when the iterable is no range."""
    if not isinstance(node.iter, ast.Call):
        return None
    callee = visitor.expression(node.iter.func)
    function = callee.value if isinstance(callee, Constexpr) else None
    name = builtin_name(function)
    if function is not range and name not in ("tl.range", "tl.static_range"):
        return None
    if node.iter.keywords:
        keyword = node.iter.keywords[0]
        raise visitor.error(keyword.value, f"the range option '{keyword.arg}' is not supported yet")
    arguments = [visitor.expression(argument) for argument in node.iter.args]
    match arguments:
        case [stop]:
            values = [Constexpr(0), stop, Constexpr(1)]
        case [start, stop]:
            values = [start, stop, Constexpr(1)]
        case [_, _, _]:
            values = arguments
        case _:
            raise visitor.error(node.iter, f"a range takes 1 to 3 arguments, found {len(arguments)}")
    return name == "tl.static_range", values


def _unroll(visitor: Visitor, node: ast.For, target: ast.Name, values: list[Value]) -> None:
    numbers: list[int] = []
    for value in values:
        if not isinstance(value, Constexpr) or not isinstance(value.value, int):
            raise visitor.error(node.iter, f"tl.static_range takes constexpr integers, found {value.describe()}")
        numbers.append(value.value)
    for index in range(*numbers):
        visitor.names[target.id] = Constexpr(index)
        visitor.visit_body(node.body)


def _emit_for(visitor: Visitor, node: ast.For, target: ast.Name, values: list[Value]) -> None:
    builder = visitor.builder
    step = values[2]
    if isinstance(step, Constexpr) and (not isinstance(step.value, int) or step.value <= 0):
        raise visitor.error(node.iter, f"the step of a loop must be a positive integer, found {step.describe()}")
    start, stop, step = (_loop_bound(visitor, node, value) for value in values)
    outer = dict(visitor.names)
    carried = [
        name for name in assigned_names(node.body) if name in outer and name != target.id and is_numeric(outer[name])
    ]
    initial = [_as_tensor(visitor, node, outer[name]) for name in carried]
    block = Block(arg_types=[i32, *(value.ssa.type for value in initial)])
    for argument in block.args:
        argument.location = builder.location
    location = builder.location
    hint(block.args[0], target.id)
    hint_all(block.args[1:], carried)
    visitor.names[target.id] = Tensor(block.args[0], int32)
    for name, argument, value in zip(carried, block.args[1:], initial, strict=True):
        visitor.names[name] = Tensor(argument, value.dtype, value.shape)
    with builder.at_end_of(block):
        visitor.visit_body(node.body)
        yielded = [
            _carried_on(visitor, node, name, visitor.names[name], value)
            for name, value in zip(carried, initial, strict=True)
        ]
        visitor.locate(node)
        builder.insert(scf.YieldOp(*(value.ssa for value in yielded)))
    _check_not_rebound(visitor, node, outer, carried, target.id)
    builder.location = location
    loop = scf.ForOp(start.ssa, stop.ssa, step.ssa, [value.ssa for value in initial], Region(block))
    builder.insert(loop)
    # What the body introduces does not exist when it never ran; the loop's own name included.
    visitor.names = outer
    for name, result, value in zip(carried, loop.res, initial, strict=True):
        hint(result, name)
        visitor.names[name] = Tensor(result, value.dtype, value.shape)


def _loop_bound(visitor: Visitor, node: ast.For, value: Value) -> Tensor:
    tensor = _as_tensor(visitor, node.iter, value)
    if tensor.shape or isinstance(tensor.dtype, pointer_type) or not tensor.dtype.is_int():
        raise visitor.error(node.iter, f"a range takes scalar integers, found {tensor.describe()}")
    if tensor.dtype.primitive_bitwidth > 32:
        raise visitor.error(node.iter, f"64-bit loops are not supported yet, found {tensor.describe()}")
    return visitor.semantic(node.iter, semantic.cast, tensor, int32)


def _as_tensor(visitor: Visitor, node: ast.AST, value: Value) -> Tensor:
    return visitor.semantic(node, semantic.to_tensor, value)


def _carried_on(visitor: Visitor, node: ast.AST, name: str, value: Value, like: Tensor) -> Tensor:
    """What the next iteration (or the code after a branch) finds under `name`: it must keep its type."""
    number = value.value if isinstance(value, Constexpr) else None
    if isinstance(number, int | float) and not like.shape and not isinstance(like.dtype, pointer_type):
        return Tensor(visitor.builder.constant(number, ir_type(like.dtype)), like.dtype)
    if not isinstance(value, Tensor) or (value.dtype, value.shape) != (like.dtype, like.shape):
        raise visitor.error(
            node, f"'{name}' is {like.describe()} before and {value.describe()} after: it must keep its type"
        )
    return value


def _check_not_rebound(
    visitor: Visitor, node: ast.For, outer: dict[str, Value], carried: Sequence[str], target: str
) -> None:
    for name in assigned_names(node.body):
        if name in outer and name not in carried and name != target and visitor.names.get(name) is not outer[name]:
            raise visitor.error(node, f"'{name}', {outer[name].describe()}, can't be assigned again inside a loop")


# --- if -------------------------------------------------------------------------------------------------------------


def visit_if(visitor: Visitor, node: ast.If) -> None:
    """An `if`: a compile-time condition picks a branch, a runtime one becomes `scf.if`."""
    test = visitor.expression(node.test)
    if isinstance(test, Constexpr):
        visitor.visit_body(node.body if test.value else node.orelse)
        return
    condition = visitor.as_condition(node.test, test)
    if condition.shape:
        raise visitor.error(node.test, f"a branch needs a scalar condition, found {condition.describe()}")
    visitor.locate(node)
    location = visitor.builder.location
    outer = dict(visitor.names)
    branches: list[tuple[Block, dict[str, Value]]] = []
    for body in (node.body, node.orelse):
        visitor.names = dict(outer)
        block = Block()
        with visitor.builder.at_end_of(block):
            visitor.visit_body(body)
        branches.append((block, visitor.names))
    visitor.builder.location = location
    merged = list(_merged(visitor, node, outer, branches[0][1], branches[1][1]))
    types: list[Any] = []
    for block, names in branches:
        with visitor.builder.at_end_of(block):
            values = [_carried_on(visitor, node, name, names[name], like) for name, like in merged]
            visitor.builder.location = location
            visitor.builder.insert(scf.YieldOp(*(value.ssa for value in values)))
        types = [value.ssa.type for value in values]
    assert condition.ssa.type == i1
    op = scf.IfOp(condition.ssa, types, Region(branches[0][0]), Region(branches[1][0]))
    visitor.builder.insert(op)
    visitor.names = outer
    for (name, like), result in zip(merged, op.results, strict=True):
        hint(result, name)
        visitor.names[name] = Tensor(result, like.dtype, like.shape)


def _merged(
    visitor: Visitor, node: ast.If, outer: dict[str, Value], then: dict[str, Value], other: dict[str, Value]
) -> Iterator[tuple[str, Tensor]]:
    """Names that leave the branches with another value than they came with, and a value of their type."""
    for name in assigned_names((*node.body, *node.orelse)):
        if name not in then or name not in other:
            # Defined on one side only: it does not exist afterwards.
            continue
        if then[name] is other[name]:
            continue
        if not is_numeric(then[name]) or not is_numeric(other[name]):
            raise visitor.error(
                node,
                f"'{name}' is {then[name].describe()} on one side, {other[name].describe()} on the other",
            )
        like = next((v for v in (then[name], other[name], outer.get(name)) if isinstance(v, Tensor)), None)
        yield name, like if like is not None else _as_tensor(visitor, node, then[name])
