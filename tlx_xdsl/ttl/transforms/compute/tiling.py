"""Sub-blocks of `linalg.generic` operations on tiles: as many tiles at once as there are registers for.

Before:
```mlir
linalg.generic {...} ins(%a : memref<2x8x!tile>) outs(%b : memref<2x8x!tile>) attrs = {ttl.unroll = 4 : i32, ...} {...}
```
After:
```mlir
affine.for %i = 0 to 2 {
  affine.for %j = 0 to 8 step 4 {
    %0 = memref.subview %a[%i, %j] [1, 4] [1, 1] : memref<2x8x!tile> to memref<1x4x!tile, strided<[8, 1], offset: ?>>
    %1 = memref.subview %b[%i, %j] [1, 4] [1, 1] : memref<2x8x!tile> to memref<1x4x!tile, strided<[8, 1], offset: ?>>
    linalg.generic {...} ins(%0 : ...) outs(%1 : ...) attrs = {...} {...}
  }
}
```
Reductions are not cut, as their tiles of the result stay in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple, TypeVar

from xdsl.dialects import affine
from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineMapAttr, IndexType, IntegerAttr, UnitAttr
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.dialects.utils import split_dynamic_index_list
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import linalg, memref
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import insert_before, replace
from tlx_xdsl.ttl.analysis.multitile import Pieces, sub_block
from tlx_xdsl.ttl.dialects import ttl

# `linalg.generic` operations whose bodies compute with tiles.
#
# What `linalg` has no place for is in attributes: `ttl.dst_per_tile`, `ttl.unroll`, `ttl.capacity`, `ttl.accumulate`.
# The condition `first` of an accumulation is an input that is no block. Where a loop is a reduction, the tile of the
# output is that of the run before, and zero (the smallest number for a maximum) in the first one, not what is in
# memory.

DST_PER_TILE, UNROLL, CAPACITY, ACCUMULATE = "ttl.dst_per_tile", "ttl.unroll", "ttl.capacity", "ttl.accumulate"


def to_generic(compute: ttl.ComputeOp) -> linalg.GenericOp:
    """Replace a `ttl.compute` by a `linalg.generic`.

    Raises CompilationError when registers were not assigned.
    """
    if compute.dst_per_tile is None or compute.unroll is None:
        raise error_at(compute, "a ttl.compute without destination registers: run ttl-assign-dst-registers before")
    inputs, maps = list(compute.inputs), list(compute.indexing_maps)
    body = compute.detach_region(compute.body)
    end = body.block.last_op
    assert isinstance(end, ttl.YieldOp), "checked by the verifier"
    replace(end, linalg.YieldOp(*end.tiles))
    if compute.first is not None:
        body.block.insert_arg(compute.first.type, len(inputs))
        maps.insert(len(inputs), AffineMapAttr(AffineMap(len(compute.iterator_types), 0, ())))
        inputs.append(compute.first)
    generic = linalg.GenericOp(inputs, compute.outputs, body, maps, list(compute.iterator_types))
    numbers = {DST_PER_TILE: compute.dst_per_tile, UNROLL: compute.unroll, CAPACITY: compute.capacity}
    generic.attributes |= {name: value for name, value in numbers.items() if value is not None}
    if compute.accumulate is not None:
        generic.attributes[ACCUMULATE] = UnitAttr()
    return replace(compute, generic)


def is_of_tiles(generic: linalg.GenericOp) -> bool:
    """Return whether it was a `ttl.compute`."""
    return DST_PER_TILE in generic.attributes


def number_of(generic: linalg.GenericOp, name: str) -> int:
    """Return a number of registers or tiles."""
    attribute = generic.attributes[name]
    assert isinstance(attribute, IntegerAttr)
    return attribute.value.data


def loops_of(op: ttl.ComputeOp | linalg.GenericOp) -> tuple[int, ...]:
    """Return the trip counts of a compute's loops, from the shapes of blocks and the maps from loops to places."""
    found: dict[int, int] = {}
    for map_, block in zip(op.indexing_maps, [*op.inputs, *op.outputs], strict=True):
        # A condition has a map without results.
        places = map_.data.results
        for expr, size in zip(places, ttl.block_shape(block.type) if places else (), strict=True):
            if isinstance(expr, AffineDimExpr):
                found[expr.position] = size
    return tuple(found.get(loop, 1) for loop in range(len(op.iterator_types)))


def parallel(op: ttl.ComputeOp | linalg.GenericOp) -> list[int]:
    """The numbers of the loops whose runs are independent."""
    return [number for number, kind in enumerate(op.iterator_types) if kind.data is IteratorType.PARALLEL]


