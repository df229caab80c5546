"""Arithmetic on several small floats in one instruction (TritonNvidiaGPUOps.td; PTX ISA, "Mixed precision
floating-point instructions").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    IntegerType,
)
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.encodings import DistributedLayout
from tlx_xdsl.layouts.inferred import fault_of_unpacking, places, unique_elements

from ..base import (
    PACKED_OPERAND,
    PACKED_RESULT,
    EnumNumber,
    Feature,
    Needs,
    TritonOp,
    chosen_layout,
    keyword_directive,
    scalar_type,
    shape_of_tensor,
    tensor_type,
    verify_places,
)
from .attrs import PackedArithOpKind as Kind

F32, F16, BF16 = Float32Type, Float16Type, BFloat16Type
E5M2, E4M3, E8M0, PAIR_OF_E2M1 = Float8E5M2Type, Float8E4M3FNType, Float8E8M0FNUType, IntegerType
HALVES = (F16, BF16)
WIDE = (F32, *HALVES)
SMALL = (E5M2, E4M3, PAIR_OF_E2M1, E8M0)
LANES: dict[type[Attribute], int] = {F32: 2, F16: 2, BF16: 2, E5M2: 4, E4M3: 4}
"""Results of one instruction, by their type."""
_LAYOUTS = "operands must have the layout of the result"
SUMS, PRODUCTS, EXTREMES, FMAS = (Kind.ADD, Kind.SUB), (Kind.MUL,), (Kind.MIN, Kind.MAX), (Kind.FMA,)


@dataclass(frozen=True)
class _Signature:
    """Element types that instructions take; None is the type of the result."""

    kinds: tuple[Kind, ...]
    results: tuple[type[Attribute], ...]
    operands: tuple[tuple[type[Attribute], ...] | None, ...]

    def takes(self, kind: Kind, result: Attribute, operands: Sequence[Attribute]) -> bool:
        """Return whether there is such an instruction."""
        if kind not in self.kinds or not isinstance(result, self.results) or len(operands) != len(self.operands):
            return False
        wanted = (type(result) if types is None else types for types in self.operands)
        return all(isinstance(operand, types) for operand, types in zip(operands, wanted, strict=True))


_SIGNATURES = (
    _Signature((*SUMS, *PRODUCTS), WIDE, (None, None)),
    _Signature(FMAS, WIDE, (None, None, None)),
    _Signature(EXTREMES, HALVES, (None, None)),
    _Signature(SUMS, (F32,), (HALVES, (F32,))),
    _Signature((*SUMS, *PRODUCTS), HALVES, ((F32,), (F32,))),
    _Signature(PRODUCTS, (F16,), (None, (BF16,))),
    _Signature(PRODUCTS, (BF16,), (None, (F16,))),
    _Signature(FMAS, (F32,), (HALVES, (F32,), (F32,))),
    _Signature(SUMS, (E5M2, E4M3), (SMALL, None)),
    _Signature(PRODUCTS, (E5M2, E4M3), (SMALL, SMALL)),
    _Signature(FMAS, (E5M2, E4M3), (SMALL, SMALL, None)),
)


@irdl_op_definition
class PackedArithOp(TritonOp):
    """Arithmetic on several small floats in one instruction; i8 holds pairs of fp4, low half first.

    Example: `%2 = ttng.packed_arith add %0, %1 : (tensor<64xf32, #b>, tensor<64xf32, #b>) -> tensor<64xf32, #b>`
    """

    name = "ttng.packed_arith"
    NEEDS: ClassVar = Needs("ttng.packed_arith", Feature.PACKED_F32)

    op_kind = prop_def(EnumNumber(Kind))
    inputs = var_operand_def(PACKED_OPERAND)
    result = result_def(PACKED_RESULT)

    traits = traits_def(Pure())
    custom_directives = (keyword_directive(Kind),)
    assembly_format = "custom<PackedArithOpKind>($op_kind) $inputs attr-dict `:` functional-type($inputs, $result)"

    def also_needs(self) -> tuple[Feature, ...]:
        """Instructions of their own for 8-bit floats."""
        return (Feature.PACKED_FP8,) if isinstance(scalar_type(self.result.type), E5M2 | E4M3) else ()

    def verify_(self) -> None:
        """Check that there is an instruction for these types, and that every thread holds what it takes."""
        kind = Kind(self.op_kind.value.data)
        wanted = 3 if kind is Kind.FMA else 2
        if len(self.inputs) != wanted:
            raise VerifyException(f"'{kind.keyword}' takes {wanted} operands, found {len(self.inputs)}")
        elements = [scalar_type(operand.type) for operand in self.inputs]
        result = scalar_type(self.result.type)
        if not any(signature.takes(kind, result, elements) for signature in _SIGNATURES):
            given = ", ".join(map(str, elements))
            raise VerifyException(f"there is no '{kind.keyword}' of ({given}) that gives {result}")
        axis = self._axis_of_pairs()
        for operand in self.inputs:
            if isinstance(scalar_type(operand.type), IntegerType):
                self._verify_pairs(operand.type, axis)
            else:
                self._verify_places(operand.type)
        self._verify_lanes()

    def _axis_of_pairs(self) -> int | None:
        """The dimension along which operands hold pairs; None where there are none, or they differ."""
        shape = shape_of_tensor(self.result.type)
        axes = {
            next((dim for dim, size in enumerate(shape_of_tensor(each.type)) if size != shape[dim]), None)
            for each in self.inputs
            if isinstance(scalar_type(each.type), IntegerType) and len(shape_of_tensor(each.type)) == len(shape)
        }
        return axes.pop() if len(axes) == 1 else None

    def _verify_pairs(self, operand: Attribute, axis: int | None) -> None:
        shape, whole = shape_of_tensor(operand), shape_of_tensor(self.result.type)
        halved = tuple(size // 2 if dim == axis else size for dim, size in enumerate(whole))
        if axis is None or shape != halved:
            raise VerifyException(f"pairs of fp4 halve the same dimension of {self.result.type}, found {operand}")
        verify_places(operand, self.result.type, lambda a, b: fault_of_unpacking(a, b, shape, axis))

    def _verify_places(self, operand: Attribute) -> None:
        shape = shape_of_tensor(operand)
        if shape != shape_of_tensor(self.result.type):
            raise VerifyException(f"operands must have the shape of the result, found {operand}")
        verify_places(
            operand,
            self.result.type,
            lambda a, b: None if places(a, shape) == places(b, shape) else _LAYOUTS,
        )

    def _verify_lanes(self) -> None:
        layout = chosen_layout(tensor_type(self.result.type).encoding)
        if not isinstance(layout, DistributedLayout):
            return
        lanes = LANES[type(scalar_type(self.result.type))]
        count = unique_elements(layout, shape_of_tensor(self.result.type))
        if count % lanes:
            raise VerifyException(f"each thread must hold a multiple of {lanes} elements of the result, found {count}")
