"""CUDA's device functions on scalars that no operation computes: those that the C library has, and what they give.

What is of f32 is computed in f64 and rounded once, but for the float next to another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..builder import F32, F64, FLOATS, Builder, Value
from .arithmetic import absolute, multiply_add, number, with_sign

_LIBRARY = frozenset({
    "erfc", "exp10", "fdim", "hypot", "ilogb", "j0", "j1", "jn", "ldexp", "lgamma", "logb", "nextafter", "remainder",
    "scalbn", "tgamma", "y0", "y1", "yn",
})  # fmt: skip
"""Functions of the C library under the names that they have in CUDA's."""


def of_device(b: Builder, symbol: str, result: str, operands: Sequence[Value]) -> Value | None:
    """The result, of LLVM's type `result`, of a function by its symbol: `__nv_lgammaf`; None for one that is not here.

    Of f64, those of the C library are as exact as that is, and `erfinv` is within 2 ulp.
    """
    prefix, _, name = symbol.partition("__nv_")
    if prefix or not name:
        return None
    if name == "nextafterf":
        return _call(b, name, *operands, result=F32)
    if F32 in [operand.element for operand in operands]:
        name = name.removesuffix("f")
    wide = [b.cast("fpext", operand, F64) if operand.element == F32 else operand for operand in operands]
    if name == "erfinv":
        found = _erfinv(b, *wide)
    elif name in _LIBRARY:
        found = _call(b, name, *wide, result=F64 if result in FLOATS else result)
    else:
        return None
    return b.cast("fptrunc", found, F32) if result == F32 else found


def _call(b: Builder, name: str, *operands: Value, result: str = F64) -> Value:
    found = b.call(name, Value("", result), *operands)
    assert found is not None
    return found


_STEPS = 6
"""Of Halley's: the first guess is up to 13 % off; from 1 % on each step cubes what is off."""


def _erfinv(b: Builder, x: Value) -> Value:
    """The inverse of the error function by Halley's iteration.

    Above one half the complement of the argument is exact, and holds more of it.
    """
    size, one = absolute(b, x), number(1.0, x)
    rest = b.binary("fsub", one, size)
    log = _call(b, "log", b.binary("fmul", rest, b.binary("fadd", one, size)))
    y = b.intrinsic("llvm.sqrt", b.fneg(log))
    is_small = b.compare("fcmp olt", size, number(0.5, x))
    for _ in range(_STEPS):
        below, above = b.binary("fsub", _call(b, "erf", y), size), b.binary("fsub", rest, _call(b, "erfc", y))
        slope = b.binary("fmul", _call(b, "exp", b.binary("fmul", y, y)), number(math.sqrt(math.pi) / 2, x))
        step = b.binary("fmul", b.select(is_small, below, above), slope)
        y = b.binary("fsub", y, b.binary("fdiv", step, multiply_add(b, y, step, one)))
    return with_sign(b, b.select(b.compare("fcmp oeq", size, one), number(math.inf, x), y), x)
