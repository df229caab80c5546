"""`tlx-ws-structure-returns`: what follows an early return becomes the body of an `scf.if`.

Tasks need one block of code. A kernel that returns early has several.

Before:
```mlir
  cf.cond_br %nothing_to_do, ^bb1, ^bb2
^bb1:
  tt.return
^bb2:
  tt.store %p, %x : !tt.ptr<f32>
  tt.return
```
After:
```mlir
  %0 = arith.xori %nothing_to_do, %true : i1
  scf.if %0 {
    tt.store %p, %x : !tt.ptr<f32>
  }
  tt.return
```
Other jumps stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, cf, scf
from xdsl.dialects.builtin import BoolAttr, ModuleOp, i1
from xdsl.ir import Block, Operation, Region, SSAValue

from tlx_xdsl.dialects import tt

from ..rewriting import Pass, insert_before, ops_of


@dataclass(frozen=True)
class StructureReturnsPass(Pass):
    """Put the code after early returns into branches."""

    name = "tlx-ws-structure-returns"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the functions without results in place; each step takes away two blocks."""
        for function in ops_of(op, tt.FuncOp):
            while _structured(function):
                pass


def _structured(function: tt.FuncOp) -> bool:
    """Put the code after the last early return into a branch; say whether there was one."""
    for block in reversed(list(function.body.blocks)):
        branch = block.last_op
        if not isinstance(branch, cf.ConditionalBranchOp):
            continue
        for leaving, staying, runs_if in (
            (branch.then_block, branch.else_block, False),
            (branch.else_block, branch.then_block, True),
        ):
            if _only_returns(leaving) and _is_rest(staying, branch):
                _move(branch, leaving, staying, runs_if=runs_if)
                return True
    return False


def _only_returns(block: Block) -> bool:
    return isinstance(block.first_op, tt.ReturnOp) and not block.args and not block.first_op.operands


def _is_rest(block: Block, branch: Operation) -> bool:
    """True for the code that nothing else jumps to, and that ends in a return."""
    end = block.last_op
    return (
        isinstance(end, tt.ReturnOp)
        and not end.operands
        and not block.args
        and list(block.predecessors()) == [branch.parent]
        and block is not branch.parent
    )


def _move(branch: cf.ConditionalBranchOp, leaving: Block, staying: Block, *, runs_if: bool) -> None:
    function = branch.parent_op()
    assert isinstance(function, tt.FuncOp)
    condition: SSAValue = branch.cond
    if not runs_if:
        true = insert_before(branch, arith.ConstantOp(BoolAttr.from_bool(True), i1))
        condition = insert_before(branch, arith.XOrIOp(condition, true.result)).result
    end = staying.last_op
    assert end is not None
    body = Block()
    for op in list(staying.ops):
        if op is not end:
            op.detach()
            body.add_op(op)
    close = scf.YieldOp()
    close.location = end.location
    body.add_op(close)
    insert_before(branch, scf.IfOp(condition, [], Region(body), Region()))
    insert_before(branch, tt.ReturnOp(operands=[[]]), located_at=end)
    branch.detach()
    branch.erase()
    for block in (leaving, staying):
        if not list(block.predecessors()):
            function.body.erase_block(block)
