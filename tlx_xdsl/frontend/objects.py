"""Calls of objects in a kernel."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from enum import Enum
from typing import Any, cast

from xdsl.dialects.builtin import StringAttr, i1

from tlx_xdsl import language
from tlx_xdsl.dialects import tt
from tlx_xdsl.errors import BREAKPOINT
from tlx_xdsl.language.core import MUST_USE_MARK, builtin_name, constexpr

from . import semantic
from .aggregates import bound, make_aggregate, replaced
from .attributes import attribute_names, attribute_of, call_method
from .calls import call_builtin
from .functions import bind_python, call_jitted, is_compile_time
from .python.foreign import aggregate_of, constexpr_function_of, source_of
from .slips import function_hint
from .values import (
    NONE,
    Aggregate,
    Constexpr,
    Method,
    Tensor,
    TupleValue,
    Value,
    describe_object,
)
from .visitor import CallSite, Visitor

_ANY_ARGUMENTS: tuple[Any, ...] = (
    abs, bool, bytes, dict, divmod, float, int, len, list, max, min, pow, range, repr, reversed, round, set,
    sorted, str, sum, tuple, zip, enumerate, all, any, getattr, hasattr, type,
)  # fmt: skip
"""Functions of Python that kernels may call on compile-time values."""


def call(site: CallSite, callee: Value) -> Value:
    """`callee(...)`, called at `site`."""
    if isinstance(callee, Method):
        on_receiver = site.on(callee.receiver)
        if callee.function is None:
            return call_method(on_receiver, callee)
        return _call_function(on_receiver, callee.function)
    if not isinstance(callee, Constexpr):
        raise site.visitor.error(site.callee, f"{callee.describe()} can't be called")
    return _call_function(site, callee.value)


def _call_function(site: CallSite, function: Any) -> Value:
    _refuse_unused(site, function)
    if builtin_name(function) is not None:
        return call_builtin(site, function)
    if (source := source_of(function)) is not None:
        return call_jitted(site, source)
    if (python := constexpr_function_of(function)) is not None:
        return bind_python(site, python)
    if (cls := aggregate_of(function)) is not None:
        return make_aggregate(site, function, cls)
    if _hashable(function) and function in _PYTHON:
        special = _PYTHON[function](site)
        if special is not None:
            return special
    if isinstance(function, type):
        return _call_class(site, function)
    if _is_helper(function):
        return bind_python(site, function)
    raise site.error(f"{describe_object(function)} can't be called in a kernel{function_hint(function)}")


# --- operators of aggregates ------------------------------------------------------------------------------------------

_REFLECTED = {"__lt__": "__gt__", "__gt__": "__lt__", "__le__": "__ge__", "__ge__": "__le__"}
_SYMMETRIC = ("__eq__", "__ne__", "logical_and", "logical_or")


def operate(visitor: Visitor, node: ast.AST, name: str, lhs: Value, rhs: Value) -> Value | None:
    """Return what an aggregate says that an operator between two values is; None where it says nothing.

    `name` is the operator's method, such as `__add__`. As in Python, the right operand is asked where the left one has
    none, returns NotImplemented, or is of a base class of the right one's.
    """
    reflected = name if name in _SYMMETRIC else _REFLECTED.get(name, f"__r{name[2:]}")
    asked = [(lhs, name, rhs), (rhs, reflected, lhs)]
    if isinstance(lhs, Aggregate) and isinstance(rhs, Aggregate) and _is_below(rhs.cls, lhs.cls):
        asked.reverse()
    for owner, method, other in asked:
        result = call_own(visitor, node, owner, method, other)
        if result is not None and not (isinstance(result, Constexpr) and result.value is NotImplemented):
            return result
    return None


def call_own(visitor: Visitor, node: ast.AST, owner: Value, name: str, *arguments: Value) -> Value | None:
    """Call the method that an aggregate's class has for an operator; None where it has none."""
    function = getattr(owner.cls, name, None) if isinstance(owner, Aggregate) else None
    if function is None or (source_of(function) is None and constexpr_function_of(function) is None):
        return None
    return _call_function(CallSite(visitor, node, [(node, each) for each in (owner, *arguments)]), function)


def _is_below(cls: Any, other: Any) -> bool:
    one, base = aggregate_of(cls), aggregate_of(other)
    return one is not None and base is not None and one is not base and issubclass(one, base)


def _refuse_unused(site: CallSite, function: Any) -> None:
    """Refuse a statement that does nothing: the call of a function whose result is the point of it."""
    must_use: Any = getattr(function, MUST_USE_MARK, False)
    if not must_use or site.node is not site.visitor.unused:
        return
    why = f" {must_use}" if isinstance(must_use, str) else ""
    raise site.error(f"The result of {ast.unparse(site.callee)} is not being used.{why}")


def _hashable(value: Any) -> bool:
    return getattr(value, "__hash__", None) is not None


def _is_helper(function: Any) -> bool:
    """Say whether `function` may run at compile time: a function of the user's, or one of Python's."""
    if inspect.isfunction(function) or inspect.ismethod(function):
        return True
    return inspect.isbuiltin(function) and (
        function in _ANY_ARGUMENTS or getattr(function, "__module__", None) in ("math", "operator", None)
    )


# --- classes --------------------------------------------------------------------------------------------------------


