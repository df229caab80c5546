"""CUDA's libdevice: `tt.extern_elementwise` with symbols `__nv_...` (NVIDIA, "libdevice User's Guide").

Functions are computed in f64 and rounded once. What the hardware approximates (`__nv_fast_*`, `__nv_rcp64h`) is the
function here; `docs/interpreter.md` says how far the hardware may be off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from tlx_xdsl.dialects import tt
from tlx_xdsl.element_types import ELEMENT_TYPES
from tlx_xdsl.numerics import special_functions as special
from tlx_xdsl.numerics.arrays import Array, Dtype, numpy_type
from tlx_xdsl.numerics.directed_rounding import (
    MODES,
    from_integer,
    reciprocal_root,
    round_half_away,
    rounded,
    to_integer,
    to_narrower,
)
from tlx_xdsl.numerics.libdevice_integers import BITS, INTEGERS, Builder

from ..faults import Unsupported, fault_at
from ..numbers import dtype_of
from ..planner import Planner
from ..registry import Binary, Built, Kind, Run, Unary, structured

_Function = Callable[..., Any]


def _positive_difference(x: Array, y: Array) -> Array:
    return np.where(x <= y, 0.0, x - y)


def _exponent(x: Array) -> Array:
    """logb: the unbiased exponent, of subnormal numbers too."""
    exponent = np.frexp(np.where(np.isfinite(x), x, 1.0))[1] - 1.0
    return np.where(np.isfinite(x), np.where(x == 0, -np.inf, exponent), np.abs(x))


def _integer_exponent(x: Array) -> Array:
    """ilogb: of 0 and NaN the lowest integer, of infinity the highest."""
    value = _exponent(x)
    lowest, highest = float(np.iinfo(np.int32).min), float(np.iinfo(np.int32).max)
    return np.where(np.isnan(value) | np.isneginf(value), lowest, np.minimum(value, highest))


def _scale(x: Array, exponent: Array) -> Array:
    # More than what takes any number out of range changes nothing, and frexp's type is narrow.
    return np.ldexp(x, np.clip(exponent.astype(np.int64), -5000, 5000).astype(np.int32))


def _remainder(x: Array, y: Array) -> Array:
    """IEEE remainder: the quotient is rounded to nearest even, and the result is exact."""
    modulus = np.abs(y)
    # Two times the modulus may overflow; then the argument is below it.
    within = np.where(np.isfinite(2 * modulus), np.fmod(x, 2 * modulus), x)
    size = np.abs(within)
    over = size > modulus / 2
    size = np.where(over, size - modulus, size)
    # Between one and a half and two moduli, and at one and a half, whose quotient is rounded to 2.
    size = np.where(over & (size >= modulus / 2), size - modulus, size)
    result = np.where(np.signbit(within), -size, size)
    result = np.where(result == 0, np.copysign(0.0, x), result)
    return np.where(np.isinf(y) & np.isfinite(x), x, result)


def _cube_root_inverse(x: Array) -> Array:
    return 1 / special.cbrt(x)


def _exp10(x: Array) -> Array:
    return np.power(10.0, x)


def _power(x: Array, y: Array) -> Array:
    return np.power(x, y.astype(np.float64))


def _inverse_length(*parts: Array) -> Array:
    return 1 / special.length(*parts)


def _fast_power(x: Array, y: Array) -> Array:
    # As the guide defines it; so a negative base gives NaN.
    return np.exp2(y * np.log2(x))


def _saturated(x: Array) -> Array:
    """Clamp to 0 to 1; NaN is 0."""
    return np.fmin(np.fmax(x, 0.0), 1.0)


_FUNCTIONS: dict[str, _Function] = {
    "cyl_bessel_i0": special.bessel_i(0), "cyl_bessel_i1": special.bessel_i(1), "exp10": _exp10, "fabs": np.abs,
    "fdim": _positive_difference, "hypot": special.length, "ilogb": _integer_exponent, "ldexp": _scale,
    "lgamma": special.log_gamma, "logb": _exponent, "nearbyint": np.rint, "norm3d": special.length,
    "norm4d": special.length, "pow": _power, "powi": _power, "rcbrt": _cube_root_inverse, "remainder": _remainder,
    "rhypot": _inverse_length, "rnorm3d": _inverse_length, "rnorm4d": _inverse_length, "round": round_half_away,
    "rsqrt": reciprocal_root, "scalbn": _scale, "tgamma": special.gamma,
} | {name: getattr(np, name) for name in (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos", "cosh", "exp",
    "exp2", "expm1", "floor", "fmod", "log", "log10", "log1p", "log2", "rint", "sin", "sinh", "sqrt", "tan", "tanh",
    "trunc",
)} | {name: getattr(special, name) for name in (
    "cbrt", "cospi", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "j0", "j1", "jn", "normcdf", "normcdfinv", "sinpi",
    "y0", "y1", "yn",
)}  # fmt: skip
_FAST: dict[str, _Function] = {
    f"fast_{name}f": _FUNCTIONS[name] for name in ("cos", "exp10", "exp", "log10", "log2", "log", "sin", "tan")
} | {"fast_fdividef": np.divide, "fast_powf": _fast_power, "saturatef": _saturated}
_C_TYPES = {each.libdevice: numpy_type(each) for each in ELEMENT_TYPES if each.libdevice is not None}


def _in_double(function: _Function) -> Builder:
    """`function` on f64; its integer operands stay as they are."""

    def build(target: Dtype) -> _Function:
        def run(*values: Array) -> Array:
            wide = (value.astype(np.float64) if value.dtype.kind == "f" else value for value in values)
            return np.asarray(function(*wide)).astype(target)

        return run

    return build


def _next_after(target: Dtype) -> Binary:
    return lambda x, y: np.nextafter(x, y).astype(target)


def _rounded_integer(function: _Function) -> Builder:
    """A function whose f64 result is an integer, saturated."""

    def build(target: Dtype) -> Unary:
        return lambda x: to_integer(function(x.astype(np.float64)).astype(x.dtype), target, "rz")

    return build


def _predicate(function: _Function) -> Builder:
    def build(target: Dtype) -> Unary:
        return lambda x: function(x).astype(target)

    return build


def _upper_half_reciprocal(target: Dtype) -> Unary:
    # PTX ISA, "rcp.approx.ftz.f64": the lower 32 bits of argument and result play no part.
    high = np.uint64(0xFFFFFFFF00000000)
    return lambda x: ((1 / (x.view(np.uint64) & high).view(np.float64)).view(np.uint64) & high).view(target)


def _convert(source: Dtype, to: Dtype, mode: str) -> Builder:
    """A conversion between C types; unsigned integers are held as signed ones of the same bits."""

    def build(target: Dtype) -> Unary:
        if to.kind != "f":
            return lambda x: to_integer(x, to, mode).view(target)
        if source.kind != "f":
            return lambda x: from_integer(x.view(source), to, mode).astype(target)
        return lambda x: to_narrower(to, x, mode).astype(target)

    return build


def _functions() -> dict[str, Builder]:
    """Return what builds each function for the type of its result, by its symbol without `__nv_`."""
    found: dict[str, Builder] = BITS | INTEGERS
    for name, function in _FUNCTIONS.items():
        found[name] = found[f"{name}f"] = _in_double(function)
    found |= {name: _in_double(function) for name, function in _FAST.items()}
    found["nextafter"] = found["nextafterf"] = _next_after
    for name, function in (("llrint", np.rint), ("llround", round_half_away)):
        found[name] = found[f"{name}f"] = _rounded_integer(function)
    for name, function in (("isinf", np.isinf), ("isnan", np.isnan), ("signbit", np.signbit)):
        found[f"{name}f"] = found[f"{name}d"] = _predicate(function)
    found["finitef"] = found["isfinited"] = _predicate(np.isfinite)
    found["rcp64h"] = _upper_half_reciprocal
    single, double = _C_TYPES["float"], _C_TYPES["double"]
    for mode in MODES:
        for name in ("add", "sub", "mul", "div", "rcp", "sqrt"):
            found[f"f{name}_{mode}"] = _rounding(name, single, mode)
            found[f"d{name}_{mode}"] = _rounding(name, double, mode)
        found[f"fmaf_{mode}"], found[f"fma_{mode}"] = _rounding("fma", single, mode), _rounding("fma", double, mode)
        for a, source in _C_TYPES.items():
            found |= {f"{a}2{b}_{mode}": _convert(source, to, mode) for b, to in _C_TYPES.items() if a != b}
    found["fmaf"], found["fma"] = found["fmaf_rn"], found["fma_rn"]
    found["frsqrt_rn"] = _rounding("rsqrt", single, "rn")
    return found


def _rounding(name: str, dtype: Dtype, mode: str) -> Builder:
    function = rounded(name, dtype, mode)

    def build(target: Dtype) -> _Function:
        def run(*values: Array) -> Array:
            return np.asarray(function(*values)).astype(target)

        return run

    return build


FUNCTIONS = _functions()
"""The builder of each function for the type of its result, by its symbol without `__nv_`."""


def device_function(symbol: str, results: Sequence[SSAValue]) -> Run | None:
    """The function with that symbol, of arrays or numbers, for results like these; None where there is none."""
    if not symbol.startswith("__nv_") or (build := FUNCTIONS.get(symbol.removeprefix("__nv_"))) is None:
        return None
    function = build(dtype_of(results[0].type))
    return lambda *values: function(*values)[()]


@structured(tt.ExternElementwiseOp)
def extern_elementwise(op: tt.ExternElementwiseOp, _planner: Planner) -> Built:
    """One function for each element.

    Raises Fault for a symbol that is not libdevice's.
    """
    symbol = op.symbol.data
    if (function := device_function(symbol, op.results)) is None:
        raise fault_at(op, f"the interpreter has no device function '{symbol}'", kind=Unsupported)
    return Kind.PURE, function
