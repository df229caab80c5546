"""Typed arithmetic on values: promotion, broadcasting, casts and the operations they become.

The rules are those of Triton's language reference ("Triton Semantics"): kinds promote bool < integer < float, within
a kind the wider type wins, and a compile-time number takes the other operand's type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith as xarith
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Operation

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.frontend.builder import Builder
from tlx_xdsl.frontend.types import ir_type
from tlx_xdsl.frontend.values import Constexpr, Tensor, Value
from tlx_xdsl.language.core import dtype, float32, int1, int32, int64, pointer_type


class SemanticError(Exception):
    """The operands do not fit; the visitor adds the place."""


_INTEGER_OPS: dict[str, Callable[..., Operation]] = {
    "+": xarith.AddiOp,
    "-": xarith.SubiOp,
    "*": xarith.MuliOp,
    "&": xarith.AndIOp,
    "|": xarith.OrIOp,
    "^": xarith.XOrIOp,
    "<<": xarith.ShLIOp,
}
_SIGNED_OPS: dict[str, tuple[Callable[..., Operation], Callable[..., Operation]]] = {
    "//": (xarith.DivSIOp, xarith.DivUIOp),
    "%": (xarith.RemSIOp, xarith.RemUIOp),
    ">>": (xarith.ShRSIOp, xarith.ShRUIOp),
    "min": (xarith.MinSIOp, xarith.MinUIOp),
    "max": (xarith.MaxSIOp, xarith.MaxUIOp),
}
"""For signed and for unsigned integers."""
_FLOAT_OPS: dict[str, Callable[..., Operation]] = {
    "+": xarith.AddfOp,
    "-": xarith.SubfOp,
    "*": xarith.MulfOp,
    "/": xarith.DivfOp,
    "%": arith.RemFOp,
    "min": xarith.MinnumfOp,
    "max": xarith.MaxnumfOp,
}
_COMPARISONS: dict[str, tuple[str, str, str]] = {
    "==": ("eq", "eq", "oeq"),
    "!=": ("ne", "ne", "une"),
    "<": ("slt", "ult", "olt"),
    "<=": ("sle", "ule", "ole"),
    ">": ("sgt", "ugt", "ogt"),
    ">=": ("sge", "uge", "oge"),
}
"""The predicates for signed integers, unsigned integers (and pointers) and floats."""

PYTHON_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
"""What the operators mean between compile-time values: what they mean in Python."""


def to_tensor(builder: Builder, value: Value) -> Tensor:
    """`value` as a runtime value; a compile-time number becomes a constant.

    Raises SemanticError when `value` is no number.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Constexpr) and isinstance(value.value, bool | int | float):
        element = natural_dtype(value.value)
        return Tensor(builder.constant(value.value, ir_type(element)), element)
    raise SemanticError(f"expected a number or a block, found {value.describe()}")


def natural_dtype(number: bool | int | float) -> dtype:
    """The type of a compile-time number that nothing else determines.

    Raises SemanticError for an integer beyond 64 bits.
    """
    if isinstance(number, bool):
        return int1
    if isinstance(number, float):
        return float32
    if -(2**31) <= number < 2**31:
        return int32
    if -(2**63) <= number < 2**63:
        return int64
    raise SemanticError(f"{number} does not fit in 64 bits")


def promoted(lhs: dtype, rhs: dtype) -> dtype:
    """The type of an arithmetic operation between runtime values of these types."""
    if lhs.is_floating() != rhs.is_floating():
        return lhs if lhs.is_floating() else rhs
    if lhs.is_floating():
        if lhs == rhs:
            return lhs
        wider = max(lhs, rhs, key=lambda ty: ty.primitive_bitwidth)
        # fp16 with bf16, and fp8 with fp8 of another kind, meet in a type that holds both.
        return wider if lhs.primitive_bitwidth != rhs.primitive_bitwidth else float32
    if lhs.primitive_bitwidth == rhs.primitive_bitwidth:
        return lhs if lhs.is_int_unsigned() else rhs
    return max(lhs, rhs, key=lambda ty: ty.primitive_bitwidth)


def cast(builder: Builder, value: Tensor, target: dtype) -> Tensor:
    """Convert the elements of `value` to `target`.

    Raises SemanticError for pointers.
    """
    source = value.dtype
    if source == target:
        return value
    if isinstance(source, pointer_type):
        raise SemanticError(f"cannot convert a pointer of type {source} to {target}")
    if target == int1:
        return compare(builder, "!=", value, Constexpr(0))
    op = _cast_op(source, target)
    if op is None:
        return Tensor(value.ssa, target, value.shape)
    result = builder.insert(op(value.ssa, ir_type(target)))
    return Tensor(result.results[0], target, value.shape)


