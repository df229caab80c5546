"""The pass: divisions by powers of two become products, which have the same bits and take fewer instructions.

Before:
    %two = arith.constant 2.0 : f32
    %twos = tt.splat %two : f32 -> tensor<64xf32>
    %half = arith.divf %x, %twos : tensor<64xf32>
After:
    %inverse = arith.constant 5.000000e-01 : f32
    %inverses = tt.splat %inverse : f32 -> tensor<64xf32>
    %half = arith.mulf %x, %inverses : tensor<64xf32>
"""

import math
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp, DivfOp, MulfOp
from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern, op_type_rewrite_pattern

from tlx_xdsl.dialects.tt import SplatOp


@dataclass
class DivideExactly(RewritePattern):
    """x / 2^n -> x * 2^-n, for numbers that the smallest float type holds."""

    most: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DivfOp, rewriter: PatternRewriter) -> None:
        """Rewrite one division."""
        if not (isinstance(splat := op.rhs.owner, SplatOp) and isinstance(constant := splat.src.owner, ConstantOp)):
            return
        if not isinstance(value := constant.value, FloatAttr):
            return
        divisor = value.value.data
        mantissa, exponent = math.frexp(divisor)
        if abs(mantissa) != 0.5 or abs(exponent) > self.most:
            return
        inverse = ConstantOp(FloatAttr(1 / divisor, value.type))
        inverses = SplatOp.create(operands=[inverse.result], result_types=[op.rhs.type])
        rewriter.replace_op(op, [inverse, inverses, MulfOp(op.lhs, inverses.result, op.fastmath)])


@dataclass(frozen=True)
class ExactDivisionPass(ModulePass):
    """Turn divisions by powers of two into products."""

    name = "exact-division"
    most: int = 10
    """The largest power."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        PatternRewriteWalker(DivideExactly(self.most)).rewrite_module(op)
