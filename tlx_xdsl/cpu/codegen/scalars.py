"""Operations of `arith` and `math` on scalars, and in the lanes of vectors.

Floats below 32 bits are computed in f32 and rounded after each operation, as IEEE 754 wants it: f32 has more than twice
their bits, so what is rounded twice is rounded correctly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith as upstream, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation

from tlx_xdsl.dialects import arith
from tlx_xdsl.dialects.base import is_float

from . import conversions, integers, mathematics
from .builder import F32, F64, FLOATS, Builder, Value, constant, register_type
from .function import FunctionEmitter, refused, scalar

_INTRINSICS = {
    "maximumf": "llvm.maximum",
    "minimumf": "llvm.minimum",
    "maxnumf": "llvm.maximumnum",
    "minnumf": "llvm.minimumnum",
    "maxsi": "llvm.smax",
    "maxui": "llvm.umax",
    "minsi": "llvm.smin",
    "minui": "llvm.umin",
}


def minmax(b: Builder, name: str, x: Value, y: Value) -> Value:
    """Return what the operation `arith.<name>` gives, floats being `float` or `double`.

    NaN spreads in `maximumf` and `minimumf`, and gives way to a number in `maxnumf` and `minnumf`. Everywhere -0 is
    less than 0.
    """
    return b.intrinsic(_INTRINSICS[name], x, y)


# Constants -----------------------------------------------------------------------------------------------------------


@scalar(upstream.ConstantOp)
def number(fn: FunctionEmitter, op: upstream.ConstantOp, _: Sequence[Value]) -> Value:
    """A number; a float below 32 bits as its bits."""
    type_ = op.result.type
    match op.value:
        case IntegerAttr():
            return constant(op.value.value.data, register_type(type_))
        case FloatAttr():
            return float_constant(fn, op.value.value.data, type_)
        case _:
            raise refused(op, "its value is no number")


def float_constant(fn: FunctionEmitter, value: float, type_: Attribute) -> Value:
    """A number as a float of MLIR's type; LLVM folds the conversion."""
    register = register_type(type_)
    return constant(value, register) if register in FLOATS else rounded(fn, constant(value, F32), type_)


# Integers ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Instruction:
    """An operation that is one instruction, or one function of numbers, on two operands of its type."""

    write: Callable[[Builder, str, Value, Value], Value]
    name: str

    def __call__(self, fn: FunctionEmitter, op: Operation, values: Sequence[Value]) -> Value:
        """Write it; of floats below 32 bits, in f32."""
        type_ = op.results[0].type
        if not is_float(type_):
            return self.write(fn.b, self.name, values[0], values[1])
        first, second = (widened(fn, value, type_) for value in values)
        return rounded(fn, self.write(fn.b, self.name, first, second), type_)


_INSTRUCTIONS: dict[Callable[[Builder, str, Value, Value], Value], dict[type[Operation], str]] = {
    Builder.binary: {
        upstream.AddiOp: "add",
        upstream.SubiOp: "sub",
        upstream.MuliOp: "mul",
        upstream.AndIOp: "and",
        upstream.OrIOp: "or",
        upstream.XOrIOp: "xor",
        upstream.AddfOp: "fadd",
        upstream.SubfOp: "fsub",
        upstream.MulfOp: "fmul",
        upstream.DivfOp: "fdiv",
    },
    minmax: {
        upstream.MinSIOp: "minsi",
        upstream.MaxSIOp: "maxsi",
        upstream.MinUIOp: "minui",
        upstream.MaxUIOp: "maxui",
        upstream.MaximumfOp: "maximumf",
        upstream.MinimumfOp: "minimumf",
        upstream.MaxnumfOp: "maxnumf",
        upstream.MinnumfOp: "minnumf",
    },
    integers.divide_integers: {
        upstream.DivSIOp: "sdiv",
        upstream.DivUIOp: "udiv",
        upstream.RemSIOp: "srem",
        upstream.RemUIOp: "urem",
        upstream.FloorDivSIOp: "floor sdiv",
        upstream.CeilDivSIOp: "ceil sdiv",
        upstream.CeilDivUIOp: "ceil udiv",
    },
    integers.shift: {
        upstream.ShLIOp: "shl",
        upstream.ShRSIOp: "ashr",
        upstream.ShRUIOp: "lshr",
    },
}
"""Operations that are one instruction, by what writes it."""

for _write, _names in _INSTRUCTIONS.items():
    for _class, _name in _names.items():
        scalar(_class)(Instruction(_write, _name))


@scalar(upstream.MulSIExtendedOp, upstream.MulUIExtendedOp)
def multiply_extended(fn: FunctionEmitter, op: Operation, values: Sequence[Value]) -> Sequence[Value]:
    """The low and the high half of a product."""
    x, y = fn.b.aligned(*values)
    return integers.multiply_extended(fn.b, x, y, signed=isinstance(op, upstream.MulSIExtendedOp))


@scalar(upstream.AddUIExtendedOp)
def add_extended(fn: FunctionEmitter, _op: Operation, values: Sequence[Value]) -> Sequence[Value]:
    """The sum, and whether it overflows."""
    return integers.add_extended(fn.b, *fn.b.aligned(*values))


