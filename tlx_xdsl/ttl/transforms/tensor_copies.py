"""Copies between tensors and blocks of circular buffers: one transfer for each page, or for a shard.

The layout says what a page is. `tiled`: a tile, numbered row by row; `interleaved`: a row of elements; `sharded`:
blocks are whole shards, numbered row by row. A tensor whose last tiles are not full needs nothing here: its memory is
padded to whole tiles.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.text.diagnostics import error_at

from ..analysis.multiples import is_multiple_of
from ..dialects.ttcore import TILE_COLUMNS
from ..dialects.ttkernel import noc
from ..dialects.ttkernel.base import NocAddressType
from ..dialects.ttl.base import block_shape
from ..dialects.ttl.buffers import BindCBOp, CopyOp
from ..dialects.ttl.pipes import CreatePipeOp, IfSrcOp
from ..dialects.ttl.types import CBType, Direction, LayoutAttr, LayoutKind, TensorAccessorType, encoding_of
from .coordinates import has_gap, multicast_address, virtual_of
from .thread_function import Emitter, Number, ThreadFunction, lower_accessor
from .views import Views

STRAIGHT_LINE = 4
"""Pages that are copied without a loop."""


def lower_tensor_copy(thread: ThreadFunction, views: Views, op: CopyOp) -> None:
    """Emit the transfers of a copy from or to a tensor, before the copy."""
    buffer = views.type(op.view, op)
    accessor_type = op.far.type
    assert isinstance(accessor_type, TensorAccessorType)
    tensor = accessor_type.tensor
    layout = encoding_of(tensor).layout
    copy = _TensorCopy(op, buffer, block_shape(tensor), layout, lower_accessor(thread, op.far, op))
    copy.emit(thread.emitter(op), views.address(op.view, op))


class _TensorCopy:
    """A copy, and what it is between."""

    def __init__(
        self, op: CopyOp, buffer: CBType, shape: tuple[int, ...], layout: LayoutAttr, accessor: SSAValue
    ) -> None:
        self._op = op
        self._buffer = buffer
        self._shape = shape
        self._layout = layout
        self._accessor = accessor
        self._reads = op.direction is Direction.READ

    def emit(self, emit: Emitter, address: SSAValue) -> None:
        """Emit the transfers."""
        match self._layout.kind:
            case LayoutKind.TILED:
                self._copy_tiles(emit, address)
            case LayoutKind.INTERLEAVED:
                self._copy_rows(emit, address)
            case LayoutKind.SHARDED:
                self._copy_shard(emit, address)

    def _copy_tiles(self, emit: Emitter, address: SSAValue) -> None:
        self._expect(self._buffer.is_tiled, "a circular buffer of tiles")
        rows, columns = self._buffer.shape
        class_ = noc.NocAsyncReadTileOp if self._reads else noc.NocAsyncWriteTileOp

        def transfer(emit: Emitter, tile: Number, row: Number, column: Number) -> None:
            at = self._page_address(emit, address, emit.add(emit.mul(row, columns), column))
            emit.add_op(class_(operands=[emit.i32(tile), self._accessor, at]))

        if len(self._op.indices) == 1:
            self._expect((rows, columns) == (1, 1), "blocks of 1x1 tiles where the place is one number")
            transfer(emit, self._op.indices[0], 0, 0)
            return
        first_row, first_column = self._op.indices
        width = -(-self._shape[1] // TILE_COLUMNS)

        def tile(emit: Emitter, row: Number, column: Number) -> Number:
            return emit.add(emit.mul(emit.add(first_row, row), width), emit.add(first_column, column))

        for inner, row, column in _places(emit, rows, columns):
            transfer(inner, tile(inner, row, column), row, column)

    def _copy_rows(self, emit: Emitter, address: SSAValue) -> None:
        self._expect(not self._buffer.is_tiled, "a row-major circular buffer, with an element type that is no tile")
        rows, columns = self._buffer.shape
        self._expect(columns == self._shape[1], f"blocks of whole rows of {self._shape[1]} elements")
        class_ = noc.NocAsyncReadPageOp if self._reads else noc.NocAsyncWritePageOp
        first, *offset = self._op.indices
        self._expect(not offset or is_multiple_of(offset[0], columns), "column 0, for a page is a whole row")
        for inner, row, _ in _places(emit, rows, 1):
            at = self._page_address(inner, address, row)
            operands = [inner.i32(inner.add(first, row)), self._accessor, at, inner.i32(0)]
            inner.add_op(class_(operands=operands))

    def _copy_shard(self, emit: Emitter, address: SSAValue) -> None:
        tiles = self._layout.tiles_per_shard
        self._expect(self._buffer.is_tiled, "a circular buffer of tiles")
        self._expect(self._buffer.shape == tiles, f"blocks of {tiles[0]}x{tiles[1]} tiles, which is a shard")
        class_ = noc.NocAsyncReadShardOp if self._reads else noc.NocAsyncWriteShardOp
        if len(self._op.indices) == 1:
            shard: Number = self._op.indices[0]
        else:
            for index, size in zip(self._op.indices, tiles, strict=True):
                self._expect(is_multiple_of(index, size), f"a place at a multiple of {size} tiles, or a shard's number")
            row, column = (emit.div(each, size) for each, size in zip(self._op.indices, tiles, strict=True))
            shard = emit.add(emit.mul(row, self._layout.grid[1]), column)
        emit.add_op(class_(operands=[emit.i32(shard), self._accessor, address]))

    def _page_address(self, emit: Emitter, address: SSAValue, page: Number) -> SSAValue:
        return emit.i32(emit.add(address, emit.mul(page, self._buffer.page_bytes, i32), i32))

    def _expect(self, condition: bool, what: str) -> None:
        if not condition:
            block = "x".join(map(str, self._buffer.shape))
            unit = "tiles" if self._buffer.is_tiled else "elements"
            raise error_at(
                self._op,
                f"a copy of a tensor with layout '{self._layout.kind}' needs {what}",
                [f"the tensor has {'x'.join(map(str, self._shape))} elements, the block {block} {unit}"],
            )


def _places(emit: Emitter, rows: int, columns: int) -> list[tuple[Emitter, Number, Number]]:
    """The places of a block's pages, and where to emit their transfers: one after the other, or in loops."""
    if rows * columns <= STRAIGHT_LINE:
        return [(emit, row, column) for row in range(rows) for column in range(columns)]
    row: Number = 0
    column: Number = 0
    if rows > 1:
        row, emit = emit.loop(rows)
    if columns > 1:
        column, emit = emit.loop(columns)
    return [(emit, row, column)]


