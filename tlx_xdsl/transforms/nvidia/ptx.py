"""PTX in the middle of Triton's IR."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, SSAValue

from tlx_xdsl.dialects.nvvm import InlinePtxOp


def inline_ptx(code: str, operands: Sequence[SSAValue] = (), results: Sequence[Attribute] = ()) -> InlinePtxOp:
    """PTX that every thread runs: `$0` and so on are the results, and behind them come `operands`, which it reads."""
    return InlinePtxOp(
        operands=[list(operands), [], None], properties={"ptxCode": StringAttr(code)}, result_types=[list(results)]
    )
