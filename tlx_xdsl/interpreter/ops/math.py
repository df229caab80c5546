"""Functions of the dialect `math`: computed in f64 and rounded, so within 1 ulp of the true value in f32 and below.

The hardware's own approximations are coarser (PTX ISA, "ex2", "lg2", "sin", "cos", "rsqrt"); `docs/interpreter.md`
says by how much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import math
from xdsl.ir import Operation

from tlx_xdsl.numerics import directed_rounding, rounding, special_functions
from tlx_xdsl.numerics.arrays import Array, unsigned

from ..numbers import dtype_of
from ..registry import Binary, Functions, Run, Ternary, Unary, pure

_FUNCTIONS: Functions = {
    math.CbrtOp: special_functions.cbrt,
    math.ErfOp: special_functions.erf,
    math.FPowIOp: np.power,
    math.PowFOp: np.power,
    math.RoundEvenOp: np.rint,
    math.RoundOp: directed_rounding.round_half_away,
    math.RsqrtOp: directed_rounding.reciprocal_root,
    # numpy has these under the same names.
    **{
        class_: getattr(np, class_.name.removeprefix("math."))
        for class_ in (
            math.AcosOp, math.AcoshOp, math.AsinOp, math.AsinhOp, math.Atan2Op, math.AtanOp, math.AtanhOp,
            math.CeilOp, math.CosOp, math.CoshOp, math.Exp2Op, math.ExpM1Op, math.ExpOp, math.FloorOp, math.Log10Op,
            math.Log1pOp, math.Log2Op, math.LogOp, math.SinOp, math.SinhOp, math.SqrtOp, math.TanOp, math.TanhOp,
            math.TruncOp,
        )
    },
}  # fmt: skip


def _in_double(op: Operation, function: Callable[..., Any]) -> Run:
    """`function` in f64, rounded to the type of the result of `op`."""
    dtype = dtype_of(op.results[0].type)
    if dtype == np.float64:
        return function
    double = np.float64
    return lambda *values: rounding.round_to(function(*(value.astype(double) for value in values)), dtype)


@pure(*_FUNCTIONS)
def function(op: Operation) -> Run:
    """Run the operation as one function of numpy, or of this package."""
    return _in_double(op, _FUNCTIONS[type(op)])


@pure(math.AbsFOp)
def absf(op: math.AbsFOp) -> Unary:
    """The sign bit is cleared, of NaN, too."""
    dtype = dtype_of(op.result.type)
    bits = np.dtype(f"u{dtype.itemsize}")
    mask = bits.type((1 << (8 * dtype.itemsize - 1)) - 1)
    return lambda value: (value.view(bits) & mask).view(dtype)


@pure(math.CopySignOp)
def copysign(op: math.CopySignOp) -> Binary:
    """The magnitude of the first with the sign of the second."""
    dtype = dtype_of(op.result.type)
    bits = np.dtype(f"u{dtype.itemsize}")
    sign = bits.type(1 << (8 * dtype.itemsize - 1))
    return lambda a, b: ((a.view(bits) & ~sign) | (b.view(bits) & sign)).view(dtype)


@pure(math.FmaOp)
def fma(op: math.FmaOp) -> Ternary:
    """The exact product plus the third operand, rounded once."""
    dtype = dtype_of(op.result.type)
    return lambda a, b, c: directed_rounding.fused_multiply_add(a, b, c, dtype)


@pure(math.AbsIOp)
def absi(_op: math.AbsIOp) -> Unary:
    """The smallest number stays as it is."""
    return np.abs


@pure(math.CountLeadingZerosOp)
def ctlz(op: math.CountLeadingZerosOp) -> Unary:
    """Zeros above the highest bit that is set."""
    dtype = dtype_of(op.result.type)
    return lambda value: directed_rounding.leading_zeros(value.view(unsigned(dtype))).astype(dtype)


@pure(math.CountTrailingZerosOp)
def cttz(op: math.CountTrailingZerosOp) -> Unary:
    """Zeros below the lowest bit that is set."""
    dtype = dtype_of(op.result.type)
    # Exactly the zeros below the lowest set bit are set in ~x & (x - 1).
    return lambda value: np.bitwise_count((~value & (value - dtype.type(1))).view(unsigned(dtype))).astype(dtype)


@pure(math.CtPopOp)
def ctpop(op: math.CtPopOp) -> Unary:
    """Bits that are set."""
    dtype = dtype_of(op.result.type)
    return lambda value: np.bitwise_count(value.view(unsigned(dtype))).astype(dtype)


@pure(math.IPowIOp)
def ipowi(op: math.IPowIOp) -> Binary:
    """An integer to the power of an integer, which wraps around; a negative power rounds towards zero."""
    one = dtype_of(op.result.type).type(1)

    def run(base: Array, power: Array) -> Array:
        result: Array = np.full(np.shape(base), one)
        square, left = base, np.maximum(power, 0)
        while left.any():
            result = np.where(left & one, result * square, result)
            square, left = square * square, left >> one
        odd = np.where(power & one, base, one)
        inverse = np.where(base == one, one, np.where(base == -one, odd, dtype_of(op.result.type).type(0)))
        return np.where(power < 0, inverse, result)[()]

    return run
