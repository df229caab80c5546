"""Calls of functions that are not of the language: those of the kernel are compiled where they are called."""

from __future__ import annotations

import ast
import builtins
import inspect
from types import FunctionType
from typing import Any

from tlx_xdsl.frontend.python.source import KernelSource

from .calls import Argument, Call, arguments_of, lowering, shown
from .operators import binary, extreme
from .tiles import as_tiles, is_of_tiles, unary
from .values import NONE, Index, Items, Program, Range, Static, Thread, Value
from .visitor import Function, Visitor, assigned_names

_DEEPEST = 32
"""Calls within calls: beyond, a function calls itself."""


def call_function(visitor: Visitor, node: ast.Call, callee: Function | Static) -> Value:
    """Call a function of the kernel, or one of Python's."""
    positional, keywords = arguments_of(visitor, node)
    if isinstance(callee, Function):
        return call_inline(visitor, node, callee, positional, keywords)
    fn: Any = callee.value
    if not callable(fn):
        raise visitor.error(node, f"{callee.describe()} can't be called")
    plain: list[Any] = []
    try:
        plain = [_object(value) for _, value in positional]
        named = {name: _object(value) for name, (_, value) in keywords.items()}
    except _NotKnown as error:
        if isinstance(fn, FunctionType):
            source = KernelSource(fn)
            outside = Visitor(source, visitor.unit)
            return call_inline(visitor, node, Function(source.tree, outside), positional, keywords)
        name = getattr(fn, "__name__", repr(fn))
        raise visitor.error(node, f"'{name}' needs arguments that are known at compile time, found {error}") from error
    try:
        return visitor.wrap(fn(*plain, **named))
    except Exception as error:
        name = getattr(fn, "__name__", repr(fn))
        raise visitor.error(node, f"'{name}' raised {type(error).__name__}: {error}") from error


class _NotKnown(Exception):
    """A value is not known at compile time."""


def _object(value: Value) -> Any:
    """The object of Python that a value is."""
    match value:
        case Static(value=found):
            return found
        case Items(items=items, is_list=is_list):
            found = [_object(item) for item in items]
            return found if is_list else tuple(found)
        case _:
            raise _NotKnown(value.describe())


def call_inline(
    visitor: Visitor,
    node: ast.AST,
    callee: Function,
    positional: list[Argument],
    keywords: dict[str, Argument],
) -> Value:
    """Compile a function's body where it is called."""
    if visitor.depth >= _DEEPEST:
        raise visitor.error(node, f"{callee.describe()} is called within itself: a TTL kernel has no recursion")
    inner = Visitor(callee.visitor.source, visitor.unit, callee.visitor)
    inner.thread, inner.depth = visitor.thread, visitor.depth + 1
    visitor.locate(node)
    inner.call_site = visitor.builder.location
    inner.entry = visitor.builder.block
    arguments = callee.node.args
    _bind_parameters(visitor, node, callee, inner, arguments, positional, keywords)
    if isinstance(callee.node, ast.Lambda):
        return inner.expression(callee.node.body)
    inner.local = assigned_names(callee.node.body)
    result = inner.body(callee.node.body)
    return NONE if result is None else result


def _bind_parameters(
    visitor: Visitor,
    node: ast.AST,
    callee: Function,
    inner: Visitor,
    arguments: ast.arguments,
    positional: list[Argument],
    keywords: dict[str, Argument],
) -> None:
    if arguments.vararg is not None or arguments.kwarg is not None:
        raise callee.visitor.error(
            callee.node, f"{callee.describe()} can't take '*' or '**': give each argument a name"
        )
    kinds = inspect.Parameter
    required, default = kinds.empty, NONE
    names = [*arguments.posonlyargs, *arguments.args]
    given = [required] * (len(names) - len(arguments.defaults)) + arguments.defaults
    parameters = [kinds(each.arg, kinds.POSITIONAL_OR_KEYWORD, default=value)
                  for each, value in zip(names, given, strict=True)]  # fmt: skip
    parameters += [kinds(each.arg, kinds.KEYWORD_ONLY, default=required if value is None else value)
                   for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]  # fmt: skip
    signature = inspect.Signature(parameters)
    try:
        bound = signature.bind(*positional, **keywords)
    except TypeError as error:
        bare = signature.replace(parameters=[each.replace(default=required) for each in parameters])
        raise visitor.error(node, f"{callee.name}: {error}; expected {callee.name}{shown(bare)}") from error
    for name, parameter in signature.parameters.items():
        if name in bound.arguments:
            inner.names[name] = bound.arguments[name][1]
        else:
            inner.names[name] = callee.visitor.expression(parameter.default) if parameter.default else default


