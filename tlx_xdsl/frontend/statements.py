"""Statements of a kernel: the simple ones here, the others in modules of their own."""

from __future__ import annotations

import ast
from typing import Any, cast

from tlx_xdsl import language
from tlx_xdsl.language.core import constexpr

from . import branches, functions, loops, tasks
from .calls import call_builtin
from .carry import runtime
from .declarations import bound, declare, known
from .expressions import binary, visit_name
from .python.source import construct
from .values import Constexpr
from .visitor import STATEMENTS, Argument, CallSite, Visitor


def _expression(visitor: Visitor, node: ast.Expr) -> None:
    """An expression on its own; a string is a docstring or a comment."""
    if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
        visitor.unused = node.value
        visitor.expression(node.value)


def _assign(visitor: Visitor, node: ast.Assign) -> None:
    """`target = value`."""
    value = visitor.expression(node.value)
    if not visitor.declared and not any(isinstance(target, ast.Attribute) for target in node.targets):
        # One value for all targets.
        value = runtime(visitor, node.value, value)
    for target in node.targets:
        visitor.assign(target, bound(visitor, node.value, target, value))


def _annotated_assign(visitor: Visitor, node: ast.AnnAssign) -> None:
    """`name: annotation = value`, or a declaration for the next assignment to the name."""
    if not isinstance(node.target, ast.Name):
        raise visitor.error(node.target, f"an annotation needs a name, found {construct(node.target)}")
    name = node.target.id
    value = None if node.value is None else visitor.expression(node.value)
    annotation = visitor.expression(node.annotation)
    is_constexpr = isinstance(annotation, Constexpr) and annotation.value is constexpr
    if node.value is None or value is None:
        declare(visitor, name, is_constexpr=is_constexpr)
    elif not is_constexpr:
        visitor.assign(node.target, runtime(visitor, node.value, value))
    elif name in visitor.names:
        raise visitor.error(node, f"the constexpr '{name}' is already defined")
    else:
        visitor.names[name] = known(visitor, node.value, name, value)


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
