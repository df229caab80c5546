"""Compile-time numbers as runtime values: which type they have, and the constants that they become."""

from __future__ import annotations

import math
import struct

from tlx_xdsl.dialects import arith
from tlx_xdsl.language.core import dtype, float32, float64, int1, int32, int64, pointer_type, uint32, uint64

from . import fp8e4b15
from .builder import Builder
from .shapes import splat
from .types import SemanticError, ir_type
from .values import Constexpr, Tensor, Value, shown

_SMALLEST_NORMAL = 2.0**-126
_LARGEST = (2.0 - 2.0**-23) * 2.0**127
"""Bounds of the numbers that float32 holds with full precision (IEEE 754, binary32)."""


def natural_dtype(number: bool | int | float) -> dtype:
    """The type of a compile-time number that nothing else determines.

    Raises SemanticError for an integer beyond 64 bits.
    """
    if isinstance(number, bool):
        return int1
    if isinstance(number, float):
        exact = number == 0.0 or not math.isfinite(number) or _SMALLEST_NORMAL <= abs(number) <= _LARGEST
        return float32 if exact else float64
    for element in (int32, uint32, int64, uint64):
        if element.get_int_min_value() <= number <= element.get_int_max_value():
            return element
    raise SemanticError(f"{shown(number)} does not fit in 64 bits")


def is_number(value: Value) -> bool:
    """Say whether `value` is a compile-time number."""
    return isinstance(value, Constexpr) and isinstance(value.value, bool | int | float)


def to_tensor(builder: Builder, value: Value) -> Tensor:
    """`value` as a runtime value; a compile-time number becomes a constant.

    Raises SemanticError when `value` is no number.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Constexpr) and isinstance(value.value, bool | int | float):
        return constant(builder, value.value, natural_dtype(value.value))
    raise SemanticError(f"expected a number or a block, found {value.describe()}")


def constant(
    builder: Builder, number: bool | int | float, element: dtype | pointer_type, shape: tuple[int, ...] = ()
) -> Tensor:
    """The scalar constant `number`, or a block of it; integers wrap around, floats are rounded to nearest even.

    Raises SemanticError when `element` is a pointer or an integer type that cannot hold a float or negative number.
    """
    if isinstance(element, pointer_type):
        raise SemanticError(f"expected {element}, found the number {number}: cast an int64 to a pointer instead")
    if element.is_fp8e4b15():
        return Tensor(builder.constant(fp8e4b15.bits_of(float(number)), ir_type(element, shape)), element, shape)
    if element.is_fp8():
        # Triton makes these from float32.
        wide = builder.constant(rounded(number, float32), ir_type(float32))
        narrow = builder.insert(arith.TruncFOp(wide, ir_type(element))).results[0]
        return splat(builder, Tensor(narrow, element), shape)
    if element.is_floating():
        return Tensor(builder.constant(rounded(number, element), ir_type(element, shape)), element, shape)
    if isinstance(number, float):
        raise SemanticError(f"expected an integer for {element}, found {number}")
    if number < 0 and element.is_int_unsigned():
        raise SemanticError(f"expected a number that is not negative for {element}, found {number}")
    value = bool(number) if element == int1 else number & ((1 << element.primitive_bitwidth) - 1)
    if number < 0:
        value -= 1 << element.primitive_bitwidth
    return Tensor(builder.constant(value, ir_type(element, shape)), element, shape)


def rounded(number: bool | int | float, element: dtype) -> float:
    """The value of the floating-point type `element` (16 bits or more) that is nearest to `number`."""
    try:
        value = float(number)
    except OverflowError:
        value = math.inf if number > 0 else -math.inf
    if not math.isfinite(value) or element == float64:
        return value
    try:
        if not element.is_bf16():
            code = "<e" if element.is_fp16() else "<f"
            return struct.unpack(code, struct.pack(code, value))[0]
        # A bfloat16 is the upper half of a float32: add what makes the cut round to nearest even.
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    bits += 0x7FFF + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]
