"""A `ttl.compute` of several outputs as one for each: what they have in common is computed again, in fewer registers.

Before:
```mlir
ttl.compute ins(%a : ...) outs(%p, %q : ...) {...} {
^bb0(%x: !tile, %y: !tile, %z: !tile):
  %0 = ttl.tile_exp %x : !tile
  %1 = ttl.tile_neg %0 : !tile
  ttl.yield %0, %1 : !tile, !tile
}
```
After:
```mlir
ttl.compute ins(%a : ...) outs(%p : ...) {...} {
^bb0(%x: !tile, %y: !tile):
  %0 = ttl.tile_exp %x : !tile
  ttl.yield %0 : !tile
}
ttl.compute ins(%a : ...) outs(%q : ...) {...} {
^bb0(%x: !tile, %y: !tile):
  %0 = ttl.tile_exp %x : !tile
  %1 = ttl.tile_neg %0 : !tile
  ttl.yield %1 : !tile
}
```
"""

from __future__ import annotations

from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.transforms.rewriting import insert_before
from tlx_xdsl.ttl.dialects import ttl


def split_outputs(compute: ttl.ComputeOp) -> list[ttl.ComputeOp]:
    """Replace a compute by one for each of its outputs, in their order."""
    parts = [insert_before(compute, _part(compute, number)) for number in range(len(compute.outputs))]
    Rewriter.erase_op(compute)
    return parts


def _part(compute: ttl.ComputeOp, output: int) -> ttl.ComputeOp:
    """The compute of one output."""
    old = compute.body.block
    end = old.last_op
    assert isinstance(end, ttl.YieldOp), "checked by the verifier"
    needed = _needed(end.tiles[output])
    kept = [number for number, argument in enumerate(old.args) if argument in needed]
    inputs = [number for number in kept if number < len(compute.inputs)]
    operands = [*inputs, len(compute.inputs) + output]
    block = Block(arg_types=[old.args[number].type for number in operands])
    values: dict[SSAValue, SSAValue] = dict(zip((old.args[number] for number in operands), block.args, strict=True))
    for op in old.ops:
        if any(result in needed for result in op.results):
            block.add_op(clone := op.clone(values))
            clone.location = op.location
    block.add_op(yielded := ttl.YieldOp(values[end.tiles[output]]))
    yielded.location = end.location
    return ttl.ComputeOp(
        [compute.inputs[number] for number in inputs],
        [compute.outputs[output]],
        Region(block),
        [compute.indexing_maps.data[number] for number in operands],
        list(compute.iterator_types),
        accumulate=compute.accumulate is not None,
        first=compute.first,
    )


def _needed(value: SSAValue) -> set[SSAValue]:
    """The values that `value` is made of, and itself."""
    found: set[SSAValue] = set()
    todo = [value]
    while todo:
        if (each := todo.pop()) not in found:
            found.add(each)
            todo += each.owner.operands if isinstance(each.owner, ttl.TileOp) else []
    return found
