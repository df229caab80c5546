"""`expand-float-conversions`: conversions between floats that upstream Triton does not lower, as two that it does.

Before:
```mlir
%1 = tt.fp_to_fp %0, rounding = rtne : tensor<64xbf16> -> tensor<64xf16>
%3 = tt.fp_to_fp %2 : tensor<64xf8E5M2> -> tensor<64xf64>
%cst = arith.constant 1.062500e+00 : f32
%6 = arith.truncf %cst : f32 to f8E5M2
```
After `expand-float-conversions`:
```mlir
%4 = arith.extf %0 : tensor<64xbf16> to tensor<64xf32>
%1 = arith.truncf %4 : tensor<64xf32> to tensor<64xf16>
%5 = tt.fp_to_fp %2 : tensor<64xf8E5M2> -> tensor<64xf32>
%3 = arith.extf %5 : tensor<64xf32> to tensor<64xf64>
%7 = arith.constant 1.000000e+00 : f32
%6 = arith.truncf %7 : f32 to f8E5M2
```
The first step is exact, so the number is rounded once, as by one conversion. Between 16-bit floats 3.6 to 3.8 lack the
direct way, and 3.9 goes by f32, too; from 8-bit floats to f64 and to other 8-bit floats no version has one. From
f8E5M2 to bf16 upstream shifts bits, which turns infinities and NaN into finite numbers; by way of f32 they stay.

Triton writes numbers of 8-bit floats as `arith.truncf` of a constant, which it cannot lower but by MLIR's folding. That
is for exact conversions: the constant is rounded. A number out of the type's range is an error.

No exact way leads from f64 to 8 bits (f32 would round first): it is an error at the operation.
"""

from __future__ import annotations

from math import isfinite

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
)
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base import element_bits, element_type_of, scalar_type, with_element_type
from tlx_xdsl.element_types import ElementType
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass, constant, insert_before, ops_of, replace


class ExpandFloatConversionsPass(Pass):
    """Replace every conversion that upstream Triton can't lower."""

    name = "expand-float-conversions"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError, located at the operation, for a conversion from f64 to an 8-bit float, and of a number
        out of the range of one.
        """
        for narrow in ops_of(op, arith.TruncFOp):
            element, number = element_type_of(narrow.result.type), _number(narrow.input)
            if element is not None and element.bits == 8 and number is not None:
                near = constant(_rounded(narrow, number, element), narrow.input.type)
                narrow.operands[0] = insert_before(narrow, near).result
        for inner in ops_of(op, tt.FpToFpOp):
            if (between := _between(inner)) is not None:
                wide = insert_before(inner, _conversion(inner.src, between)).results[0]
                replace(inner, _conversion(wide, scalar_type(inner.result.type), inner.rounding))


def _number(value: SSAValue) -> float | None:
    """The finite number that a scalar constant is."""
    op = value.owner
    if not isinstance(op, ConstantOp) or not isinstance(op.value, FloatAttr):
        return None
    number = op.value.value.data
    return number if isfinite(number) else None


def _rounded(op: Operation, number: float, element: ElementType) -> float:
    # Other modules pass without numpy, as on the page that runs passes in a browser.
    import numpy as np

    from tlx_xdsl.numerics.arrays import numpy_type
    from tlx_xdsl.numerics.rounding import largest, round_to

    dtype = numpy_type(element)
    near = float(round_to(np.asarray(number, np.float32), dtype))
    if not isfinite(near):
        limit = largest(dtype)
        raise error_at(op, f"expected a number between {-limit:g} and {limit:g}, found {number:g}")
    return near


def _between(op: tt.FpToFpOp) -> Attribute | None:
    """The element type by way of which `op` converts, which holds every number of its source; None for one step."""
    source, target = scalar_type(op.src.type), scalar_type(op.result.type)
    match element_bits(source), element_bits(target):
        case (16, 16) if source != target:
            return Float32Type()
        case (8, 16) if isinstance(source, Float8E5M2Type) and isinstance(target, BFloat16Type):
            return Float32Type()
        case (8, 64):
            return Float32Type()
        case (8, 8) if source != target:
            return Float16Type()
        case (64, 8):
            message = f"upstream Triton does not convert {source} to {target}: convert to f32 first, which rounds twice"
            raise error_at(op, message)
        case _:
            return None


def _conversion(value: SSAValue, element: Attribute, rounding: IntegerAttr | None = None) -> Operation:
    """`value` with elements of another width, to nearest even where `rounding` says nothing else."""
    type_ = with_element_type(value.type, element)
    have, want = element_bits(scalar_type(value.type)), element_bits(element)
    nearest = tt.RoundingMode.RTNE.attr
    if have < want:
        return tt.FpToFpOp.build(operands=[value], result_types=[type_]) if have < 16 else arith.ExtFOp(value, element)
    if want < 16 or rounding not in (None, nearest):
        properties = {"rounding": nearest if rounding is None else rounding}
        return tt.FpToFpOp.build(operands=[value], result_types=[type_], properties=properties)
    return arith.TruncFOp(value, element)
