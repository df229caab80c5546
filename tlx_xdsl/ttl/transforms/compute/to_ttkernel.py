"""Calls of TT-Metalium for a `linalg.generic` on tiles: sub-blocks, each between an acquire and a release.

```mlir
ttkernel.init_sfpu(%a, %o)
affine.for %i = 0 to 4 step 2 {
  ttkernel.tile_regs_acquire()
  ttkernel.copy_tile_init(%a)
  ttkernel.copy_tile(%a, %0, %c0)
  ttkernel.copy_tile(%a, %1, %c1)
  ttkernel.exp_tile_init()
  ttkernel.exp_tile(%c0)
  ttkernel.exp_tile(%c1)
  ttkernel.tile_regs_commit()
  ttkernel.tile_regs_wait()
  ttkernel.pack_tile(%c0, %o, %0)
  ttkernel.pack_tile(%c1, %o, %1)
  ttkernel.tile_regs_release()
}
```
The tiles of a sub-block are independent, so each operation is done for all of them before the next: the hardware is
prepared for it once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, i32
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import linalg, memref
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.ttl.analysis.multitile import in_order
from tlx_xdsl.ttl.analysis.register_sums import Loop, loop_of_sum
from tlx_xdsl.ttl.dialects import ttkernel, ttl

from ..thread_function import Constants, Emitter, Number, Scalar, ThreadFunction
from .tile_calls import call, calls_of
from .tiling import (
    ACCUMULATE,
    DST_PER_TILE,
    TILED,
    UNROLL,
    blocks_of,
    first_of,
    loops_of,
    number_of,
    parallel,
    pieces_of,
    tile,
    tile_ops,
)

STRAIGHT_LINE = 16
"""Tiles that are loaded, or products of two, up to which a sub-block has no loops: as many as registers at most."""


def lower_generic(generic: linalg.GenericOp, thread: ThreadFunction, *, block_calls: bool = True) -> None:
    """Replace a computation with tiles by calls; `block_calls`: those for several tiles, where they do the same."""
    around = _Setup(generic, thread)
    first = _block_product(generic, *_first_sizes(generic)) if block_calls else None
    if ACCUMULATE in generic.attributes and (loop := _loop_of_sum(generic)) is not None:
        _lower_sum(generic, thread, around, loop, first)
        return
    packs_blocks = block_calls and _is_packed_in_order(generic)
    around.begin(thread.emitter(generic), first)
    around.accumulate(thread.emitter(generic))
    # What comes after the sub-blocks is inserted before an operation that stays.
    after = generic.next_op
    assert after is not None, "a block ends in an operation"
    location = generic.location
    for part in tile(generic):
        product_ = None if first is None else _block_product(part, *loops_of(part)[:2])
        _SubBlock(part, thread, product_, packs_blocks=packs_blocks).lower(prepared=first)
    emit = thread.emitter(after)
    emit.location = location
    around.end(emit)


def _loop_of_sum(generic: linalg.GenericOp) -> Loop | None:
    """The loop in which a sum can stay in registers: that has a block which they have place for."""
    is_whole = all(each.number == 1 for each in pieces_of(generic, number_of(generic, UNROLL)))
    return loop_of_sum(generic, first_of(generic)) if is_whole else None


def _lower_sum(
    generic: linalg.GenericOp, thread: ThreadFunction, around: _Setup, loop: Loop, product_: BlockProduct | None
) -> None:
    """Replace an accumulation by calls that add to registers, which are packed after the loop."""
    after = loop.next_op
    assert after is not None, "a block ends in an operation"
    emit = thread.emitter(after)
    emit.location = generic.location
    before = thread.emitter(loop)
    before.location = generic.location
    around.begin(before, product_)
    before.add_op(ttkernel.TileRegsAcquireOp())
    block = _SubBlock(generic, thread, product_, packs_blocks=False)
    block.add()
    for each in (ttkernel.TileRegsCommitOp, ttkernel.TileRegsWaitOp):
        emit.add_op(each())
    adds = first_of(generic) is None
    if adds:
        emit.add_op(ttkernel.PackReconfigL1AccOp(operands=[emit.i32(1)]))
    block.pack(emit)
    if adds:
        emit.add_op(ttkernel.PackReconfigL1AccOp(operands=[emit.i32(0)]))
    emit.add_op(ttkernel.TileRegsReleaseOp())
    Rewriter.erase_op(generic)


class BlockProduct(NamedTuple):
    """Sizes of a product by `matmul_block`: tiles in a row and in a column of the result, and in a row on the left."""

    ct: int
    rt: int
    kt: int

    def prepare(self, buffers: Sequence[SSAValue], emit: Emitter) -> None:
        """Emit what prepares for it."""
        sizes = [emit.i32(each) for each in (0, *self)]
        emit.add_op(ttkernel.MMBlockInitOp(operands=[*buffers, *sizes]))


def _first_sizes(generic: linalg.GenericOp) -> list[int]:
    """The sizes of the first sub-block."""
    if TILED in generic.attributes:
        return [loops_of(generic)[loop] for loop in parallel(generic)]
    return [each.high for each in pieces_of(generic, number_of(generic, UNROLL))]


_PRODUCT_MAPS = [AffineMap(3, 0, tuple(map(AffineDimExpr, dims))) for dims in ((0, 2), (2, 1), (0, 1))]


def _block_product(generic: linalg.GenericOp, *sizes: int) -> BlockProduct | None:
    """The product of blocks that an operation on sub-blocks of these sizes is, if any."""
    ops = tile_ops(generic)
    if len(ops) != 1 or not isinstance(ops[0], ttl.TileMatmulOp) or prod(sizes) == 1:
        return None
    blocks, maps = blocks_of(generic)
    left, right = (memref.strides_of(block.type)[0] for block in blocks[:2])
    if [each.data for each in maps] != _PRODUCT_MAPS or right[-1] != 1 or left[0] is None:
        return None
    rows, columns = sizes
    return BlockProduct(columns, rows, left[0])


def _is_packed_in_order(generic: linalg.GenericOp) -> bool:
    """Return whether all that is written to a reservation are the tiles of a computation, one after the other."""
    view = generic.outputs[0]
    acquire = view.owner
    return (
        isinstance(acquire, ttl.AcquireOp)
        and len(generic.outputs) == 1
        and number_of(generic, DST_PER_TILE) == 1
        and ACCUMULATE not in generic.attributes
        and acquire.parent is generic.parent
        and view.has_one_use()
        and in_order(pieces_of(generic, number_of(generic, UNROLL)))
    )


class _Setup:
    """Calls that are made once, before all sub-blocks and after them."""

    def __init__(self, generic: linalg.GenericOp, thread: ThreadFunction) -> None:
        self._ops = tile_ops(generic)
        self._is_accumulation = ACCUMULATE in generic.attributes
        self._first = first_of(generic)
        operands = [*generic.inputs, *generic.outputs]
        self._buffers = {
            argument: thread.cb(buffer_of(operands[argument.index]), generic) for argument in _block_arguments(generic)
        }
        self.output = self.cb(generic.body.block.args[len(generic.inputs)])

    def cb(self, argument: SSAValue) -> SSAValue:
        """The buffer of an argument's tiles, as TT-Metalium has it."""
        assert isinstance(argument, BlockArgument)
        return self._buffers[argument]

    def begin(self, emit: Emitter, product_: BlockProduct | None) -> None:
        """Configure the units for the types of the buffers."""
        if (common := self._configuration()) is not None:
            emit.add_op(common)
        for op in self._ops:
            if product_ is not None:
                product_.prepare([*map(self.cb, calls_of(op).buffers), self.output], emit)
            elif isinstance(op, ttl.TileAccumulatingOp):
                emit.add_op(calls_of(op).preparation(self)[1])

    def accumulate(self, emit: Emitter) -> None:
        """Let the packer add, where it has to."""
        if self._is_accumulation:
            on = emit.i32(1)
            if self._first is not None:
                on = emit.result(arith.SelectOp(self._first, emit.i32(0), on))
            emit.add_op(ttkernel.PackReconfigL1AccOp(operands=[on]))

    def end(self, emit: Emitter) -> None:
        """Undo what the next computation would not."""
        if self._is_accumulation:
            emit.add_op(ttkernel.PackReconfigL1AccOp(operands=[emit.i32(0)]))
        if any(isinstance(op, ttl.TileReduceOp) for op in self._ops):
            emit.add_op(ttkernel.ReduceUninitOp())

    def _configuration(self) -> Operation | None:
        """The configuration of the units, unless the preparation of the only operation is one."""
        for op in self._ops:
            if isinstance(op, ttl.TileMatmulOp):
                return None
            if isinstance(op, ttl.TileReduceOp) or (isinstance(op, ttl.TileBinaryOp) and op.fpu is not None):
                return ttkernel.BinaryOpInitCommonOp(
                    operands=[self.cb(op.operands[0]), self.cb(op.operands[1]), self.output]
                )
        return ttkernel.InitSFPUOp(operands=[next(iter(self._buffers.values())), self.output])


