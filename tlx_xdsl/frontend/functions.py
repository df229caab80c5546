"""Functions that kernels call: the user's, and those of the language that are written in it.

A call compiles the callee's body inline. It stays a `tt.call` of a function of its own when the callee is
`noinline`, or when it returns from inside a branch and the call is where the IR can't branch (in a loop, say).
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Generator, Hashable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MethodType
from typing import Any

from xdsl.dialects import builtin, cf
from xdsl.ir import Block, Region

from tlx_xdsl.dialects import tt
from tlx_xdsl.errors import CompilationError, let_through
from tlx_xdsl.language.core import constexpr, dtype
from tlx_xdsl.text.diagnostics import Diagnostic, report_again

from . import semantic
from .builder import hint
from .calls import bound_arguments
from .carry import all_parts, class_of, runtime
from .python.foreign import compile_time, constexpr_function_of
from .python.source import KernelSource, Parameter
from .slips import function_hint
from .values import NONE, Aggregate, Constexpr, Tensor, TupleValue, Value, Values, kind, parts, rebuild, symmetric_of
from .visitor import CallSite, Compiled, EarlyReturn, Return, Returns, Visitor

# --- calls ----------------------------------------------------------------------------------------------------------


def call_jitted(site: CallSite, source: KernelSource) -> Value:
    """Call the jitted function `source`; the result is what it returns.

    Raises CompilationError for arguments that do not fit, for recursion, and for errors inside the function.
    """
    bound = _bind(site, source)
    _refuse_recursion(site, source, bound)
    wrong = _runtime_constexprs(source, bound)
    if not wrong:
        return _call_with(site, source, bound)
    # An annotation makes no constexpr of a runtime value, as in Triton: an error only where the body needs one.
    try:
        return _call_with(site, source, bound)
    except CompilationError as error:
        name = wrong[0]
        place = bound_arguments(site, source.name, source.signature).arguments[name][0]
        raise site.visitor.error(
            place, f"the parameter '{name}' of '{source.name}' is a constexpr, found {bound[name].describe()}"
        ) from error


def _runtime_constexprs(source: KernelSource, bound: Values) -> list[str]:
    """The parameters annotated as constexprs whose values are known at run time only."""
    return [
        parameter.name
        for parameter in source.parameters
        if parameter.is_constexpr and not parameter.is_variadic and not is_compile_time(bound[parameter.name])
    ]


def _call_with(site: CallSite, source: KernelSource, bound: Values) -> Value:
    """Call a function whose parameters have these values."""
    if source.noinline:
        return _call(site, source, bound)
    builder = site.visitor.builder
    mark = builder.mark()
    try:
        inner = site.visitor.inside(source, site)
        inner.names.update(bound)
        inner.given = _kinds(bound)
        return compile_body(inner, "inline")
    except EarlyReturn:
        builder.erase_after(mark)
        return _call(site, source, bound)
    finally:
        site.visitor.locate(site.node)


_MOST_NESTED = 64
"""Most calls of one function inside each other: more of them do not come to an end."""


def _kinds(bound: Values) -> dict[str, Hashable]:
    """Each argument's type, or its value where that is known at compile time."""
    return {name: kind(value) for name, value in bound.items()}


def _refuse_recursion(site: CallSite, source: KernelSource, bound: Values) -> None:
    """Refuse a call of a function inside itself, except for other types or compile-time values: such calls may end."""
    chain, nested, given = [source.name], 0, _kinds(bound)
    at: Visitor | None = site.visitor
    while at is not None:
        chain.append(at.source.name)
        nested += at.source.fn is source.fn
        if at.source.fn is source.fn and (at.given in (None, given) or nested > _MOST_NESTED):
            shown = " -> ".join(reversed(chain[:4]))
            raise site.error(f"recursion is not possible in a kernel: {shown}")
        at = at.caller.visitor if at.caller is not None else None


def _bind(site: CallSite, source: KernelSource) -> Values:
    """The value of each parameter."""
    bound = bound_arguments(site, source.name, source.signature)
    values: Values = {}
    for parameter in source.parameters:
        if parameter.name not in bound.arguments:
            values[parameter.name] = _default(parameter)
        elif parameter.is_variadic:
            values[parameter.name] = TupleValue(tuple(value for _, value in bound.arguments[parameter.name]))
        else:
            _, values[parameter.name] = bound.arguments[parameter.name]
    return values


def is_compile_time(value: Value) -> bool:
    """Say whether nothing of `value` is known at run time only."""
    if isinstance(value, TupleValue):
        return all(is_compile_time(item) for item in value.items)
    return isinstance(value, Constexpr)


def _default(parameter: Parameter) -> Value:
    if parameter.is_variadic:
        return TupleValue(())
    return Constexpr(compile_time(parameter.default))