def blocks_of(generic: linalg.GenericOp) -> tuple[Sequence[SSAValue], Sequence[AffineMapAttr]]:
    """The operands that are blocks, and their maps."""
    pairs = zip([*generic.inputs, *generic.outputs], generic.indexing_maps, strict=True)
    blocks, maps = zip(*(pair for pair in pairs if memref.is_memref(pair[0].type)), strict=True)
    return blocks, maps


def operand_of(argument: BlockArgument) -> int:
    """The number of the operand whose tile an argument of the body is."""
    return argument.index


def first_of(generic: linalg.GenericOp) -> SSAValue | None:
    """The condition under which an accumulation overwrites."""
    return next((value for value in generic.inputs if not memref.is_memref(value.type)), None)


def tile_ops(generic: linalg.GenericOp) -> list[ttl.TileOp]:
    """The operations of the body."""
    return [op for op in generic.body.block.ops if isinstance(op, ttl.TileOp)]


TILED = "ttl.tiled"
"""Attribute of a sub-block."""
StructuredT = TypeVar("StructuredT", ttl.ComputeOp, linalg.GenericOp)


class Range(NamedTuple):
    """A part of a loop: where it begins, and how long it is."""

    begin: SSAValue | int
    size: int


def tile(generic: linalg.GenericOp) -> list[linalg.GenericOp]:
    """Replace an operation by a nest of loops over sub-blocks; the operations on these, which may be itself."""
    found = [generic] if TILED in generic.attributes else in_pieces(generic, number_of(generic, UNROLL))
    if found != [generic]:
        for each in found:
            each.attributes[TILED] = UnitAttr()
    return found


def in_pieces(generic: StructuredT, tiles: int, *, equal: bool = False) -> list[StructuredT]:
    """Replace an operation by loops over sub-blocks of at most so many tiles, all `equal` or not; those on these."""
    sizes = loops_of(generic)
    cut = parallel(generic)
    pieces = pieces_of(generic, tiles, equal=equal)
    if all(each.number == 1 for each in pieces):
        return [generic]
    found: list[StructuredT] = []
    for spans in product(*(each.spans for each in pieces)):
        ranges = [Range(0, size) for size in sizes]
        anchor: Operation = generic
        for loop, (begin, end, step) in zip(cut, spans, strict=True):
            ranges[loop] = Range(begin, step)
            if end - begin > step:
                anchor, index = _loop(anchor, generic, begin, end, step)
                ranges[loop] = Range(index, step)
        found.append(_sub_block(generic, anchor, ranges))
    Rewriter.erase_op(generic)
    return found


def pieces_of(generic: ttl.ComputeOp | linalg.GenericOp, tiles: int, *, equal: bool = False) -> tuple[Pieces, ...]:
    """Return how each parallel loop is cut for sub-blocks of at most so many tiles."""
    sizes = loops_of(generic)
    return sub_block([sizes[loop] for loop in parallel(generic)], tiles, equal=equal)


def _loop(anchor: Operation, generic: Operation, begin: int, end: int, step: int) -> tuple[Operation, SSAValue]:
    """A loop before `anchor`: the end of its body, and its index."""
    last = affine.YieldOp.get()
    last.location = generic.location
    body = Block([last], arg_types=[IndexType()])
    body.args[0].location = generic.location
    loop = affine.ForOp.from_region([], [], [], [], begin, end, Region(body), step)
    insert_before(anchor, loop, located_at=generic)
    return last, body.args[0]


def _sub_block(generic: StructuredT, anchor: Operation, ranges: list[Range]) -> StructuredT:
    """The operation on a part of each operand, before `anchor`."""
    clone = generic.clone()
    insert_before(anchor, clone, located_at=generic)
    for number, map_ in enumerate(generic.indexing_maps):
        if memref.is_memref(generic.operands[number].type):
            clone.operands[number] = _part(generic.operands[number], map_.data, ranges, clone)
    return clone


def _part(whole: SSAValue, map_: AffineMap, ranges: list[Range], user: Operation) -> SSAValue:
    """The part of a block that belongs to parts of the loops."""
    boxes = [ranges[expr.position] if isinstance(expr, AffineDimExpr) else Range(0, 1) for expr in map_.results]
    offsets, sizes = [box.begin for box in boxes], [box.size for box in boxes]
    if sizes == list(memref.ranked(whole.type).get_shape()):
        return whole
    ones = [1] * len(sizes)
    type_ = memref.SubviewOp.infer_result_type(memref.ranked(whole.type), offsets, sizes, ones)
    static, dynamic = split_dynamic_index_list(offsets, DYNAMIC_INDEX)
    view = memref.SubviewOp(whole, dynamic, [], [], static, sizes, ones, type_)
    return insert_before(user, view).result
