"""`linalg-fuse-pieces`: what reads a tile that was loaded in pieces is done piece by piece.

Before, for a tile `%a` of an image whose rows are the pieces, of which the mask leaves the first `%n` elements:
```mlir
linalg.fill ins(%zero : f32) outs(%a : memref<64xf32>)
scf.while (%p = %c0) : (index) -> index { ... cmpi slt, %p, %n ... } do {
^bb0(%p: index):
  ... %at, %first, %count, %length                       // from the row and the column of %p
  %from = memref.reinterpret_cast %x to offset: [%at], sizes: [%count], strides: [1] : ...
  %to = memref.subview %a[%start] [%count] [1] : ...     // %p + %first
  memref.copy %from, %to : ...
  scf.yield %next : index                                // %p + %length
}
linalg.generic {...} ins(%a, %sum : memref<64xf32>, memref<64xf32>) outs(%sum : memref<64xf32>) { ... }
```
After:
```mlir
scf.while (%p = %c0) : (index) -> index { ... } do {
^bb0(%p: index):
  ...
  %piece = memref.alloc() : memref<64xf32>
  %to = memref.subview %piece[0] [%count] [1] : ...
  memref.copy %from, %to : ...
  linalg.generic {...} ins(%to, %sum[%start] [%count] : ...) outs(%sum[%start] [%count] : ...) { ... }
  ...                                                    // and for the positions of the piece before and after these
  scf.yield %next : index
}
scf.if %some_are_left { linalg.generic {...} ins(%sum[%n] [...] : ...) outs(%sum[%n] [...] : ...) { ... } }
```
where the last nest has `%zero` instead of elements of `%a`, as those before it have for positions that the mask leaves
out. The copy of a piece can then be left out (`codegen/forwarding.py`). Several tiles of one nest go together, each
piece as long as the shortest of theirs, and most positions are those that all tiles have. It is done where nothing but
the program's own memory is written meanwhile, and takes time that is linear in the operations. A loop around the pieces
goes into them (`interchange_pieces.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects import arith as upstream, func, memref as upstream_memref
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import arith, linalg, memref
from tlx_xdsl.dialects.scf import WhileOp
from tlx_xdsl.transforms.rewriting import Pass, constant_integer, ops_of

from ..codegen.forwarding import FEW, PURE, buffer_of, is_pure_inside, may_write
from ..linalg.emitter import INDEX, Emitter, Index
from ..linalg.scalars import Scalars
from .interchange_pieces import interchange


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
                    written = [*nest.outputs]
                    walk, rest = _fuse(nest, tiles, Emitter(scalars, nest))
                    interchange(walk, rest, written)


@dataclass(frozen=True)
class Piece:
    """The positions of a piece, from its beginning."""

    source: SSAValue
    """The memory of those that are copied, or of all."""
    length: SSAValue
    """Positions to the next piece."""
    first: SSAValue | None
    """The first position that is copied; None: 0. It is at most the length."""
    end: SSAValue
    """The one after the last, at most the length, which it is where nothing else is known."""
    condition: SSAValue | None
    """If it does not hold, nothing is copied."""

    @property
    def is_whole(self) -> bool:
        """True if all of it is copied."""
        return self.first is None and self.end is self.length and self.condition is None


@dataclass(frozen=True)
class Tile:
    """A buffer that a loop over pieces fills, and that one nest reads."""

    buffer: SSAValue
    fill: linalg.FillOp | None
    """What the elements outside of the pieces are."""
    loop: WhileOp
    copy: memref.CopyOp
    view: upstream_memref.SubviewOp
    """The part of the buffer that a piece is copied to."""
    piece: Piece
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
    if not loop.is_before_in_block(nest) or len(copies) != 1 or (piece := _walk(loop, view, copies[0])) is None:
        return None
    if not fills and not piece.is_whole:
        return None
    assert isinstance(condition, arith.CmpiOp)
    return Tile(buffer, fills[0] if fills else None, loop, copies[0], view, piece, loop.arguments[0], condition.rhs)


def _walk(loop: WhileOp, view: upstream_memref.SubviewOp, copy: memref.CopyOp) -> Piece | None:
    """The piece of a loop from position to position that copies what lies between, or a part of it; else None."""
    before, after = loop.before_region.block, loop.after_region.block
    if len(after.args) != 1:
        return None
    position, end = after.args[0], after.last_op
    test, handed = before.first_op, before.last_op
    if not isinstance(test, arith.CmpiOp) or test.predicate_name != "slt" or test.lhs is not before.args[0]:
        return None
    if test.next_op is not handed or handed is None or list(handed.operands) != [test.result, before.args[0]]:
        return None
    if isinstance(test.rhs.owner, Operation) and test.rhs.owner.parent is before:
        return None
    if copy.target is not view.result or (len(view.offsets), len(view.sizes), len(view.strides)) != (1, 1, 0):
        return None
    if set(view.static_strides.get_values()) != {1} or end is None or buffer_of(copy.source) is not None:
        return None
    step = end.operands[0].owner
    known = (memref.ReinterpretCastOp, upstream_memref.SubviewOp, memref.CopyOp)
    if not all(op is end or op.name in PURE or isinstance(op, known) for op in after.ops):
        return None
    if not isinstance(step, upstream.AddiOp) or step.lhs is not position:
        return None
    return _copied(copy.source, position, view.offsets[0], view.sizes[0], step.rhs)


def _copied(source: SSAValue, position: SSAValue, start: SSAValue, size: SSAValue, length: SSAValue) -> Piece | None:
    """The part of a piece that lies at `start`, if it is known to be a part (`linalg/pieces.py` says how)."""
    condition: SSAValue | None = None
    if isinstance(choice := size.owner, arith.SelectOp) and constant_integer(choice.operands[2]) == 0:
        condition, size, _ = choice.operands
    first: SSAValue | None = None
    if start is not position:
        if not isinstance(start.owner, upstream.AddiOp) or start.owner.lhs is not position:
            return None
        first = start.owner.rhs
        bounds = _all_of(upstream.MinSIOp, first)
        if length not in bounds or not any(_is_natural(bound) for bound in bounds):
            return None
    if isinstance(size.owner, upstream.MaxSIOp) and _is_natural(size):
        # The other operand is below 0 where the end lies before the first.
        size = next((each for each in size.owner.operands if constant_integer(each) != 0), size)
    elif size is not length and not isinstance(size.owner, upstream.SubiOp):
        return None
    if first is not None:
        if not isinstance(size.owner, upstream.SubiOp) or size.owner.rhs is not first:
            return None
        size = size.owner.lhs
        if _made_of(start).intersection((first, size, length, condition or first)):
            return None
    return Piece(source, length, first, size, condition) if length in _all_of(upstream.MinSIOp, size) else None


def _all_of(kind: type[Operation], value: SSAValue) -> list[SSAValue]:
    """A value, and the operands of operations of one kind that it is made by one on another."""
    inner = value.owner.operands if isinstance(value.owner, kind) else ()
    return [value, *(each for operand in inner for each in _all_of(kind, operand))]


def _made_of(value: SSAValue) -> set[SSAValue]:
    """A value of a block, and what is computed from it there."""
    found = {value}
    assert isinstance(value.owner, Operation) and value.owner.parent is not None
    for op in value.owner.parent.ops:
        if found.intersection(op.operands):
            found.update(op.results)
    return found


def _is_natural(value: SSAValue) -> bool:
    """Return whether a number is the greatest one of 0 and others."""
    return any(constant_integer(each) == 0 for each in _all_of(upstream.MaxSIOp, value))


# --- rewriting -------------------------------------------------------------------------------------------------------


def _fuse(nest: linalg.GenericOp, tiles: Sequence[Tile], emit: Emitter) -> tuple[WhileOp, list[Operation]]:
    """Move a nest into the loop over the pieces; gives that loop, and what is done for positions that are in none."""
    first = tiles[0]
    size = _size(nest)
    assert size is not None
    low, high = first.low, first.high
    with emit.chunks(low, high) as (position, length):
        made: dict[object, Operation] = {}
        pieces = [_piece(tile, position, made, emit) for tile in tiles]
        lengths: dict[Index, None] = dict.fromkeys(piece.length for piece in pieces)
        left = emit.operand(reduce(emit.least, lengths))
        length.append(left)
        _read_piece(_Reader(nest, tiles, pieces, position, emit), left)
    rest: list[Operation] = []
    if any(tile.fill is not None for tile in tiles) and first.bounds != (0, size):
        numbers = {tile.buffer: tile.fill.inputs[0] for tile in tiles if tile.fill is not None}
        for begin, end in ((0, low), (high, size)):
            count = emit.minus(end, begin)
            if constant_integer(low) == 0 and begin == 0:
                continue
            some = emit.value(arith.CmpiOp("sgt", emit.operand(count), emit.operand(0)))
            with emit.when(some):
                rest.append(emit.add(_nest(nest, {}, numbers, begin, count, emit)))
    walk = position.owner.parent_op()
    assert isinstance(walk, WhileOp)
    around = [op for each in rest if (op := each.parent_op()) is not None]
    for op in (nest, *(tile.loop for tile in tiles), *(tile.fill for tile in tiles if tile.fill is not None)):
        op.detach()
        op.erase()
    for tile in tiles:
        owner = tile.buffer.owner
        assert isinstance(owner, Operation)
        owner.detach()
        owner.erase()
    return walk, around


def _read_piece(reader: _Reader, left: SSAValue) -> None:
    """Do the nest for a piece: most of its positions lie inside of all tiles, where no element is asked for whether
    it is there. Those before and after them are few, or all of the piece.
    """
    emit, pieces = reader.emit, reader.pieces
    conditions = [*dict.fromkeys(piece.condition for piece in pieces if piece.condition is not None)]
    firsts = [*dict.fromkeys(piece.first for piece in pieces if piece.first is not None)]
    ends = [*dict.fromkeys(piece.end for piece in pieces if piece.end is not piece.length)]
    begin: Index = reduce(lambda a, b: emit.value(upstream.MaxSIOp(a, b)), firsts) if firsts else 0
    end = reduce(emit.least, ends, left)
    if firsts or ends:
        conditions.append(_is_below(emit, begin, end))
    if not conditions:
        reader.read(reader.span(0, left, is_inside=True))
        return
    is_usual = reduce(lambda a, b: emit.value(upstream.AndIOp(a, b)), conditions)
    # All numbers stand before the branches: a loop around the pieces may go into them (`interchange_pieces.py`).
    before = emit.value(arith.SelectOp(is_usual, emit.operand(begin), left))
    edges = [(reader.span(0, before), _is_below(emit, 0, before))]
    if ends:
        some = emit.value(upstream.AndIOp(is_usual, _is_below(emit, end, left)))
        edges.append((reader.span(end, left), some))
    inside = reader.span(begin, end, is_inside=True)
    with emit.when(is_usual):
        reader.read(inside)
    for span, some in edges:
        with emit.when(some):
            reader.read(span).attributes[FEW] = UnitAttr()


def _is_below(emit: Emitter, left: Index, right: Index) -> SSAValue:
    return emit.value(arith.CmpiOp("slt", emit.operand(left), emit.operand(right)))


@dataclass(frozen=True)
class _Part:
    """The positions among some of a piece that are copied."""

    first: Index
    """Counted from the first of them."""
    count: Index
    is_all: bool


@dataclass(frozen=True)
class _Span:
    """Positions of a piece, and what each tile has of them."""

    begin: Index
    count: Index
    parts: Sequence[_Part]


@dataclass(frozen=True)
class _Reader:
    """Reader of the pieces of all tiles at a position."""

    nest: linalg.GenericOp
    tiles: Sequence[Tile]
    pieces: Sequence[Piece]
    position: SSAValue
    emit: Emitter

    def span(self, begin: Index, end: Index, *, is_inside: bool = False) -> _Span:
        """Find what each tile has of the positions from `begin` to `end`, which is all if they lie inside."""
        emit, count = self.emit, self.emit.minus(end, begin)
        known: dict[object, _Part] = {}
        found: list[_Part] = []
        for piece in self.pieces:
            if is_inside or piece.is_whole:
                found.append(_Part(0, count, is_all=True))
                continue
            key = (piece.first, piece.end, piece.condition)
            if key not in known:
                first: Index = 0
                if piece.first is not None:
                    low = emit.operand(emit.minus(piece.first, begin))
                    first = emit.least(emit.value(upstream.MaxSIOp(low, emit.operand(0))), count)
                held = emit.minus(emit.least(emit.minus(piece.end, begin), count), first)
                held = emit.value(upstream.MaxSIOp(emit.operand(held), emit.operand(0)))
                if piece.condition is not None:
                    held = emit.value(arith.SelectOp(piece.condition, held, emit.operand(0)))
                known[key] = _Part(first, held, is_all=False)
            found.append(known[key])
        return _Span(begin, count, found)

    def read(self, span: _Span) -> Operation:
        """Copy what the tiles have of some positions, and do the nest for these; gives the nest."""
        emit, size = self.emit, _size(self.nest)
        assert size is not None
        given: dict[SSAValue, SSAValue] = {}
        for tile, piece, part in zip(self.tiles, self.pieces, span.parts, strict=True):
            buffer = emit.buffer([size], memref.element_of(tile.buffer.type))
            given[tile.buffer] = emit.part(buffer, [0], [span.count])
            if not part.is_all:
                assert tile.fill is not None, "a tile without one has all elements"
                emit.add(linalg.FillOp([tile.fill.inputs[0]], [given[tile.buffer]], res=()))
            # Two steps, of which the second one is taken back where the source is read as it is.
            source = emit.part(piece.source, [span.begin], [span.count])
            source = emit.part(source, [part.first], [part.count])
            emit.add(memref.CopyOp(source, emit.part(buffer, [part.first], [part.count])))
        return emit.add(_nest(self.nest, given, {}, emit.plus(self.position, span.begin), span.count, emit))


def _piece(tile: Tile, position: SSAValue, made: dict[object, Operation], emit: Emitter) -> Piece:
    """The piece of a tile at a position, whose memory begins there; what was `made` for another is used again."""
    block, piece = tile.loop.after_region.block, tile.piece
    start, size = tile.view.offsets[0], tile.view.sizes[0]
    values: dict[SSAValue, SSAValue] = {block.args[0]: position, start: position}
    for op in block.ops:
        if op in (tile.view, tile.copy, block.last_op, start.owner):
            continue
        if size in op.operands:
            values[size] = values[piece.length]
        operands = tuple(values.get(each, each) for each in op.operands)
        key = (op.name, operands, *op.properties.items(), *op.result_types)
        if (known := made.get(key)) is None:
            known = made[key] = emit.add(op.clone(values))
        values |= dict(zip(op.results, known.results, strict=True))
    source, length, end = (values.get(each, each) for each in (piece.source, piece.length, piece.end))
    first, condition = (each and values.get(each, each) for each in (piece.first, piece.condition))
    return Piece(source, length, first, end, condition)


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
