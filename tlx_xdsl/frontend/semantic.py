"""Typed arithmetic on values: promotion and the operations that operators become.

The rules are those of Triton's language reference ("Triton Semantics"), and where that is silent, of the IR that
Triton prints: kinds promote bool < integer < float, within a kind the wider type wins, of one width the unsigned
integer and float16 win; a compile-time number takes the other operand's type unless its kind is higher.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith as xarith
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.language.core import bfloat16, dtype, float16, float32, float64, int1, int64, pointer_type

from .builder import Builder
from .conversions import bitcast as bitcast, cast as cast
from .elementwise import COMPARISONS, FLOAT_OPS, INTEGER_OPS, MIRRORED, NAN_OPS, SIGNED_OPS
from .numbers import (
    constant as constant,
    is_number as is_number,
    natural_dtype as natural_dtype,
    to_tensor as to_tensor,
)
from .shapes import (
    broadcast as broadcast,
    broadcast_to as broadcast_to,
    common_shape as common_shape,
    expand_dims as expand_dims,
    splat as splat,
    unsplat as unsplat,
)
from .types import SemanticError as SemanticError, ir_type
from .values import Constexpr, Tensor, Value, shown

_DIVISIONS = ("/", "//", "%")

_OPERATORS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "**": "pow",
    "&": "and_",
    "|": "or_",
    "^": "xor",
    "<<": "lshift",
    ">>": "rshift",
    "==": "eq",
    "!=": "ne",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
}
PYTHON_OPS: dict[str, Callable[[Any, Any], Any]] = {"min": min, "max": max} | {
    symbol: getattr(operator, name) for symbol, name in _OPERATORS.items()
}
"""Operators between compile-time values: those of Python."""


# --- promotion ------------------------------------------------------------------------------------------------------


def promoted(lhs: dtype, rhs: dtype, *, division: bool = False) -> dtype:
    """The type of an arithmetic operation between runtime values of these types.

    A `division` computes 16-bit and 8-bit floats in float32. Raises SemanticError for integers with 8-bit floats, and
    for a division of integers that differ in their sign.
    """
    for wide in (float64, float32):
        if wide in (lhs, rhs):
            return wide
    if division and (lhs.is_floating() or rhs.is_floating()):
        return float32
    if float16 in (lhs, rhs):
        return float16
    if bfloat16 in (lhs, rhs):
        return bfloat16 if lhs == rhs else float32
    if lhs.is_floating() or rhs.is_floating():
        if not (lhs.is_floating() and rhs.is_floating()):
            raise SemanticError(f"cannot combine {lhs} with {rhs}: cast the 8-bit float first")
        return lhs if lhs == rhs else float16
    if division and lhs.is_int_signed() != rhs.is_int_signed():
        raise SemanticError(f"Cannot use /, // or % with {lhs} and {rhs} because they have different signedness")
    if lhs.primitive_bitwidth == rhs.primitive_bitwidth:
        return lhs if lhs.is_int_unsigned() else rhs
    return max(lhs, rhs, key=lambda ty: ty.primitive_bitwidth)


def _with_number(number: bool | int | float, other: dtype, *, division: bool) -> dtype:
    """The type of an operation between a compile-time number and a runtime value."""
    natural = natural_dtype(number)
    if natural.kind().value > other.kind().value:
        return promoted(natural, other, division=division)
    if other.is_int() and not isinstance(number, float):
        if number < 0 and other.is_int_unsigned():
            raise SemanticError(
                f"cannot combine an unsigned {other} with the negative number {number}: cast one of them"
            )
        if not other.get_int_min_value() <= number <= other.get_int_max_value():
            raise SemanticError(f"{number} is out of range for {other}")
    return promoted(other, other, division=division)


def _unify(
    builder: Builder, lhs: Value, rhs: Value, *, division: bool = False
) -> tuple[Tensor, Tensor, dtype | pointer_type]:
    """Both operands as blocks of one type and shape."""
    if not is_number(lhs):
        left = to_tensor(builder, lhs)
        right = _like(builder, rhs, left, division) if is_number(rhs) else to_tensor(builder, rhs)
    elif isinstance(rhs, Tensor):
        left, right = _like(builder, lhs, rhs, division), rhs
    else:
        left, right = to_tensor(builder, lhs), to_tensor(builder, rhs)
    if isinstance(left.dtype, pointer_type) or isinstance(right.dtype, pointer_type):
        if left.dtype != right.dtype:
            raise SemanticError(f"cannot combine {left.describe()} with {right.describe()}")
        element: dtype | pointer_type = left.dtype
    else:
        element = promoted(left.dtype, right.dtype, division=division)
        left, right = cast(builder, left, element), cast(builder, right, element)
    left, right = broadcast(builder, left, right)
    return left, right, element


def _like(builder: Builder, number: Value, other: Tensor, division: bool) -> Tensor:
    """A compile-time number in the type that an operation with `other` has."""
    assert isinstance(number, Constexpr)
    if isinstance(other.dtype, pointer_type):
        raise SemanticError(f"cannot combine {other.describe()} with {number.describe()}")
    return constant(builder, number.value, _with_number(number.value, other.dtype, division=division))


# --- operators ------------------------------------------------------------------------------------------------------


def binary(builder: Builder, symbol: str, lhs: Value, rhs: Value) -> Value:
    """`lhs symbol rhs` for an arithmetic operator, or "min" and "max".

    Raises SemanticError when the operator does not exist for the operands.
    """
    if isinstance(lhs, Constexpr) and isinstance(rhs, Constexpr):
        return _python(symbol, lhs.value, rhs.value)
    return arithmetic(builder, symbol, lhs, rhs)


def arithmetic(builder: Builder, symbol: str, lhs: Value, rhs: Value, *, propagate_nan: bool = False) -> Tensor:
    """`lhs symbol rhs` as a runtime value; `propagate_nan` is for "min" and "max".

    Raises SemanticError when the operator does not exist for the operands.
    """
    _check_operands(symbol, lhs, rhs)
    if isinstance(lhs, Tensor) and isinstance(lhs.dtype, pointer_type) and symbol in ("+", "-"):
        return _add_to_pointer(builder, symbol, lhs, rhs)
    if isinstance(rhs, Tensor) and isinstance(rhs.dtype, pointer_type) and symbol == "+":
        return _add_to_pointer(builder, symbol, rhs, lhs)
    if any(isinstance(value, Tensor) and isinstance(value.dtype, pointer_type) for value in (lhs, rhs)):
        raise SemanticError(f"'{symbol}' does not exist for pointers")
    if symbol == "**":
        raise SemanticError("'**' exists between compile-time numbers only, use tl.exp2 or libdevice.pow")
    left, right, element = _unify(builder, lhs, rhs, division=symbol in _DIVISIONS)
    assert isinstance(element, dtype)
    if symbol == "/" and element.is_int():
        left, right, element = cast(builder, left, float32), cast(builder, right, float32), float32
    signed = element
    if symbol == ">>":
        # A shift to the right fills up with what its left operand, or the only runtime one, is before promotion.
        shifted = lhs if isinstance(lhs, Tensor) else rhs
        signed = shifted.dtype if isinstance(shifted, Tensor) and isinstance(shifted.dtype, dtype) else element
    op = _arithmetic_op(symbol, element, signed.is_int_signed(), propagate_nan)
    if op is None:
        types = " and ".join(str(each.dtype) for each in (lhs, rhs) if isinstance(each, Tensor))
        raise SemanticError(f"invalid operands of type {types} for '{symbol}'")
    return builder.tensor(op, element, left.shape, left, right)


def _check_operands(symbol: str, *operands: Value) -> None:
    for operand in operands:
        if not isinstance(operand, Tensor) and not is_number(operand):
            raise SemanticError(f"'{symbol}' takes numbers and blocks, found {operand.describe()}")


def _arithmetic_op(symbol: str, element: dtype, signed: bool, nan: bool) -> type[IRDLOperation] | None:
    if element.is_fp8e4b15():
        return None
    if element.is_floating():
        return NAN_OPS[symbol] if nan and symbol in NAN_OPS else FLOAT_OPS.get(symbol)
    if symbol in SIGNED_OPS:
        return SIGNED_OPS[symbol][0 if signed else 1]
    return INTEGER_OPS.get(symbol)


def _python(symbol: str, lhs: Any, rhs: Any) -> Constexpr:
    try:
        return Constexpr(PYTHON_OPS[symbol](lhs, rhs))
    except (TypeError, ValueError, ArithmeticError) as error:
        # Versions of Python say this one in words of their own.
        why = "division by zero" if isinstance(error, ZeroDivisionError) else error
        raise SemanticError(f"cannot compute {shown(lhs)} {symbol} {shown(rhs)} at compile time: {why}") from error


def _add_to_pointer(builder: Builder, symbol: str, pointer: Tensor, offset: Value) -> Tensor:
    amount = to_tensor(builder, offset)
    if isinstance(amount.dtype, pointer_type) or amount.dtype.is_floating():
        raise SemanticError(f"a pointer moves by an integer, found {amount.describe()}")
    if amount.dtype.is_int_unsigned():
        # tt.addptr takes its offset as signed.
        amount = cast(builder, amount, int64)
    if symbol == "-":
        amount = negate(builder, amount)
        assert isinstance(amount, Tensor)
    base, amount = broadcast(builder, pointer, amount)
    return builder.value(tt.AddPtrOp(base.ssa, amount.ssa), pointer.dtype, base.shape)


def compare(builder: Builder, symbol: str, lhs: Value, rhs: Value) -> Any:
    """`lhs symbol rhs` for a comparison; between runtime values the result is an int1 block.

    Raises SemanticError when the operands do not compare.
    """
    if isinstance(lhs, Constexpr) and isinstance(rhs, Constexpr):
        return _python(symbol, lhs.value, rhs.value)
    _check_operands(symbol, lhs, rhs)
    if any(isinstance(value, Tensor) and isinstance(value.dtype, pointer_type) for value in (lhs, rhs)):
        raise SemanticError("pointers do not compare: cast them to int64 first")
    if isinstance(lhs, Constexpr):
        # As in Python, it is the runtime value that decides what the comparison means.
        symbol, lhs, rhs = MIRRORED[symbol], rhs, lhs
    left, right, element = _unify(builder, lhs, rhs)
    assert isinstance(element, dtype)
    if element.is_fp8e4b15():
        raise SemanticError(f"{element} does not compare: convert it to fp16 first")
    signed, unsigned, floating = COMPARISONS[symbol]
    if element.is_floating():
        op: Operation = arith.CmpfOp(floating, left.ssa, right.ssa)
    else:
        op = arith.CmpiOp(signed if element.is_int_signed() else unsigned, left.ssa, right.ssa)
    return builder.value(op, int1, left.shape)


def negate(builder: Builder, value: Value) -> Value:
    """`-value`.

    Raises SemanticError for pointers.
    """
    if isinstance(value, Constexpr) and isinstance(value.value, bool | int | float):
        return Constexpr(-value.value)
    operand = to_tensor(builder, value)
    if isinstance(operand.dtype, pointer_type):
        raise SemanticError(f"'-' does not exist for {operand.describe()}")
    if operand.dtype.is_floating():
        return builder.tensor(xarith.NegfOp, operand.dtype, operand.shape, operand)
    zero = constant(builder, 0, operand.dtype, operand.shape)
    return builder.tensor(xarith.SubiOp, operand.dtype, operand.shape, zero, operand)


def invert(builder: Builder, value: Value) -> Value:
    """`~value`.

    Raises SemanticError for what is no integer.
    """
    if isinstance(value, Constexpr) and isinstance(value.value, int):
        return Constexpr(~value.value)
    operand = to_tensor(builder, value)
    if isinstance(operand.dtype, pointer_type) or not operand.dtype.is_int():
        raise SemanticError(f"'~' exists for integers only, found {operand.describe()}")
    ones = builder.constant(True if operand.dtype == int1 else -1, ir_type(operand.dtype, operand.shape))
    return builder.tensor(xarith.XOrIOp, operand.dtype, operand.shape, operand, ones)


def as_condition(builder: Builder, value: Value) -> Tensor:
    """`value` as an int1: whether it is not zero.

    Raises SemanticError for 8-bit floats.
    """
    return cast(builder, to_tensor(builder, value), int1)


def where(builder: Builder, condition: Value, lhs: Value, rhs: Value) -> Tensor:
    """`lhs` where `condition`, else `rhs`.

    Raises SemanticError when the values do not fit together or the shapes do not broadcast.
    """
    test = as_condition(builder, condition)
    left, right, element = _unify(builder, lhs, rhs)
    shape = common_shape(test.shape, left.shape)
    left, right = broadcast_to(builder, left, shape), broadcast_to(builder, right, shape)
    test = broadcast_to(builder, test, shape)
    return builder.value(arith.SelectOp(test.ssa, left.ssa, right.ssa), element, shape)


def promote_all(builder: Builder, *values: Value, division: bool = False) -> tuple[Tensor, ...]:
    """Numbers and blocks as blocks of one type and shape.

    Raises SemanticError when there is no such type or shape.
    """
    blocks = [value for value in values if not is_number(value)] or list(values[:1])
    elements: list[dtype] = []
    for value in blocks:
        element = to_tensor(builder, value).dtype
        if isinstance(element, pointer_type):
            raise SemanticError(f"expected numbers, found {value.describe()}")
        elements.append(element)
    common = functools.reduce(functools.partial(promoted, division=division), elements)
    for value in values:
        if isinstance(value, Constexpr):
            common = _with_number(value.value, common, division=division)
    converted = [
        constant(builder, value.value, common)
        if isinstance(value, Constexpr)
        else cast(builder, to_tensor(builder, value), common)
        for value in values
    ]
    return broadcast(builder, *converted)


def full(builder: Builder, shape: tuple[int, ...], value: Value, element: dtype) -> Tensor:
    """A block of `shape` that holds the scalar `value` everywhere.

    Raises SemanticError when the value is no scalar or does not convert to `element`.
    """
    if isinstance(value, Constexpr) and isinstance(value.value, bool | int | float):
        return constant(builder, value.value, element, shape)
    scalar = to_tensor(builder, value)
    if scalar.shape:
        raise SemanticError(f"expected a scalar to fill the block with, found {scalar.describe()}")
    return splat(builder, cast(builder, scalar, element), shape)