def _is_block(value: SSAValue) -> bool:
    return memref.is_memref(value.type)


def _block_arguments(generic: linalg.GenericOp) -> list[BlockArgument]:
    operands = [*generic.inputs, *generic.outputs]
    return [arg for arg, value in zip(generic.body.block.args, operands, strict=True) if _is_block(value)]


@dataclass
class _Tile:
    """One tile of a sub-block, or the tile of a run of loops over it."""

    block: _SubBlock
    emit: Emitter
    coordinates: Sequence[Number]
    """The indices of all loops."""

    def cb(self, argument: SSAValue) -> SSAValue:
        """The buffer of an argument's tiles."""
        return self.block.cb(argument)

    def tile(self, argument: SSAValue) -> SSAValue:
        """The number of an argument's tile."""
        place, map_ = self.block.place(argument)
        return self.emit.i32(place.tile(map_, self.coordinates, self.emit))

    def register(self, value: SSAValue) -> SSAValue:
        """The register of a tile: those of one iteration are next to each other."""
        assert isinstance(value.owner, ttl.TileOp) and value.owner.register is not None
        return self.emit.i32(
            self.emit.add(
                self.emit.mul(self.block.number(self.coordinates, self.emit), self.block.per_tile, i32),
                value.owner.register,
                i32,
            )
        )


