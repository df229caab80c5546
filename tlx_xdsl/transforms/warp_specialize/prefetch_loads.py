"""`tlx-ws-prefetch-loads`: a task loads the small blocks of the next turn before it works with those of this one.

TMA can't load rows of scales, gates or biases. A task would wait for each of them; asked for a turn earlier, they
arrive while it computes, or waits for a slot. The load of the turn after the last one is masked out.

Before:
```mlir
scf.for %k = %c0 to %n step %c1 {
  %p = tt.addptr %pointers, %offsets(%k)
  %s = tt.load %p : tensor<128x!tt.ptr<f32>>
  ...
}
```
After, in Python:
```python
following = tl.load(scales(0), mask=0 < n)
for k in range(n):
    s = following
    following = tl.load(scales(k + 1), mask=k + 1 < n)
```
Done for numbers and for blocks of up to 512 elements in the loops of tasks, whose addresses follow from the induction
variable and from values outside of the loop, where nothing in the loop may write what they read.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, TensorType, i1
from xdsl.ir import Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.dialects import arith as our_arith, tt, ttg
from tlx_xdsl.dialects.base import Sync, accesses_of, effects_of, enclosing, is_set
from tlx_xdsl.dialects.dimensions import shape_of_value

from ..rewriting import Pass, constant_integer, ops_of
from .accesses.arguments import is_grid_size
from .origins import origins_of
from .slices import Slice, is_only_read, writes_memory
from .tasks_of import TILES

MOST_ELEMENTS = 512
"""Elements of a block that is carried to the next turn: four of the registers of 128 threads."""


_DIVISIONS = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.CeilDivSIOp, arith.FloorDivSIOp)


@dataclass(frozen=True)
class PrefetchLoadsPass(Pass):
    """Load small blocks one turn ahead."""

    name = "tlx-ws-prefetch-loads"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the loops of tasks in place."""
        for loop in ops_of(op, scf.ForOp):
            if enclosing(loop, ttg.WarpSpecializeOp) is None:
                continue
            loads = [
                load for load in loop.body.block.ops if isinstance(load, tt.LoadOp) and _may_come_early(loop, load)
            ]
            if loads:
                _carry(loop, loads)


def _may_come_early(loop: scf.ForOp, load: tt.LoadOp) -> bool:
    if prod(shape_of_value(load.result)) > MOST_ELEMENTS or is_set(load, "isVolatile"):
        return False
    if load.result.first_use is None or tt.is_block_pointer(load.ptr.type):
        return False
    body = loop.body.block
    inner = _inner_slice(loop, load)
    if any(not is_only_read(op) or op.regions or accesses_of(op) or op.parent is not body for op in inner):
        return False
    if any(isinstance(op, _DIVISIONS) and not _divides_by_number(op, loop) for op in inner):
        return False
    if any(v.owner is body and v is not body.args[0] for op in [*inner, load] for v in op.operands):
        return False
    read = origins_of(load.ptr)
    if read is None:
        return False
    return not any(_may_write(op, read) for op in loop.walk())


def _divides_by_number(op: Operation, loop: scf.ForOp) -> bool:
    """True where the divisor is known, or a size of a grid of tiles: another may be 0 in the turn after the last."""
    return bool(constant_integer(op.operands[1])) or (TILES in loop.attributes and is_grid_size(op.operands[1]))


def _may_write(op: Operation, read: frozenset[SSAValue]) -> bool:
    if not writes_memory(op):
        return False
    accesses = accesses_of(op)
    if accesses is None or Sync.ACQUIRE in effects_of(op).sync:
        return True
    for access in accesses:
        if isinstance(access.value.type, ttg.MemDescType):
            continue
        written = origins_of(access.value)
        if written is None or written & read:
            return True
    return False


def _inner_slice(loop: scf.ForOp, load: tt.LoadOp) -> list[Operation]:
    """The operations of the loop that the operands of a load need, in order."""
    needed = Slice([load]).ops
    return [op for op in loop.body.block.walk() if op in needed and op is not load]


def _carry(loop: scf.ForOp, loads: list[tt.LoadOp]) -> None:
    """Make the loop anew, with the blocks of its next turn among the values that it carries."""
    body = loop.body.block
    first = body.first_op
    assert first is not None, "a block ends in an operation"
    slices = {load: _inner_slice(loop, load) for load in loads}

    # The loop's first turn, before it.
    starts = [_copy(load, slices[load], loop.lb, loop, loop) for load in loads]
    # The next turn, at the start of each.
    following = arith.AddiOp(body.args[0], loop.step)
    following.location = loop.location
    following.result.name_hint = "following"
    Rewriter.insert_op(following, InsertPoint.before(first))
    nexts = [_copy(load, slices[load], following.result, loop, first) for load in loads]
    for load in loads:
        argument = body.insert_arg(load.result.type, len(body.args), load.location)
        argument.name_hint = load.result.name_hint
        load.result.replace_all_uses_with(argument)
        load.detach()
        load.erase()
    end = body.last_op
    assert end is not None
    for value, load in zip(nexts, loads, strict=True):
        value.name_hint = f"next_{load.result.name_hint or 'block'}"
    end.operands = [*end.operands, *nexts]

    block = body
    loop.body.detach_block(block)
    made = scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, *starts], Region(block))
    made.attributes.update(loop.attributes)
    made.location = loop.location
    Rewriter.insert_op(made, InsertPoint.before(loop))
    for old, new in zip(loop.results, made.results, strict=False):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    loop.detach()
    loop.erase()


def _copy(load: tt.LoadOp, needed: list[Operation], turn: SSAValue, loop: scf.ForOp, anchor: Operation) -> SSAValue:
    """Load the block of a turn before `anchor`, if there is such a turn; return it."""
    known: dict[SSAValue, SSAValue] = {loop.body.block.args[0]: turn}

    def insert(op: Operation) -> Operation:
        op.location = load.location
        Rewriter.insert_op(op, InsertPoint.before(anchor))
        return op

    for op in needed:
        copy = insert(op.clone(known))
        for old, new in zip(op.results, copy.results, strict=True):
            known[old] = new
            new.name_hint = old.name_hint
    pointer = known.get(load.ptr, load.ptr)
    mask = insert(our_arith.CmpiOp("slt", turn, loop.ub)).results[0]
    if shape := shape_of_value(load.result):
        mask = insert(tt.SplatOp(operands=[mask], result_types=[TensorType(i1, shape)])).results[0]
    if load.mask is not None:
        mask = insert(arith.AndIOp(known.get(load.mask, load.mask), mask)).results[0]
    other = None if load.other is None else known.get(load.other, load.other)
    made = insert(tt.LoadOp(pointer, mask, other, cache_policy=load.cache_policy))
    return made.results[0]
