"""Expressions of a kernel."""

from __future__ import annotations

import ast
from typing import Any

from xdsl.dialects import arith

from tlx_xdsl.frontend.python.suggestions import did_you_mean

from .. import language as language
from .affine import Affine
from .calls import arguments_of, call_builtin, call_method, methods_of
from .functions import call_function, call_python
from .operators import binary, compare, truth, unary
from .pieces import piece_of
from .printing import print_values
from .values import (
    NONE,
    Acquired,
    Buffer,
    Builtin,
    Condition,
    Index,
    Items,
    Method,
    Namespace,
    Pipe,
    Program,
    Range,
    Static,
    Tensor,
    Text,
    Value,
)
from .visitor import EXPRESSIONS, Function, Visitor


def _constant(visitor: Visitor, node: ast.Constant) -> Value:
    return Static(node.value)


def _tuple(visitor: Visitor, node: ast.Tuple | ast.List) -> Value:
    items: list[Value] = []
    for element in node.elts:
        value = visitor.expression(element.value if isinstance(element, ast.Starred) else element)
        if not isinstance(element, ast.Starred):
            items.append(value)
        elif isinstance(value, Items):
            items += value.items
        else:
            raise visitor.error(element, f"'*' needs a tuple or a list, found {value.describe()}")
    return Items(items, isinstance(node, ast.List))


def _attribute(visitor: Visitor, node: ast.Attribute) -> Value:
    owner = visitor.expression(node.value)
    if isinstance(owner, Namespace):
        return _member(visitor, node, owner)
    if isinstance(owner, Static) and owner.value is not None:
        return _python_attribute(visitor, node, owner)
    own = _attributes_of(owner)
    if node.attr in own:
        return own[node.attr]
    methods = methods_of(owner)
    if node.attr in methods or (isinstance(owner, Items) and owner.is_list and node.attr == "append"):
        return Method(owner, node.attr)
    raise visitor.error(
        node, f"{owner.describe()} has no attribute '{node.attr}'" + did_you_mean(node.attr, (*own, *methods))
    )


def _member(visitor: Visitor, node: ast.Attribute, owner: Namespace) -> Value:
    module: Any = language
    for part in owner.name.split(".")[1:]:
        module = getattr(module, part, None)
    found = getattr(module, node.attr, None)
    known = () if module is None else module.__all__
    if module is language:
        known = (*known, *language.math.__all__, "ttl")
    if found is None or node.attr not in known:
        hint = language.ABSENT.get(node.attr)
        hint = did_you_mean(node.attr, known) if hint is None else f": {hint}"
        raise visitor.error(node, f"'{owner.name}' has no '{node.attr}'{hint}")
    return visitor.wrap(found)


def _python_attribute(visitor: Visitor, node: ast.Attribute, owner: Static) -> Value:
    """An attribute of an object of Python that the kernel sees."""
    try:
        return visitor.wrap(getattr(owner.value, node.attr))
    except AttributeError as error:
        suggestion = did_you_mean(node.attr, dir(owner.value))
        raise visitor.error(node, f"{owner.describe()} has no attribute '{node.attr}'{suggestion}") from error


def _attributes_of(value: Value) -> dict[str, Value]:
    """The attributes of a value that are known at compile time."""
    match value:
        case Tensor(spec=spec):
            return {"shape": _numbers(spec.shape), "dtype": Static(spec.dtype), "layout": Static(spec.layout)}
        case Buffer(type=type_):
            factor = Static(type_.buffer_factor)
            return {"shape": _numbers(type_.shape), "buffer_factor": factor, "block_count": factor}
        case Acquired():
            return {"shape": _numbers(value.shape)}
        case Pipe(src=src, first=first, last=last):
            single = _numbers(first) if first == last else Items([_numbers(first), _numbers(last)])
            count = (last[0] - first[0] + 1) * (last[1] - first[1] + 1)
            return {"src": _numbers(src), "dst": single, "destination_count": Static(count)}
        case _:
            return {}


def _numbers(numbers: tuple[int, ...]) -> Value:
    return Items([Static(each) for each in numbers])


def _subscript(visitor: Visitor, node: ast.Subscript) -> Value:
    owner = visitor.expression(node.value)
    index = visitor.expression(node.slice)
    if isinstance(owner, Tensor):
        return piece_of(visitor, node, owner, index)
    if isinstance(owner, Items):
        if isinstance(index, Range):
            bounds = (None if each is None else visitor.static_int(node, each, "a bound")
                      for each in (index.start, index.stop, index.step))  # fmt: skip
            return Items(owner.items[slice(*bounds)], owner.is_list)
        at = visitor.static_int(node.slice, index, f"the index of {owner.describe()}")
        if not -len(owner.items) <= at < len(owner.items):
            raise visitor.error(node.slice, f"{owner.describe()} has no item {at}")
        return owner.items[at]
    if isinstance(owner, Static) and isinstance(index, Static):
        try:
            return visitor.wrap(owner.value[index.value])
        except Exception as error:
            raise visitor.error(node, f"{owner.describe()} has no item {index.value!r}") from error
    hint = (
        ": copy it as a whole, or make the blocks of its buffer smaller" if isinstance(owner, Acquired | Buffer) else ""
    )
    raise visitor.error(node, f"{owner.describe()} has no items{hint}")


def _slice(visitor: Visitor, node: ast.Slice) -> Value:
    return Range(*(None if each is None else visitor.expression(each) for each in (node.lower, node.upper, node.step)))


