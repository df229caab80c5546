"""Calls: arguments are matched to parameters, and the function's handler gives the result.

Handlers register themselves under the qualified name of what they handle, with `@lowering("ttl.copy")`, or with the
class of the values that have the method: `@method(Buffer, "wait")`. Their signatures are those of the language.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.suggestions import did_you_mean

from .. import language as language
from .values import NONE, Items, Static, Value
from .visitor import Visitor


@dataclass(frozen=True)
class Call:
    """A call whose arguments are matched to the parameters."""

    visitor: Visitor
    node: ast.Call
    name: str
    args: Mapping[str, Value]
    nodes: Mapping[str, ast.AST]

    def __getitem__(self, name: str) -> Value:
        """An argument, or the default of its parameter."""
        return self.args[name]

    def at(self, name: str) -> ast.AST:
        """The node of an argument; that of the call where it is left out."""
        return self.nodes.get(name, self.node)

    def given(self, name: str) -> bool:
        """Return whether there is something other than None for a parameter."""
        return self.args[name] != NONE

    def error(self, name: str | None, message: str, notes: tuple[str, ...] = ()) -> CompilationError:
        """The error `message` at an argument, or at the call."""
        node = self.node if name is None else self.at(name)
        return self.visitor.error(node, f"{self.name}: {message}", notes)


Lowering: TypeAlias = Callable[[Call], Value]

LOWERINGS: dict[str, Lowering] = {}
"""The meaning of each function of the language, by qualified name."""

METHODS: dict[str, dict[str, tuple[type[Value], type, Callable[[Any, Call], Value]]]] = {}
"""By the name of the class of values and of the method: the class, that of the language, and the meaning."""


def lowering(*names: str) -> Callable[[Lowering], Lowering]:
    """Register what functions of the language mean."""

    def register(handler: Lowering) -> Lowering:
        LOWERINGS.update(dict.fromkeys(names, handler))
        return handler

    return register


def method(
    cls: type[Value], of: type, *names: str
) -> Callable[[Callable[[Any, Call], Value]], Callable[[Any, Call], Value]]:
    """Register what methods of the values of a class mean; their signatures are those of the class `of`."""

    def register(handler: Callable[[Any, Call], Value]) -> Callable[[Any, Call], Value]:
        for name in names:
            METHODS.setdefault(cls.__name__, {})[name] = cls, of, handler
        return handler

    return register


def methods_of(value: Value) -> dict[str, tuple[type[Value], type, Callable[[Any, Call], Value]]]:
    """The methods of a value, by name."""
    return METHODS.get(type(value).__name__, {})


def call_method(visitor: Visitor, node: ast.Call, owner: Value, name: str) -> Value:
    """Call a method of a value."""
    _, of, handler = methods_of(owner)[name]
    signature = inspect.signature(getattr(of, name))
    without_self = signature.replace(parameters=list(signature.parameters.values())[1:])
    return handler(owner, bind(visitor, node, name, without_self))


def call_builtin(visitor: Visitor, node: ast.Call, name: str) -> Value:
    """Call a function of the language."""
    handler = LOWERINGS.get(name)
    if handler is None:
        raise visitor.error(node, f"'{name}' can't be called here")
    return handler(bind(visitor, node, name, signature_of(name)))


def signature_of(name: str) -> inspect.Signature:
    """The signature of a function or class of the language."""
    found: Any = language
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return inspect.signature(found)


def bind(visitor: Visitor, node: ast.Call, name: str, signature: inspect.Signature) -> Call:
    """Match arguments to parameters as Python does; wrong counts and names are located errors."""
    positional, keywords = arguments_of(visitor, node)
    try:
        bound = signature.bind(*positional, **keywords)
    except TypeError as error:
        said = str(error)
        unknown = next((each for each in keywords if each not in signature.parameters), None)
        place: ast.AST = node
        if unknown is not None:
            said = f"got an unexpected keyword argument '{unknown}'" + did_you_mean(unknown, signature.parameters)
            place = keywords[unknown][0]
        raise visitor.error(place, f"{name}: {said}; expected {name}{shown(signature)}") from error
    args: dict[str, Value] = {}
    nodes: dict[str, ast.AST] = {}
    for parameter in signature.parameters.values():
        given: Any = bound.arguments.get(parameter.name)
        if parameter.kind is parameter.VAR_POSITIONAL:
            args[parameter.name] = Items([value for _, value in given or ()])
        elif given is not None:
            nodes[parameter.name], args[parameter.name] = given
        else:
            default = parameter.default
            args[parameter.name] = NONE if default is parameter.empty else visitor.wrap(default)
    return Call(visitor, node, name, args, nodes)


def shown(signature: inspect.Signature) -> str:
    """Show a signature without annotations."""
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    return str(inspect.Signature(bare))


Argument: TypeAlias = tuple[ast.AST, Value]


def arguments_of(visitor: Visitor, node: ast.Call) -> tuple[list[Argument], dict[str, Argument]]:
    """The arguments of a call with their nodes: positional ones, and keywords."""
    positional: list[Argument] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            value = visitor.expression(argument.value)
            if not isinstance(value, Items):
                raise visitor.error(argument, f"'*' needs a tuple or a list, found {value.describe()}")
            positional += [(argument, item) for item in value.items]
        else:
            positional.append((argument, visitor.expression(argument)))
    keywords: dict[str, Argument] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise visitor.error(keyword.value, "'**' is not for calls in TTL kernels: give each argument by name")
        keywords[keyword.arg] = keyword.value, visitor.expression(keyword.value)
    visitor.locate(node)
    return positional, keywords


def static(call: Call, name: str) -> Any:
    """The value of an argument that is known at compile time: a number, a word, a type, or a tuple of them."""
    return _plain(call, name, call[name])


def _plain(call: Call, name: str, value: Value) -> Any:
    match value:
        case Static(value=found):
            return found
        case Items(items=items):
            return tuple(_plain(call, name, item) for item in items)
        case _:
            raise call.error(name, f"'{name}' must be known at compile time, found {value.describe()}")
