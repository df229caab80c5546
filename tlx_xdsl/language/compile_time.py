"""Values that are known when a kernel is compiled: `constexpr`, and functions that compute them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

__all__ = ["constexpr", "constexpr_type"]

F = TypeVar("F", bound=Callable[..., Any])

CONSTEXPR_FUNCTION_MARK = "__tlx_constexpr_function__"
"""The attribute that marks a Python function which a kernel calls with compile-time values."""


def unwrapped(value: Any) -> Any:
    """`value` without the `constexpr` around it, if there is one."""
    return value.value if isinstance(value, constexpr) else value


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[constexpr, Any], constexpr]:
    return lambda self, other: constexpr(function(self.value, unwrapped(other)))


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[constexpr, Any], constexpr]:
    return lambda self, other: constexpr(function(unwrapped(other), self.value))


class constexpr:
    """A value known at compile time: as an annotation (`BLOCK: tl.constexpr`) or around a global's value.

    Operators work on the value and give a `constexpr` again, so that Python code outside of kernels can compute
    with such globals.
    """

    def __init__(self, value: Any):
        self.value: Any = unwrapped(value)

    @property
    def type(self) -> constexpr_type:
        """The type whose only value this is."""
        return constexpr_type(self.value)

    def __repr__(self) -> str:
        """Return Triton's notation, such as `constexpr[3]`."""
        return f"constexpr[{self.value}]"

    def __hash__(self) -> int:
        """The value's hash."""
        return hash(self.value)

    __add__ = _binary(lambda a, b: a + b)
    __radd__ = _reflected(lambda a, b: a + b)
    __sub__ = _binary(lambda a, b: a - b)
    __rsub__ = _reflected(lambda a, b: a - b)
    __mul__ = _binary(lambda a, b: a * b)
    __rmul__ = _reflected(lambda a, b: a * b)
    __truediv__ = _binary(lambda a, b: a / b)
    __rtruediv__ = _reflected(lambda a, b: a / b)
    __floordiv__ = _binary(lambda a, b: a // b)
    __rfloordiv__ = _reflected(lambda a, b: a // b)
    __mod__ = _binary(lambda a, b: a % b)
    __rmod__ = _reflected(lambda a, b: a % b)
    __pow__ = _binary(lambda a, b: a**b)
    __rpow__ = _reflected(lambda a, b: a**b)
    __and__ = _binary(lambda a, b: a & b)
    __rand__ = _reflected(lambda a, b: a & b)
    __or__ = _binary(lambda a, b: a | b)
    __ror__ = _reflected(lambda a, b: a | b)
    __xor__ = _binary(lambda a, b: a ^ b)
    __rxor__ = _reflected(lambda a, b: a ^ b)
    __lshift__ = _binary(lambda a, b: a << b)
    __rlshift__ = _reflected(lambda a, b: a << b)
    __rshift__ = _binary(lambda a, b: a >> b)
    __rrshift__ = _reflected(lambda a, b: a >> b)
    __eq__ = _binary(lambda a, b: a == b)  # pyright: ignore[reportAssignmentType]
    __ne__ = _binary(lambda a, b: a != b)  # pyright: ignore[reportAssignmentType]
    __lt__ = _binary(lambda a, b: a < b)
    __rlt__ = _reflected(lambda a, b: a < b)
    __le__ = _binary(lambda a, b: a <= b)
    __rle__ = _reflected(lambda a, b: a <= b)
    __gt__ = _binary(lambda a, b: a > b)
    __rgt__ = _reflected(lambda a, b: a > b)
    __ge__ = _binary(lambda a, b: a >= b)
    __rge__ = _reflected(lambda a, b: a >= b)
    logical_and = _binary(lambda lhs, rhs: lhs and rhs)
    logical_or = _binary(lambda lhs, rhs: lhs or rhs)

    def __neg__(self) -> constexpr:
        """`-value`."""
        return constexpr(-self.value)

    def __pos__(self) -> constexpr:
        """`+value`."""
        return constexpr(+self.value)

    def __invert__(self) -> constexpr:
        """`~value`."""
        return constexpr(~self.value)

    def __not__(self) -> constexpr:
        """`not value`."""
        return constexpr(not self.value)

    def __bool__(self) -> bool:
        """Say whether the value is true."""
        return bool(self.value)

    def __index__(self) -> int:
        """The value as an index."""
        return operator.index(self.value)

    def __iter__(self) -> Iterator[Any]:
        """The value's items."""
        return iter(self.value)

    def __getitem__(self, index: Any) -> Any:
        """The value's item."""
        return self.value[unwrapped(index)]

    def __call__(self, *args: Any, **kwds: Any) -> Any:
        """Call the value."""
        return self.value(*args, **kwds)


class constexpr_type:
    """The type of one compile-time value."""

    def __init__(self, value: Any):
        self.value: Any = unwrapped(value)

    def __eq__(self, other: object) -> bool:
        """Say whether both are the type of the same value."""
        return isinstance(other, constexpr_type) and bool(self.value == other.value)

    def __hash__(self) -> int:
        """The value's hash."""
        return hash(self.value)

    def __repr__(self) -> str:
        """Return Triton's notation, such as `constexpr_type[3]`."""
        return f"constexpr_type[{self.value}]"


def constexpr_function(fn: F) -> F:
    """Let kernels call the Python function `fn`, with compile-time arguments, while they are compiled.

    Outside of kernels, `fn` works as before; `constexpr` arguments are unwrapped.
    """

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = fn(*map(unwrapped, args), **{name: unwrapped(value) for name, value in kwargs.items()})
        return unwrapped(result)

    setattr(call, CONSTEXPR_FUNCTION_MARK, True)
    return call  # pyright: ignore[reportReturnType]
