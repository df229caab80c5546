"""Arithmetic that has no operator. Operands are scalars, blocks or numbers; they are broadcast and promoted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .marks import builtin
from .objects import PropagateNan

if TYPE_CHECKING:
    from .arguments import Flag, Value
    from .compile_time import constexpr
    from .objects import number, tensor

__all__ = [
    "abs",
    "add",
    "cdiv",
    "ceil",
    "clamp",
    "cos",
    "div_rn",
    "erf",
    "exp",
    "exp2",
    "fdiv",
    "floor",
    "fma",
    "log",
    "log2",
    "maximum",
    "minimum",
    "mul",
    "rsqrt",
    "sin",
    "sqrt",
    "sqrt_rn",
    "sub",
    "umulhi",
    "where",
]

_tl = builtin("tl")
_member = builtin("tl", member=True)

# --- arithmetic (names of `tl` itself) ----------------------------------------------------------------------------


@_tl
def add(x: Value, y: Value, sanitize_overflow: Flag = True) -> tensor:
    """`x + y`; without `sanitize_overflow`, the debug option that checks integer overflow leaves it alone."""
    ...


@_tl
def sub(x: Value, y: Value, sanitize_overflow: Flag = True) -> tensor:
    """`x - y`; `sanitize_overflow` as in `add`."""
    ...


@_tl
def mul(x: Value, y: Value, sanitize_overflow: Flag = True) -> tensor:
    """`x * y`; `sanitize_overflow` as in `add`."""
    ...


@_tl
def where(condition: Value, x: Value, y: Value) -> tensor:
    """`x` where `condition` holds, else `y`, element by element; both are evaluated."""
    ...


@_tl
def minimum(x: Value, y: Value, propagate_nan: PropagateNan | constexpr = PropagateNan.NONE) -> tensor:
    """The smaller of `x` and `y`, element by element."""
    ...


@_tl
def maximum(x: Value, y: Value, propagate_nan: PropagateNan | constexpr = PropagateNan.NONE) -> tensor:
    """The larger of `x` and `y`, element by element."""
    ...


@_tl
def clamp(x: Value, min: Value, max: Value, propagate_nan: PropagateNan | constexpr = PropagateNan.NONE) -> tensor:
    """`x`, but at least `min` and at most `max`: floats; undefined where `min` > `max`."""
    ...


@_member
def cdiv(x: Value, div: Value) -> number:
    """`x` / `div`, rounded up, for positive integers."""
    ...


@_member
def logical_and(self: Value, other: Value) -> tensor:
    """Say whether both are not zero: a method of runtime values only."""
    ...


@_member
def logical_or(self: Value, other: Value) -> tensor:
    """Say whether one of both is not zero: a method of runtime values only."""
    ...


# --- tl.math ------------------------------------------------------------------------------------------------------


@_tl
def umulhi(x: Value, y: Value) -> tensor:
    """The upper half of the product of 32- or 64-bit integers, taken as unsigned."""
    ...


@_member
def exp(x: Value) -> tensor:
    """E to the power `x` (float32 or float64, as all functions that follow)."""
    ...


@_member
def exp2(x: Value) -> tensor:
    """2 to the power `x`."""
    ...


@_member
def log(x: Value) -> tensor:
    """The natural logarithm."""
    ...


@_member
def log2(x: Value) -> tensor:
    """The logarithm to base 2."""
    ...


@_member
def cos(x: Value) -> tensor:
    """The cosine of `x` radians."""
    ...


@_member
def sin(x: Value) -> tensor:
    """The sine of `x` radians."""
    ...


@_member
def sqrt(x: Value) -> tensor:
    """The square root, fast."""
    ...


@_member
def sqrt_rn(x: Value) -> tensor:
    """The square root, rounded as IEEE 754 says."""
    ...


@_member
def rsqrt(x: Value) -> tensor:
    """1 / the square root."""
    ...


@_member
def abs(x: Value) -> tensor:
    """The absolute value of integers and floats."""
    ...


@_tl
def fdiv(x: Value, y: Value, ieee_rounding: Flag = False, approx: Flag = False) -> tensor:
    """`x` / `y` for floats, fast."""
    ...


@_tl
def div_rn(x: Value, y: Value) -> tensor:
    """`x` / `y` for floats, rounded as IEEE 754 says."""
    ...


@_member
def erf(x: Value) -> tensor:
    """The error function."""
    ...


@_member
def floor(x: Value) -> tensor:
    """The largest integer that is not above `x`, as a float."""
    ...


@_member
def ceil(x: Value) -> tensor:
    """The smallest integer that is not below `x`, as a float."""
    ...


@_tl
def fma(x: Value, y: Value, z: Value) -> tensor:
    """`x * y + z`, rounded once."""
    ...