class _SubBlock:
    """The calls between an acquire and a release."""

    def __init__(
        self, generic: linalg.GenericOp, thread: ThreadFunction, product_: BlockProduct | None, *, packs_blocks: bool
    ) -> None:
        self._generic = generic
        self._thread = thread
        self._product = product_
        self._packs_blocks = packs_blocks
        self._emit = Arithmetic(thread.constants, generic)
        self._sizes = loops_of(generic)
        self._parallel = parallel(generic)
        self._ops = tile_ops(generic)
        self._loads = sum(bool(calls_of(op).buffers) for op in self._ops)
        self.per_tile = number_of(generic, DST_PER_TILE)
        operands = [*generic.inputs, *generic.outputs]
        self._places: dict[SSAValue, Place] = {
            argument: place_of(operands[argument.index], self._emit) for argument in _block_arguments(generic)
        }
        self._outputs = list(generic.body.block.args[len(generic.inputs) :])
        self._prepared: Hashable = None

    @property
    def output(self) -> SSAValue:
        """The buffer of the first output."""
        return self.cb(self._outputs[0])

    def cb(self, argument: SSAValue) -> SSAValue:
        """The buffer of an argument's tiles, as TT-Metalium has it."""
        return self._thread.cb(self._places[argument].cb, self._generic)

    def place(self, argument: SSAValue) -> tuple[Place, AffineMap]:
        """Return where the tiles of an argument are, and which loops count them."""
        assert isinstance(argument, BlockArgument)
        return self._places[argument], self._generic.indexing_maps.data[argument.index].data

    def number(self, coordinates: Sequence[Number], emit: Emitter) -> Number:
        """The number of a tile of the result, row by row."""
        found: Number = 0
        for loop in self._parallel:
            found = emit.add(emit.mul(found, self._sizes[loop], i32), coordinates[loop], i32)
        return found

    def lower(self, prepared: BlockProduct | None) -> None:
        """Emit the calls and erase the operation; `prepared` is the product of blocks that the unit is prepared for."""
        emit = self._emit
        if self._product != prepared and self._product is not None:
            self._product.prepare([*map(self.cb, calls_of(self._ops[0]).buffers), self.output], emit)
        emit.add_op(ttkernel.TileRegsAcquireOp())
        self.add()
        emit.location = self._generic.location
        emit.add_op(ttkernel.TileRegsCommitOp())
        emit.add_op(ttkernel.TileRegsWaitOp())
        self.pack(emit)
        emit.add_op(ttkernel.TileRegsReleaseOp())
        views = list(self._generic.operands)
        Rewriter.erase_op(self._generic)
        for view in views:
            _erase_view(view)

    def add(self) -> None:
        """Emit what computes the tiles, or adds to those in registers."""
        for op in self._ops:
            self._compute(op)

    def pack(self, emit: Emitter) -> None:
        """Emit the packs of all tiles."""
        end = self._generic.body.block.last_op
        assert end is not None, "checked by the verifier"
        if self._packs_blocks:
            count = emit.i32(prod(self._sizes[loop] for loop in self._parallel))
            emit.add_op(ttkernel.PackTileBlockOp(operands=[emit.i32(0), self.output, count]))
            return
        for argument, value in zip(self._outputs, end.operands, strict=True):
            for each in self._tiles(self._parallel, emit):
                operands = [each.register(value), each.cb(argument), each.tile(argument)]
                each.emit.add_op(ttkernel.PackTileOp(operands=operands))

    def _compute(self, op: ttl.TileOp) -> None:
        calls = calls_of(op)
        is_loop = IteratorType.REDUCTION in [each.data for each in self._generic.iterator_types]
        loops = [*range(len(self._sizes))] if is_loop else self._parallel
        # Outer loops are reductions: neighbouring calls don't wait for each other's registers.
        loops = [loop for loop in loops if loop not in self._parallel] + self._parallel
        self._emit.location = op.location
        if self._product is not None:
            loops = [loop for loop in loops if loop not in self._parallel]
            sizes = [self._emit.i32(each) for each in (0, *self._product)]
            for each in self._tiles(loops):
                one = call(op, calls, each)
                each.emit.add_op(ttkernel.MatmulBlockOp(operands=[*one.operands, *sizes]))
            return
        if not is_loop:
            key, prepare = calls.preparation(self)
            if key != self._prepared:
                self._emit.add_op(prepare)
                self._prepared = key
        for each in self._tiles(loops):
            each.emit.add_op(call(op, calls, each))

    def _tiles(self, loops: Sequence[int], emit: Emitter | None = None) -> Iterator[_Tile]:
        """The tiles of a sub-block, or one in loops over them."""
        emit = self._emit if emit is None else emit
        sizes = [self._sizes[loop] for loop in loops]
        if prod(sizes) * max(self._loads, 1) <= STRAIGHT_LINE:
            for numbers in product(*map(range, sizes)):
                yield self._tile(emit, dict(zip(loops, numbers, strict=True)))
            return
        indices: dict[int, Number] = {}
        for loop, size in zip(loops, sizes, strict=True):
            indices[loop] = 0
            if size > 1:
                index, emit = emit.loop(size)
                indices[loop] = emit.i32(index)
        yield self._tile(emit, indices)

    def _tile(self, emit: Emitter, indices: Mapping[int, Number]) -> _Tile:
        return _Tile(self, emit, [indices.get(loop, 0) for loop in range(len(self._sizes))])


