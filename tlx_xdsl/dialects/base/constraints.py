"""Type constraints that the operations of `tt`, `ttg` and `ttng` share, with messages for users."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    TensorType,
    i1,
    i8,
)
from xdsl.ir import Attribute
from xdsl.irdl import AttrConstraint, InferenceContext, IntConstraint, VarConstraint, VerificationContext
from xdsl.utils.exceptions import VerifyException

from .pointer import PointerType
from .tensors import as_tensor, integer_bits, scalar_type, with_element_type

FLOATS = (
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2Type,
    Float8E5M2FNUZType,
    Float16Type,
    BFloat16Type,
    Float32Type,
    Float64Type,
)
"""Element types that are floating-point to Triton."""

INTEGER_WIDTHS = (1, 4, 8, 16, 32, 64)
"""Widths of Triton's integers."""


def pointer_type(pointee: Attribute) -> Attribute:
    """The pointer (or tensor of pointers) to global memory that holds `pointee`."""
    return with_element_type(pointee, PointerType.get(scalar_type(pointee)))


def is_float(element: Attribute) -> bool:
    """True if `element` is one of Triton's floating-point types."""
    return isinstance(element, FLOATS)


def is_integer(element: Attribute) -> bool:
    """True if `element` is one of Triton's integer types."""
    return integer_bits(element) in INTEGER_WIDTHS


def is_pointer(element: Attribute) -> bool:
    """True if `element` is a pointer."""
    return isinstance(element, PointerType)


def is_number(element: Attribute) -> bool:
    """True if `element` is a number."""
    return is_float(element) or is_integer(element)


def is_element(element: Attribute) -> bool:
    """True if a tensor may hold `element`."""
    return is_number(element) or is_pointer(element)


@dataclass(frozen=True)
class TypeIs(AttrConstraint[Attribute]):
    """Accepts the types for which `test` holds; `what` describes them."""

    what: str
    test: Callable[[Attribute], bool]

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        """Refuse other types."""
        if not self.test(attr):
            raise VerifyException(f"expected {self.what}, found {attr}")

    def mapping_type_vars(self, type_var_mapping: Mapping[Any, AttrConstraint | IntConstraint]) -> TypeIs:
        """Return the constraint: it has no type variables."""
        return self


@dataclass(frozen=True)
class TensorOf(AttrConstraint[TensorType[Attribute]]):
    """Accepts ranked tensors with elements for which `test` holds; `what` describes the elements."""

    what: str
    test: Callable[[Attribute], bool]

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        """Refuse other types."""
        if (tensor := as_tensor(attr)) is None or not self.test(tensor.element_type):
            raise VerifyException(f"expected a tensor of {self.what}, found {attr}")

    def mapping_type_vars(self, type_var_mapping: Mapping[Any, AttrConstraint | IntConstraint]) -> TensorOf:
        """Return the constraint: it has no type variables."""
        return self


@dataclass(frozen=True)
class Derived(AttrConstraint[Attribute]):
    """Accepts just the type that `derive` makes of the type variable `variable`; `what` names the operand."""

    variable: str
    derive: Callable[[Attribute], Attribute]
    what: str

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        """Refuse any other type."""
        source = constraint_context.get_variable(self.variable)
        assert source is not None, "the type variable stands in an earlier operand"
        if attr != (expected := self.derive(source)):
            raise VerifyException(f"{self.what} must be {expected}, found {attr}")

    def can_infer(self, var_constraint_names: AbstractSet[str]) -> bool:
        """Return whether the variable is known, of which the type is made."""
        return self.variable in var_constraint_names

    def infer(self, context: InferenceContext) -> Attribute:
        """The derived type."""
        source = context.get_variable(self.variable)
        assert source is not None, "the type variable stands in an earlier operand"
        return self.derive(source)

    def mapping_type_vars(self, type_var_mapping: Mapping[Any, AttrConstraint | IntConstraint]) -> Derived:
        """Return the constraint: it has no type variables."""
        return self


@dataclass(frozen=True)
class _Bound(VarConstraint[Attribute]):
    """A type variable whose second use says what it must equal."""

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        """Take the first type; refuse another one later."""
        known = constraint_context.get_variable(self.name)
        if known is not None and known != attr:
            raise VerifyException(f"expected the type {known}, found {attr}")
        super().verify(attr, constraint_context)


def same(name: str, constraint: AttrConstraint[Any]) -> VarConstraint[Attribute]:
    """A type variable: everything that is declared with it has one type, which `constraint` accepts."""
    return _Bound(name, constraint)


def _like(what: str, test: Callable[[Attribute], bool]) -> TypeIs:
    return TypeIs(f"{what} or a tensor of that", lambda type_: test(scalar_type(type_)))


FLOAT_LIKE = _like("a floating-point number", is_float)
F32_LIKE = _like("an f32", lambda element: isinstance(element, Float32Type))
INT_LIKE = _like("an integer", is_integer)
BOOL_LIKE = _like("an i1", lambda element: element == i1)
I32_LIKE = _like("an i32", lambda element: element == IntegerType(32))
I64_LIKE = _like("an i64", lambda element: element == IntegerType(64))
POINTER_LIKE = _like("a pointer", is_pointer)
ANY_LIKE = _like("a number or a pointer", is_element)
POINTER = TypeIs("a pointer", is_pointer)

ANY_TENSOR = TensorOf("numbers or pointers", is_element)
NUMBER_TENSOR = TensorOf("numbers", is_number)
FLOAT_TENSOR = TensorOf("floating-point numbers", is_float)
INT_TENSOR = TensorOf("integers", is_integer)
BOOL_TENSOR = TensorOf("i1", lambda element: element == i1)
POINTER_TENSOR = TensorOf("pointers", is_pointer)
I8_TENSOR = TensorOf("i8", lambda element: element == i8)
FLOAT_OR_I8_TENSOR = TensorOf("floating-point numbers or i8", lambda element: is_float(element) or element == i8)
INDEX_TENSOR = TensorOf("i16 or i32", lambda element: element in (IntegerType(16), IntegerType(32)))
I32_TENSOR = TensorOf("i32", lambda element: element == IntegerType(32))
PACKED_OPERAND = TensorOf(
    "i8, f8E8M0FNU, f8E4M3FN, f8E5M2, f16, bf16 or f32",
    lambda element: (
        element == i8
        or isinstance(
            element, (Float8E8M0FNUType, Float8E4M3FNType, Float8E5M2Type, Float16Type, BFloat16Type, Float32Type)
        )
    ),
)
PACKED_RESULT = TensorOf(
    "f8E4M3FN, f8E5M2, f16, bf16 or f32",
    lambda element: isinstance(element, (Float8E4M3FNType, Float8E5M2Type, Float16Type, BFloat16Type, Float32Type)),
)
