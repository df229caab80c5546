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

from itertools import product
from typing import NamedTuple

from xdsl.dialects import affine
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, UnitAttr
from xdsl.dialects.utils import split_dynamic_index_list
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import linalg, memref
from tlx_xdsl.dialects.memref import is_memref
from tlx_xdsl.transforms.rewriting import insert_before
from tlx_xdsl.ttl.analysis.multitile import sub_block

from .structured import UNROLL, loops_of, number_of, parallel

TILED = "ttl.tiled"
"""Attribute of a sub-block."""


class Range(NamedTuple):
    """A part of a loop: where it begins, and how long it is."""

    begin: SSAValue | int
    size: int


def tile(generic: linalg.GenericOp) -> list[linalg.GenericOp]:
    """Replace an operation by a nest of loops over sub-blocks; the operations on these, which may be itself."""
    sizes = loops_of(generic)
    cut = parallel(generic)
    pieces = sub_block([sizes[loop] for loop in cut], number_of(generic, UNROLL))
    if TILED in generic.attributes or all(each.number == 1 for each in pieces):
        return [generic]
    found: list[linalg.GenericOp] = []
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


def _loop(anchor: Operation, generic: linalg.GenericOp, begin: int, end: int, step: int) -> tuple[Operation, SSAValue]:
    """A loop before `anchor`: the end of its body, and its index."""
    last = affine.YieldOp.get()
    last.location = generic.location
    body = Block([last], arg_types=[IndexType()])
    body.args[0].location = generic.location
    loop = affine.ForOp.from_region([], [], [], [], begin, end, Region(body), step)
    insert_before(anchor, loop, located_at=generic)
    return last, body.args[0]


def _sub_block(generic: linalg.GenericOp, anchor: Operation, ranges: list[Range]) -> linalg.GenericOp:
    """The operation on a part of each operand, before `anchor`."""
    clone = generic.clone()
    clone.attributes[TILED] = UnitAttr()
    insert_before(anchor, clone, located_at=generic)
    for number, map_ in enumerate(generic.indexing_maps):
        if is_memref(generic.operands[number].type):
            clone.operands[number] = _part(generic.operands[number], map_.data, ranges, clone)
    return clone


def _part(whole: SSAValue, map_: AffineMap, ranges: list[Range], user: linalg.GenericOp) -> SSAValue:
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
