"""Votes of the threads of a warp as PTX (PTX ISA, "vote.sync").

A thread votes with its predicate; of a tensor, with whether any of the elements that it holds is true. So this comes
when tensors have their layouts. A vote that gives a number takes the registers of the tensor. Else the bits are in each
element of the result, which comes from inline assembly over all elements of a thread at once: a number that is
splatted, or a cast to a tensor, could be taken in another layout, where the thread holds other elements. Where upstream
Triton picks another layout for the assembly, it votes again, with the elements that threads hold there: an element's
own vote is in its bits in each of them.

Before:
```mlir
%b = tlx.vote_ballot %mask, %p : tensor<256xi1, #blocked> -> tensor<256xi32, #blocked>
```
After, with 4 warps:
```mlir
%votes = arith.extui %p : tensor<256xi1, #blocked> to tensor<256xi32, #blocked>
%masks = tt.splat %mask : i32 -> tensor<256xi32, #blocked>
%b = tt.elementwise_inline_asm "{ .reg .pred p; .reg .b32 v; or.b32 v, $2, $3; setp.ne.b32 p, v, 0;
  vote.sync.ballot.b32 $0, p, $4; mov.b32 $1, $0; }" {constraints = "=r,=r,r,r,r,r", packed_element = 2 : i32,
  pure = false} %votes, %masks : tensor<256xi32, #blocked>, tensor<256xi32, #blocked> -> tensor<256xi32, #blocked>
```
"""

from __future__ import annotations

from xdsl.dialects.arith import OrIOp
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tlx_xdsl.dialects import arith, tlx, tt
from tlx_xdsl.dialects.base import as_tensor

from ..rewriting import insert_before
from .emit.ptx import elementwise_ptx, inline_ptx
from .emit.threads import register_count, registers_of

_BALLOT = "{ .reg .pred p; setp.ne.b32 p, $1, 0; vote.sync.ballot.b32 $0, p, $2; }"


class LowerVote(RewritePattern):
    """Replaces a vote by its PTX.

    Raises CompilationError for a tensor without a layout.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.VoteBallotOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        rewriter.replace(op, _as_number(op) if op.result.type == i32 else _of_tensor(op))


def _as_number(op: tlx.VoteBallotOp) -> Operation:
    votes = [op.pred] if as_tensor(op.pred.type) is None else registers_of(op, op.pred)
    # A predicate as an operand breaks where it is a constant.
    first, *others = (insert_before(op, arith.ExtUIOp(vote, i32)).result for vote in votes)
    for other in others:
        first = insert_before(op, OrIOp(first, other)).result
    return inline_ptx(_BALLOT, [first, op.mask], [i32])


def _of_tensor(op: tlx.VoteBallotOp) -> Operation:
    count = register_count(op, op.pred.type)
    votes = insert_before(op, arith.ExtUIOp(op.pred, i32)).result
    masks = insert_before(op, tt.SplatOp(operands=[op.mask], result_types=[op.result.type])).result
    constraints = ",".join(["=r"] * count + ["r"] * 2 * count)
    return elementwise_ptx(_code(count), constraints, count, [votes, masks], op.result.type, pure=False)


def _code(count: int) -> str:
    """The vote of a thread with `count` elements: registers of the results come first, then votes, then masks."""
    if count == 1:
        return _BALLOT
    first, *others = range(count, 2 * count)
    either = [f"or.b32 v, {'v' if number else f'${first}'}, ${other};" for number, other in enumerate(others)]
    copies = [f"mov.b32 ${number}, $0;" for number in range(1, count)]
    ballot = f"setp.ne.b32 p, v, 0; vote.sync.ballot.b32 $0, p, ${2 * count};"
    return " ".join(["{ .reg .pred p; .reg .b32 v;", *either, ballot, *copies, "}"])
