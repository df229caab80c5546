"""`ttkernel-hoist-inits`: units are prepared where they must be, not again for each run of a loop.

Before:
```mlir
scf.for %i = %zero to %n step %one {
  ttkernel.init_sfpu(%a, %o) : ...
  ttkernel.tile_regs_acquire() : () -> ()
  ttkernel.copy_tile_init(%a) : ...
  ttkernel.copy_tile(%a, %zero, %zero) : ...
  ttkernel.exp_tile_init() : () -> ()
  ttkernel.exp_tile(%zero) : ...
  ...
}
```
After:
```mlir
ttkernel.init_sfpu(%a, %o) : ...
ttkernel.copy_tile_init(%a) : ...
ttkernel.exp_tile_init() : () -> ()
scf.for %i = %zero to %n step %one {
  ttkernel.tile_regs_acquire() : () -> ()
  ttkernel.copy_tile(%a, %zero, %zero) : ...
  ttkernel.exp_tile(%zero) : ...
  ...
}
```
A loop that prepares a unit for one thing only does it before the loop; a preparation for what a unit is prepared for
already is left out. The formats of buffers and the matrix unit go together, the vector unit is apart. Modes that must
be ended, of broadcasts and reductions, stay where they are.
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.dialects import affine, func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.transforms.rewriting import Pass, ops_of

from ..dialects.ttkernel.base import THREAD, FormatsInitOp, InitOp, MatrixInitOp, ModeInitOp, SFPUInitOp


class HoistInitsPass(Pass):
    """Hoist preparations out of loops, and leave out those that change nothing."""

    name = "ttkernel-hoist-inits"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the functions of threads in place."""
        for function in ops_of(op, func.FuncOp):
            if THREAD in function.attributes:
                _simplify(function.body.block)


def _simplify(block: Block) -> None:
    for op in [*block.ops]:
        for region in op.regions:
            for inner in region.blocks:
                _simplify(inner)
        if isinstance(op, affine.ForOp | scf.ForOp):
            _hoist(op)
    _leave_out(block)


def _hoist(loop: affine.ForOp | scf.ForOp) -> None:
    """Move the preparations of a loop before it, of the units that it prepares for one thing."""
    inits = ops_of(loop, InitOp)
    matrix = [op for op in inits if not isinstance(op, SFPUInitOp)]
    vector = [op for op in inits if isinstance(op, SFPUInitOp)]
    kinds = [type_ for type_ in (FormatsInitOp, MatrixInitOp) if any(isinstance(op, type_) for op in matrix)]
    # Formats are set before the matrix unit is prepared, in each run as before the loop.
    is_one = len({_key(op) for op in matrix}) == len(kinds) and (not matrix or isinstance(matrix[0], kinds[0]))
    movable = [op for op in matrix if is_one and not any(isinstance(each, ModeInitOp) for each in matrix)]
    movable += [op for op in vector if len({_key(each) for each in vector}) == 1]
    done: set[Hashable] = set()
    for op in movable:
        if not all(_is_outside(value, loop) for value in op.operands):
            continue
        op.detach()
        if _key(op) in done:
            op.erase()
        else:
            Rewriter.insert_op(op, InsertPoint.before(loop))
        done.add(_key(op))


def _leave_out(block: Block) -> None:
    """Erase what prepares a unit for what it is prepared for; nothing is known where the block begins."""
    known: dict[type[InitOp], Hashable] = {}
    for op in [*block.ops]:
        inits = ops_of(op, InitOp) if op.regions or isinstance(op, InitOp) else []
        kind = _kind(op)
        if kind is not None and known.get(kind) == _key(op):
            Rewriter.erase_op(op)
            continue
        # Setting formats and preparing the matrix unit each undo something of the other.
        if any(isinstance(each, SFPUInitOp) for each in inits):
            known.pop(SFPUInitOp, None)
        if any(not isinstance(each, SFPUInitOp) for each in inits):
            known = {each: key for each, key in known.items() if each is SFPUInitOp}
        if kind is not None:
            known[kind] = _key(op)


def _kind(op: Operation) -> type[InitOp] | None:
    return next((each for each in (FormatsInitOp, MatrixInitOp, SFPUInitOp) if isinstance(op, each)), None)


def _key(op: Operation) -> Hashable:
    """The thing that an operation prepares for."""
    return op.name, *op.operands, *sorted((name, str(value)) for name, value in op.properties.items())


def _is_outside(value: SSAValue, loop: Operation) -> bool:
    """Return whether a value is defined before a loop."""
    around = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
    return around is None or not loop.is_ancestor(around)
