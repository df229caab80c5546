"""`ttl.compute` operations of single tiles: a `ttl.pack_tile`, and what its tile is computed from.

```mlir
%x = ttl.get_tile %a, %i : memref<2x2x!tile> -> !tile
%y = ttl.tile_exp %x : !tile
ttl.pack_tile %y, %o, %j : !tile, memref<2x2x!tile>
```
is
```mlir
%0 = memref.subview %a[%row, %column] [1, 1] [1, 1] : ...
%1 = memref.subview %o[%row_2, %column_2] [1, 1] [1, 1] : ...
ttl.compute ins(%0 : ...) outs(%1 : ...) {...} {
^bb0(%x: !tile, %before: !tile):
  %y = ttl.tile_exp %x : !tile
  ttl.yield %y : !tile
}
```
Registers are taken for one pack, so that what several packs use is computed for each of them.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineMapAttr, IndexType
from xdsl.dialects.utils import split_dynamic_index_list
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import memref
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import constant, constant_integer, insert_before, replace
from tlx_xdsl.ttl.dialects import ttl

from .chains import PARALLEL, ZERO


def compute_of_pack(pack: ttl.PackTileOp) -> ttl.ComputeOp:
    """Replace a pack by a computation of one tile.

    Raises CompilationError for a tile that is not computed in the block of operations of the pack, element by element.
    """
    ops = _needed(pack)
    gets = [op for op in ops if isinstance(op, ttl.GetTileOp)]
    views = [_one_tile(op.view, op.index, pack) for op in gets]
    output = _one_tile(pack.view, pack.index, pack)
    body = Block(arg_types=[ttl.tile_of(each.type) for each in (*views, output)])
    known: dict[SSAValue, SSAValue] = {op.tile: body.args[number] for number, op in enumerate(gets)}
    for op in ops:
        if isinstance(op, ttl.TileOp):
            clone = op.clone(known)
            clone.location = op.location
            body.add_op(clone)
    body.add_op(ttl.YieldOp(known[pack.tile]))
    loops = len(ttl.block_shape(output.type))
    place = tuple(AffineDimExpr(dim) for dim in range(loops))
    maps = [*((ZERO,) * len(ttl.block_shape(view.type)) for view in views), place]
    made = ttl.ComputeOp(
        views,
        [output],
        Region(body),
        [AffineMapAttr(AffineMap(loops, 0, exprs)) for exprs in maps],
        [PARALLEL] * loops,
    )
    replace(pack, made)
    for op in reversed(ops):
        if not any(result.first_use for result in op.results):
            Rewriter.erase_op(op)
    return made


def _needed(pack: ttl.PackTileOp) -> list[Operation]:
    """The operations that a tile is computed by, in their order."""
    found: set[Operation] = set()
    pending: list[SSAValue] = [pack.tile]
    while pending:
        op = pending.pop().owner
        if not isinstance(op, ttl.GetTileOp | ttl.TileOp) or op.parent is not pack.parent:
            raise error_at(pack, "a tile that is packed must come from a ttl.get_tile in the same block of operations")
        if isinstance(op, ttl.TileAccumulatingOp):
            raise error_at(op, f"'{op.name}' adds to what a register has: use it in a ttl.compute")
        if op in found:
            continue
        found.add(op)
        if isinstance(op, ttl.TileOp):
            for number in op.CB_OPERANDS:
                if not isinstance(op.operands[number].owner, ttl.GetTileOp):
                    raise error_at(op, f"'{op.name}' reads its tile from a circular buffer: pack it to one before")
            pending += op.operands
    block = pack.parent
    assert block is not None
    return sorted(found, key=block.get_operation_index)


def _one_tile(view: SSAValue, index: SSAValue, user: Operation) -> SSAValue:
    """The part of a block that is one of its tiles."""
    shape = ttl.block_shape(view.type)
    ones = [1] * len(shape)
    if [*shape] == ones:
        return view
    offsets: list[SSAValue | int] = []
    left: SSAValue | int = number if (number := constant_integer(index)) is not None else index
    for size in reversed(shape[1:]):
        left, offset = _divided(left, size, user)
        offsets.insert(0, offset)
    offsets.insert(0, left)
    static, dynamic = split_dynamic_index_list(offsets, DYNAMIC_INDEX)
    type_ = memref.SubviewOp.infer_result_type(memref.ranked(view.type), offsets, ones, ones)
    return insert_before(user, memref.SubviewOp(view, dynamic, [], [], static, ones, ones, type_)).result


def _divided(number: SSAValue | int, size: int, user: Operation) -> tuple[SSAValue | int, SSAValue | int]:
    """Quotient and remainder."""
    if isinstance(number, int):
        return divmod(number, size)
    divisor = insert_before(user, constant(size, IndexType())).result
    quotient = insert_before(user, arith.DivSIOp(number, divisor)).result
    return quotient, insert_before(user, arith.RemSIOp(number, divisor)).result
