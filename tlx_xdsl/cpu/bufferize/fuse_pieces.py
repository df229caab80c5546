"""`linalg-fuse-pieces`: what reads a tile that was loaded in pieces is done piece by piece.

Before, for a tile `%a` of an image whose rows are the pieces, of which the mask leaves the first `%n` elements:
```mlir
linalg.fill ins(%zero : f32) outs(%a : memref<64xf32>)
scf.while (%p = %c0) : (index) -> index { ... cmpi slt, %p, %n ... } do {
^bb0(%p: index):
  ... %at, %length                                       // from the row and the column of %p
  %from = memref.reinterpret_cast %x to offset: [%at], sizes: [%length], strides: [1] : ...
  %to = memref.subview %a[%p] [%length] [1] : ...
  memref.copy %from, %to : ...
  scf.yield %next : index
}
linalg.generic {...} ins(%a, %sum : memref<64xf32>, memref<64xf32>) outs(%sum : memref<64xf32>) { ... }
```
After:
```mlir
scf.while (%p = %c0) : (index) -> index { ... } do {
^bb0(%p: index):
  ...
  %piece = memref.alloc() : memref<64xf32>
  %to = memref.subview %piece[0] [%length] [1] : ...
  memref.copy %from, %to : ...
  linalg.generic {...} ins(%to, %sum[%p] [%length] : ...) outs(%sum[%p] [%length] : ...) { ... }
  scf.yield %next : index
}
scf.if %some_are_left { linalg.generic {...} ins(%sum[%n] [...] : ...) outs(%sum[%n] [...] : ...) { ... } }
```
where the last nest has `%zero` instead of elements of `%a`. The copy of a piece can then be left out
(`codegen/forwarding.py`). Several tiles of one nest go together, each piece as long as the shortest of theirs. It is
done where nothing but the program's own memory is written meanwhile, and takes time that is linear in the operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects import arith as upstream, func, memref as upstream_memref
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, i1
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import arith, linalg, memref
from tlx_xdsl.dialects.scf import WhileOp
from tlx_xdsl.transforms.rewriting import Pass, constant, constant_integer, ops_of

from ..codegen.forwarding import PURE, buffer_of, is_pure_inside, may_write
from ..linalg.emitter import INDEX, Emitter, Index
from ..linalg.scalars import Scalars


class FusePiecesPass(Pass):
    """Move loop nests into the loops over pieces of what they read."""

    name = "linalg-fuse-pieces"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for function in ops_of(op, func.FuncOp):
            if not function.body.blocks:
                continue
            scalars: Scalars | None = None
            for nest in ops_of(function, linalg.GenericOp):
                if tiles := _tiles(nest):
                    scalars = scalars or Scalars(function, INDEX)
                    _fuse(nest, tiles, Emitter(scalars, nest))


@dataclass(frozen=True)
class Tile:
    """A buffer that a loop over pieces fills, and that one nest reads."""

    buffer: SSAValue
    fill: linalg.FillOp | None
    """What the elements outside of the pieces are."""
    loop: WhileOp
    copy: memref.CopyOp
    view: upstream_memref.SubviewOp
    """The part of the buffer that a piece is copied to: as long as the piece, or empty."""
    length: SSAValue
    """Positions from one piece to the next."""
    low: SSAValue
    high: SSAValue
    """The first position, and the one after the last."""

    @property
    def bounds(self) -> tuple[object, object]:
        """Numbers where they are known, else equal for equal sums."""
        return _form(self.low), _form(self.high)


def _form(value: SSAValue) -> object:
    if isinstance(value.owner, upstream.AddiOp):
        return _form(value.owner.lhs), _form(value.owner.rhs)
    number = constant_integer(value)
    return value if number is None else number


# --- what can be fused -----------------------------------------------------------------------------------------------


def _tiles(nest: linalg.GenericOp) -> list[Tile]:
    """The tiles that can be read piece by piece; all have the same first and last positions."""
    size = _size(nest)
    if size is None:
        return []
    found: list[Tile] = []
    for value in dict.fromkeys(nest.inputs):
        tile = _tile(value, nest)
        if tile is None or (found and tile.bounds != found[0].bounds):
            continue
        if tile.fill is not None or tile.bounds == (0, size):
            found.append(tile)
    # From the first tile on that something is written after.
    loops = {tile.loop for tile in found}
    fills = {tile.fill for tile in found}
    op: Operation | None = nest.prev_op
    kept: set[Operation] = set()
    while op is not None and len(kept) < len(loops):
        if op in loops:
            kept.add(op)
        elif op not in fills and may_write(op):
            break
        op = op.prev_op
    return [tile for tile in found if tile.loop in kept]


def _size(nest: linalg.GenericOp) -> int | None:
    """The iterations of a nest over one dimension of buffers of the program's own; None for others."""
    if nest.results or len(nest.iterator_types) != 1 or any(kind != linalg.PARALLEL for kind in nest.iterator_types):
        return None
    if not is_pure_inside(nest) or any(op.name == "linalg.index" for op in nest.body.block.ops):
        return None
    sizes: set[int | None] = set()
    for value, map_ in zip(nest.operands, nest.indexing_maps, strict=True):
        if not memref.is_memref(value.type):
            continue
        if map_.data.results:
            if str(map_.data) != "(d0) -> (d0)":
                return None
            sizes |= {*memref.sizes_of(value.type)}
    if any(buffer_of(value) is not value for value in nest.outputs):
        return None
    return sizes.pop() if len(sizes) == 1 else None