def _call(site: CallSite, source: KernelSource, bound: Values) -> Value:
    unit = site.visitor.unit
    key = (source.fn, *((name, kind(value)) for name, value in bound.items()))
    compiled = unit.compiled.get(key)
    if compiled is None:
        compiled = unit.compiled[key] = _compile(site, source, bound)
    site.visitor.locate(site.node)
    result_types = [part.type for part in parts(compiled.result)]
    call = site.visitor.builder.emit(
        tt.CallOp,
        all_parts(list(bound.values())),
        results=[result_types],
        callee=builtin.SymbolRefAttr(compiled.symbol),
    )
    return rebuild(compiled.result, iter(call.res))


def _compile(site: CallSite, source: KernelSource, bound: Values) -> Compiled:
    """Make a `tt.func` of the function for arguments of these kinds."""
    inner = site.visitor.inside(source, site, inlined=False)
    inner.given = _kinds(bound)
    unit, builder = inner.unit, inner.builder
    inner.locate(source.tree)
    location = builder.location
    entry = Block()
    for name, value in bound.items():
        arguments = [entry.insert_arg(part.type, len(entry.args), location) for part in parts(value)]
        for argument in arguments:
            hint(argument, name)
        inner.names[name] = rebuild(value, iter(arguments))
    blocks = [entry]
    outside, unit.symmetric = unit.symmetric, symmetric_of(bound.values())
    with builder.function(blocks):
        result = compile_body(inner, "function")
    unit.symmetric = outside
    symbol = f"{source.symbol}__{len(unit.compiled)}"
    func = tt.FuncOp(
        symbol,
        builtin.FunctionType.from_lists([a.type for a in entry.args], [part.type for part in parts(result)]),
        Region(blocks),
        visibility="private",
    )
    func.attributes["noinline"] = builtin.IntegerAttr.from_bool(source.noinline)
    func.location = location
    unit.functions.append(func)
    return Compiled(symbol, result)


# --- returns --------------------------------------------------------------------------------------------------------


def _misplaced_return(visitor: Visitor, node: ast.AST) -> CompilationError:
    """The error that a `return` is where control can't leave."""
    return visitor.error(
        node, "a kernel can't return from inside a loop or a task: compute the result, and return after it"
    )


def refuse_early_return(visitor: Visitor, node: ast.AST) -> None:
    """Refuse a branch that returns inside a region of an operation: an inlined function becomes a call instead."""
    if visitor.returns.style == "inline" and visitor.returns.depth == visitor.builder.depth:
        raise EarlyReturn
    raise _misplaced_return(visitor, next(inner for inner in ast.walk(node) if isinstance(inner, ast.Return)))


def visit_return(visitor: Visitor, node: ast.Return) -> bool:
    """`return` or `return value`."""
    returns = visitor.returns
    if visitor.builder.depth != returns.depth:
        raise _misplaced_return(visitor, node)
    value = NONE if node.value is None else visitor.expression(node.value)
    visitor.locate(node)
    _return(visitor, node, value)
    return True


def _return(visitor: Visitor, node: ast.AST, value: Value) -> None:
    returns, builder = visitor.returns, visitor.builder
    if returns.style == "kernel":
        if not _is_none(value):
            raise visitor.error(node, f"a kernel returns nothing, found {runtime(visitor, node, value).describe()}")
        builder.emit(tt.ReturnOp, [])
        return
    if returns.style == "inline" and returns.exit is None and (visitor.branches or returns.made):
        returns.exit = builder.new_block()
    returns.made.append(Return(node, value, builder.block, builder.location))


def compile_body(visitor: Visitor, style: str) -> Value:
    """Compile a function's body, for the `style` of `Returns`; the result is what the function returns.

    What all its returns agree on at compile time stays a compile-time value. A path that reaches the end of the body
    returns None, or where others return a value an undefined one, which is 0.
    """
    builder = visitor.builder
    returns = visitor.returns = Returns(style, builder.depth)
    statements = visitor.source.tree.body
    visitor.visit_body(statements)
    if not visitor.returned:
        visitor.locate(statements[-1])
        _return(visitor, statements[-1], NONE)
    if style == "kernel":
        return NONE
    values = _agreed(visitor, returns.made)
    for each, value in zip(returns.made, values, strict=True):
        with _at(visitor, each):
            if style == "function":
                builder.emit(tt.ReturnOp, parts(value))
            elif returns.exit is not None:
                builder.insert(cf.BranchOp(returns.exit, *parts(value)))
    if returns.exit is None:
        return values[0]
    for part in parts(values[0]):
        returns.exit.insert_arg(part.type, len(returns.exit.args)).location = returns.made[0].location
    builder.move_to(returns.exit)
    return rebuild(values[0], iter(returns.exit.args))


@contextmanager
def _at(visitor: Visitor, place: Return) -> Generator[None]:
    """Append to the block that a return ends."""
    builder = visitor.builder
    block, location = builder.block, builder.location
    builder.move_to(place.block)
    builder.location = place.location
    try:
        yield
    finally:
        builder.move_to(block)
        builder.location = location


def _is_none(value: Value) -> bool:
    return isinstance(value, Constexpr) and value.value is None


