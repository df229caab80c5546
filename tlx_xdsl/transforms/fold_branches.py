"""`tlx-fold-branches`: branches whose condition is constant become the code that they lead to.

Upstream Triton 3.6 asserts in `tritongpu-coalesce` where control never gets to an access of memory: its analysis of
constants knows that, and the one of axes then has nothing about the pointer. Later versions fold before.

Before:
```mlir
%always = arith.ori %positive, %true : i1
scf.if %always {
  tt.store %p, %x : !tt.ptr<f32>
} else {
  tt.store %q, %x : !tt.ptr<f32>
}
```
After `tlx-fold-branches`:
```mlir
%always = arith.ori %positive, %true : i1
tt.store %p, %x : !tt.ptr<f32>
```
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import builtin, cf, scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.analysis.constants import Constants
from tlx_xdsl.dialects import regions, tt

from .rewriting import Pass, insert_before, ops_of


class FoldBranchesPass(Pass):
    """Fold every `scf.if`, `scf.while` and `cf.cond_br` whose condition is constant."""

    name = "tlx-fold-branches"

    def run(self, op: builtin.ModuleOp) -> None:
        """Rewrite the module in place. A `scf.while` is folded when it makes no turn."""
        for function in ops_of(op, tt.FuncOp):
            # From the inside out: what is moved has been folded.
            branches = [inner for inner in function.walk() if inner.regions or inner.successors][::-1]
            if any(regions.condition_of(each) is not None for each in function.walk()):
                constants = Constants(function)
                for branch in branches:
                    _fold(branch, constants)
                for block in [block for block in function.body.blocks if not constants.reaches(block)]:
                    function.body.detach_block(block)
                    block.erase(safe_erase=False)


def _fold(op: Operation, constants: Constants) -> None:
    match op:
        case scf.IfOp():
            condition = constants.of(op.cond)
            if condition is not None:
                region = op.true_region if condition else op.false_region
                _put_in_place(op, region.block if region.blocks else None, ())
        case scf.WhileOp():
            body = op.before_region.block
            end = body.last_op
            if isinstance(end, scf.ConditionOp) and constants.of(end.condition) == 0:
                _put_in_place(op, body, op.arguments, first=1)
        case cf.ConditionalBranchOp():
            condition = constants.of(op.cond)
            if condition is not None:
                target, values = (op.then_block, op.then_arguments) if condition else (op.else_block, op.else_arguments)
                insert_before(op, cf.BranchOp(target, *values))
                Rewriter.erase_op(op)
        case _:
            pass


def _put_in_place(op: Operation, block: Block | None, arguments: Sequence[SSAValue], first: int = 0) -> None:
    """Let the operations of `block` stand for `op`, whose results are the operands of the block's end from `first`."""
    if block is not None and (end := block.last_op) is not None:
        for result, value in zip(op.results, end.operands[first:], strict=True):
            result.replace_all_uses_with(value)
        Rewriter.erase_op(end)
        Rewriter.inline_block(block, InsertPoint.before(op), arguments)
    Rewriter.erase_op(op, safe_erase=False)
