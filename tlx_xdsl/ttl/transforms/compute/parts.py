"""Parts of a `ttl.compute`: some of its operations and outputs, as one of its own.

A `ttl.compute` of several outputs can be one for each: what they have in common is computed again, in fewer registers.

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

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Block, BlockArgument, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import Rewriter

from tlx_xdsl.transforms.rewriting import insert_before
from tlx_xdsl.ttl.dialects import ttl


def split_outputs(compute: ttl.ComputeOp) -> list[ttl.ComputeOp]:
    """Replace a compute by one for each of its outputs, in their order."""
    found: list[ttl.ComputeOp] = []
    for value, view in zip(yielded(compute), compute.outputs, strict=True):
        needed = made_for([value])
        ops = [op for op in tile_ops(compute) if op.result in needed]
        found.append(insert_before(compute, part_of(compute, ops, [(value, view)])))
    Rewriter.erase_op(compute)
    return found


def part_of(
    compute: ttl.ComputeOp,
    ops: Iterable[ttl.TileOp],
    outputs: Sequence[tuple[SSAValue, SSAValue]],
    kept: Mapping[SSAValue, SSAValue] | None = None,
) -> ttl.ComputeOp:
    """The compute with only these operations, which writes tiles of its body to views.

    `kept` has the views of what other parts have made. A view that is no output of the compute has one tile for each
    run of its loops.
    """
    old = compute.body.block
    loops = len(compute.iterator_types)
    everywhere = AffineMapAttr(AffineMap.identity(loops))
    views = [*compute.inputs, *compute.outputs]
    maps = {view: compute.indexing_maps.data[len(compute.inputs) + i] for i, view in enumerate(compute.outputs)}
    block = Block(arg_types=[ttl.tile_of(view.type) for _, view in outputs])
    values: dict[SSAValue, SSAValue] = {
        old.args[views.index(view)]: block.args[number]
        for number, (_, view) in enumerate(outputs)
        if view in compute.outputs
    }
    inputs: list[tuple[SSAValue, AffineMapAttr]] = []

    def read(value: SSAValue) -> None:
        if value in values:
            return
        if isinstance(value, BlockArgument):
            inputs.append((views[value.index], compute.indexing_maps.data[value.index]))
        else:
            assert kept is not None, "what is not made here was kept"
            inputs.append((kept[value], everywhere))
        values[value] = block.insert_arg(ttl.tile_of(inputs[-1][0].type), len(inputs) - 1)

    for op in ops:
        for operand in op.operands:
            read(operand)
        block.add_op(clone := op.clone(values))
        clone.location = op.location
    for value, _ in outputs:
        read(value)
    block.add_op(end := ttl.YieldOp(*(values[value] for value, _ in outputs)))
    end.location = compute.location
    is_last = any(view in compute.outputs for _, view in outputs)
    return ttl.ComputeOp(
        [view for view, _ in inputs],
        [view for _, view in outputs],
        Region(block),
        [*(map_ for _, map_ in inputs), *(maps.get(view, everywhere) for _, view in outputs)],
        list(compute.iterator_types),
        accumulate=is_last and compute.accumulate is not None,
        first=compute.first if is_last else None,
    )


def tile_ops(compute: ttl.ComputeOp) -> list[ttl.TileOp]:
    """The operations of the body."""
    return [op for op in compute.body.block.ops if isinstance(op, ttl.TileOp)]


def yielded(compute: ttl.ComputeOp) -> Sequence[SSAValue]:
    """The tiles of the body that are its outputs."""
    end = compute.body.block.last_op
    assert isinstance(end, ttl.YieldOp), "checked by the verifier"
    return tuple(end.tiles)


def made_for(values: Iterable[SSAValue]) -> set[SSAValue]:
    """The values with all that they are made of."""
    found: set[SSAValue] = set()
    todo = [*values]
    while todo:
        if (each := todo.pop()) not in found:
            found.add(each)
            todo += each.owner.operands if isinstance(each.owner, ttl.TileOp) else []
    return found
