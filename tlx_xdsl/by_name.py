"""Kernels, and what tunes them, as objects that are there once: pickled by name, and copied as themselves.

A process that does not fork imports the module of a kernel and takes the one that it finds there, as it does with a
function.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pickle import PicklingError
from typing import Any, TypeVar

T = TypeVar("T")


class ByName:
    """Base of what decorators make of a function.

    Pickling raises PicklingError where the function's name in its module does not lead to the object.
    """

    def __reduce__(self) -> Any:
        """Return how it is found: the module, the name in it, and how far below what decorators have made of it."""
        fn: Any = self
        while not inspect.isfunction(fn):
            # A kernel without Triton keeps its function in what was read.
            fn = fn.fn if hasattr(fn, "fn") else fn.source.fn
        try:
            at = found(fn.__module__, fn.__qualname__)
        except (ImportError, AttributeError):
            at = None
        depth = 0
        while at is not self:
            at, depth = getattr(at, "fn", None), depth + 1
            if at is None:
                raise PicklingError(
                    f"a kernel is pickled by its name, and '{fn.__module__}.{fn.__qualname__}' is not this one: "
                    "define it in a module, under the name of its function"
                )
        return found, (fn.__module__, fn.__qualname__, depth)

    def __copy__(self: T) -> T:
        """Return the object itself."""
        return self

    def __deepcopy__(self: T, _: Any) -> T:
        """Return the object itself."""
        return self


def found(module: str, name: str, depth: int = 0) -> Any:
    """Return what is `depth` decorators below the object that a module has under a qualified name.

    Raises ImportError and AttributeError where there is none.
    """
    at: Any = import_module(module)
    for part in name.split("."):
        at = getattr(at, part)
    for _ in range(depth):
        at = at.fn
    return at
