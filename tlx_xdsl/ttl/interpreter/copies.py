"""Copies of blocks between circular buffers and tensors, and what waits for them.

A copy takes effect when its thread waits for it: what is used earlier is poison. A block that reaches over the edge of
its tensor has zeros there, or is cut when it is written; all of it outside is a fault.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.ir import Operation

from tlx_xdsl.interpreter.faults import location_of
from tlx_xdsl.numerics.arrays import Array

from ..dialects.ttl.buffers import CopyOp
from ..dialects.ttl.types import PipeType
from ..tiles import TILE, from_pages, to_pages
from .blocks import View
from .pipes import PipeTransfer, receive, send
from .ttkernel.circular_buffers import pending
from .ttkernel.clocks import Moment
from .ttkernel.machine import CoreThread, Tensor, Transfer, wrong
from .ttkernel.races import note_read, note_write
from .ttkernel.translate import Builder, Local, Step, Touch, attribute


def copy(op: Operation) -> Local:
    """Begin a copy; its handle is the transfer."""
    assert isinstance(op, CopyOp)
    before = 1 + len(op.source_indices)
    is_read = op.far is op.source
    if isinstance(op.far.type, PipeType):
        return receive(op) if is_read else send(op)

    def run(thread: CoreThread, *operands: Any) -> Transfer:
        source, source_at = operands[0], operands[1:before]
        destination, destination_at = operands[before], operands[before + 1 :]
        tensor: Tensor = source if is_read else destination
        view: View = destination if is_read else source
        return _begin(op, thread, tensor, source_at if is_read else destination_at, view, is_read=is_read)

    return run


def _begin(
    op: Operation, thread: CoreThread, tensor: Tensor, indices: tuple[int, ...], view: View, *, is_read: bool
) -> Transfer:
    view.check_held(op)
    words = f"copy {'of' if is_read else 'to'} {list(indices)} of tensor '{tensor.name}'"
    if (other := pending(thread, view.start, view.size)) is not None and (is_read or other.is_read):
        raise wrong(op, thread, f"begins a {words} where its {other.words} is still under way",
                    [f"{location_of(other.op)}: that is begun here"])  # fmt: skip
    place, begun = _place(op, thread, tensor, indices, view), thread.clock.now
    if is_read:
        if not view.is_written:
            raise wrong(op, thread, f"reads into a block of {view.buffer.label} that it has waited for, not reserved")
        thread.core.poison(view.start, view.size)
        land = lambda: _land_read(op, thread, tensor, place, view, begun)  # noqa: E731
    else:
        view.read(op)
        land = lambda: _land_write(op, thread, tensor, place, view, begun)  # noqa: E731
    kind = "dram read" if is_read else "dram write"
    touches = tuple((kind, tensor, page) for page in _pages_of(tensor, place))
    transfer = Transfer(op, words, is_read, view.start, view.start + view.size, land, touches)
    thread.transfers.append(transfer)
    thread.machine.noc_bytes += view.size
    return transfer


Place = tuple[int, int, int, int]
"""First row and column of elements, and their numbers."""


def _place(op: Operation, thread: CoreThread, tensor: Tensor, indices: tuple[int, ...], view: View) -> Place:
    """The elements of a tensor that a block is."""
    shape = view.shape
    if tensor.layout.kind == "interleaved":
        return _rows(op, thread, tensor, indices, shape)
    if len(shape) != 4:
        raise wrong(op, thread, f"copies a block of elements of tensor '{tensor.name}', which has tiles")
    rows, columns = shape[:2]
    padded_rows, padded_columns = tensor.layout.padded(tensor.shape)
    tile_rows, tile_columns = padded_rows // TILE, padded_columns // TILE
    if len(indices) == 2:
        row, column = indices
    elif tensor.layout.kind == "sharded":
        grid_columns = tensor.layout.grid[1]
        shards = tensor.layout.grid[0] * grid_columns
        if not 0 <= indices[0] < shards:
            raise wrong(op, thread, f"copies shard {indices[0]} of tensor '{tensor.name}', which has {shards}")
        height, width = tensor.layout.tiles_per_shard
        row, column = indices[0] // grid_columns * height, indices[0] % grid_columns * width
    else:
        row, column = divmod(indices[0], tile_columns)
    if row < 0 or column < 0 or row + rows > tile_rows or column + columns > tile_columns:
        raise wrong(
            op, thread,
            f"copies the {rows}x{columns} tiles at {list(indices)} of tensor '{tensor.name}', which has "
            f"{tile_rows}x{tile_columns}",
        )  # fmt: skip
    return row * TILE, column * TILE, rows * TILE, columns * TILE


def _rows(op: Operation, thread: CoreThread, tensor: Tensor, indices: tuple[int, ...], shape: tuple[int, ...]) -> Place:
    first, column = indices[0], indices[1] if len(indices) == 2 else 0
    if len(shape) != 2 or shape[1] != tensor.shape[1] or column:
        raise wrong(
            op, thread,
            f"copies a block of {list(shape)} at {list(indices)} of tensor '{tensor.name}', whose pages are "
            f"whole rows of {tensor.shape[1]} elements",
        )  # fmt: skip
    if first < 0 or first + shape[0] > tensor.shape[0]:
        raise wrong(
            op, thread,
            f"copies rows {first} to {first + shape[0] - 1} of tensor '{tensor.name}', which has {tensor.shape[0]}",
        )  # fmt: skip
    return first, 0, shape[0], shape[1]


def _matrix(tensor: Tensor) -> Array:
    """All elements of a tensor with its padding."""
    shape = tensor.layout.padded(tensor.shape)
    return from_pages(tensor.pages, shape, tensor.dtype, tensor.layout)


def _pages_of(tensor: Tensor, place: Place) -> list[int]:
    """Numbers for the tiles or rows of a place, row-major."""
    row, column, rows, columns = place
    if tensor.layout.kind == "interleaved":
        return list(range(row, row + rows))
    width = tensor.layout.padded(tensor.shape)[1] // TILE
    return [(row // TILE + i) * width + column // TILE + j for i in range(rows // TILE) for j in range(columns // TILE)]


def _land_read(op: Operation, thread: CoreThread, tensor: Tensor, place: Place, view: View, begun: Moment) -> None:
    row, column, rows, columns = place
    for page in _pages_of(tensor, place):
        note_read(op, thread, tensor, page, begun)
    values = _cached(thread, tensor)[row : row + rows, column : column + columns]
    if tensor.layout.kind != "interleaved":
        values = values.reshape(rows // TILE, TILE, columns // TILE, TILE).swapaxes(1, 2)
    view.write(op, values)


def _land_write(op: Operation, thread: CoreThread, tensor: Tensor, place: Place, view: View, begun: Moment) -> None:
    row, column, rows, columns = place
    for page in _pages_of(tensor, place):
        note_write(op, thread, tensor, page, begun)
    values = view.read(op)
    if tensor.layout.kind != "interleaved":
        values = values.swapaxes(1, 2)
    matrix = _cached(thread, tensor)
    matrix[row : row + rows, column : column + columns] = values.reshape(rows, columns).astype(matrix.dtype)


def _cached(thread: CoreThread, tensor: Tensor) -> Array:
    """The tensor as a matrix, in which a run of blocks works; `to_pages` is for the end."""
    matrices: dict[Tensor, Array] = cast(Any, thread.machine).matrices
    found = matrices.get(tensor)
    if found is None:
        found = matrices[tensor] = _matrix(tensor)
    return found


def finish(matrices: dict[Tensor, Array]) -> None:
    """Let the pages of tensors have what was written; padding is zero, whatever was written there."""
    for tensor, matrix in matrices.items():
        rows, columns = tensor.shape
        tensor.pages = to_pages(matrix[:rows, :columns], tensor.dtype, tensor.layout)


# Waiting -------------------------------------------------------------------------------------------------------------


def _is_ready(transfer: Transfer) -> bool:
    return transfer.is_ready() if isinstance(transfer, PipeTransfer) else True


def _reason(transfer: Transfer) -> str:
    return transfer.reason() if isinstance(transfer, PipeTransfer) else "waits"


def _land(thread: CoreThread, transfer: Transfer) -> None:
    if transfer in thread.transfers:
        thread.transfers.remove(transfer)
        transfer.land()
        thread.clock.release()


def wait(op: Operation) -> Step:
    """Let a copy take effect; once is enough."""

    def ready(thread: CoreThread, transfer: Transfer) -> bool:
        return _is_ready(transfer)

    def waits_for(thread: CoreThread, transfer: Transfer) -> str:
        return _reason(transfer)

    def touches(thread: CoreThread, transfer: Transfer) -> tuple[Touch, ...]:
        return transfer.touches

    return Step(op, _land, ready, waits_for, touches)


def barrier(op: Operation) -> Step:
    """Let all copies of a direction take effect."""
    direction: Any = attribute(op, "direction_attr")
    is_read = direction.data.value == "read"

    def own(thread: CoreThread) -> list[Transfer]:
        return [each for each in thread.transfers if each.is_read == is_read]

    def ready(thread: CoreThread) -> bool:
        return all(_is_ready(each) for each in own(thread))

    def run(thread: CoreThread) -> None:
        for each in thread.machine.in_any_order(own(thread)):
            _land(thread, each)

    def waits_for(thread: CoreThread) -> str:
        return next((_reason(each) for each in own(thread) if not _is_ready(each)), "waits")

    def touches(thread: CoreThread) -> tuple[Touch, ...]:
        return tuple(touch for each in own(thread) for touch in each.touches)

    return Step(op, run, ready, waits_for, touches)


BUILDERS: dict[str, Builder] = {
    "ttl.copy": copy,
    "ttl.wait": wait,
    "ttl.dma_barrier": barrier,
}
