"""Statements of a kernel: the simple ones here, the others in modules of their own."""

from __future__ import annotations

import ast
from typing import Any, cast

from tlx_xdsl import language
from tlx_xdsl.frontend import branches, functions, loops, tasks
from tlx_xdsl.frontend.calls import call_builtin
from tlx_xdsl.frontend.carry import runtime
from tlx_xdsl.frontend.expressions import binary, visit_name
from tlx_xdsl.frontend.values import Constexpr
from tlx_xdsl.frontend.visitor import STATEMENTS, Argument, CallSite, Visitor
from tlx_xdsl.language.core import constexpr


def _expression(visitor: Visitor, node: ast.Expr) -> None:
    """An expression on its own; a string is a docstring or a comment."""
    if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
        visitor.expression(node.value)


def _assign(visitor: Visitor, node: ast.Assign) -> None:
    """`target = value`."""
    value = visitor.expression(node.value)
    if any(not isinstance(target, ast.Attribute) for target in node.targets):
        # A field of an aggregate takes the value as it is: it may be a constexpr.
        value = runtime(visitor, node.value, value)
    for target in node.targets:
        visitor.assign(target, value)


def _annotated_assign(visitor: Visitor, node: ast.AnnAssign) -> None:
    """`name: annotation = value`."""
    if node.value is None or not isinstance(node.target, ast.Name):
        raise visitor.error(node, "an annotation needs a name and a value")
    value = visitor.expression(node.value)
    annotation = visitor.expression(node.annotation)
    if not (isinstance(annotation, Constexpr) and annotation.value is constexpr):
        visitor.assign(node.target, runtime(visitor, node.value, value))
        return
    if not functions.is_compile_time(value):
        raise visitor.error(node.value, f"'{node.target.id}' is declared constexpr, found {value.describe()}")
    if node.target.id in visitor.names:
        raise visitor.error(node, f"the constexpr '{node.target.id}' is already defined")
    visitor.names[node.target.id] = value


def _augmented_assign(visitor: Visitor, node: ast.AugAssign) -> None:
    """`name += value` and the like."""
    if not isinstance(node.target, ast.Name):
        raise visitor.not_assignable(node.target)
    current = visit_name(visitor, node.target)
    value = binary(visitor, node, node.op, current, visitor.expression(node.value))
    visitor.assign(node.target, runtime(visitor, node, value))


def _assert(visitor: Visitor, node: ast.Assert) -> None:
    """`assert condition, message`: as `tl.static_assert` for a constexpr, else as `tl.device_assert`."""
    test = visitor.expression(node.test)
    message = visitor.expression(node.msg) if node.msg is not None else None
    if not isinstance(test, Constexpr):
        arguments: list[Argument] = [(node.test, test)]
        if message is not None and node.msg is not None:
            arguments.append((node.msg, message))
        call_builtin(CallSite(visitor, node, arguments), cast(Any, language).device_assert)
    elif not test.value:
        text = message.value if isinstance(message, Constexpr) else "assertion failed"
        raise visitor.error(node, str(text))


STATEMENTS.update(
    {
        ast.Assign: _assign,
        ast.AnnAssign: _annotated_assign,
        ast.AugAssign: _augmented_assign,
        ast.Expr: _expression,
        ast.For: loops.visit_for,
        ast.While: loops.visit_while,
        ast.With: tasks.visit_with,
        ast.Assert: _assert,
        ast.If: branches.visit_if,
        ast.Return: functions.visit_return,
        ast.Pass: lambda visitor, node: None,
    }
)
