"""The handlers of operations, by their classes; the files beside this one fill it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from xdsl.ir import Operation, SSAValue

from tlx_xdsl.errors import CompilationError

from ..emitter import refuse
from .emitter import Emitter


@dataclass(frozen=True)
class Options:
    """How operations are lowered."""

    truncates_tf32: bool = True
    """Whether f32 operands of a dot with `inputPrecision = tf32` lose the bits that tensor cores do not look at."""


Handler: TypeAlias = "Callable[[Emitter, Any, Options], Sequence[SSAValue]]"
"""Makes the values that replace the results of an operation."""
Expansion: TypeAlias = "Callable[[Emitter, Any, Sequence[SSAValue]], SSAValue]"
"""Computes the result of an elementwise operation for scalar operands, with `arith` and `math`."""

HANDLERS: dict[type[Operation], Handler] = {}
"""Of operations that take or give tensors."""
EXPANSIONS: dict[type[Operation], Expansion] = {}
"""Of elementwise operations that are no operations of `arith` or `math`."""
GUARDS: dict[type[Operation], Expansion] = {}
"""Of operations of `arith` on tensors that trap on a CPU for an element that a mask hides; on scalars they stay."""

_H = TypeVar("_H", bound=Callable[..., Any])


def lowers(*classes: type[Operation]) -> Callable[[_H], _H]:
    """Register a handler for these classes of operations."""

    def register(handler: _H) -> _H:
        for class_ in classes:
            HANDLERS[class_] = handler
        return handler

    return register


def expands(*classes: type[Operation]) -> Callable[[_H], _H]:
    """Register what computes one element for these classes of operations."""

    def register(expansion: _H) -> _H:
        for class_ in classes:
            EXPANSIONS[class_] = expansion
        return expansion

    return register


def guards(*classes: type[Operation]) -> Callable[[_H], _H]:
    """Register what computes one element of a tensor for these classes of operations."""

    def register(expansion: _H) -> _H:
        for class_ in classes:
            GUARDS[class_] = expansion
        return expansion

    return register


def refused(op: Operation, reason: str) -> CompilationError:
    """The error that `op` cannot be lowered, with a list of what can be."""
    error = refuse(op, reason)
    names = {class_.name for class_ in (*HANDLERS, *EXPANSIONS)} - {op.name}
    known = ", ".join(sorted(name for name in names if name.startswith("tt.")))
    error.notes = (f"supported on tensors of numbers: arith, math, and {known}", *error.notes)
    return error
