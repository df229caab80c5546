"""Element types. The names, and what can be asked of a type, are Triton's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from tlx_xdsl.element_types import BY_NAME, ElementType

__all__ = [
    "bfloat16",
    "dtype",
    "float8e4b8",
    "float8e4b15",
    "float8e4nv",
    "float8e5",
    "float8e5b16",
    "float16",
    "float32",
    "float64",
    "int1",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "void",
]


class base_type:
    """Base of all types of values; each question is answered with no unless the class says otherwise."""

    name: str

    def is_block(self) -> bool:
        """Say whether this is the type of a block."""
        return False

    def is_ptr(self) -> bool:
        """Say whether this is the type of a pointer."""
        return False

    def is_const(self) -> bool:
        """Say whether this is a pointer to memory that is not written."""
        return False

    def is_void(self) -> bool:
        """Say whether there are no values of this type."""
        return False

    def __str__(self) -> str:
        """Return Triton's name."""
        return self.name


_FLOATS = {name: each for name, each in BY_NAME.items() if each.kind == "f"}


def _is(name: str) -> Callable[[dtype], bool]:
    """A method of element types that says whether a type has this name."""

    def is_it(self: dtype) -> bool:
        return self.name == name

    is_it.__doc__ = f"Say whether this is {name}."
    return is_it


