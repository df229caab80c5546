"""The handlers of operations, by their names; the files beside this one fill it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from xdsl.ir import Operation

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import error_at

from .values import Value

Scalar: TypeAlias = Callable[[Any, Any, Sequence[Value]], Sequence[Value] | Value]
"""Computes the results of an operation on scalars, for a `FunctionEmitter`; of vectors, in each of their lanes."""
Handler: TypeAlias = Callable[[Any, Any], None]
"""Writes the instructions of any other operation, for a `FunctionEmitter`."""

SCALARS: dict[str, Scalar] = {}
HANDLERS: dict[str, Handler] = {}

_F = TypeVar("_F", bound=Callable[..., Any])


def scalar(*classes: type[Operation]) -> Callable[[_F], _F]:
    """Register what computes these operations in each lane."""

    def register(function: _F) -> _F:
        SCALARS.update(dict.fromkeys((each.name for each in classes), function))
        return function

    return register


def emits(*classes: type[Operation]) -> Callable[[_F], _F]:
    """Register what writes these operations."""

    def register(function: _F) -> _F:
        HANDLERS.update(dict.fromkeys((each.name for each in classes), function))
        return function

    return register


def load_handlers() -> None:
    """Import the files that fill the registry."""
    for name in ("scalars", "memory", "structured", "control"):
        importlib.import_module(f"tlx_xdsl.cpu.codegen.{name}")


def refused(op: Operation, reason: str) -> CompilationError:
    """The error that an operation cannot be compiled for a CPU."""
    return error_at(op, f"'{op.name}' cannot be compiled for a CPU: {reason}")
