"""Expressions of a kernel."""

from __future__ import annotations

import ast
import builtins
from types import ModuleType
from typing import Any

from tlx_xdsl.language.core import dtype, pointer_type
from tlx_xdsl.language.tlx.layouts import layout_encoding

from . import objects, semantic
from .attributes import attribute_of, subscript_of
from .branches import visit_ternary
from .carry import assignments
from .declarations import bound
from .functions import is_compile_time, python_value
from .python.foreign import NotInOurLanguage, compile_time, source_of
from .python.source import construct
from .python.suggestions import did_you_mean
from .values import Aggregate, Constexpr, TupleValue, Value
from .visitor import EXPRESSIONS, Argument, CallSite, Visitor

_BINARY: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "__add__"),
    ast.Sub: ("-", "__sub__"),
    ast.Mult: ("*", "__mul__"),
    ast.Div: ("/", "__truediv__"),
    ast.FloorDiv: ("//", "__floordiv__"),
    ast.Mod: ("%", "__mod__"),
    ast.Pow: ("**", "__pow__"),
    ast.BitAnd: ("&", "__and__"),
    ast.BitOr: ("|", "__or__"),
    ast.BitXor: ("^", "__xor__"),
    ast.LShift: ("<<", "__lshift__"),
    ast.RShift: (">>", "__rshift__"),
}
_COMPARE: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "__eq__"),
    ast.NotEq: ("!=", "__ne__"),
    ast.Lt: ("<", "__lt__"),
    ast.LtE: ("<=", "__le__"),
    ast.Gt: (">", "__gt__"),
    ast.GtE: (">=", "__ge__"),
}
_UNARY: dict[type[ast.unaryop], str] = {
    ast.Not: "__not__",
    ast.USub: "__neg__",
    ast.UAdd: "__pos__",
    ast.Invert: "__invert__",
}
"""Operators and the methods by which aggregates say what they mean."""


# --- names and literals ---------------------------------------------------------------------------------------------


def visit_name(visitor: Visitor, node: ast.Name) -> Value:
    """The value of a name: a local value, a global, or a function of Python."""
    name = node.id
    if name in visitor.names:
        return visitor.names[name]
    if name in visitor.gone:
        raise visitor.error(node, f"'{name}' has no value here: {visitor.gone[name]}")
    found, value = visitor.source.lookup(name)
    if found:
        return _global(visitor, node, value)
    if hasattr(builtins, name):
        return Constexpr(getattr(builtins, name))
    assigned = [place.lineno for place in assignments(visitor.source.tree.body) if place.id == name]
    if assigned:
        first = assigned[0]
        why = f"it is assigned later, in line {first}" if first > node.lineno else f"line {first} is not compiled"
        if first == node.lineno:
            why = "this line is the first that assigns it"
        raise visitor.error(node, f"'{name}' has no value here: {why}")
    known = {*visitor.names, *visitor.source.visible_names(), *dir(builtins)}
    raise visitor.error(node, f"name '{name}' is not defined" + did_you_mean(name, known))


def _global(visitor: Visitor, node: ast.Name, value: Any) -> Value:
    is_constexpr = type(value).__name__ == "constexpr"
    value = _compile_time(visitor, node, value)
    if (
        is_constexpr
        or isinstance(value, ModuleType | dtype | pointer_type | layout_encoding)
        or callable(value)
        or source_of(value) is not None
    ):
        return Constexpr(value)
    if visitor.source.is_library:
        return Constexpr(value)
    raise visitor.error(
        node,
        f"Cannot access global variable '{node.id}': a kernel sees constexprs only, make it "
        f"`{node.id} = tl.constexpr(...)` or pass it as an argument",
    )


def _compile_time(visitor: Visitor, node: ast.AST, value: Any) -> Any:
    """`foreign.compile_time`; what tlx_xdsl does not have is an error at `node`."""
    try:
        return compile_time(value)
    except NotInOurLanguage as error:
        raise visitor.error(node, str(error)) from error


def _tuple(visitor: Visitor, node: ast.Tuple | ast.List) -> Value:
    items: list[Value] = []
    for element in node.elts:
        if isinstance(element, ast.Starred):
            spread = visitor.items_of(visitor.expression(element.value))
            if spread is None:
                raise visitor.error(element, "only a tuple can be spread into a tuple")
            items.extend(spread)
        else:
            items.append(visitor.expression(element))
    return make_tuple(items)


def make_tuple(items: list[Value]) -> Value:
    """A tuple of values: a compile-time one when nothing in it is known at run time only."""
    if all(isinstance(item, Constexpr) for item in items):
        return Constexpr(tuple(item.value for item in items if isinstance(item, Constexpr)))
    return TupleValue(tuple(items))


