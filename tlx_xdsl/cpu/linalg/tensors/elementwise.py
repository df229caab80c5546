"""Operations that compute each element on its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith as scalar, func, math
from xdsl.dialects.builtin import AnyFloat, Float64Type, IntegerType, ModuleOp, SymbolRefAttr, f32
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects import arith, linalg, tt
from tlx_xdsl.dialects.base.operation import outermost
from tlx_xdsl.dialects.base.tensors import element_bits, element_type_of, scalar_type
from tlx_xdsl.dialects.tt.enums import PropagateNan, RoundingMode
from tlx_xdsl.transforms.rewriting import constant_integer

from .emitter import EXPANSIONS, GUARDS, Emitter, expands, guards


def lower_elementwise(emit: Emitter, op: Operation) -> Sequence[SSAValue]:
    """A `linalg.generic` whose body is `op` on scalars; a scalar operand is one of its inputs, too."""
    expand = EXPANSIONS.get(type(op)) or GUARDS.get(type(op))

    def body(inner: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return on_scalars(inner, op, values) if expand is None else [expand(inner, op, values)]

    return emit.generic(op.operands, op.result_types, body)


def on_scalars(emit: Emitter, op: Operation, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """The same operation on one element."""
    made = type(op).create(
        operands=values,
        result_types=[scalar_type(type_) for type_ in op.result_types],
        properties=op.properties.copy(),
        attributes=op.attributes.copy(),
    )
    return emit.add(made).results


# Divisions -----------------------------------------------------------------------------------------------------------


@guards(scalar.DivUIOp, scalar.RemUIOp, scalar.CeilDivUIOp)
def divide_unsigned(emit: Emitter, op: Operation, values: Sequence[SSAValue]) -> SSAValue:
    """Divide by 1 instead of 0, for which every bit of the result is set: an NVIDIA GPU does not trap, a CPU does."""
    return _guarded(emit, op, values, None)


@guards(scalar.DivSIOp, scalar.RemSIOp, scalar.CeilDivSIOp, scalar.FloorDivSIOp)
def divide_signed(emit: Emitter, op: Operation, values: Sequence[SSAValue]) -> SSAValue:
    """The same; and the smallest number is divided by 1 instead of -1, so that its quotient wraps around."""
    dividend, divisor = values
    known = _splat_of(op.operands[1])
    if known is not None and known != -1:
        return _guarded(emit, op, values, None)
    bits = element_bits(dividend.type)
    is_smallest = emit.result(arith.CmpiOp("eq", dividend, emit.constant(-(1 << bits - 1), dividend.type)))
    is_minus_one = emit.result(arith.CmpiOp("eq", divisor, emit.constant(-1, divisor.type)))
    return _guarded(emit, op, values, emit.result(scalar.AndIOp(is_smallest, is_minus_one)))


def _guarded(emit: Emitter, op: Operation, values: Sequence[SSAValue], overflows: SSAValue | None) -> SSAValue:
    dividend, divisor = values
    if _splat_of(op.operands[1]):
        is_zero, by_one = None, overflows
    else:
        is_zero = emit.result(arith.CmpiOp("eq", divisor, emit.constant(0, divisor.type)))
        by_one = is_zero if overflows is None else emit.result(scalar.OrIOp(is_zero, overflows))
    if by_one is not None:
        divisor = emit.result(arith.SelectOp(by_one, emit.constant(1, divisor.type), divisor))
    (result,) = on_scalars(emit, op, [dividend, divisor])
    if is_zero is None:
        return result
    return emit.result(arith.SelectOp(is_zero, emit.constant(-1, result.type), result))


def _splat_of(value: SSAValue) -> int | None:
    """The constant that all elements of a tensor are, whose definition was lowered before its uses."""
    owner = value.owner
    return constant_integer(owner.inputs[0]) if isinstance(owner, linalg.FillOp) else None


# Operations of tt on one element -------------------------------------------------------------------------------------


@expands(tt.BitcastOp)
def bitcast(emit: Emitter, op: tt.BitcastOp, values: Sequence[SSAValue]) -> SSAValue:
    """`arith.bitcast`; nothing where the type stays."""
    return cast_bits(emit, values[0], scalar_type(op.result.type))


def cast_bits(emit: Emitter, value: SSAValue, type_: Attribute) -> SSAValue:
    """The same bits as another type."""
    return value if value.type == type_ else emit.result(scalar.BitcastOp(value, type_))


@expands(tt.FpToFpOp)
def convert_float(emit: Emitter, op: tt.FpToFpOp, values: Sequence[SSAValue]) -> SSAValue:
    """`arith.extf` or `arith.truncf`; by way of f32 between types of one width.

    8-bit results stop at their largest finite number (PTX ISA, "cvt", `.satfinite`), so the operand is limited first.
    """
    target, value = scalar_type(op.result.type), values[0]
    if value.type == target:
        return value
    to_zero = op.rounding is not None and RoundingMode(op.rounding.value.data) is RoundingMode.RTZ
    if element_bits(target) > element_bits(value.type):
        return emit.result(arith.ExtFOp(value, target))
    if element_bits(value.type) < 32:
        value = emit.result(arith.ExtFOp(value, f32))
    if to_zero:
        return _towards_zero(emit, value, target)
    return emit.result(arith.TruncFOp(_limited(emit, value, target), target))


def _limit(target: Attribute) -> float | None:
    """The largest finite number of an 8-bit float of Triton; None for every other type."""
    element = element_type_of(target)
    if element is None or element.name is None or element.kind != "f" or element.bits != 8:
        return None
    return element.largest


def _limited(emit: Emitter, value: SSAValue, target: Attribute) -> SSAValue:
    """A number between the largest finite ones of an 8-bit float; as it is for other types."""
    if (limit := _limit(target)) is None:
        return value
    above = emit.result(scalar.MaximumfOp(value, emit.constant(-limit, value.type)))
    return emit.result(scalar.MinimumfOp(above, emit.constant(limit, value.type)))


def _towards_zero(emit: Emitter, value: SSAValue, target: Attribute) -> SSAValue:
    """The nearest number, or where that is farther from zero, the one before it: of its bits, one less.

    (`arith.truncf` has a rounding for it, but LLVM then only assumes that the processor is in that mode.)
    """
    size = emit.result(math.AbsFOp(value))
    if _limit(target) is not None:
        is_finite = emit.result(arith.CmpfOp("one", size, emit.constant(float("inf"), value.type)))
        value = emit.result(arith.SelectOp(is_finite, _limited(emit, value, target), value))
    nearest = emit.result(arith.TruncFOp(value, target))
    bits = IntegerType(element_bits(target))
    before = emit.result(scalar.SubiOp(cast_bits(emit, nearest, bits), emit.constant(1, bits)))
    wide = emit.result(math.AbsFOp(emit.result(arith.ExtFOp(nearest, value.type))))
    is_farther = emit.result(arith.CmpfOp("ogt", wide, size))
    return emit.result(arith.SelectOp(is_farther, cast_bits(emit, before, target), nearest))


@expands(tt.ClampFOp)
def clamp(emit: Emitter, op: tt.ClampFOp, values: Sequence[SSAValue]) -> SSAValue:
    """The larger of `x` and the lower limit, then the smaller of that and the upper one."""
    x, low, high = values
    if PropagateNan(op.propagate_nan.value.data) is PropagateNan.ALL:
        return emit.result(scalar.MinimumfOp(emit.result(scalar.MaximumfOp(x, low)), high))
    return emit.result(scalar.MinnumfOp(emit.result(scalar.MaxnumfOp(x, low)), high))


@expands(tt.PreciseSqrtOp)
def precise_sqrt(emit: Emitter, _op: tt.PreciseSqrtOp, values: Sequence[SSAValue]) -> SSAValue:
    """`math.sqrt`, which rounds correctly."""
    return emit.result(math.SqrtOp(values[0]))


@expands(tt.PreciseDivFOp, tt.ApproxDivFOp)
def divide(emit: Emitter, _op: Operation, values: Sequence[SSAValue]) -> SSAValue:
    """`arith.divf`, which rounds correctly."""
    return emit.result(scalar.DivfOp(values[0], values[1]))


@expands(tt.MulhiUIOp)
def multiply_high(emit: Emitter, _op: tt.MulhiUIOp, values: Sequence[SSAValue]) -> SSAValue:
    """The second result of `arith.mului_extended`."""
    return emit.add(scalar.MulUIExtendedOp(values[0], values[1])).results[1]


# CUDA's device functions: the operation of `math` or `arith` with the same value, or a call of the function.
#
# A function that no operation computes is declared in the module, `func.func private @__nv_j0f(f32) -> f32`, for who
# links it.

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


def _is_negative(emit: Emitter, value: SSAValue) -> SSAValue:
    bits = cast_bits(emit, value, IntegerType(element_bits(value.type)))
    return emit.result(arith.CmpiOp("slt", bits, emit.constant(0, bits.type)))


_CLASSES = {
    "isnan": _is_nan, "isinf": _is_infinite, "finite": _is_finite, "isfinite": _is_finite, "signbit": _is_negative,
}  # fmt: skip
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