@scalar(arith.CmpiOp)
def compare_integers(fn: FunctionEmitter, op: arith.CmpiOp, values: Sequence[Value]) -> Value:
    """Signed or unsigned, as the predicate says."""
    return fn.b.compare(f"icmp {op.predicate_name}", values[0], values[1])


# Conversions ---------------------------------------------------------------------------------------------------------


@scalar(arith.ExtSIOp, arith.TruncIOp, upstream.IndexCastOp)
def resize(fn: FunctionEmitter, op: Operation, values: Sequence[Value]) -> Value:
    """Resize a signed integer."""
    return fn.b.resized(values[0], register_type(op.results[0].type))


@scalar(arith.ExtUIOp)
def resize_unsigned(fn: FunctionEmitter, op: Operation, values: Sequence[Value]) -> Value:
    """Resize an unsigned integer."""
    return fn.b.resized(values[0], register_type(op.results[0].type), signed=False)


@scalar(upstream.BitcastOp)
def bitcast(fn: FunctionEmitter, op: upstream.BitcastOp, values: Sequence[Value]) -> Value:
    """The same bits."""
    element = register_type(op.result.type)
    return values[0] if element == values[0].element else fn.b.cast("bitcast", values[0], element)


@scalar(arith.ExtFOp)
def extend_float(fn: FunctionEmitter, op: arith.ExtFOp, values: Sequence[Value]) -> Value:
    """Exactly."""
    wide = widened(fn, values[0], op.input.type)
    return rounded(fn, wide, op.result.type)


@scalar(arith.TruncFOp)
def truncate_float(fn: FunctionEmitter, op: arith.TruncFOp, values: Sequence[Value]) -> Value:
    """Round to the nearest, once."""
    value = values[0] if values[0].element in FLOATS else widened(fn, values[0], op.input.type)
    return rounded(fn, value, op.result.type)


@scalar(arith.SIToFPOp, arith.UIToFPOp)
def from_integer(fn: FunctionEmitter, op: arith.SIToFPOp | arith.UIToFPOp, values: Sequence[Value]) -> Value:
    """Round to the nearest, once."""
    return conversions.from_integer(fn.b, values[0], op.result.type, fn.features, signed=isinstance(op, arith.SIToFPOp))


@scalar(arith.FPToSIOp, arith.FPToUIOp)
def to_integer(fn: FunctionEmitter, op: arith.FPToSIOp | arith.FPToUIOp, values: Sequence[Value]) -> Value:
    """Towards zero; the nearest integer where it is outside of the type's range, as on GPUs."""
    wide = values[0] if values[0].element in FLOATS else widened(fn, values[0], op.input.type)
    return conversions.to_integer(fn.b, wide, register_type(op.result.type), signed=isinstance(op, arith.FPToSIOp))


def widened(fn: FunctionEmitter, value: Value, type_: Attribute) -> Value:
    """A float as f32, if it is narrower."""
    return value if value.element in FLOATS else conversions.widen(fn.b, value, type_, fn.features)


def rounded(fn: FunctionEmitter, value: Value, type_: Attribute) -> Value:
    """A float of LLVM's types as one of MLIR's."""
    register = register_type(type_)
    if register == value.element:
        return value
    if register in FLOATS:
        return fn.b.cast("fpext" if value.element == F32 else "fptrunc", value, register)
    return conversions.narrow(fn.b, value, type_, fn.features)


# Floats --------------------------------------------------------------------------------------------------------------


@scalar(upstream.NegfOp)
def negate(fn: FunctionEmitter, op: Operation, values: Sequence[Value]) -> Value:
    """The other sign, of zeros and NaN too."""
    (value,) = values
    if value.element in FLOATS:
        return fn.b.fneg(value)
    return fn.b.binary("xor", value, constant(-(1 << int(value.element[1:]) - 1), value.element))


@scalar(arith.CmpfOp)
def compare_floats(fn: FunctionEmitter, op: arith.CmpfOp, values: Sequence[Value]) -> Value:
    """Ordered or unordered, as the predicate says."""
    first, second = (widened(fn, value, op.lhs.type) for value in values)
    return fn.b.compare(f"fcmp {op.predicate_name}", first, second)


def mathematical(fn: FunctionEmitter, op: Operation, values: Sequence[Value]) -> Value:
    """A function of `math`, or C's `fmod`."""
    type_ = op.results[0].type
    if isinstance(op, math.AbsFOp) and conversions.is_narrow(type_):
        (value,) = values
        return fn.b.binary("and", value, constant((1 << int(value.element[1:]) - 1) - 1, value.element))
    operands = [
        widened(fn, value, operand.type) if is_float(operand.type) else value
        for value, operand in zip(values, op.operands, strict=True)
    ]
    if isinstance(op, math.FmaOp) and conversions.is_narrow(type_):
        # The product is exact, and the sum has 53 bits; f32 would round before the last step does.
        operands = [fn.b.cast("fpext", value, F64) for value in operands]
    found = mathematics.evaluate(fn.b, op.name, operands, fn.features)
    if found is None:
        raise refused(op, "there is no such function")
    return rounded(fn, found, type_) if is_float(type_) else found


scalar(*math.Math.operations, arith.RemFOp)(mathematical)
