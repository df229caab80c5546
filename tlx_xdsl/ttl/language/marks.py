"""The mark of TTL's functions and classes, by which the frontend knows them.

A function without a body states name, signature and meaning; the frontend gives a call its meaning
(`ttl/frontend/`), and a call outside of a kernel raises a RuntimeError.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
ClassT = TypeVar("ClassT", bound=type)

NAME = "__ttl_builtin__"
"""The attribute that marks a part of the language; it holds the qualified name, such as `ttl.math.exp`."""


def builtin(namespace: str = "ttl") -> Callable[[F], F]:
    """Mark a function as part of the language, under the name `namespace.name`."""

    def mark(fn: F) -> F:
        qualified = f"{namespace}.{fn.__name__}"

        @functools.wraps(fn)
        def outside(*args: Any, **kwargs: Any) -> NoReturn:
            raise RuntimeError(f"{qualified} has a meaning only inside a kernel that @ttl.kernel compiles")

        setattr(outside, NAME, qualified)
        return outside  # pyright: ignore[reportReturnType]

    return mark


def kernel_object(cls: ClassT) -> ClassT:
    """Mark a class whose instances kernels make; outside of a kernel, making one raises a RuntimeError.

    The signature is that of its `__init__`.
    """
    qualified = f"ttl.{cls.__name__}"
    setattr(cls, NAME, qualified)
    signature = cls.__init__

    @functools.wraps(signature)
    def outside(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"{qualified} exists only inside a kernel that @ttl.kernel compiles")

    setattr(cls, "__init__", outside)  # noqa: B010
    return cls


def builtin_name(value: object) -> str | None:
    """The qualified name of a part of the language, or None for anything else."""
    return getattr(value, NAME, None)
