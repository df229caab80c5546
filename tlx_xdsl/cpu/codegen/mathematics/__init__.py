"""Functions of the dialect `math` on vectors of lanes: selects, bit operations and polynomials, without tables.

A file for each family, whose docstrings say how large errors are. Of f64, those that have no polynomials here are
called in the C library, lane by lane; `arith.remf` is so, too. CUDA's functions that no operation computes stand in
`device`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..builder import F32, Builder, Value
from ..host import Features
from . import (
    bits,
    double_angles,
    exponentials,
    logarithms,
    powers,
    trigonometry,
)
from .arithmetic import Function


def _intrinsic(name: str) -> Function:
    def run(b: Builder, _features: Features, *operands: Value) -> Value:
        return b.intrinsic(name, *operands)

    return run


def _of_libm(name: str) -> Function:
    """A function of the C library, called lane by lane."""

    def run(b: Builder, _features: Features, *operands: Value) -> Value:
        return b.scalar_call(f"{name}f" if operands[0].element == F32 else name, *operands)

    return run


_FUNCTIONS: dict[str, Function] = {
    **{
        f"math.{name}": _intrinsic(f"llvm.{intrinsic}")
        for name, intrinsic in (
            ("absf", "fabs"), ("ceil", "ceil"), ("copysign", "copysign"), ("floor", "floor"), ("fma", "fma"),
            ("round", "round"), ("roundeven", "roundeven"), ("sqrt", "sqrt"), ("trunc", "trunc"),
        )
    },
    "arith.remf": _of_libm("fmod"),
    "math.absi": bits.absi, "math.ctlz": bits.ctlz, "math.ctpop": bits.ctpop, "math.cttz": bits.cttz,
    "math.exp": exponentials.exp, "math.exp2": exponentials.exp2, "math.ipowi": bits.ipowi, "math.log": logarithms.log,
    "math.log10": logarithms.log10, "math.log2": logarithms.log2, "math.rsqrt": powers.rsqrt,
    "math.tanh": exponentials.tanh,
}  # fmt: skip
_SINGLE: dict[str, Function] = {
    "math.acos": trigonometry.acos, "math.acosh": logarithms.acosh, "math.asin": trigonometry.asin,
    "math.asinh": logarithms.asinh, "math.atan": trigonometry.atan, "math.atan2": trigonometry.atan2,
    "math.atanh": logarithms.atanh, "math.cbrt": powers.cbrt, "math.cos": trigonometry.cos,
    "math.cosh": exponentials.cosh, "math.erf": exponentials.erf, "math.expm1": exponentials.expm1,
    "math.log1p": logarithms.log1p, "math.powf": powers.pow_, "math.sin": trigonometry.sin,
    "math.sinh": exponentials.sinh, "math.tan": trigonometry.tan,
}  # fmt: skip
"""Of f32."""
_DOUBLE = {name: _of_libm("pow" if name == "math.powf" else name.removeprefix("math.")) for name in _SINGLE} | {
    "math.cos": double_angles.cos, "math.sin": double_angles.sin, "math.tan": double_angles.tan,
}  # fmt: skip
"""Of f64: the C library's where there is no other."""


def evaluate(b: Builder, name: str, operands: Sequence[Value], features: Features) -> Value | None:
    """The result of an operation of `math`, or of `arith.remf`, by its name: `math.exp`; None for what is unknown.

    Floats are `float` or `double`. Operands with one lane are broadcast to the lanes of the others.
    """
    operands = b.aligned(*operands)
    if name == "math.fpowi":
        power = b.cast("sitofp", operands[1], operands[0].element)
        return evaluate(b, "math.powf", [operands[0], power], features)
    special = _SINGLE if operands[0].element == F32 else _DOUBLE
    function = _FUNCTIONS.get(name) or special.get(name)
    return None if function is None else function(b, features, *operands)
