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


def _binary(name: str) -> Callable[[constexpr, Any], constexpr]:
    function: Callable[[Any, Any], Any] = getattr(operator, name)
    return lambda self, other: constexpr(function(self.value, unwrapped(other)))


def _reflected(name: str) -> Callable[[constexpr, Any], constexpr]:
    function: Callable[[Any, Any], Any] = getattr(operator, name)
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

    __add__ = _binary("add")
    __radd__ = _reflected("add")
    __sub__ = _binary("sub")
    __rsub__ = _reflected("sub")
    __mul__ = _binary("mul")
    __rmul__ = _reflected("mul")
    __truediv__ = _binary("truediv")
    __rtruediv__ = _reflected("truediv")
    __floordiv__ = _binary("floordiv")
    __rfloordiv__ = _reflected("floordiv")
    __mod__ = _binary("mod")
    __rmod__ = _reflected("mod")
    __pow__ = _binary("pow")
    __rpow__ = _reflected("pow")
    __and__ = _binary("and_")
    __rand__ = _reflected("and_")
    __or__ = _binary("or_")
    __ror__ = _reflected("or_")
    __xor__ = _binary("xor")
    __rxor__ = _reflected("xor")
    __lshift__ = _binary("lshift")
    __rlshift__ = _reflected("lshift")
    __rshift__ = _binary("rshift")
    __rrshift__ = _reflected("rshift")
    __eq__ = _binary("eq")  # pyright: ignore[reportAssignmentType]
    __ne__ = _binary("ne")  # pyright: ignore[reportAssignmentType]
    __lt__ = _binary("lt")
    __rlt__ = _reflected("lt")
    __le__ = _binary("le")
    __rle__ = _reflected("le")
    __gt__ = _binary("gt")
    __rgt__ = _reflected("gt")
    __ge__ = _binary("ge")
    __rge__ = _reflected("ge")

    def logical_and(self, other: Any) -> constexpr:
        """`value and other`."""
        return constexpr(self.value and unwrapped(other))

    def logical_or(self, other: Any) -> constexpr:
        """`value or other`."""
        return constexpr(self.value or unwrapped(other))

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