def _tile(buffer: SSAValue, nest: linalg.GenericOp) -> Tile | None:
    """The tile that an input is, if the loop over its pieces only computes where they lie."""
    if buffer_of(buffer) is not buffer or buffer.owner.parent is not nest.parent:  # pyright: ignore
        return None
    users = [use.operation for use in buffer.uses if use.operation is not nest]
    views = [user for user in users if isinstance(user, upstream_memref.SubviewOp)]
    fills = [user for user in users if isinstance(user, linalg.FillOp)]
    if len(views) != 1 or len(fills) > 1 or len(users) != len(views) + len(fills) or buffer in nest.outputs:
        return None
    (view,) = views
    loop = view.parent_op()
    if not isinstance(loop, WhileOp) or any(each.parent is not nest.parent for each in (loop, *fills)):
        return None
    if fills and (memref.is_memref(fills[0].inputs[0].type) or not fills[0].is_before_in_block(loop)):
        return None
    copies = [op for op in loop.after_region.block.ops if isinstance(op, memref.CopyOp)]
    condition = loop.before_region.block.first_op
    if not loop.is_before_in_block(nest) or len(copies) != 1 or (length := _walk(loop, view, copies[0])) is None:
        return None
    if not fills and length is not view.sizes[0]:
        return None
    assert isinstance(condition, arith.CmpiOp)
    return Tile(buffer, fills[0] if fills else None, loop, copies[0], view, length, loop.arguments[0], condition.rhs)


def _walk(loop: WhileOp, view: upstream_memref.SubviewOp, copy: memref.CopyOp) -> SSAValue | None:
    """The step of a loop from position to position that copies what lies between, or nothing of it; else None."""
    before, after = loop.before_region.block, loop.after_region.block
    position, end = after.args[0] if len(after.args) == 1 else None, after.last_op
    test, handed = before.first_op, before.last_op
    if not isinstance(test, arith.CmpiOp) or test.predicate_name != "slt" or test.lhs is not before.args[0]:
        return None
    if test.next_op is not handed or handed is None or list(handed.operands) != [test.result, before.args[0]]:
        return None
    if isinstance(test.rhs.owner, Operation) and test.rhs.owner.parent is before:
        return None
    if copy.target is not view.result or list(view.offsets) != [position] or len(view.sizes) != 1 or view.strides:
        return None
    if set(view.static_strides.get_values()) != {1} or end is None or buffer_of(copy.source) is not None:
        return None
    step = end.operands[0].owner
    known = (memref.ReinterpretCastOp, upstream_memref.SubviewOp, memref.CopyOp)
    if not all(op is end or op.name in PURE or isinstance(op, known) for op in after.ops):
        return None
    if not isinstance(step, upstream.AddiOp) or step.lhs is not position:
        return None
    size = view.sizes[0]
    if isinstance(size.owner, arith.SelectOp) and constant_integer(size.owner.operands[2]) == 0:
        size = size.owner.operands[1]
    return size if step.rhs is size else None


# --- rewriting -------------------------------------------------------------------------------------------------------


