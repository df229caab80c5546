"""`tlx-lower-votes`: votes of the threads of a warp as PTX (PTX ISA, "vote.sync").

A thread votes with its predicate; of a tensor, with whether any of the elements that it holds is true. So this comes
when tensors have their layouts.

Before:
```mlir
%b = tlx.vote_ballot %mask, %p : tensor<256xi1, #blocked>
```
After, with 4 warps:
```mlir
%held = builtin.unrealized_conversion_cast %p : tensor<256xi1, #blocked> to !llvm.struct<(i1, i1)>
%p0 = llvm.extractvalue %held[0] : !llvm.struct<(i1, i1)>
%p1 = llvm.extractvalue %held[1] : !llvm.struct<(i1, i1)>
%any = arith.ori %p0, %p1 : i1
%vote = arith.extui %any : i1 to i32
%b = nvvm.inline_ptx "{ .reg .pred p; setp.ne.b32 p, $1, 0; vote.sync.ballot.b32 $0, p, $2; }" ro(%vote, %mask : ...)
```
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from xdsl.context import Context
from xdsl.dialects.arith import OrIOp
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from tlx_xdsl.dialects import tlx
from tlx_xdsl.dialects.arith import ExtUIOp
from tlx_xdsl.dialects.base.tensors import as_tensor
from tlx_xdsl.transforms.nvidia.ptx import inline_ptx
from tlx_xdsl.transforms.nvidia.threads import registers_of
from tlx_xdsl.transforms.rewriting import insert_before, replace

_BALLOT = "{ .reg .pred p; setp.ne.b32 p, $1, 0; vote.sync.ballot.b32 $0, p, $2; }"


@dataclass(frozen=True)
class LowerVotesPass(ModulePass):
    """Replace votes by their PTX."""

    name = "tlx-lower-votes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every vote of the module.

        Raises CompilationError for a tensor without a layout.
        """
        for inner in list(op.walk()):
            if isinstance(inner, tlx.VoteBallotOp):
                _lower(inner)


def _lower(op: tlx.VoteBallotOp) -> None:
    vote = op.pred
    if as_tensor(vote.type) is not None:

        def either(a: SSAValue, b: SSAValue) -> SSAValue:
            return insert_before(op, OrIOp(a, b)).result

        vote = reduce(either, registers_of(op, vote))
    # A predicate as an operand breaks where it is a constant.
    number = insert_before(op, ExtUIOp(vote, i32)).result
    replace(op, inline_ptx(_BALLOT, [number, op.mask], [i32]))
