"""Copies between tensors and blocks of circular buffers: one transfer for each page, or for a shard.

The layout says what a page is. `tiled`: a tile, numbered row by row; `interleaved`: a row of elements; `sharded`: a
block that is a whole shard is one transfer, others are tiles that are numbered as those of a tiled tensor. The matrices
of a tensor of more dimensions lie one below the other. A tensor whose last tiles are not full needs nothing here: its
memory is padded to whole tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.text.diagnostics import error_at

from ..analysis.multiples import is_multiple_of
from ..dialects.ttcore import TILE_COLUMNS, TILE_ROWS
from ..dialects.ttkernel import noc
from ..dialects.ttkernel.base import NocAddressType
from ..dialects.ttl.base import aligned, block_shape
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
        sizes = aligned(self._buffer.shape, len(self._shape))
        self._expect(sizes is not None, f"a block of {len(self._shape)} dimensions, or with ones in front")
        assert sizes is not None
        if self._layout.kind is LayoutKind.INTERLEAVED:
            self._copy_rows(emit, address, sizes)
        elif self._layout.kind is LayoutKind.SHARDED and (shard := self._shard(emit)) is not None:
            class_ = noc.NocAsyncReadShardOp if self._reads else noc.NocAsyncWriteShardOp
            emit.add_op(class_(operands=[emit.i32(shard), self._accessor, address]))
        else:
            self._copy_tiles(emit, address, sizes)

    def _copy_tiles(self, emit: Emitter, address: SSAValue, sizes: tuple[int, ...]) -> None:
        self._expect(self._buffer.is_tiled, "a circular buffer of tiles")
        class_ = noc.NocAsyncReadTileOp if self._reads else noc.NocAsyncWriteTileOp

        def transfer(emit: Emitter, tile: Number, page: Number) -> None:
            at = self._page_address(emit, address, page)
            emit.add_op(class_(operands=[emit.i32(tile), self._accessor, at]))

        if len(self._op.indices) == 1:
            self._expect(prod(sizes) == 1, "blocks of one tile where the place is one number")
            transfer(emit, self._op.indices[0], 0)
            return
        whole = *self._shape[:-2], -(-self._shape[-2] // TILE_ROWS), -(-self._shape[-1] // TILE_COLUMNS)
        for inner, place in _places(emit, sizes):
            page = _number(inner, place, sizes)
            transfer(inner, _number(inner, place, whole, self._op.indices), page)

    def _copy_rows(self, emit: Emitter, address: SSAValue, sizes: tuple[int, ...]) -> None:
        self._expect(not self._buffer.is_tiled, "a row-major circular buffer, with an element type that is no tile")
        columns = sizes[-1]
        self._expect(columns == self._shape[-1], f"blocks of whole rows of {self._shape[-1]} elements")
        class_ = noc.NocAsyncReadPageOp if self._reads else noc.NocAsyncWritePageOp
        indices, rows, whole = self._op.indices, sizes[:-1], self._shape[:-1]
        if len(indices) == 1:
            # Rows are numbered through all matrices.
            rows, whole = (prod(rows),), (prod(whole),)
        else:
            self._expect(is_multiple_of(indices[-1], columns), "column 0, for a page is a whole row")
            indices = indices[:-1]
        for inner, place in _places(emit, rows):
            at = self._page_address(inner, address, _number(inner, place, rows))
            operands = [inner.i32(_number(inner, place, whole, indices)), self._accessor, at, inner.i32(0)]
            inner.add_op(class_(operands=operands))

    def _shard(self, emit: Emitter) -> Number | None:
        """The number of the shard that the block is, or None where it is none, or not known to be."""
        tiles, indices = self._layout.tiles_per_shard, self._op.indices
        is_shard = self._buffer.is_tiled and aligned(self._buffer.shape, 2) == tiles
        if len(indices) == 1:
            self._expect(is_shard, f"blocks of {tiles[0]}x{tiles[1]} tiles, which is a shard")
            return indices[0]
        if not is_shard or len(indices) != len(tiles):
            return None
        if not all(is_multiple_of(index, size) for index, size in zip(indices, tiles, strict=True)):
            return None
        row, column = (emit.div(each, size) for each, size in zip(indices, tiles, strict=True))
        return emit.add(emit.mul(row, self._layout.grid[1]), column)

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


def _places(emit: Emitter, sizes: tuple[int, ...]) -> list[tuple[Emitter, list[Number]]]:
    """The places of a block's pages, and where to emit their transfers: one after the other, or in loops."""
    if prod(sizes) <= STRAIGHT_LINE:
        return [(emit, [*place]) for place in product(*map(range, sizes))]
    place: list[Number] = []
    for size in sizes:
        index: Number = 0
        if size > 1:
            index, emit = emit.loop(size)
        place.append(index)
    return [(emit, place)]


def _number(
    emit: Emitter, place: Sequence[Number], whole: Sequence[int], first: Sequence[Number] | None = None
) -> Number:
    """The number of a page, row by row, at a place of `whole`, counted from `first`."""
    found: Number = 0
    for dim, (each, size) in enumerate(zip(place, whole, strict=True)):
        found = emit.mul(found, size) if dim else found
        found = emit.add(found, each if first is None else emit.add(first[dim], each))
    return found


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
