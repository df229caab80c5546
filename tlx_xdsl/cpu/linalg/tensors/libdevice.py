"""CUDA's device functions: the operation of `math` or `arith` with the same value, or a call of the function.

A function that no operation computes is declared in the module, `func.func private @__nv_j0f(f32) -> f32`, for who
links it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith as scalar, func, math
from xdsl.dialects.builtin import AnyFloat, Float64Type, ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, SSAValue

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base.operation import outermost
from tlx_xdsl.dialects.base.tensors import scalar_type

from .elementwise import cast_bits
from .emitter import Emitter
from .registry import expands

_Make = Callable[..., Any]

_FLOAT: dict[str, _Make] = {
    **{
        name: getattr(math, f"{name.capitalize()}Op")
        for name in (
            "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh", "erf", "exp",
            "exp2", "floor", "fma", "log", "log10", "log1p", "log2", "round", "rsqrt", "sin", "sinh", "sqrt", "tan",
            "tanh", "trunc",
        )
    },
    "copysign": math.CopySignOp, "expm1": math.ExpM1Op, "fabs": math.AbsFOp, "fmod": arith.RemFOp,
    "nearbyint": math.RoundEvenOp, "pow": math.PowFOp, "powi": math.FPowIOp, "rint": math.RoundEvenOp,
}  # fmt: skip
"""Of f64 by their names; those of f32 have an f at the end."""
_NEAREST: dict[str, _Make] = {
    "add": scalar.AddfOp, "sub": scalar.SubfOp, "mul": scalar.MulfOp, "div": scalar.DivfOp, "sqrt": math.SqrtOp,
}  # fmt: skip
"""With a rounding to nearest, `__nv_fadd_rn` and `__nv_dadd_rn`."""


def _of_float(symbol: str, type_: Attribute) -> _Make | None:
    """The operation on floats that a symbol without `__nv_` names, with a result of `type_`."""
    if symbol.startswith(("f", "d")) and symbol.endswith("_rn") and (made := _NEAREST.get(symbol[1:-3])) is not None:
        return made
    if symbol.startswith("fast_") and symbol != "fast_powf":
        symbol = symbol.removeprefix("fast_")
    if symbol == "fdividef":
        return scalar.DivfOp
    if symbol in ("fmaf_rn", "fma_rn"):
        return math.FmaOp
    return _FLOAT.get(symbol if isinstance(type_, Float64Type) else symbol.removesuffix("f"))


_INTEGER: dict[str, _Make] = {
    "abs": math.AbsIOp, "llabs": math.AbsIOp, "clz": math.CountLeadingZerosOp, "popc": math.CtPopOp,
}  # fmt: skip
_HIGH_HALF: dict[str, _Make] = {
    "mulhi": scalar.MulSIExtendedOp, "mul64hi": scalar.MulSIExtendedOp, "umulhi": scalar.MulUIExtendedOp,
    "umul64hi": scalar.MulUIExtendedOp,
}  # fmt: skip
_BITS = (
    "double_as_longlong", "float_as_int", "float_as_uint", "int_as_float", "longlong_as_double", "uint_as_float",
)  # fmt: skip


@expands(tt.ExternElementwiseOp)
def extern_elementwise(emit: Emitter, op: tt.ExternElementwiseOp, values: Sequence[SSAValue]) -> SSAValue:
    """One operation where there is one, else a call."""
    type_, symbol = scalar_type(op.result.type), op.symbol.data
    name = symbol.removeprefix("__nv_") if symbol.startswith("__nv_") else ""
    if name in _BITS:
        return cast_bits(emit, values[0], type_)
    if (high := _HIGH_HALF.get(name)) is not None:
        return emit.add(high(*values)).results[1]
    made = _of_float(name, type_) if isinstance(type_, AnyFloat) else _INTEGER.get(name)
    if made is not None:
        return emit.result(made(*values))
    if (kind := _CLASSES.get(name.removesuffix("f").removesuffix("d"))) is not None:
        return emit.result(arith.ExtUIOp(kind(emit, values[0]), type_))
    return _call(emit, op, values, type_)


def _is_nan(emit: Emitter, value: SSAValue) -> SSAValue:
    return emit.result(arith.CmpfOp("uno", value, value))


def _is_infinite(emit: Emitter, value: SSAValue) -> SSAValue:
    return _compare_size(emit, "oeq", value)


def _is_finite(emit: Emitter, value: SSAValue) -> SSAValue:
    return _compare_size(emit, "one", value)


def _compare_size(emit: Emitter, predicate: str, value: SSAValue) -> SSAValue:
    size = emit.result(math.AbsFOp(value))
    return emit.result(arith.CmpfOp(predicate, size, emit.constant(float("inf"), value.type)))


_CLASSES = {"isnan": _is_nan, "isinf": _is_infinite, "finite": _is_finite, "isfinite": _is_finite}
"""Functions that say what kind of number a float is, as 0 or 1."""


def _call(emit: Emitter, op: tt.ExternElementwiseOp, values: Sequence[SSAValue], type_: Attribute) -> SSAValue:
    """A call of the function, which the module declares."""
    symbol, module = op.symbol.data, outermost(op)
    assert isinstance(module, ModuleOp)
    declared = any(isinstance(each, func.FuncOp) and each.sym_name.data == symbol for each in module.ops)
    if not declared:
        declaration = func.FuncOp.external(symbol, [value.type for value in values], [type_])
        declaration.location = emit.location
        module.body.block.add_op(declaration)
    return emit.result(func.CallOp(SymbolRefAttr(symbol), values, [type_]))
