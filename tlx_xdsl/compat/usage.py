"""Detection of functions that need tlx, in their own body or in a function that it calls.

Stock Triton's objects are looked at here, too; they are known by their attributes, so that Triton is not imported.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any, cast

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource

from .modules import is_ours

_NOTHING = object()
"""The value of an unknown name: a local one, or one that is not defined yet."""


def uses_tlx(fn: Callable[..., Any]) -> bool:
    """True if compiling `fn` meets something of our language: Meta's tlx above all, which stock Triton can't compile.

    Names are looked up as they are now: a function that is defined later may change the answer from no to yes.
    """
    return _Search().in_function(fn)


def value_uses_tlx(value: Any) -> bool:
    """Return whether a value that a kernel is launched with, such as a function to call, needs our compiler."""
    return _Search().in_value(value)


def takes_functions(fn: Callable[..., Any]) -> bool:
    """Return whether a kernel calls one of its parameters, or hands one on to another function of the user's."""
    source = KernelSource(inspect.unwrap(fn))
    try:
        parameters = {each.name for each in source.parameters if each.is_constexpr}
        calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    except CompilationError:
        return False
    if not parameters:
        return False
    for call in calls:
        if isinstance(call.func, ast.Name) and call.func.id in parameters:
            return True
        handed = [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(isinstance(each, ast.Name) and each.id in parameters for each in handed) and is_jitted(
            _resolved(source, call.func)
        ):
            return True
    return False


def multiplies_in_a_loop(fn: Callable[..., Any]) -> bool:
    """Return whether a kernel has a product of blocks and a loop in its own text: what warp specialisation is for."""
    try:
        tree = KernelSource(inspect.unwrap(fn)).tree
    except CompilationError:
        return False
    nodes = list(ast.walk(tree))
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    return any(isinstance(node, ast.For | ast.While) for node in nodes) and any(
        isinstance(each, ast.Attribute) and each.attr in ("dot", "dot_scaled") for each in calls
    )


def is_jitted(value: Any) -> bool:
    """Return whether a value is a function decorated by Triton or by us, tuned or not."""
    return any(cls.__name__ in ("JITCallable", "KernelInterface") for cls in type(value).__mro__)


class _Search:
    """One search through a function and all that it calls."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def in_function(self, fn: Callable[..., Any]) -> bool:
        """Return whether a Python function uses tlx."""
        fn = inspect.unwrap(fn)
        if not isinstance(fn, FunctionType) or id(fn) in self._seen:
            return False
        self._seen.add(id(fn))
        if any(self.in_value(value) for value in (fn.__defaults__ or ())):
            return True
        return any(is_ours(value) or self.in_value(value) for value in _mentioned(KernelSource(fn)))

    def in_value(self, value: Any) -> bool:
        """Return whether a value belongs to tlx, or is code that uses it."""
        if value is _NOTHING or value is None or isinstance(value, int | float | str | ModuleType):
            return is_ours(value)
        if is_ours(value):
            return True
        if isinstance(value, tuple | list):
            return any(self.in_value(item) for item in cast("list[Any]", value))
        if isinstance(value, type):
            return "__triton_aggregate__" in vars(value) and self._in_class(value)
        if _is_triton_s(value) or is_jitted(value):
            # A jitted, tuned or compile-time function holds what it decorates; a constexpr holds its value. An enum of
            # Triton's own library has nothing of the kind.
            held: dict[str, Any] = getattr(value, "__dict__", {})
            return any(
                self.in_function(inner) if isinstance(inner, FunctionType) else self.in_value(inner)
                for inner in (held.get(name) for name in ("fn", "value"))
                if inner is not None
            )
        return False

    def _in_class(self, cls: type) -> bool:
        return any(
            self.in_function(member)
            if isinstance(member, FunctionType)
            else is_jitted(member) and self.in_value(member)
            for base in cls.__mro__
            for member in vars(base).values()
        )


def _is_triton_s(value: object) -> bool:
    return type(value).__module__.split(".")[0] in ("triton", "tlx_xdsl")


def _mentioned(source: KernelSource) -> Iterator[Any]:
    """The objects outside of a function that its body and its signature name, as far as they are known now."""
    try:
        tree = source.tree
    except CompilationError:
        return  # Stock Triton can't read it either, and says so.
    for part in (tree.args, *tree.body):
        for node in ast.walk(part):
            if isinstance(node, ast.Name | ast.Attribute):
                yield _resolved(source, node)


def _resolved(source: KernelSource, node: ast.expr) -> Any:
    """The object that a dotted name stands for outside of the function; `_NOTHING` where that is not known."""
    if isinstance(node, ast.Name):
        if node.id in source.fn.__code__.co_varnames:
            return _NOTHING
        found, value = source.lookup(node.id)
        return value if found else _NOTHING
    if isinstance(node, ast.Attribute):
        owner = _resolved(source, node.value)
        return _NOTHING if owner is _NOTHING else _attribute(owner, node.attr)
    return _NOTHING


def _attribute(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name, _NOTHING)
    except Exception:
        # Whatever the user's object does there, compiling will show it.
        return _NOTHING
