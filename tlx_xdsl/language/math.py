"""Arithmetic that has no operator. Operands are scalars, blocks or numbers; they are broadcast and promoted."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.language.marks import builtin
from tlx_xdsl.language.objects import PropagateNan

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
def add(x: Any, y: Any, sanitize_overflow: Any = True) -> Any:
    """`x + y`; without `sanitize_overflow`, the debug option that checks integer overflow leaves it alone."""


@_tl
def sub(x: Any, y: Any, sanitize_overflow: Any = True) -> Any:
    """`x - y`; `sanitize_overflow` as in `add`."""


@_tl
def mul(x: Any, y: Any, sanitize_overflow: Any = True) -> Any:
    """`x * y`; `sanitize_overflow` as in `add`."""


@_tl
def where(condition: Any, x: Any, y: Any) -> Any:
    """`x` where `condition` holds, else `y`, element by element; both are evaluated."""


@_tl
def minimum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE) -> Any:
    """The smaller of `x` and `y`, element by element."""


@_tl
def maximum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE) -> Any:
    """The larger of `x` and `y`, element by element."""


@_tl
def clamp(x: Any, min: Any, max: Any, propagate_nan: Any = PropagateNan.NONE) -> Any:
    """`x`, but at least `min` and at most `max`: floats; undefined where `min` > `max`."""


@_member
def cdiv(x: Any, div: Any) -> Any:
    """`x` / `div`, rounded up, for positive integers."""


@_member
def logical_and(self: Any, other: Any) -> Any:
    """Say whether both are not zero: a method of runtime values only."""


@_member
def logical_or(self: Any, other: Any) -> Any:
    """Say whether one of both is not zero: a method of runtime values only."""


# --- tl.math ------------------------------------------------------------------------------------------------------


@_tl
def umulhi(x: Any, y: Any) -> Any:
    """The upper half of the product of 32- or 64-bit integers, taken as unsigned."""


@_member
def exp(x: Any) -> Any:
    """E to the power `x` (float32 or float64, as all functions that follow)."""


@_member
def exp2(x: Any) -> Any:
    """2 to the power `x`."""


@_member
def log(x: Any) -> Any:
    """The natural logarithm."""


@_member
def log2(x: Any) -> Any:
    """The logarithm to base 2."""


@_member
def cos(x: Any) -> Any:
    """The cosine of `x` radians."""


@_member
def sin(x: Any) -> Any:
    """The sine of `x` radians."""


@_member
def sqrt(x: Any) -> Any:
    """The square root, fast."""


@_member
def sqrt_rn(x: Any) -> Any:
    """The square root, rounded as IEEE 754 says."""


@_member
def rsqrt(x: Any) -> Any:
    """1 / the square root."""


@_member
def abs(x: Any) -> Any:
    """The absolute value of integers and floats."""


@_tl
def fdiv(x: Any, y: Any, ieee_rounding: Any = False, approx: Any = False) -> Any:
    """`x` / `y` for floats, fast."""


@_tl
def div_rn(x: Any, y: Any) -> Any:
    """`x` / `y` for floats, rounded as IEEE 754 says."""


@_member
def erf(x: Any) -> Any:
    """The error function."""


@_member
def floor(x: Any) -> Any:
    """The largest integer that is not above `x`, as a float."""


@_member
def ceil(x: Any) -> Any:
    """The smallest integer that is not below `x`, as a float."""


@_tl
def fma(x: Any, y: Any, z: Any) -> Any:
    """`x * y + z`, rounded once."""