@dataclass(frozen=True, repr=False)
class dtype(base_type):
    """An element type, by Triton's name: `int1`, `int8`..`int64`, `uint8`..`uint64`, `fp8e5`, `fp16`, `bf16`, ...

    Raises ValueError for any other name.
    """

    name: str

    SINT_TYPES: ClassVar[list[str]] = [name for name, each in BY_NAME.items() if each.kind == "i"]
    UINT_TYPES: ClassVar[list[str]] = [name for name, each in BY_NAME.items() if each.kind == "u"]
    FP_TYPES: ClassVar[list[str]] = list(_FLOATS)
    STANDARD_FP_TYPES: ClassVar[list[str]] = [name for name, each in _FLOATS.items() if each.bits > 8]
    OTHER_TYPES: ClassVar[list[str]] = ["void"]

    class SIGNEDNESS(Enum):
        """Say whether an integer type has a sign."""

        SIGNED = 0
        UNSIGNED = 1

    class KIND(Enum):
        """Kinds of element types, in the order of promotion."""

        BOOLEAN = 0
        INTEGRAL = 1
        FLOATING = 2

    def __post_init__(self) -> None:
        known = (*self.SINT_TYPES, *self.UINT_TYPES, *self.FP_TYPES, *self.OTHER_TYPES)
        if self.name not in known:
            raise ValueError(f"expected an element type out of {', '.join(known)}, found '{self.name}'")

    @property
    def primitive_bitwidth(self) -> int:
        """Bits of one element."""
        return 0 if self.is_void() else BY_NAME[self.name].bits

    @property
    def int_bitwidth(self) -> int:
        """Bits of an integer type; AttributeError for others."""
        if not self.is_int():
            raise AttributeError(f"{self} is no integer type")
        return self.primitive_bitwidth

    @property
    def int_signedness(self) -> dtype.SIGNEDNESS:
        """Say whether an integer type has a sign; AttributeError for other types."""
        if not self.is_int():
            raise AttributeError(f"{self} is no integer type")
        return self.SIGNEDNESS.SIGNED if self.is_int_signed() else self.SIGNEDNESS.UNSIGNED

    @property
    def fp_mantissa_width(self) -> int:
        """Bits of a floating-point type's mantissa; AttributeError for other types."""
        return self._float_format().mantissa

    @property
    def exponent_bias(self) -> int:
        """Bias of a floating-point type's exponent; AttributeError for other types."""
        return self._float_format().bias

    def _float_format(self) -> ElementType:
        if not self.is_floating():
            raise AttributeError(f"{self} is no floating-point type")
        return _FLOATS[self.name]

    @property
    def itemsize(self) -> int:
        """Bytes of one element; 0 for int1, as in Triton."""
        return self.primitive_bitwidth // 8

    @property
    def scalar(self) -> dtype:
        """The element type: this type."""
        return self

    @property
    def spelling(self) -> str:
        """Triton's spelling in signatures, such as `i32`, `u8`, `fp16`."""
        return self.name if self.is_void() else BY_NAME[self.name].spelling

    @property
    def cache_key_part(self) -> str:
        """The part of a cache key that stands for the type."""
        return self.name

    def with_element_ty(self, element_ty: dtype) -> dtype:
        """The type of the same shape (none) with other elements."""
        return element_ty

    def kind(self) -> dtype.KIND:
        """The kind of this type.

        Raises TypeError for `void`.
        """
        if self.is_bool():
            return self.KIND.BOOLEAN
        if self.is_void():
            raise TypeError("void has no kind")
        return self.KIND.FLOATING if self.is_floating() else self.KIND.INTEGRAL

    def get_int_max_value(self) -> int:
        """The largest integer of the type. Raises TypeError for what is no integer."""
        self._check_integer()
        return (1 << (self.int_bitwidth - self.is_int_signed())) - 1

    def get_int_min_value(self) -> int:
        """The smallest integer of the type. Raises TypeError for what is no integer."""
        self._check_integer()
        return -(1 << (self.int_bitwidth - 1)) if self.is_int_signed() else 0

    def _check_integer(self) -> None:
        if not self.is_int():
            raise TypeError(f"{self} is no integer type: it has no largest and smallest integer")

    def codegen_name(self) -> str:
        """The name in Python's and numpy's manner: `float32` for fp32, `bfloat16` for bf16."""
        return self.name if self.is_void() else BY_NAME[self.name].exported

    @staticmethod
    def is_dtype(type_str: str) -> bool:
        """Say whether there is an element type of this name."""
        return type_str in (*dtype.SINT_TYPES, *dtype.UINT_TYPES, *dtype.FP_TYPES, *dtype.OTHER_TYPES)

    def is_floating(self) -> bool:
        """Say whether this is a floating-point type."""
        return self.name in _FLOATS

    def is_standard_floating(self) -> bool:
        """Say whether this is a floating-point type of at least 16 bits."""
        return self.name in self.STANDARD_FP_TYPES

    def is_int(self) -> bool:
        """Say whether this is an integer type, signed or not; int1 is one."""
        return self.name in self.SINT_TYPES or self.name in self.UINT_TYPES

    def is_int_signed(self) -> bool:
        """Say whether this is a signed integer type."""
        return self.name in self.SINT_TYPES

    def is_int_unsigned(self) -> bool:
        """Say whether this is an unsigned integer type; int1 is one."""
        return self.name in self.UINT_TYPES

    is_bool = _is("int1")

    def is_void(self) -> bool:
        """Say whether there are no values of this type."""
        return self.name == "void"

    def is_fp8(self) -> bool:
        """Say whether this is one of the floating-point types of 8 bits."""
        return self.name.startswith("fp8")

    is_fp8e4nv = _is("fp8e4nv")
    is_fp8e4b8 = _is("fp8e4b8")
    is_fp8e4b15 = _is("fp8e4b15")
    is_fp8e5 = _is("fp8e5")
    is_fp8e5b16 = _is("fp8e5b16")
    is_fp16 = _is("fp16")
    is_bf16 = _is("bf16")
    is_fp32 = _is("fp32")
    is_fp64 = _is("fp64")
    is_int1 = _is("int1")
    is_int8 = _is("int8")
    is_int16 = _is("int16")
    is_int32 = _is("int32")
    is_int64 = _is("int64")
    is_uint8 = _is("uint8")
    is_uint16 = _is("uint16")
    is_uint32 = _is("uint32")
    is_uint64 = _is("uint64")

    def __repr__(self) -> str:
        """Return the name under which the language exports the type."""
        return f"tl.{self.codegen_name()}"


void = dtype("void")
int1 = dtype("int1")
int8 = dtype("int8")
int16 = dtype("int16")
int32 = dtype("int32")
int64 = dtype("int64")
uint8 = dtype("uint8")
uint16 = dtype("uint16")
uint32 = dtype("uint32")
uint64 = dtype("uint64")
float8e5 = dtype("fp8e5")
float8e5b16 = dtype("fp8e5b16")
float8e4nv = dtype("fp8e4nv")
float8e4b8 = dtype("fp8e4b8")
float8e4b15 = dtype("fp8e4b15")
float16 = dtype("fp16")
bfloat16 = dtype("bf16")
float32 = dtype("fp32")
float64 = dtype("fp64")

ALL_DTYPES: tuple[dtype, ...] = (
    int1, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    float8e5, float8e5b16, float8e4nv, float8e4b8, float8e4b15, float16, bfloat16, float32, float64,
)  # fmt: skip
"""Every element type that values can have."""


def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integer type of `bitwidth` bits.

    Raises ValueError when there is none.
    """
    return int1 if bitwidth == 1 else dtype(f"{'' if signed else 'u'}int{bitwidth}")
