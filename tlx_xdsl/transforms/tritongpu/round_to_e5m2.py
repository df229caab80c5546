"""`tlx-round-to-e5m2`: conversions to f8E5M2 by arithmetic, where upstream Triton's own software rounds them wrong.

Before, for a target below sm_89:
```mlir
%1 = tt.fp_to_fp %0, rounding = rtne : tensor<64xf16> -> tensor<64xf8E5M2>
```
After `tlx-round-to-e5m2`, with the constants written as numbers:
```mlir
%2 = arith.extf %0 : tensor<64xf16> to tensor<64xf32>
%3 = tt.bitcast %2 : tensor<64xf32> -> tensor<64xi32>
%4 = arith.andi %3, 0x7fffffff : tensor<64xi32>
%5 = arith.minui %4, 0x47600000 : tensor<64xi32>
...
%1 = tt.bitcast %20 : tensor<64xi8> -> tensor<64xf8E5M2>
```
Triton 3.6 to 3.8 round ties away from even there, and give an infinity for what is beyond the largest finite number;
3.9 and `cvt.rn.satfinite.e5m2x2.f32` of sm_89 and later (PTX ISA, `cvt`) give the nearest, ties to even, and saturate.
3.6 uses its software on all targets for elements of 16 bits: they become f32 first, which is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float8E5M2Type, Float32Type, ModuleOp, i8, i32
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.analysis.module_attrs import module_target
from tlx_xdsl.dialects import arith as our_arith, tt
from tlx_xdsl.dialects.base import element_bits, scalar_type, with_element_type
from tlx_xdsl.targets import Feature

from ..rewriting import Pass, constant, insert_before, ops_of, replace

_LARGEST = 0x47600000
"""The bits of 57344.0, the largest finite number."""
_LEAST_NORMAL = 0x38800000
"""The bits of 2**-14."""
_INFINITY = 0x7F800000
_UNIT = 0x43000000
"""The bits of 128.0: numbers from there on are multiples of 2**-16, the least subnormal number of f8E5M2."""
_DROPPED = 21
"""Bits of a mantissa of f32 that f8E5M2 does not have."""
_BIAS = (127 - 15) << 2
"""The difference of the exponents' biases, where the exponent of f8E5M2 stands."""
_NAN = 0x7F


@dataclass(frozen=True)
class RoundToE5M2Pass(Pass):
    """Replace every `tt.fp_to_fp` to f8E5M2 that upstream Triton rounds wrong."""

    name = "tlx-round-to-e5m2"

    halves: bool = False
    """Whether elements of 16 bits are rounded wrong on targets that convert in hardware, too: Triton 3.6 does so."""

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        target = module_target(op)
        in_hardware = target is not None and target.has(Feature.FP8_CONVERSION)
        for inner in ops_of(op, tt.FpToFpOp):
            nearest = inner.rounding in (None, tt.RoundingMode.RTNE.attr)
            bits = element_bits(scalar_type(inner.src.type))
            if not isinstance(scalar_type(inner.result.type), Float8E5M2Type) or bits < 16 or not nearest:
                continue
            if in_hardware:
                if self.halves and bits == 16:
                    inner.operands[0] = _as_f32(inner)
            else:
                _expand(inner)


def _as_f32(op: tt.FpToFpOp) -> SSAValue:
    if isinstance(scalar_type(op.src.type), Float32Type):
        return op.src
    return insert_before(op, our_arith.ExtFOp(op.src, Float32Type())).results[0]


def _expand(op: tt.FpToFpOp) -> None:
    """Compute the eight bits of the result from the bits of a number of f32."""
    number = _as_f32(op)
    integer, floating = with_element_type(number.type, i32), number.type

    def put(new: Operation) -> SSAValue:
        return insert_before(op, new).results[0]

    def with_number(kind: Callable[[SSAValue, SSAValue], Operation], value: SSAValue, other: int) -> SSAValue:
        return put(kind(value, put(constant(other, integer))))

    def bitcast(value: SSAValue, type_: Attribute) -> SSAValue:
        return put(tt.BitcastOp.build(operands=[value], result_types=[type_]))

    def is_(predicate: str, value: SSAValue, other: int) -> SSAValue:
        return put(our_arith.CmpiOp(predicate, value, put(constant(other, integer))))

    bits = bitcast(number, integer)
    sign = with_number(arith.AndIOp, with_number(arith.ShRUIOp, bits, 24), 0x80)
    magnitude = with_number(arith.AndIOp, bits, 0x7FFFFFFF)
    finite = with_number(arith.MinUIOp, magnitude, _LARGEST)
    # To nearest: half of the last place less one is added, and one more where that place is odd.
    odd = with_number(arith.AndIOp, with_number(arith.ShRUIOp, finite, _DROPPED), 1)
    rounded = put(arith.AddiOp(with_number(arith.AddiOp, finite, (1 << (_DROPPED - 1)) - 1), odd))
    normal = with_number(arith.SubiOp, with_number(arith.ShRUIOp, rounded, _DROPPED), _BIAS)
    # The sum is rounded by the addition, at the place where subnormal numbers of f8E5M2 end.
    unit = put(constant(128.0, floating))
    subnormal = with_number(arith.SubiOp, bitcast(put(arith.AddfOp(bitcast(finite, floating), unit)), integer), _UNIT)
    code = put(our_arith.SelectOp(is_("ult", finite, _LEAST_NORMAL), subnormal, normal))
    nan = put(constant(_NAN, integer))
    code = put(our_arith.SelectOp(is_("ugt", magnitude, _INFINITY), nan, code))
    byte = put(our_arith.TruncIOp(put(arith.OrIOp(code, sign)), i8))
    replace(op, tt.BitcastOp.build(operands=[byte], result_types=[op.result.type]))