def _erase_view(view: SSAValue) -> None:
    """Erase what made a part of a block, when nothing uses it any more; the steps of buffers stay."""
    op = view.owner
    if isinstance(op, memref.SubviewOp | ttl.BlockOp) and view.first_use is None:
        source = op.operands[0]
        Rewriter.erase_op(op)
        _erase_view(source)


# Tiles of circular buffers: which buffer a view is of, and which of its tiles one of the view's is.
#
# Numbers of tiles are i32, as TT-Metalium's functions take them.


class Arithmetic(Emitter):
    """Emits each sum, product and cast once.

    All are at one place of a block, so that what was emitted before can be used.
    """

    def __init__(self, constants: Constants, anchor: Operation) -> None:
        super().__init__(constants, anchor)
        self._known: dict[tuple[str, Number, Number | Scalar], Number] = {}

    def add(self, left: Number, right: Number, type_: Scalar = i32) -> Number:
        """The sum."""
        if ("add", left, right) not in self._known:
            self._known["add", left, right] = super().add(left, right, type_)
        return self._known["add", left, right]

    def mul(self, left: Number, right: Number, type_: Scalar = i32) -> Number:
        """The product."""
        if ("mul", left, right) not in self._known:
            self._known["mul", left, right] = super().mul(left, right, type_)
        return self._known["mul", left, right]

    def i32(self, number: Number) -> SSAValue:
        """A number as an i32."""
        found = self._known.get(("i32", number, i32))
        if not isinstance(found, SSAValue):
            found = self._known["i32", number, i32] = super().i32(number)
        return found