# --- functions of Python --------------------------------------------------------------------------------------------


def call_python(visitor: Visitor, node: ast.Call, name: str) -> Value:
    """Call one of Python's own functions."""
    positional, keywords = arguments_of(visitor, node)
    strict = name == "zip" and keywords.pop("strict", (node, Static(False)))[1] == Static(True)
    for keyword in keywords:
        raise visitor.error(node, f"'{name}' takes no argument '{keyword}' in a TTL kernel")
    values = [value for _, value in positional]
    if name in ("min", "max"):
        return _extreme(visitor, node, name, values)
    if name == "abs" and values and is_of_tiles(values[0]):
        return unary(visitor, node, "abs", as_tiles(visitor, node, values[0], "'abs'"))
    if name == "slice" and 1 <= len(values) <= 3:
        first, *rest = values
        return Range(first, *rest, *[None] * (2 - len(rest))) if rest else Range(None, first, None)
    if name in ("len", "enumerate", "zip", "list", "tuple", "reversed", "sum"):
        return _of_sequences(visitor, node, name, values, strict=strict)
    if name == "divmod" and len(values) == 2:
        return Items([binary(visitor, node, op, *values) for op in (ast.FloorDiv(), ast.Mod())])
    if name == "int" and len(values) == 1 and isinstance(values[0], Index):
        return values[0]
    return _known(visitor, node, name, values)


def _known(visitor: Visitor, node: ast.Call, name: str, values: list[Value]) -> Value:
    """A function of what is known at compile time."""
    try:
        plain = [_object(value) for value in values]
    except _NotKnown as error:
        hint = ": it may only be what a 'for' goes over" if name == "range" else ""
        raise visitor.error(node, f"'{name}' needs what is known at compile time, found {error}{hint}") from error
    try:
        found = getattr(builtins, name)(*plain)
    except Exception as error:
        raise visitor.error(node, f"'{name}' raised {type(error).__name__}: {error}") from error
    return visitor.wrap(list(found) if name == "range" else found)


def _extreme(visitor: Visitor, node: ast.Call, name: str, values: list[Value]) -> Value:
    if len(values) == 1 and isinstance(values[0], Items):
        values = values[0].items
    if any(is_of_tiles(value) for value in values):
        raise visitor.error(node, f"'{name}' is for numbers: ttl.math.{name} is that of blocks")
    if values and any(isinstance(value, Index) for value in values):
        return extreme(visitor, node, name, values)
    return _known(visitor, node, name, values)


def _of_sequences(visitor: Visitor, node: ast.Call, name: str, values: list[Value], *, strict: bool) -> Value:
    """A function of tuples or lists."""
    sequences: list[list[Value]] = []
    for value in values:
        if not isinstance(value, Items):
            raise visitor.error(node, f"'{name}' needs a tuple or a list, found {value.describe()}")
        sequences.append(value.items)
    if len(sequences) != 1 and name != "zip":
        raise visitor.error(node, f"'{name}' takes one argument, found {len(sequences)}")
    match name:
        case "len":
            return Static(len(sequences[0]))
        case "enumerate":
            return Items([Items([Static(i), item]) for i, item in enumerate(sequences[0])])
        case "zip":
            lengths = [len(each) for each in sequences]
            if strict and len(set(lengths)) > 1:
                raise visitor.error(node, f"'zip' with strict=True needs equal lengths, found {lengths}")
            return Items([Items(list(items)) for items in zip(*sequences, strict=False)])
        case "sum":
            total: Value = Static(0)
            for item in sequences[0]:
                total = binary(visitor, node, ast.Add(), total, item)
            return total
        case "reversed":
            return Items(sequences[0][::-1], is_list=True)
        case _:
            return Items(list(sequences[0]), is_list=name == "list")


# `ttl.Program(compute, read, write)(a, b, c)`: it lists what the decorators have said.


@lowering("ttl.Program")
def _program(call: Call) -> Value:
    threads = call["threads"]
    assert isinstance(threads, Items)
    for each in threads.items:
        if not isinstance(each, Thread):
            raise call.error(
                None,
                f"a program is of functions with @ttl.compute() or @ttl.datamovement(), found {each.describe()}",
            )
    return Program()
