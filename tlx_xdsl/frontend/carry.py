"""Names at control-flow joins: loops carry values, branches merge them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from xdsl.ir import SSAValue

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.language.core import float32, pointer_type

from . import semantic
from .builder import hint
from .types import ir_type
from .values import Constexpr, Tensor, TupleValue, Value, kind, parts, rebuild
from .visitor import Visitor


def assigned_names(statements: Sequence[ast.stmt]) -> list[str]:
    """Names that the statements assign, in order of first appearance."""
    return list(dict.fromkeys(node.id for node in assignments(statements)))


def assignments(statements: Sequence[ast.stmt]) -> list[ast.Name]:
    """The nodes at which the statements assign names."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    return [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def runtime(visitor: Visitor, node: ast.AST, value: Value) -> Value:
    """`value` as an assignment binds it: numbers become runtime scalars, also in tuples; the rest stays.

    As in Triton, only `name: tl.constexpr = ...` keeps a number at compile time.
    """
    if semantic.is_number(value):
        return visitor.semantic(node, semantic.to_tensor, value)
    items = visitor.items_of(value)
    if items is None:
        return value
    return TupleValue(tuple(runtime(visitor, node, item) for item in items), class_of(value))


def class_of(value: Value) -> Any:
    """The class of a named tuple."""
    if isinstance(value, TupleValue):
        return value.cls
    python: Any = value.value if isinstance(value, Constexpr) else None
    return cast(Any, type(python)) if hasattr(python, "_fields") else None


TypeMismatch: TypeAlias = Callable[[Value, Value], CompilationError]
"""The error that the second value does not have the type of the first."""


def carried(visitor: Visitor, value: Value, like: Value, mismatch: TypeMismatch) -> Value:
    """The value of a name in the next iteration, or after a branch: `value`, in the type of `like`.

    Raises `mismatch` of what does not fit, which may be an item of a tuple.
    """
    if isinstance(like, Tensor) and isinstance(value, Constexpr) and semantic.is_number(value):
        if not like.shape and not isinstance(like.dtype, pointer_type):
            return Tensor(visitor.builder.constant(value.value, ir_type(like.dtype)), like.dtype)
    elif isinstance(like, TupleValue):
        items = visitor.items_of(value)
        if items is not None and len(items) == len(like.items):
            pairs = zip(items, like.items, strict=True)
            return TupleValue(tuple(carried(visitor, item, other, mismatch) for item, other in pairs), like.cls)
    elif isinstance(like, Constexpr) and kind(like) == kind(value):
        return like
    if kind(value) != kind(like):
        raise mismatch(like, value)
    return value


def advice(like: Value, value: Value) -> str:
    """A remedy for two values under one name, when it is obvious."""
    if not isinstance(like, Tensor) or not isinstance(value, Tensor):
        return ""
    if isinstance(like.dtype, pointer_type) or isinstance(value.dtype, pointer_type):
        return ""
    if not like.shape and value.shape:
        return f"; start it as a block, such as tl.zeros({list(value.shape)}, {value.dtype!r})"
    if like.shape == value.shape:
        # What a literal has the type of.
        start = "a number such as 0.0" if not like.shape and value.dtype is float32 else f"{value.dtype!r}"
        return f"; start it as {start}, or cast with .to({like.dtype!r})"
    return ""


def merged(visitor: Visitor, node: ast.AST, sides: Sequence[Value], mismatch: TypeMismatch) -> Value:
    """The value of a name after branches that leave `sides` under it: one that each of them can be carried as.

    Raises `mismatch` of what differs in type.
    """
    if all(side is sides[0] for side in sides):
        return sides[0]
    if all(isinstance(side, Constexpr) for side in sides) and len({kind(side) for side in sides}) == 1:
        return sides[0]
    for side in sides:
        if isinstance(side, Tensor):
            return side
    if all(semantic.is_number(side) for side in sides):
        return runtime(visitor, node, sides[0])
    tuples = [visitor.items_of(side) for side in sides]
    if all(items is not None and len(items) == len(tuples[0] or ()) for items in tuples):
        cls = next((side.cls for side in sides if isinstance(side, TupleValue)), None)
        columns = zip(*(items or () for items in tuples), strict=True)
        return TupleValue(tuple(merged(visitor, node, column, mismatch) for column in columns), cls)
    if kind(sides[0]) != kind(sides[1]):
        raise mismatch(sides[0], sides[1])
    return sides[0]


def all_parts(values: Sequence[Value]) -> list[SSAValue]:
    """The IR values of several values, one after the other."""
    return [ssa for value in values for ssa in parts(value)]


def bind_names(visitor: Visitor, names: Sequence[str], like: Sequence[Value], ssa: Sequence[SSAValue]) -> None:
    """Let each name hold a value like that of `like`, made of the next values of `ssa`."""
    values = iter(ssa)
    for name, value in zip(names, like, strict=True):
        visitor.names[name] = new = rebuild(value, values)
        for part in parts(new):
            hint(part, name)


def forget(visitor: Visitor, names: Sequence[str], why: str) -> None:
    """Remember for error messages why names do not exist any more."""
    for name in names:
        if name not in visitor.names:
            visitor.gone[name] = why