def _call(visitor: Visitor, node: ast.Call) -> Value:
    callee = visitor.expression(node.func)
    visitor.locate(node)
    match callee:
        case Builtin(name=name) if name.startswith("ttl."):
            return call_builtin(visitor, node, name)
        case Builtin(name="print"):
            return print_values(visitor, node)
        case Builtin(name=name):
            return call_python(visitor, node, name)
        case Method(owner=Items() as owner):
            return _append(visitor, node, owner)
        case Method(owner=owner, name=name):
            return call_method(visitor, node, owner, name)
        case Function() | Static():
            return call_function(visitor, node, callee)
        case Program():
            arguments_of(visitor, node)
            return NONE
        case _:
            raise visitor.error(node, f"{callee.describe()} can't be called")


def _append(visitor: Visitor, node: ast.Call, owner: Items) -> Value:
    if len(node.args) != 1 or node.keywords:
        raise visitor.error(node, "'append' takes one item")
    if visitor.thread is not None and len(visitor.builder.frames) > 2:
        raise visitor.error(
            node, "a list can't grow in a loop or a branch of a thread: what it holds then is not known"
        )
    owner.items.append(visitor.expression(node.args[0]))
    return Static(None)


def _binary(visitor: Visitor, node: ast.BinOp) -> Value:
    left, right = visitor.expression(node.left), visitor.expression(node.right)
    visitor.locate(node)
    return binary(visitor, node, node.op, left, right)


def _unary(visitor: Visitor, node: ast.UnaryOp) -> Value:
    value = visitor.expression(node.operand)
    visitor.locate(node)
    return unary(visitor, node, node.op, value)


def _compare(visitor: Visitor, node: ast.Compare) -> Value:
    """`a < b < c` is `a < b and b < c`."""
    left = visitor.expression(node.left)
    result: Value = Static(True)
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = visitor.expression(comparator)
        visitor.locate(node)
        result = _both(visitor, result, compare(visitor, node, op, left, right), ast.And())
        left = right
    return result


def _bool(visitor: Visitor, node: ast.BoolOp) -> Value:
    decided = isinstance(node.op, ast.Or)
    result: Value = Static(not decided)
    for each in node.values:
        value = truth(visitor, each, visitor.expression(each))
        visitor.locate(node)
        result = _both(visitor, result, value, node.op)
        if isinstance(result, Static) and result.value == decided:
            # What follows is not evaluated.
            return result
    return result


def _both(visitor: Visitor, left: Value, right: Value, op: ast.boolop) -> Value:
    """`left and right`, or `left or right`, of truth values."""
    decided = isinstance(op, ast.Or)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Static):
            return Static(decided) if one.value == decided else other
    assert isinstance(left, Condition)
    assert isinstance(right, Condition)
    made = arith.OrIOp(left.ssa, right.ssa) if decided else arith.AndIOp(left.ssa, right.ssa)
    return Condition(visitor.builder.insert(made).result)


def _if_expression(visitor: Visitor, node: ast.IfExp) -> Value:
    condition = truth(visitor, node.test, visitor.expression(node.test))
    if isinstance(condition, Static):
        return visitor.expression(node.body if condition.value else node.orelse)
    assert isinstance(condition, Condition)
    chosen = [visitor.index(each, visitor.expression(each), "a value that a condition of the run chooses")
              for each in (node.body, node.orelse)]  # fmt: skip
    visitor.locate(node)
    made = visitor.builder.insert(arith.SelectOp(condition.ssa, *chosen))
    return Index(Affine.of(made.result), is_affine=False)


def _lambda(visitor: Visitor, node: ast.Lambda) -> Value:
    return Function(node, visitor)


def _comprehension(visitor: Visitor, node: ast.ListComp | ast.GeneratorExp) -> Value:
    """The list of what is known at compile time."""
    items: list[Value] = []
    names = dict(visitor.names)

    def generate(generators: list[ast.comprehension]) -> None:
        if not generators:
            items.append(visitor.expression(node.elt))
            return
        first, *rest = generators
        source = visitor.expression(first.iter)
        if not isinstance(source, Items):
            raise visitor.error(
                first.iter, f"a comprehension goes over what is known at compile time, found {source.describe()}"
            )
        for item in source.items:
            visitor.assign(first.target, item)
            kept = [truth(visitor, test, visitor.expression(test)) for test in first.ifs]
            if not all(isinstance(each, Static) for each in kept):
                raise visitor.error(first.ifs[0], "the condition of a comprehension must be known at compile time")
            if all(isinstance(each, Static) and each.value for each in kept):
                generate(rest)

    generate(node.generators)
    visitor.names = names
    return Items(items, is_list=True)


def _joined_string(visitor: Visitor, node: ast.JoinedStr) -> Value:
    """A text with values, for `print` and for the message of an `assert`."""
    parts: list[Value] = []
    for each in node.values:
        value = visitor.expression(each.value if isinstance(each, ast.FormattedValue) else each)
        if isinstance(each, ast.FormattedValue) and each.format_spec is not None:
            form = visitor.expression(each.format_spec)
            if not isinstance(value, Static) or not isinstance(form, Static):
                raise visitor.error(each, "a format, ':' in an f-string, is for what is known at compile time")
            value = Static(format(value.value, form.value))
        parts.append(value)
    if all(isinstance(each, Static) for each in parts):
        return Static(Text(tuple(parts)).describe())
    return Text(tuple(parts))


EXPRESSIONS.update(
    {
        ast.Constant: _constant,
        ast.Name: lambda visitor, node: visitor.lookup(node),
        ast.Tuple: _tuple,
        ast.List: _tuple,
        ast.Attribute: _attribute,
        ast.Subscript: _subscript,
        ast.Slice: _slice,
        ast.Call: _call,
        ast.BinOp: _binary,
        ast.UnaryOp: _unary,
        ast.Compare: _compare,
        ast.BoolOp: _bool,
        ast.IfExp: _if_expression,
        ast.Lambda: _lambda,
        ast.ListComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.JoinedStr: _joined_string,
    }
)
