"""Values of LLVM IR as text: an operand, the type of its elements and how many of them it has."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from functools import lru_cache

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
)
from xdsl.ir import Attribute

from tlx_xdsl.analysis.integers.transfer import bytes_of

PTR, F32, F64, I1, I8, I16, I32, I64 = "ptr", "float", "double", "i1", "i8", "i16", "i32", "i64"
FLOATS = (F32, F64)


@dataclass(frozen=True, slots=True)
class Value:
    """An operand of LLVM IR."""

    text: str
    element: str
    """The type of its elements: `float`, `i32`, `ptr`."""
    lanes: int = 1
    """1 for a scalar; a vector has more."""

    @property
    def type(self) -> str:
        """Its type: `float`, `<16 x float>`."""
        return self.element if self.lanes == 1 else f"<{self.lanes} x {self.element}>"

    @property
    def typed(self) -> str:
        """Type and operand, as instructions have them."""
        return f"{self.type} {self.text}"


def constant(number: float, element: str, lanes: int = 1) -> Value:
    """A number; in all lanes, if there are several. A float is rounded to the type."""
    if element in FLOATS:
        rounded = ctypes.c_float(number).value if element == F32 else float(number)
        text = f"0x{struct.pack('>d', rounded).hex()}"
    elif element == I1:
        text = "true" if number else "false"
    else:
        text = str(int(number))
    if lanes > 1:
        text = f"splat ({element} {text})"
    return Value(text, element, lanes)


@lru_cache(maxsize=256)
def iota(lanes: int, element: str, first: int = 0) -> Value:
    """`first`, `first + 1`, ... in the lanes."""
    text = ", ".join(f"{element} {first + lane}" for lane in range(lanes))
    return Value(f"<{text}>", element, lanes) if lanes > 1 else constant(first, element)


def poison(element: str, lanes: int = 1) -> Value:
    """No value in particular."""
    return Value("poison", element, lanes)


@lru_cache(maxsize=256)
def register_type(type_: Attribute) -> str:
    """The type that a scalar of MLIR has in LLVM IR.

    Floats below 32 bits are integers that hold their bits: arithmetic on them is made in f32 (`conversions.py`), and
    nothing calls the conversions of a run-time library. An `index` has 64 bits.

    Raises TypeError for what is no scalar.
    """
    match type_:
        case IndexType():
            return I64
        case IntegerType():
            return f"i{type_.width.data}"
        case Float32Type():
            return F32
        case Float64Type():
            return F64
        case BFloat16Type() | Float16Type():
            return I16
        case _:
            return f"i{8 * bytes_of(type_)}"


def memory_type(type_: Attribute) -> str:
    """The type of an element in memory: an i1 takes a byte, everything else is as in registers."""
    register = register_type(type_)
    return I8 if register == I1 else register


def bytes_of_element(type_: Attribute) -> int:
    """The bytes that an element takes in memory."""
    return 8 if isinstance(type_, IndexType) else bytes_of(type_)
