"""PTX in the middle of Triton's IR."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, i32
from xdsl.ir import Attribute, SSAValue

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.nvvm import InlinePtxOp


def inline_ptx(code: str, operands: Sequence[SSAValue] = (), results: Sequence[Attribute] = ()) -> InlinePtxOp:
    """PTX that every thread runs: `$0` and so on are the results, and behind them come `operands`, which it reads."""
    return InlinePtxOp(
        operands=[list(operands), [], None], properties={"ptxCode": StringAttr(code)}, result_types=[list(results)]
    )


def elementwise_ptx(
    code: str, constraints: str, pack: int, operands: Sequence[SSAValue], result: Attribute, *, pure: bool
) -> tt.ElementwiseInlineAsmOp:
    """PTX for each `pack` of elements that a thread holds, with the constraints of LLVM's inline assembly."""
    return tt.ElementwiseInlineAsmOp(
        operands=[list(operands)],
        properties={
            "asm_string": StringAttr(code),
            "constraints": StringAttr(constraints),
            "packed_element": IntegerAttr(pack, i32),
            "pure": BoolAttr.from_bool(pure),
        },
        result_types=[[result]],
    )
