"""`tlx-lower-to-ptx`: PTX for single instructions that upstream Triton has no operation for, before layouts.

The cycle counter, stochastic rounding and prefetches become `tt.elementwise_inline_asm`, fences and the prefetch of a
descriptor `nvvm.inline_ptx`; a wait for a signal becomes a loop. Elements are rounded two (f16, bf16) or four (8-bit
floats) at a time, which is how the instruction takes them (PTX ISA, "cvt", `.rs`); each pack is made of neighbours in a
thread, in any layout.

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

from xdsl.dialects import scf
from xdsl.dialects.arith import AndIOp, ConstantOp, SubiOp
from xdsl.dialects.builtin import (
    IntegerAttr,
    ModuleOp,
    TensorType,
    UnrealizedConversionCastOp,
    i1,
    i32,
    i64,
)
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tlx_xdsl.dialects import arith, tlx, tt, ttg
from tlx_xdsl.dialects.base import as_tensor, element_type_of
from tlx_xdsl.dialects.scf import WhileOp

from ..driver import walk_and_apply_patterns
from ..rewriting import Pass, insert_before
from .emit.ptx import elementwise_ptx, inline_ptx


class LowerClock(RewritePattern):
    """Reads the cycle counter."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.Clock64Op, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        # nvvm.inline_ptx would take the percent sign for an operand (Triton 3.6 to 3.8).
        rewriter.replace(op, elementwise_ptx("mov.u64 $0, %clock64;", "=l", 1, [], i64, pure=False))


class LowerFence(RewritePattern):
    """Writes a fence with its scope."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.FenceOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        rewriter.replace(op, inline_ptx(f"fence.acq_rel.{tlx.FenceScope(op.scope.value.data).keyword};"))


# A pack takes 32 random bits. Its first half rounds the low elements and its second half the high ones, so each half
# comes from an element that it rounds. `prmt` picks the two upper bytes of both.
_ROUND_2 = "{{ .reg .b32 r; prmt.b32 r, $3, $4, 0x7632; cvt.rs.satfinite.{type}.f32 $0, $2, $1, r; }}"
_ROUND_4 = "{{ .reg .b32 r; prmt.b32 r, $5, $7, 0x7632; cvt.rs.satfinite.{type}.f32 $0, {{$4, $3, $2, $1}}, r; }}"


class LowerStochRound(RewritePattern):
    """Rounds packs of elements."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.StochRoundOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        element = element_type_of(op.result.type.element_type)
        assert element is not None, "the operation rounds to a float"
        pack = 32 // element.bits
        code = (_ROUND_2 if pack == 2 else _ROUND_4).format(type=f"{element.ptx}x{pack}")
        constraints = ",".join(["=r", *["f"] * pack, *["r"] * pack])
        operands = [op.src, op.rand_bits]
        rewriter.replace(op, elementwise_ptx(code, constraints, pack, operands, op.result.type, pure=True))


class LowerPrefetch(RewritePattern):
    """Prefetches what pointers point at."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.PrefetchOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        instruction = f"prefetch.global.{tlx.CacheLevel(op.level.value.data).keyword} [$1];"
        operands, constraints = [op.src], "=r,l"
        if op.mask is None:
            code = f"{{ {instruction} mov.b32 $0, 0; }}"
        else:
            code = f"{{ .reg .pred p; setp.ne.b32 p, $2, 0; @p {instruction} mov.b32 $0, 0; }}"
            # A predicate as an operand breaks where it is a constant.
            operands.append(insert_before(op, arith.ExtUIOp(op.mask, i32)).result)
            constraints += ",r"
        # The operation must have a result; it has no use.
        rewriter.insert(elementwise_ptx(code, constraints, 1, operands, _like(op.src, i32), pure=False))
        rewriter.erase(op)


class LowerWaitSignal(RewritePattern):
    """Makes a loop that reads a counter until it is reached: stock Triton's sum with 0 is `ld.acquire` of one thread.

    The loop also ends when the time is over.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.WaitSignalOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        type_ = i32 if op.value.type == i32 else i64
        begin = None if op.limit is None else rewriter.insert(_nanoseconds()).results[0]
        zero = rewriter.insert(ConstantOp(IntegerAttr(0, type_))).result
        true = rewriter.insert(ConstantOp(IntegerAttr(1, i1))).result
        before, after = Block(), Block([scf.YieldOp()])
        ordering = {"sem": op.sem, "scope": op.scope}
        add = IntegerAttr(tt.RMWOp.ADD.value, i32)
        read = tt.AtomicRMWOp(
            operands=[op.ptr, zero, true], properties={"atomic_rmw_op": add, **ordering}, result_types=[type_]
        )
        missing = "ne" if tlx.Reached(op.reached.value.data) is tlx.Reached.EQ else "slt"
        go_on = arith.CmpiOp(missing, read.result, op.value)
        before.add_ops([read, go_on])
        if op.limit is not None and begin is not None:
            now = _nanoseconds()
            spent = SubiOp(now.results[0], begin)
            in_time = arith.CmpiOp("sle", spent.result, op.limit)
            both = AndIOp(go_on.result, in_time.result)
            before.add_ops([now, spent, in_time, both, scf.ConditionOp(both.result)])
        else:
            before.add_op(scf.ConditionOp(go_on.result))
        loop = rewriter.insert(WhileOp([], [], Region(before), Region(after)))
        for each in loop.walk():
            each.location = op.location
        rewriter.erase(op)


def _nanoseconds() -> tt.ElementwiseInlineAsmOp:
    return elementwise_ptx("mov.u64 $0, %globaltimer;", "=l", 1, [], i64, pure=False)


class LowerLeave(RewritePattern):
    """Ends the thread block, or the launch where tasks would wait for it for ever."""

    def __init__(self, *, has_tasks: bool):
        self.code = "trap;" if has_tasks else "exit;"

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.LeaveOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        rewriter.replace(op, inline_ptx(self.code))


class LowerPrefetchTensormap(RewritePattern):
    """Prefetches a tensor descriptor."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.PrefetchTensormapOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        address = rewriter.insert(UnrealizedConversionCastOp(operands=[op.desc], result_types=[[LLVMPointerType()]]))
        rewriter.replace(op, inline_ptx("prefetch.tensormap [$0];", [address.results[0]]))


def _like(value: SSAValue, element: Attribute) -> Attribute:
    """`element`, or the tensor type of it that has the shape and the layout of `value`."""
    tensor = as_tensor(value.type)
    return element if tensor is None else TensorType(element, tensor.get_shape(), tensor.encoding)


class LowerToPTXPass(Pass):
    """Replace single instructions by their PTX."""

    name = "tlx-lower-to-ptx"

    def run(self, op: ModuleOp) -> None:
        """Rewrite each such operation of the module."""
        has_tasks = any(isinstance(each, ttg.WarpSpecializeOp) for each in op.walk())
        patterns = [LowerClock(), LowerFence(), LowerStochRound(), LowerPrefetch(), LowerPrefetchTensormap(),
                    LowerWaitSignal(), LowerLeave(has_tasks=has_tasks)]  # fmt: skip
        walk_and_apply_patterns(op, patterns)