def _cast_op(source: dtype, target: dtype) -> Callable[..., Operation] | None:
    """The operation that converts; None when the bits stay."""
    if source.is_floating() and target.is_floating():
        if source.primitive_bitwidth == target.primitive_bitwidth:
            raise SemanticError(f"cannot convert {source} to {target} directly, go through fp32")
        return arith.ExtFOp if target.primitive_bitwidth > source.primitive_bitwidth else arith.TruncFOp
    if source.is_floating():
        return arith.FPToSIOp if target.is_int_signed() else arith.FPToUIOp
    # A bool counts as unsigned: true becomes 1.
    signed = source.is_int_signed() and source != int1
    if target.is_floating():
        return arith.SIToFPOp if signed else arith.UIToFPOp
    if source.primitive_bitwidth == target.primitive_bitwidth:
        return None
    if target.primitive_bitwidth < source.primitive_bitwidth:
        return arith.TruncIOp
    return arith.ExtSIOp if signed else arith.ExtUIOp


def splat(builder: Builder, value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A block of `shape` with the scalar `value` everywhere."""
    if not shape:
        return value
    op = tt.SplatOp(operands=[value.ssa], result_types=[ir_type(value.dtype, shape)])
    return Tensor(builder.insert(op).result, value.dtype, shape)


def expand_dims(builder: Builder, value: Tensor, axis: int) -> Tensor:
    """Insert a dimension of size 1."""
    shape = (*value.shape[:axis], 1, *value.shape[axis:])
    op = tt.ExpandDimsOp(
        operands=[value.ssa],
        properties={"axis": IntegerAttr(axis, i32)},
        result_types=[ir_type(value.dtype, shape)],
    )
    return Tensor(builder.insert(op).result, value.dtype, shape)


def broadcast_to(builder: Builder, value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`value` repeated to `shape`.

    Raises SemanticError when a dimension is neither 1 nor the wanted size.
    """
    if value.shape == shape:
        return value
    if not value.shape:
        return splat(builder, value, shape)
    while len(value.shape) < len(shape):
        value = expand_dims(builder, value, 0)
    if any(have not in (1, want) for have, want in zip(value.shape, shape, strict=True)):
        raise SemanticError(f"cannot broadcast the shape {list(value.shape)} to {list(shape)}")
    if value.shape == shape:
        return value
    op = tt.BroadcastOp(operands=[value.ssa], result_types=[ir_type(value.dtype, shape)])
    return Tensor(builder.insert(op).result, value.dtype, shape)


def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all of `shapes` broadcast to.

    Raises SemanticError when there is none.
    """
    rank = max(len(shape) for shape in shapes)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result: list[int] = []
    for sizes in zip(*padded, strict=True):
        wanted = {size for size in sizes if size != 1}
        if len(wanted) > 1:
            raise SemanticError(f"shapes {' and '.join(str(list(shape)) for shape in shapes)} do not broadcast")
        result.append(wanted.pop() if wanted else 1)
    return tuple(result)


def _unify(builder: Builder, lhs: Value, rhs: Value) -> tuple[Tensor, Tensor, dtype | pointer_type]:
    """Both operands as blocks of one type and shape."""
    if isinstance(lhs, Constexpr) and isinstance(rhs, Tensor):
        right, left = rhs, _number_like(builder, lhs, rhs)
    elif isinstance(rhs, Constexpr) and isinstance(lhs, Tensor):
        left, right = lhs, _number_like(builder, rhs, lhs)
    else:
        left, right = to_tensor(builder, lhs), to_tensor(builder, rhs)
    if isinstance(left.dtype, pointer_type) or isinstance(right.dtype, pointer_type):
        if left.dtype != right.dtype:
            raise SemanticError(f"cannot combine {left.describe()} with {right.describe()}")
        element: dtype | pointer_type = left.dtype
    else:
        element = promoted(left.dtype, right.dtype)
        left, right = cast(builder, left, element), cast(builder, right, element)
    shape = common_shape(left.shape, right.shape)
    return broadcast_to(builder, left, shape), broadcast_to(builder, right, shape), element


def _number_like(builder: Builder, number: Constexpr, other: Tensor) -> Tensor:
    """A compile-time number in the type of `other`, or in its own when its kind is higher."""
    value = number.value
    if not isinstance(value, bool | int | float):
        raise SemanticError(f"expected a number or a block, found {number.describe()}")
    natural = natural_dtype(value)
    element = other.dtype
    if (
        isinstance(element, pointer_type)
        or (natural.is_floating() and not element.is_floating())
        or (element == int1 and natural != int1)
    ):
        element = natural
    elif element.is_int() and not _fits(int(value), element):
        if natural.primitive_bitwidth <= element.primitive_bitwidth:
            raise SemanticError(f"{value} is outside the range of {element}")
        element = natural
    return Tensor(builder.constant(value, ir_type(element)), element)


def _fits(number: int, element: dtype) -> bool:
    bits = element.primitive_bitwidth
    if element == int1:
        return number in (0, 1)
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if element.is_int_signed() else (0, 1 << bits)
    return low <= number < high


def binary(builder: Builder, symbol: str, lhs: Value, rhs: Value) -> Value:
    """`lhs symbol rhs` for an arithmetic operator, or "min" and "max".

    Raises SemanticError when the operator does not exist for the operands.
    """
    if isinstance(lhs, Constexpr) and isinstance(rhs, Constexpr):
        return _python(symbol, lhs.value, rhs.value)
    if symbol in ("+", "-") and isinstance(lhs, Tensor) and isinstance(lhs.dtype, pointer_type):
        return _add_to_pointer(builder, symbol, lhs, rhs)
    if symbol == "+" and isinstance(rhs, Tensor) and isinstance(rhs.dtype, pointer_type):
        return _add_to_pointer(builder, symbol, rhs, lhs)
    if any(isinstance(value, Tensor) and isinstance(value.dtype, pointer_type) for value in (lhs, rhs)):
        raise SemanticError(f"'{symbol}' does not exist for pointers")
    left, right, element = _unify(builder, lhs, rhs)
    assert isinstance(element, dtype)
    if symbol == "/" and element.is_int():
        left, right, element = cast(builder, left, float32), cast(builder, right, float32), float32
    op = _arithmetic_op(symbol, element)
    if op is None:
        raise SemanticError(f"'{symbol}' does not exist for {element}")
    result = builder.insert(op(left.ssa, right.ssa))
    return Tensor(result.results[0], element, left.shape)


def _arithmetic_op(symbol: str, element: dtype) -> Callable[..., Operation] | None:
    if element.is_floating():
        return _FLOAT_OPS.get(symbol)
    if symbol in _SIGNED_OPS:
        return _SIGNED_OPS[symbol][0 if element.is_int_signed() else 1]
    return _INTEGER_OPS.get(symbol)


def _python(symbol: str, lhs: Any, rhs: Any) -> Constexpr:
    function = {"min": min, "max": max}.get(symbol) or PYTHON_OPS[symbol]
    try:
        return Constexpr(function(lhs, rhs))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise SemanticError(f"cannot compute {lhs!r} {symbol} {rhs!r} at compile time: {error}") from error


def _add_to_pointer(builder: Builder, symbol: str, pointer: Tensor, offset: Value) -> Tensor:
    amount = to_tensor(builder, offset)
    if isinstance(amount.dtype, pointer_type) or amount.dtype.is_floating():
        raise SemanticError(f"a pointer moves by an integer, found {amount.describe()}")
    if symbol == "-":
        zero = Tensor(builder.constant(0, ir_type(amount.dtype)), amount.dtype)
        negated = binary(builder, "-", zero, amount)
        assert isinstance(negated, Tensor)
        amount = negated
    shape = common_shape(pointer.shape, amount.shape)
    base, amount = broadcast_to(builder, pointer, shape), broadcast_to(builder, amount, shape)
    return Tensor(builder.insert(tt.AddPtrOp(base.ssa, amount.ssa)).result, pointer.dtype, shape)


def compare(builder: Builder, symbol: str, lhs: Value, rhs: Value) -> Any:
    """`lhs symbol rhs` for a comparison; between runtime values the result is an int1 block.

    Raises SemanticError when the operands do not compare.
    """
    if isinstance(lhs, Constexpr) and isinstance(rhs, Constexpr):
        return _python(symbol, lhs.value, rhs.value)
    left, right, element = _unify(builder, lhs, rhs)
    signed, unsigned, floating = _COMPARISONS[symbol]
    if isinstance(element, dtype) and element.is_floating():
        op: Operation = arith.CmpfOp(floating, left.ssa, right.ssa)
    else:
        is_signed = isinstance(element, dtype) and element.is_int_signed()
        op = arith.CmpiOp(signed if is_signed else unsigned, left.ssa, right.ssa)
    return Tensor(builder.insert(op).results[0], int1, left.shape)


def negate(builder: Builder, value: Value) -> Value:
    """`-value`, which is `0 - value`: stock Triton does not lower `arith.negf` in every version.

    Raises SemanticError for pointers.
    """
    return binary(builder, "-", Constexpr(0), value)


def where(builder: Builder, condition: Value, lhs: Value, rhs: Value) -> Tensor:
    """`lhs` where `condition`, else `rhs`.

    Raises SemanticError when the condition is no int1 or the shapes do not broadcast.
    """
    test = to_tensor(builder, condition)
    if isinstance(test.dtype, pointer_type):
        raise SemanticError(f"the condition must be an int1, found {test.describe()}")
    test = cast(builder, test, int1)
    left, right, element = _unify(builder, lhs, rhs)
    shape = common_shape(test.shape, left.shape)
    left, right = broadcast_to(builder, left, shape), broadcast_to(builder, right, shape)
    if test.shape:
        test = broadcast_to(builder, test, shape)
    return Tensor(builder.insert(arith.SelectOp(test.ssa, left.ssa, right.ssa)).result, element, shape)


def full(builder: Builder, shape: tuple[int, ...], value: Value, element: dtype) -> Tensor:
    """A block of `shape` that holds `value` everywhere."""
    if isinstance(value, Constexpr) and isinstance(value.value, bool | int | float):
        return Tensor(builder.constant(value.value, ir_type(element, shape)), element, shape)
    return splat(builder, cast(builder, to_tensor(builder, value), element), shape)