def _format(visitor: Visitor, node: ast.JoinedStr) -> Value:
    text: list[str] = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            text.append(str(part.value))
            continue
        assert isinstance(part, ast.FormattedValue)
        value = visitor.expression(part.value)
        if not is_compile_time(value):
            raise visitor.error(part.value, f"an f-string takes constexprs only, found {value.describe()}")
        spec = _format(visitor, part.format_spec) if isinstance(part.format_spec, ast.JoinedStr) else Constexpr("")
        assert isinstance(spec, Constexpr)
        shown = python_value(value)
        conversions = {ord("s"): str, ord("r"): repr, ord("a"): ascii}
        if part.conversion in conversions:
            shown = conversions[part.conversion](shown)
        try:
            text.append(format(shown, spec.value))
        except (TypeError, ValueError) as error:
            raise visitor.error(part.value, f"cannot format {value.describe()}: {error}") from error
    return Constexpr("".join(text))


def _comprehension(visitor: Visitor, node: ast.ListComp | ast.GeneratorExp) -> Value:
    if len(node.generators) != 1:
        raise visitor.error(node, "a comprehension in a kernel has one 'for'")
    generator = node.generators[0]
    iterable = visitor.expression(generator.iter)
    values = visitor.items_of(iterable)
    if values is None and isinstance(iterable, Constexpr) and isinstance(iterable.value, range):
        values = tuple(Constexpr(index) for index in iterable.value)
    if values is None:
        raise visitor.error(generator.iter, f"a comprehension runs over a tuple, found {iterable.describe()}")
    outer = dict(visitor.names)
    items: list[Value] = []
    for value in values:
        visitor.assign(generator.target, value)
        tests = [(test, visitor.expression(test)) for test in generator.ifs]
        for place, test in tests:
            if not isinstance(test, Constexpr):
                raise visitor.error(place, f"a comprehension filters by constexprs, found {test.describe()}")
        if all(test.value for _, test in tests if isinstance(test, Constexpr)):
            items.append(visitor.expression(node.elt))
    visitor.names = outer
    return make_tuple(items)


def _walrus(visitor: Visitor, node: ast.NamedExpr) -> Value:
    value = bound(visitor, node.value, node.target, visitor.expression(node.value))
    visitor.assign(node.target, value)
    return value


# --- operators ------------------------------------------------------------------------------------------------------


def _bin_op(visitor: Visitor, node: ast.BinOp) -> Value:
    left, right = visitor.expression(node.left), visitor.expression(node.right)
    return binary(visitor, node, node.op, left, right)


def binary(visitor: Visitor, node: ast.AST, op: ast.operator, lhs: Value, rhs: Value) -> Value:
    """`lhs op rhs`."""
    if type(op) not in _BINARY:
        raise visitor.error(node, f"unsupported operator in a kernel: {construct(op)}")
    symbol, method = _BINARY[type(op)]
    if (own := objects.operate(visitor, node, method, lhs, rhs)) is not None:
        return own
    left, right = visitor.items_of(lhs), visitor.items_of(rhs)
    if symbol == "+" and left is not None and right is not None:
        return make_tuple([*left, *right])
    if symbol == "*" and left is not None and isinstance(rhs, Constexpr) and isinstance(rhs.value, int):
        return make_tuple(list(left) * rhs.value)
    return visitor.semantic(node, semantic.binary, symbol, lhs, rhs)


def _compare(visitor: Visitor, node: ast.Compare) -> Value:
    if len(node.ops) != 1:
        return _chained(visitor, node)
    lhs, rhs = visitor.expression(node.left), visitor.expression(node.comparators[0])
    return _compare_two(visitor, node, node.ops[0], lhs, rhs)


def _compare_two(visitor: Visitor, node: ast.Compare, op: ast.cmpop, lhs: Value, rhs: Value) -> Value:
    if isinstance(op, ast.Is | ast.IsNot):
        return Constexpr(_is_same(visitor, node, lhs, rhs) == isinstance(op, ast.Is))
    if isinstance(op, ast.In | ast.NotIn):
        return Constexpr(_is_member(visitor, node, lhs, rhs) == isinstance(op, ast.In))
    symbol, method = _COMPARE[type(op)]
    if (own := objects.operate(visitor, node, method, lhs, rhs)) is not None:
        return own
    if symbol in ("==", "!=") and is_compile_time(lhs) and is_compile_time(rhs):
        return Constexpr((python_value(lhs) == python_value(rhs)) == (symbol == "=="))
    if symbol in ("==", "!=") and (_is_none(lhs) or _is_none(rhs)):
        # A runtime value is never None.
        return Constexpr(symbol == "!=")
    return visitor.semantic(node, semantic.compare, symbol, lhs, rhs)


def _is_none(value: Value) -> bool:
    return isinstance(value, Constexpr) and value.value is None


