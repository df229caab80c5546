"""What a kernel's source can name: data types, `constexpr`, and the markers of built-in functions.

The functions of the language have no body: they state name, signature and meaning. The frontend gives a call its
meaning (`frontend/lower/`); a call outside of a kernel raises a RuntimeError.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeVar


@dataclass(frozen=True)
class dtype:
    """An element type; `name` is Triton's spelling in signatures (`fp16`, `i32`, `u8`)."""

    name: str
    kind: Literal["int", "uint", "float"]
    primitive_bitwidth: int
    """Bits of one element."""

    def is_floating(self) -> bool:
        """Whether this is a floating-point type."""
        return self.kind == "float"

    def is_int(self) -> bool:
        """Whether this is an integer type, signed or not."""
        return self.kind != "float"

    def is_int_signed(self) -> bool:
        """Whether this is a signed integer type."""
        return self.kind == "int"

    def __str__(self) -> str:
        """Return Triton's spelling."""
        return self.name


int1 = dtype("i1", "int", 1)
int8 = dtype("i8", "int", 8)
int16 = dtype("i16", "int", 16)
int32 = dtype("i32", "int", 32)
int64 = dtype("i64", "int", 64)
uint8 = dtype("u8", "uint", 8)
uint16 = dtype("u16", "uint", 16)
uint32 = dtype("u32", "uint", 32)
uint64 = dtype("u64", "uint", 64)
float8e4nv = dtype("fp8e4nv", "float", 8)
float8e5 = dtype("fp8e5", "float", 8)
float16 = dtype("fp16", "float", 16)
bfloat16 = dtype("bf16", "float", 16)
float32 = dtype("fp32", "float", 32)
float64 = dtype("fp64", "float", 64)

ALL_DTYPES: tuple[dtype, ...] = (
    int1, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    float8e4nv, float8e5, float16, bfloat16, float32, float64,
)  # fmt: skip
"""Every element type."""


@dataclass(frozen=True)
class pointer_type:
    """A pointer to elements of `element_ty` in global memory."""

    element_ty: dtype

    def __str__(self) -> str:
        """Return Triton's spelling."""
        return f"*{self.element_ty}"


class constexpr:
    """A value known at compile time: as an annotation (`BLOCK: tl.constexpr`) or around a global's value."""

    def __init__(self, value: Any):
        self.value = value.value if isinstance(value, constexpr) else value

    def __repr__(self) -> str:
        """Return the constructor call."""
        return f"constexpr({self.value!r})"


F = TypeVar("F", bound=Callable[..., Any])

BUILTIN_NAME = "__tlx_builtin__"
"""The attribute that marks a function of the language; it holds the qualified name, such as `tlx.local_alloc`."""


MEMBERS: dict[str, Callable[..., Any]] = {}
"""Functions of the language that are methods of a `tl.tensor` too, by name: `x.sum(0)` is `tl.sum(x, 0)`."""


def builtin(namespace: str, *, member: bool = False) -> Callable[[F], F]:
    """Mark a function as part of the language, under the name `namespace.name`.

    A `member` is a method of blocks too, with the block as its first argument.
    """

    def mark(fn: F) -> F:
        qualified = f"{namespace}.{fn.__name__}"

        @functools.wraps(fn)
        def outside(*args: Any, **kwargs: Any) -> NoReturn:
            raise RuntimeError(f"{qualified} has a meaning only inside a kernel compiled by tlx_xdsl.jit")

        setattr(outside, BUILTIN_NAME, qualified)
        if member:
            MEMBERS[fn.__name__] = outside
        return outside  # pyright: ignore[reportReturnType]

    return mark


LIBRARY_MARK = "__tlx_library__"
"""The attribute that marks a function of the language that is written in the language."""


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


CONSTEXPR_FUNCTION_MARK = "__tlx_constexpr_function__"
"""The attribute that marks a Python function that kernels call at compile time."""


def constexpr_function(fn: F) -> F:
    """Let kernels call `fn` at compile time: with constexpr arguments, for a constexpr result."""
    setattr(fn, CONSTEXPR_FUNCTION_MARK, True)
    return fn


AGGREGATE_MARK = "__tlx_aggregate__"
"""The attribute that marks a class whose instances kernels handle as one value."""

C = TypeVar("C", bound=type)


def _aggregate(cls: C) -> C:  # pyright: ignore[reportUnusedFunction]
    """Let kernels make and pass instances of `cls`, a class with annotated fields.

    A field annotated `tl.constexpr` is known at compile time, any other holds a value of the kernel. The class's
    `__init__` assigns each field once; without one, the constructor takes the fields in order. Methods are jitted
    functions.
    """
    setattr(cls, AGGREGATE_MARK, True)
    return cls


def builtin_name(fn: object) -> str | None:
    """The qualified name of a function of the language, or None for anything else."""
    return getattr(fn, BUILTIN_NAME, None)