@dataclass(frozen=True)
class Place:
    """Place of the tiles of a view."""

    cb: SSAValue
    """The buffer, as it is in `ttl`."""
    begin: Number
    """The number of the view's first tile."""
    strides: tuple[int, ...]
    """Tiles from one to the next along each dimension."""

    def tile(self, map_: AffineMap, coordinates: Sequence[Number], emit: Emitter) -> Number:
        """The number of a tile, from the indices of the loops."""
        found = 0
        begin = self.begin
        for stride, expr in zip(self.strides, map_.results, strict=True):
            match expr:
                case AffineDimExpr(position=position):
                    step = emit.mul(coordinates[position], stride, i32)
                case AffineConstantExpr(value=value):
                    step = value * stride
                case _:
                    raise ValueError(f"expected a loop or a number, found {expr}")
            # Known numbers are added first.
            if isinstance(step, int):
                found += step
            else:
                begin = emit.add(begin, step, i32)
        return emit.add(begin, found, i32)


def buffer_of(view: SSAValue) -> SSAValue:
    """The circular buffer that a view is of.

    Raises CompilationError for other memory.
    """
    while not isinstance(view.owner, ttl.AcquireOp):
        match view.owner:
            case ttl.BlockOp(view=source) | memref.SubviewOp(source=source):
                view = source
            case _:
                raise error_at(view, "a compute reads and writes blocks of circular buffers, found other memory")
    return view.owner.cb


def place_of(view: SSAValue, emit: Emitter) -> Place:
    """Return where the tiles of a view are; what is not known is computed.

    Raises CompilationError for memory that is no view of a circular buffer.
    """
    strides, _ = memref.strides_of(view.type)
    begin: Number = 0
    whole = view
    while not isinstance(whole.owner, ttl.AcquireOp):
        match whole.owner:
            case ttl.BlockOp(view=several, index=index):
                step = emit.mul(emit.i32(index), prod(ttl.block_shape(whole.type)), i32)
                begin, whole = emit.add(begin, step, i32), several
            case memref.SubviewOp(source=source) as part:
                begin, whole = emit.add(begin, _offset(part, emit), i32), source
            case _:
                break
    return Place(buffer_of(whole), begin, tuple(each for each in strides if each is not None))


def _offset(part: memref.SubviewOp, emit: Emitter) -> Number:
    strides, _ = memref.strides_of(part.source.type)
    dynamic = iter(part.offsets)
    found: Number = 0
    for stride, offset in zip(strides, part.static_offsets.get_values(), strict=True):
        assert stride is not None, "blocks have known shapes"
        number = emit.i32(next(dynamic)) if offset == DYNAMIC_INDEX else offset
        found = emit.add(found, emit.mul(number, stride, i32), i32)
    return found