# Copies through pipes: the sender writes into the memories of the receivers.
#
# A circular buffer has one address on all cores, so the block that the receivers reserve is where the sender's block of
# that buffer is. What the receivers do for a copy is to wait for a semaphore, which is in the program already.


def pipe_of(thread: ThreadFunction, value: SSAValue, user: Operation) -> CreatePipeOp:
    """The operation that made a pipe, in the driver."""
    owner = thread.origin(value).owner
    if not isinstance(owner, CreatePipeOp):
        raise error_at(
            user, f"{user.name} needs a pipe that is known when the kernel is compiled: make it in the kernel"
        )
    return owner


def lower_send(thread: ThreadFunction, views: Views, op: CopyOp, receiver: SSAValue | None) -> None:
    """Emit the write of a block to the receivers of a pipe, which take it in the buffer `receiver`."""
    pipe = pipe_of(thread, op.far, op)
    _check_is_sender(op)
    emit = thread.emitter(op)
    buffer = views.type(op.view, op)
    source = views.address(op.view, op)
    reported = [emit.i32(each) for each in op.indices]
    destination = reported[0] if reported else _receivers_address(thread, views, op, source, receiver)
    size = emit.i32(buffer.block_pages * buffer.page_bytes)
    first, last = pipe.dst_range
    # This runs on the senders only. Those of several ways, which are moved, have the receivers at the same distance.
    own = None if pipe.gathers is not None or (has_gap(thread) and pipe.count == (1, 1)) else pipe.src
    if first == last:
        # A multicast to one core may never end on the hardware.
        place = virtual_of(thread, op, first, own)
        address = noc.GetNocAddrOp(operands=[*place, destination], result_types=[NocAddressType()])
        emit.add_op(noc.NocAsyncWriteOp(operands=[source, emit.result(address), size]))
        return
    address = multicast_address(thread, op, first, last, destination, own)
    class_ = noc.NocAsyncWriteMulticastLoopbackSrcOp if pipe.has_loopback else noc.NocAsyncWriteMulticastOp
    count = emit.i32(len(pipe.destinations))
    emit.add_op(class_(operands=[source, address, size, count]))


def _check_is_sender(op: CopyOp) -> None:
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, IfSrcOp) and parent.pipe is op.far:
            return
        parent = parent.parent_op()
    raise error_at(op, "a block is sent through a pipe by its source only: copy to the pipe inside of its if_src")


def _receivers_address(
    thread: ThreadFunction, views: Views, op: CopyOp, source: SSAValue, receiver: SSAValue | None
) -> SSAValue:
    own = views.buffer(op.view, op)
    if receiver is None:
        raise error_at(op, "nothing receives what is sent through this pipe: copy from the pipe inside of its if_dst")
    if receiver is own:
        return source
    bind = receiver.owner
    type_ = receiver.type
    assert isinstance(bind, BindCBOp) and isinstance(type_, CBType)
    if type_.buffer_factor > 1 or bind.l1_address is None:
        raise error_at(
            op,
            "the receivers' block is in another circular buffer, which has room for "
            f"{type_.buffer_factor} blocks: receive into the buffer that is sent from, or use buffer_factor=1",
        )
    return Emitter(thread.constants, op).i32(bind.l1_address.value.data)
