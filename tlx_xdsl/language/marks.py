"""Markers of the language's functions, by which the frontend knows them.

A function without a body states name, signature and meaning; the frontend gives a call its meaning
(`frontend/lower/`), and a call outside of a kernel raises a RuntimeError. A library function has a body, written in
the language itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from tlx_xdsl.annotations import annotations_of

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound=type)

BUILTIN_NAME = "__tlx_builtin__"
"""The attribute that marks a function of the language; it holds the qualified name, such as `tlx.local_alloc`."""

MEMBERS: dict[str, Callable[..., Any]] = {}
"""Functions of the language that are methods of a `tl.tensor` too, by name: `x.sum(0)` is `tl.sum(x, 0)`."""

SPELLINGS = "__tlx_spellings__"
"""The attribute with the names that parameters have elsewhere; it holds the name that each has here."""

LIBRARY_MARK = "__tlx_library__"
"""The attribute that marks a function of the language that is written in the language."""

MUST_USE_MARK = "_must_use_result"
"""The attribute that marks a function whose result must be used, also Triton's; it holds True or the reason."""

AGGREGATE_MARK = "__tlx_aggregate__"
"""The attribute that marks a class whose instances are values of kernels; it holds the fields' annotations."""


def builtin(namespace: str, *, member: bool = False, spellings: Mapping[str, str] | None = None) -> Callable[[F], F]:
    """Mark a function as part of the language, under the name `namespace.name`.

    A `member` is a method of blocks too, with the block as its first argument. A package's own functions have its name
    as the namespace: `@builtin("counting")`; `frontend.calls.lowers` gives them their meaning. `spellings` are further
    names of parameters, each with the parameter that it means.

    Raises TypeError for a function in the place of the namespace.
    """
    if callable(namespace):
        raise TypeError('builtin takes the namespace of the function: write @builtin("counting"), not @builtin')

    def mark(fn: F) -> F:
        qualified = f"{namespace}.{fn.__name__}"

        @functools.wraps(fn)
        def outside(*args: Any, **kwargs: Any) -> NoReturn:
            there = "; outside, tlx_xdsl.cdiv is" if qualified == "tl.cdiv" else ""
            raise RuntimeError(f"{qualified} has a meaning only inside a kernel compiled by tlx_xdsl.jit{there}")

        setattr(outside, BUILTIN_NAME, qualified)
        setattr(outside, SPELLINGS, spellings or {})
        if member:
            MEMBERS[fn.__name__] = outside
        return outside  # pyright: ignore[reportReturnType]

    return mark


def hosted(namespace: str) -> Callable[[F], F]:
    """Mark a function or class of the language that works outside of kernels too; inside, the frontend knows it."""

    def mark(fn: F) -> F:
        setattr(fn, BUILTIN_NAME, f"{namespace}.{fn.__name__}")
        return fn

    return mark


def library(*, member: bool = False) -> Callable[[F], F]:
    """Mark a function of the language whose Python body, in the language itself, is its meaning.

    The frontend compiles the body where the function is called, as it does with a user's function. A `member` is a
    method of blocks too.
    """

    def mark(fn: F) -> F:
        setattr(fn, LIBRARY_MARK, True)
        if member:
            MEMBERS[fn.__name__] = fn
        return fn

    return mark


def must_use_result(why: str) -> Callable[[F], F]:
    """Mark a function whose call alone does nothing: that nothing uses its result is an error, which says `why`."""

    def mark(fn: F) -> F:
        setattr(fn, MUST_USE_MARK, why)
        return fn

    return mark


def builtin_name(fn: object) -> str | None:
    """The qualified name of a function of the language, or None for anything else."""
    return getattr(fn, BUILTIN_NAME, None)


def _aggregate(cls: T) -> T:
    """Let the instances of a class be values of kernels: a record of the fields that the class annotates.

    The class has an `__init__` that assigns all fields, or gets one that takes them in order. Methods are jitted
    functions. Raises TypeError for a class without annotated fields, and for one that inherits from another class than
    an aggregate.
    """
    fields: dict[str, Any] = {}
    for base in cls.__mro__[1:]:
        if base is not object and not {AGGREGATE_MARK, "__triton_aggregate__"} & vars(base).keys():
            raise TypeError(f"the aggregate '{cls.__name__}' inherits from '{base.__name__}', which is no aggregate")
    for base in reversed(cls.__mro__):
        fields |= annotations_of(base)
    if not fields:
        raise TypeError(f"an aggregate needs annotated fields, '{cls.__name__}' has none")
    setattr(cls, AGGREGATE_MARK, fields)
    return cls


aggregate = _aggregate