def _fuse(nest: linalg.GenericOp, tiles: Sequence[Tile], emit: Emitter) -> None:
    first = tiles[0]
    size = _size(nest)
    assert size is not None
    low, high = first.low, first.high
    with emit.chunks(low, high) as (position, length):
        left: Index | None = None
        sources: list[tuple[SSAValue, SSAValue, SSAValue]] = []
        made: dict[object, Operation] = {}
        for tile in tiles:
            source, filled, count = _piece(tile, position, made, emit)
            sources.append((source, filled, count))
            left = count if left is None else emit.least(left, count)
        assert left is not None
        length.append(left)
        conditions = [filled.owner.operands[0] for _, filled, _ in sources if isinstance(filled.owner, arith.SelectOp)]
        if conditions:
            # Most pieces lie inside: their nest asks for no element whether it is there.
            all_inside = reduce(lambda a, b: emit.value(upstream.AndIOp(a, b)), dict.fromkeys(conditions))
            with emit.when(all_inside):
                _read(nest, tiles, [(source, count, count) for source, _, count in sources], position, left, emit)
            some_outside = emit.value(upstream.XOrIOp(all_inside, emit.value(constant(1, i1))))
            with emit.when(some_outside):
                _read(nest, tiles, sources, position, left, emit)
        else:
            _read(nest, tiles, sources, position, left, emit)
    if any(tile.fill is not None for tile in tiles) and first.bounds != (0, size):
        numbers = {tile.buffer: tile.fill.inputs[0] for tile in tiles if tile.fill is not None}
        for begin, end in ((0, low), (high, size)):
            count = emit.minus(end, begin)
            if constant_integer(low) == 0 and begin == 0:
                continue
            some = emit.value(arith.CmpiOp("sgt", emit.operand(count), emit.operand(0)))
            with emit.when(some):
                emit.add(_nest(nest, {}, numbers, begin, count, emit))
    for op in (nest, *(tile.loop for tile in tiles), *(tile.fill for tile in tiles if tile.fill is not None)):
        op.detach()
        op.erase()
    for tile in tiles:
        owner = tile.buffer.owner
        assert isinstance(owner, Operation)
        owner.detach()
        owner.erase()


def _read(
    nest: linalg.GenericOp,
    tiles: Sequence[Tile],
    sources: Sequence[tuple[SSAValue, SSAValue, SSAValue]],
    position: SSAValue,
    left: Index,
    emit: Emitter,
) -> None:
    """Copy the pieces of all tiles, and do the nest for them."""
    size = _size(nest)
    assert size is not None
    given: dict[SSAValue, SSAValue] = {}
    for tile, (source, filled, count) in zip(tiles, sources, strict=True):
        piece = emit.buffer([size], memref.element_of(tile.buffer.type))
        target = given[tile.buffer] = emit.part(piece, [0], [left])
        held = left if filled is count else emit.least(filled, left)
        if tile.fill is not None and filled is not count:
            emit.add(linalg.FillOp([tile.fill.inputs[0]], [target], res=()))
            target = emit.part(piece, [0], [held])
        emit.add(memref.CopyOp(emit.part(source, [0], [held]), target))
    emit.add(_nest(nest, given, {}, position, left, emit))


def _piece(
    tile: Tile, position: SSAValue, made: dict[object, Operation], emit: Emitter
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """The memory of a tile's piece at a position, its elements, and positions to the next piece.

    What was `made` for another tile is not computed again.
    """
    block = tile.loop.after_region.block
    values: dict[SSAValue, SSAValue] = {block.args[0]: position}
    for op in block.ops:
        if op in (tile.view, tile.copy, block.last_op):
            continue
        operands = tuple(values.get(each, each) for each in op.operands)
        key = (op.name, operands, *op.properties.items(), *op.result_types)
        if (known := made.get(key)) is None:
            known = made[key] = emit.add(op.clone(values))
        values |= dict(zip(op.results, known.results, strict=True))
    source, size, length = (values.get(each, each) for each in (tile.copy.source, tile.view.sizes[0], tile.length))
    return source, size, length


def _nest(
    nest: linalg.GenericOp,
    given: dict[SSAValue, SSAValue],
    numbers: dict[SSAValue, SSAValue],
    begin: Index,
    count: Index,
    emit: Emitter,
) -> linalg.GenericOp:
    """The nest for some positions, with other memory or with numbers for some of its inputs."""
    region = nest.body.clone()
    block = region.block
    inputs: list[SSAValue] = []
    maps = list(nest.indexing_maps)
    kept: list[int] = []
    for place, value in enumerate(nest.inputs):
        if (number := numbers.get(value)) is not None:
            block.args[place].replace_all_uses_with(number)
            continue
        kept.append(place)
        inputs.append(given.get(value) or _part(value, maps[place].data.results, begin, count, emit))
    outputs = [_part(value, (0,), begin, count, emit) for value in nest.outputs]
    for place in reversed(range(len(nest.inputs))):
        if place not in kept:
            block.erase_arg(block.args[place])
    maps = [maps[place] for place in kept] + maps[len(nest.inputs) :]
    return linalg.GenericOp(inputs, outputs, region, ArrayAttr(maps), nest.iterator_types)


def _part(value: SSAValue, results: Sequence[object], begin: Index, count: Index, emit: Emitter) -> SSAValue:
    if not memref.is_memref(value.type) or not results:
        return value
    return emit.part(value, [begin], [count])