def _call_class(site: CallSite, cls: Any) -> Value:
    if issubclass(cls, tuple) and hasattr(cast(Any, cls), "_fields"):
        items = bound(site, cls.__name__, inspect.signature(cast(Any, cls)))
        return TupleValue(tuple(value for _, value in items), cls)
    if cls is constexpr:
        if len(site.positional) != 1 or site.keywords or not is_compile_time(site.positional[0][1]):
            raise site.error("tl.constexpr takes one compile-time value")
        return site.positional[0][1]
    ours = cls.__module__.startswith("tlx_xdsl.language")
    if cls in _ANY_ARGUMENTS or issubclass(cls, Enum) or ours:
        return bind_python(site, cls)
    raise site.error(f"a kernel can't make instances of '{cls.__name__}': use an aggregate or a named tuple")


# --- functions of Python that mean something for runtime values -----------------------------------------------------

_Special = Callable[[CallSite], Value | None]


def _minmax(name: str) -> _Special:
    def handler(site: CallSite) -> Value | None:
        values = [value for _, value in site.positional]
        if all(is_compile_time(value) for value in values):
            return None
        if len(values) < 2 or site.keywords:
            raise site.error(f"{name} of runtime values takes at least two arguments")
        result = values[0]
        for value in values[1:]:
            result = site.visitor.semantic(site.node, semantic.binary, name, result, value)
        return result

    return handler


def _len(site: CallSite) -> Value | None:
    if len(site.positional) == 1 and isinstance(site.positional[0][1], TupleValue):
        return Constexpr(len(site.positional[0][1].items))
    return None


def _tuple(site: CallSite) -> Value | None:
    """`tuple` and `list` of a tuple of runtime values."""
    if len(site.positional) != 1 or site.keywords or not isinstance(site.positional[0][1], TupleValue):
        return None
    return TupleValue(site.positional[0][1].items)


def _named_attribute(site: CallSite) -> tuple[Value, str] | None:
    """The runtime value and the name that `hasattr` or `getattr` is called on; None for objects of Python."""
    if len(site.positional) < 2 or site.keywords:
        return None
    value, name = (given for _, given in site.positional[:2])
    is_python = isinstance(value, Constexpr) and not semantic.is_number(value)
    if is_python or not isinstance(name, Constexpr) or not isinstance(name.value, str):
        return None
    return value, name.value


def _hasattr(site: CallSite) -> Value | None:
    """`hasattr` of a runtime value: the answer is known at compile time."""
    named = _named_attribute(site) if len(site.positional) == 2 else None
    return None if named is None else Constexpr(named[1] in attribute_names(named[0]))


def _getattr(site: CallSite) -> Value | None:
    """`getattr(value, "name")` of a runtime value is `value.name`; one that it lacks is the third argument."""
    named = _named_attribute(site)
    if named is None:
        return None
    value, name = named
    if len(site.positional) == 3 and name not in attribute_names(value):
        return site.positional[2][1]
    node = ast.Attribute(cast(ast.expr, site.positional[0][0]), name, ast.Load())
    return attribute_of(site.visitor, ast.copy_location(node, site.node), value)


def _abs(site: CallSite) -> Value | None:
    if len(site.positional) == 1 and isinstance(site.positional[0][1], Tensor):
        return call_builtin(site, cast(Any, language).abs)
    return None


def _letters(text: str) -> str:
    """A text for between quotes."""
    return text.replace('"', "'")


def _print(site: CallSite) -> Value | None:
    first = site.positional[0] if site.positional else None
    if first is not None and not (isinstance(first[1], Constexpr) and isinstance(first[1].value, str)):
        values = ", ".join(ast.unparse(place) for place, _ in site.positional)
        example = f'print("{_letters(values)}", {values})'
        raise site.visitor.error(first[0], f"print takes a text first, found {first[1].describe()}: write {example}")
    return call_builtin(site, cast(Any, language).device_print)


def _breakpoint(site: CallSite) -> Value | None:
    if site.positional or site.keywords:
        raise site.error("breakpoint() takes no arguments in a kernel")
    builder = site.visitor.builder
    message = {"message": StringAttr(BREAKPOINT)}
    builder.insert(tt.AssertOp.build(operands=[builder.constant(False, i1)], properties=message))
    return NONE


def _isinstance(site: CallSite) -> Value | None:
    """`isinstance` by the names of Triton's classes."""
    if len(site.positional) != 2 or site.keywords or not is_compile_time(site.positional[1][1]):
        raise site.error("isinstance takes a value and a class")
    value = site.positional[0][1]
    asked = site.visitor.items_of(site.positional[1][1]) or (site.positional[1][1],)
    classes = [item.value for item in asked if isinstance(item, Constexpr)]
    if not all(isinstance(cls, type) for cls in classes):
        raise site.error(f"isinstance takes a value and a class, found {site.positional[1][1].describe()}")
    return Constexpr(any(_is_instance(value, cls) for cls in classes))


def _is_instance(value: Value, cls: Any) -> bool:
    name = getattr(cls, "__name__", "")
    match value:
        case TupleValue(cls=named) if named is not None and isinstance(cls, type) and issubclass(named, cls):
            return True
        case Aggregate():
            return value.cls is cls
        case Constexpr():
            if cls is constexpr:
                return True
            return isinstance(cls, type) and isinstance(value.value, cls)
        case _:
            return bool(name) and name == value.CLASS_NAME


_PYTHON: dict[Any, _Special] = {
    min: _minmax("min"),
    max: _minmax("max"),
    len: _len,
    abs: _abs,
    tuple: _tuple,
    list: _tuple,
    cast(Any, language).tuple: _tuple,
    getattr: _getattr,
    hasattr: _hasattr,
    print: _print,
    breakpoint: _breakpoint,
    isinstance: _isinstance,
    cast(Any, language).aggregate_replace: replaced,
}
