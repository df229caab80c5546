"""`tlx-ws-fold-loops`: a loop of one turn in a loop over tiles becomes the code of that turn.

The loop over tiles is then the innermost one, and what is done for loops is done for it: the next tile's first products
are issued before the last ones of this tile.

Before:
```mlir
scf.for %tile = %first to %tiles step %programs : i32 {
  %sum = scf.for %k = %c0 to %c64 step %c64 iter_args(%s = %zero) -> (tensor<64x64xf32>) : i32 {
    %next = tt.dot %a, %b, %s : ...
    scf.yield %next : tensor<64x64xf32>
  }
```
After:
```mlir
scf.for %tile = %first to %tiles step %programs : i32 {
  %next = tt.dot %a, %b, %zero : ...
```
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from ..rewriting import Pass, constant_integer, ops_of
from .tasks_of import TILES


class FoldLoopsPass(Pass):
    """Fold the loops of one turn in the loops over tiles of all kernels of a module."""

    name = "tlx-ws-fold-loops"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for tiles in [loop for loop in ops_of(op, scf.ForOp) if TILES in loop.attributes]:
            for loop in [inner for inner in tiles.body.walk() if isinstance(inner, scf.ForOp)]:
                if _turns_once(loop):
                    _fold(loop)


def _turns_once(loop: scf.ForOp) -> bool:
    lower, upper, step = (constant_integer(value) for value in (loop.lb, loop.ub, loop.step))
    return lower is not None and upper is not None and step is not None and lower < upper <= lower + step


def _fold(loop: scf.ForOp) -> None:
    """Put the body of a loop in its place."""
    body = loop.body.block
    for argument, value in zip(body.args, (loop.lb, *loop.iter_args), strict=True):
        argument.replace_all_uses_with(value)
    end = body.last_op
    assert end is not None, "a block ends in an operation"
    for result, value in zip(loop.results, end.operands, strict=True):
        result.replace_all_uses_with(value)
    Rewriter.erase_op(end)
    Rewriter.inline_block(body, InsertPoint.before(loop))
    Rewriter.erase_op(loop)
