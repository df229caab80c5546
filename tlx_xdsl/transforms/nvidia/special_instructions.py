"""`tlx-lower-special-instructions`: write as PTX what stock Triton has no operation for and needs no layout.

The cycle counter, stochastic rounding and prefetches become `tt.elementwise_inline_asm`, fences and the prefetch of a
descriptor `nvvm.inline_ptx`. Elements are rounded two (f16, bf16) or four (8-bit floats) at a time, which is how the
instruction takes them (PTX ISA, "cvt", `.rs`); each pack is made of neighbours in a thread, in any layout.

Before:
```mlir
%t = tlx.clock64
tlx.fence gpu
tlx.prefetch L2 %p : tensor<64x!tt.ptr<f32>>
```
After:
```mlir
%t = tt.elementwise_inline_asm "mov.u64 $0, %clock64;" {constraints = "=l", ..., pure = false} -> i64
nvvm.inline_ptx "fence.acq_rel.gpu;"
%0 = tt.elementwise_inline_asm "{ prefetch.global.L2 [$1]; mov.b32 $0, 0; }" {...} %p : ... -> tensor<64xi32>
```
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    ModuleOp,
    TensorType,
    UnrealizedConversionCastOp,
    i32,
    i64,
)
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import tlx
from tlx_xdsl.dialects.arith import ExtUIOp
from tlx_xdsl.dialects.base.tensors import as_tensor
from tlx_xdsl.dialects.tlx.barriers import FenceScope
from tlx_xdsl.dialects.tlx.copies import CacheLevel
from tlx_xdsl.transforms.nvidia.ptx import elementwise_ptx, inline_ptx
from tlx_xdsl.transforms.rewriting import insert_before, replace


@dataclass(frozen=True)
class LowerSpecialInstructionsPass(ModulePass):
    """Replace single instructions by their PTX."""

    name = "tlx-lower-special-instructions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite each such operation of the module where it stands."""
        for inner in list(op.walk()):
            match inner:
                case tlx.Clock64Op():
                    _clock(inner)
                case tlx.FenceOp():
                    scope = FenceScope(inner.scope.value.data).keyword
                    replace(inner, inline_ptx(f"fence.acq_rel.{scope};"))
                case tlx.StochRoundOp():
                    _stoch_round(inner)
                case tlx.PrefetchOp():
                    _prefetch(inner)
                case tlx.PrefetchTensormapOp():
                    _prefetch_tensormap(inner)
                case _:
                    pass


def _clock(op: tlx.Clock64Op) -> None:
    # nvvm.inline_ptx would take the percent sign for an operand (Triton 3.6 to 3.8).
    replace(op, elementwise_ptx("mov.u64 $0, %clock64;", "=l", 1, [], i64, pure=False))


_ROUNDED: dict[type[Attribute], str] = {
    Float16Type: "f16x2",
    BFloat16Type: "bf16x2",
    Float8E4M3FNType: "e4m3x4",
    Float8E5M2Type: "e5m2x4",
}
"""What the instruction calls a register of each type."""

# A pack takes 32 random bits. Its first half rounds the low elements and its second half the high ones, so each half
# comes from an element that it rounds. `prmt` picks the two upper bytes of both.
_ROUND_2 = "{{ .reg .b32 r; prmt.b32 r, $3, $4, 0x7632; cvt.rs.satfinite.{type}.f32 $0, $2, $1, r; }}"
_ROUND_4 = "{{ .reg .b32 r; prmt.b32 r, $5, $7, 0x7632; cvt.rs.satfinite.{type}.f32 $0, {{$4, $3, $2, $1}}, r; }}"


def _stoch_round(op: tlx.StochRoundOp) -> None:
    type_ = _ROUNDED[type(op.result.type.element_type)]
    pack = int(type_[-1])
    code = (_ROUND_2 if pack == 2 else _ROUND_4).format(type=type_)
    constraints = ",".join(["=r", *["f"] * pack, *["r"] * pack])
    replace(op, elementwise_ptx(code, constraints, pack, [op.src, op.rand_bits], op.result.type, pure=True))


def _prefetch(op: tlx.PrefetchOp) -> None:
    instruction = f"prefetch.global.{CacheLevel(op.level.value.data).keyword} [$1];"
    operands, constraints = [op.src], "=r,l"
    if op.mask is None:
        code = f"{{ {instruction} mov.b32 $0, 0; }}"
    else:
        code = f"{{ .reg .pred p; setp.ne.b32 p, $2, 0; @p {instruction} mov.b32 $0, 0; }}"
        # A predicate as an operand breaks where it is a constant.
        operands.append(insert_before(op, ExtUIOp(op.mask, i32)).result)
        constraints += ",r"
    # The operation wants a result; nobody reads it.
    insert_before(op, elementwise_ptx(code, constraints, 1, operands, like(op.src, i32), pure=False))
    Rewriter.erase_op(op)


def _prefetch_tensormap(op: tlx.PrefetchTensormapOp) -> None:
    address = insert_before(op, UnrealizedConversionCastOp(operands=[op.desc], result_types=[[LLVMPointerType()]]))
    replace(op, inline_ptx("prefetch.tensormap [$0];", [address.results[0]]))


def like(value: SSAValue, element: Attribute) -> Attribute:
    """`element`, or the tensor type of it that has the shape and the layout of `value`."""
    tensor = as_tensor(value.type)
    return element if tensor is None else TensorType(element, tensor.get_shape(), tensor.encoding)
