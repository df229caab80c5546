"""Sums with products as products that add: `dot(a, b, 0) + c` is `dot(a, b, c)`.

Stock Triton does the same. Sums of 8-bit products that the kernel limits (`max_num_imprecise_acc`) stay as they are.
"""

from __future__ import annotations

from xdsl.dialects.arith import AddfOp
from xdsl.ir import Region
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import tt

from ...rewriting import insert_before
from .dot_operands import is_zero


def fold_sums(region: Region) -> None:
    """Fold the sums with products that nothing else needs into these."""
    for dot in [op for op in region.walk() if isinstance(op, tt.DotOp)]:
        uses = list(dot.d.uses)
        if len(uses) != 1 or not is_zero(dot.c) or dot.max_num_imprecise_acc.value.data:
            continue
        add = uses[0].operation
        if not isinstance(add, AddfOp) or add.parent is not dot.parent or add.lhs is add.rhs:
            continue
        other = add.rhs if add.lhs is dot.d else add.lhs
        made = tt.DotOp(
            operands=[dot.a, dot.b, other],
            properties={"inputPrecision": dot.input_precision, "maxNumImpreciseAcc": dot.max_num_imprecise_acc},
            result_types=[dot.d.type],
        )
        insert_before(add, made, located_at=dot)
        made.d.name_hint = add.result.name_hint or dot.d.name_hint
        add.result.replace_all_uses_with(made.d)
        Rewriter.erase_op(add)
        Rewriter.erase_op(dot)
