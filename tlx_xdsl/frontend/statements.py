"""Statements of a kernel: the simple ones here, the others in modules of their own."""

from __future__ import annotations

import ast
from typing import Any, cast

from tlx_xdsl import language
from tlx_xdsl.frontend import branches, functions, loops, tasks
from tlx_xdsl.frontend.calls import call_builtin
from tlx_xdsl.frontend.carry import runtime
from tlx_xdsl.frontend.constructs import construct
from tlx_xdsl.frontend.expressions import binary, visit_name
from tlx_xdsl.frontend.values import Constexpr, TupleValue, Value
from tlx_xdsl.frontend.visitor import STATEMENTS, Argument, CallSite, Visitor
from tlx_xdsl.language.core import constexpr


def _expression(visitor: Visitor, node: ast.Expr) -> None:
    """An expression on its own; a string is a docstring or a comment."""
    if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
        visitor.unused = node.value
        visitor.expression(node.value)


def _assign(visitor: Visitor, node: ast.Assign) -> None:
    """`target = value`."""
    value = visitor.expression(node.value)
    if any(not isinstance(target, ast.Attribute) for target in node.targets) and not visitor.declared:
        # A field of an aggregate takes the value as it is: it may be a constexpr.
        value = runtime(visitor, node.value, value)
    for target in node.targets:
        visitor.assign(target, _as_declared(visitor, node.value, target, value) if visitor.declared else value)


def _as_declared(visitor: Visitor, node: ast.expr, target: ast.expr, value: Value) -> Value:
    """`value` as the assignment to `target` binds it, in which names that are declared constexpr keep a constexpr."""
    match target:
        case ast.Name(id=name) if name in visitor.declared:
            visitor.declared -= {name}
            return _known(visitor, node, name, value)
        case ast.Tuple() | ast.List():
            items = visitor.items_of(value)
            starred = any(isinstance(element, ast.Starred) for element in target.elts)
            if items is None or starred or len(items) != len(target.elts):
                return runtime(visitor, node, value)
            pairs = zip(target.elts, items, strict=True)
            return TupleValue(tuple(_as_declared(visitor, node, element, item) for element, item in pairs))
        case ast.Attribute():
            return value
        case _:
            return runtime(visitor, node, value)


def _known(visitor: Visitor, node: ast.expr, name: str, value: Value) -> Value:
    """The value of a name that is declared constexpr."""
    if not functions.is_compile_time(value):
        raise visitor.error(node, f"'{name}' is declared constexpr, found {value.describe()}")
    return value


def _annotated_assign(visitor: Visitor, node: ast.AnnAssign) -> None:
    """`name: annotation = value`, or a declaration for the next assignment to the name."""
    if not isinstance(node.target, ast.Name):
        raise visitor.error(node.target, f"an annotation needs a name, found {construct(node.target)}")
    name = node.target.id
    value = None if node.value is None else visitor.expression(node.value)
    annotation = visitor.expression(node.annotation)
    is_constexpr = isinstance(annotation, Constexpr) and annotation.value is constexpr
    if node.value is None or value is None:
        visitor.declared = visitor.declared | {name} if is_constexpr else visitor.declared - {name}
    elif not is_constexpr:
        visitor.assign(node.target, runtime(visitor, node.value, value))
    elif name in visitor.names:
        raise visitor.error(node, f"the constexpr '{name}' is already defined")
    else:
        visitor.names[name] = _known(visitor, node.value, name, value)


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