def _agreed(visitor: Visitor, made: Sequence[Return]) -> list[Value]:
    """The value of each return, all of one kind. Raises CompilationError at one of another kind."""
    given = [each for each in made if isinstance(each.node, ast.Return)]
    values = _alike(visitor, given, [each.value for each in given])
    for each, value in zip(given, values, strict=True):
        if kind(value) != kind(values[0]):
            raise _mismatch(visitor, each.node, values[0], value)
    if len(given) < len(made):
        # The end of the body comes last.
        *_, end = made
        values.append(_undefined(visitor, end, values[0]) if values and not _is_none(values[0]) else NONE)
    return values


def _mismatch(visitor: Visitor, node: ast.AST, first: Value, other: Value) -> CompilationError:
    where = "here" if isinstance(node, ast.Return) else "at its end"
    return visitor.error(
        node,
        f"Return type mismatch: '{visitor.source.name}' returns {first.describe()} first and "
        f"{other.describe()} {where}",
    )


def _alike(visitor: Visitor, made: Sequence[Return], values: Sequence[Value]) -> list[Value]:
    """The values of returns: what differs from one to another is known at run time only, by item in tuples."""
    if len({kind(value) for value in values}) < 2:
        return list(values)
    tuples = [visitor.items_of(value) for value in values]
    sizes = {None if items is None else len(items) for items in tuples}
    if len(sizes) == 1 and None not in sizes:
        columns = [_alike(visitor, made, column) for column in zip(*(items or () for items in tuples), strict=True)]
        return [TupleValue(row, class_of(value)) for row, value in zip(zip(*columns, strict=True), values, strict=True)]
    found: list[Value] = []
    for each, value in zip(made, values, strict=True):
        with _at(visitor, each):
            found.append(runtime(visitor, each.node, value))
    return found


def _undefined(visitor: Visitor, end: Return, like: Value) -> Value:
    """The value that a function has where no `return` is reached: 0, and a warning. Of tensors only: else an error."""

    def zero(value: Value) -> Value:
        match value:
            case Constexpr():
                return value
            case TupleValue():
                return replace(value, items=tuple(map(zero, value.items)))
            case Tensor(dtype=dtype()):
                return visitor.semantic(end.node, semantic.constant, 0, value.dtype, value.shape)
            case _:
                raise _mismatch(visitor, end.node, like, NONE)

    with _at(visitor, end):
        found = zero(like)
    if parts(like):
        place = visitor.source.location(visitor.source.tree)
        said = f"where no 'return' of '{visitor.source.name}' is reached its value is undefined, and 0 here"
        report_again(Diagnostic("warning", said, place))
    return found


_AT_RUN_TIME = {
    "int": "; convert it with .to(tl.int32)",
    "float": "; convert it with .to(tl.float32)",
    "bool": "; compare it with 0",
    "len": "; its size is in .shape",
    "sum": "; add the items, or use tl.sum for a block",
    "round": "; use libdevice.rint",
    "pow": "; use libdevice.pow",
}
"""Replacements, for runtime values, of functions of Python."""


def bind_python(site: CallSite, function: Any) -> Value:
    """Call a Python function at compile time: its arguments must be constexprs, and its result is one.

    What the function raises becomes a located error.
    """
    name = getattr(function, "__name__", repr(function))
    for place, value in (*site.positional, *site.keywords.values()):
        if not is_compile_time(value) and not isinstance(value, Aggregate):
            hint = function_hint(function)
            if not hint and inspect.isfunction(function):
                hint = "; tlx_xdsl.jit makes a kernel's function of it"
            raise site.visitor.error(
                place,
                f"'{name}' runs at compile time: its arguments must be constexprs, found {value.describe()}"
                + (_AT_RUN_TIME.get(name) or hint),
            )
    args = [python_value(value) for _, value in site.positional]
    kwargs = {key: python_value(value) for key, (_, value) in site.keywords.items()}
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise site.error(f"{name}: {error}") from error
    except ValueError:
        # Some functions of Python itself have no signature.
        pass
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        let_through(error)
        said = " ".join(str(error).split())
        raise site.error(f"{name}: {type(error).__name__}: {said}") from error
    return Constexpr(result.value if isinstance(result, constexpr) else result)


def python_value(value: Value) -> Any:
    """The Python object of a compile-time value."""
    if isinstance(value, TupleValue):
        items = tuple(python_value(item) for item in value.items)
        return items if value.cls is None else value.cls(*items)
    if isinstance(value, Aggregate):
        return _KnownFields(value)
    assert isinstance(value, Constexpr)
    return value.value


class _KnownFields:
    """An aggregate as a function of Python has it at compile time: fields that are known then, and methods."""

    def __init__(self, value: Aggregate):
        self._value = value

    def __getattr__(self, name: str) -> Any:
        value = self._value
        if name in value.names:
            item = value.items[value.names.index(name)]
            if not is_compile_time(item) and not isinstance(item, Aggregate):
                raise AttributeError(f"the field '{name}' of '{value.cls.__name__}' is known at run time only")
            return python_value(item)
        found = getattr(value.cls, name)
        python = constexpr_function_of(found)
        return found if python is None else MethodType(inspect.unwrap(python), self)