def _chained(visitor: Visitor, node: ast.Compare) -> Value:
    """`a < b < c`: `(a < b) and (b < c)`, each operand evaluated at most once; of blocks by element."""
    lhs = visitor.expression(node.left)
    comparisons: list[Value] = []
    for op, operand in zip(node.ops, node.comparators, strict=True):
        rhs = visitor.expression(operand)
        one = _compare_two(visitor, node, op, lhs, rhs)
        lhs = rhs
        if not isinstance(one, Constexpr):
            comparisons.append(one)
        elif not one.value:
            return one
    while len(comparisons) > 1:
        *comparisons, left, right = comparisons
        comparisons.append(_both(visitor, node, left, right))
    return comparisons[0] if comparisons else Constexpr(True)


def _both(visitor: Visitor, node: ast.AST, left: Value, right: Value) -> Value:
    own = objects.operate(visitor, node, "logical_and", left, right)
    if own is not None:
        return own
    return visitor.semantic(
        node, semantic.binary, "&", visitor.as_condition(node, left), visitor.as_condition(node, right)
    )


def _is_same(visitor: Visitor, node: ast.Compare, lhs: Value, rhs: Value) -> bool:
    if not _is_none(rhs) and not isinstance(lhs, Constexpr):
        raise visitor.error(node, "'is' compares compile-time values, or anything with None")
    return isinstance(lhs, Constexpr) and isinstance(rhs, Constexpr) and lhs.value is rhs.value


def _is_member(visitor: Visitor, node: ast.Compare, lhs: Value, rhs: Value) -> bool:
    if not is_compile_time(lhs) or not is_compile_time(rhs):
        raise visitor.error(node, f"'in' takes compile-time values, found {lhs.describe()} and {rhs.describe()}")
    try:
        return python_value(lhs) in python_value(rhs)
    except TypeError as error:
        raise visitor.error(node, f"'in': {error}") from error


def _bool_op(visitor: Visitor, node: ast.BoolOp) -> Value:
    result = visitor.expression(node.values[0])
    for operand in node.values[1:]:
        if isinstance(result, Constexpr):
            # As in Python, the right side is not looked at when the left side decides.
            if bool(result.value) == isinstance(node.op, ast.Or):
                return result
            result = visitor.expression(operand)
            continue
        right = visitor.expression(operand)
        method = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        if (own := objects.operate(visitor, node, method, result, right)) is not None:
            result = own
            continue
        symbol = "&" if isinstance(node.op, ast.And) else "|"
        left, right = visitor.as_condition(node, result), visitor.as_condition(operand, right)
        result = visitor.semantic(node, semantic.binary, symbol, left, right)
    return result


def _unary(visitor: Visitor, node: ast.UnaryOp) -> Value:
    value = visitor.expression(node.operand)
    if (own := objects.call_own(visitor, node, value, _UNARY[type(node.op)])) is not None:
        return own
    match node.op:
        case ast.Not():
            if is_compile_time(value):
                return Constexpr(not python_value(value))
            return visitor.semantic(node, semantic.binary, "^", visitor.as_condition(node, value), Constexpr(True))
        case ast.USub():
            return visitor.semantic(node, semantic.negate, value)
        case ast.UAdd():
            return value
        case _:
            return visitor.semantic(node, semantic.invert, value)


# --- calls ----------------------------------------------------------------------------------------------------------


def call_site(visitor: Visitor, node: ast.Call) -> CallSite:
    """The call with its arguments, which are compiled now."""
    positional: list[Argument] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            items = visitor.items_of(visitor.expression(argument.value))
            if items is None:
                raise visitor.error(argument, "only a tuple can be spread into arguments")
            positional.extend((argument, item) for item in items)
        else:
            positional.append((argument, visitor.expression(argument)))
    keywords: dict[str, Argument] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise visitor.error(keyword.value, "a kernel can't spread a dictionary into arguments")
        keywords[keyword.arg] = (keyword.value, visitor.expression(keyword.value))
    return CallSite(visitor, node, positional, keywords)


def _subscript(visitor: Visitor, node: ast.Subscript) -> Value:
    value = visitor.expression(node.value)
    if isinstance(value, Aggregate) and not isinstance(node.slice, ast.Slice):
        own = objects.call_own(visitor, node, value, "__getitem__", visitor.expression(node.slice))
        if own is not None:
            return own
    return subscript_of(visitor, node, value)


def _call(visitor: Visitor, node: ast.Call) -> Value:
    callee = visitor.expression(node.func)
    site = call_site(visitor, node)
    visitor.locate(node)
    return objects.call(site, callee)


EXPRESSIONS.update(
    {
        ast.Constant: lambda visitor, node: Constexpr(node.value),
        ast.Name: visit_name,
        ast.Attribute: lambda visitor, node: attribute_of(visitor, node, visitor.expression(node.value)),
        ast.Subscript: _subscript,
        ast.Call: _call,
        ast.BinOp: _bin_op,
        ast.Compare: _compare,
        ast.BoolOp: _bool_op,
        ast.UnaryOp: _unary,
        ast.IfExp: visit_ternary,
        ast.Tuple: _tuple,
        ast.List: _tuple,
        ast.JoinedStr: _format,
        ast.ListComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.NamedExpr: _walrus,
    }
)
