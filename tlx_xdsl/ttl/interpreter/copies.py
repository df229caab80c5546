"""Copies of blocks between circular buffers and tensors, and what waits for them.

A copy takes effect when its thread waits for it: what is used earlier is poison. A block that reaches over the edge of
its tensor has zeros there, or is cut when it is written; all of it outside is a fault.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple, cast

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.interpreter.faults import location_of
from tlx_xdsl.numerics.arrays import Array

from ..dialects.ttcore import TileType
from ..dialects.ttl.base import aligned
from ..dialects.ttl.buffers import CopyOp
from ..dialects.ttl.types import PipeType
from ..tiles import TILE, cut, matrix_of, to_pages
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


class Place(NamedTuple):
    """The elements of a tensor that a block is, in the matrix that the tensor is to the memory."""

    rows: Array
    """Numbers of rows of elements, in the order in which the block has them."""
    column: int
    columns: int


def _place(op: Operation, thread: CoreThread, tensor: Tensor, indices: tuple[int, ...], view: View) -> Place:
    """The elements of a tensor that a block is."""
    is_tiled = tensor.layout.kind != "interleaved"
    if is_tiled != isinstance(view.buffer.element, TileType):
        raise wrong(op, thread, f"copies a block of elements of tensor '{tensor.name}', which has tiles")
    whole = _units(tensor)
    sizes = aligned(view.shape[:-2] if is_tiled else view.shape, len(whole)) or ()
    if not is_tiled and (sizes[-1:] != whole[-1:] or (len(indices) > 1 and indices[-1])):
        raise wrong(
            op, thread,
            f"copies a block of {list(view.shape)} at {list(indices)} of tensor '{tensor.name}', whose pages are "
            f"whole rows of {whole[-1]} elements",
        )  # fmt: skip
    if len(indices) == 1 and len(whole) > 1:
        if tensor.layout.kind == "sharded":
            # Shards are cut from all matrices, one below the other.
            rows, columns = tensor.layout.padded(tensor.shape)
            whole, sizes = (rows // TILE, columns // TILE), aligned(sizes, 2) or ()
        indices = _numbered(op, thread, tensor, indices[0], whole)
    ends = zip(indices, sizes, whole, strict=True)
    if not sizes or any(first < 0 or first + size > there for first, size, there in ends):
        unit = "tiles" if is_tiled else "elements"
        raise wrong(
            op, thread,
            f"copies the {_spelled(sizes)} {unit} at {list(indices)} of tensor '{tensor.name}', which has "
            f"{_spelled(whole)}",
        )  # fmt: skip
    return _rows_of(indices, sizes, whole, TILE if is_tiled else 1)


def _rows_of(indices: tuple[int, ...], sizes: tuple[int, ...], whole: tuple[int, ...], unit: int) -> Place:
    """The place of a box of units, which have so many rows and columns of elements."""
    axes = np.meshgrid(*map(np.arange, sizes[:-1]), indexing="ij")
    numbers = np.ravel_multi_index([axis + first for axis, first in zip(axes, indices, strict=False)], whole[:-1])
    rows = numbers.reshape(-1, 1) * unit + np.arange(unit)
    columns = unit if unit > 1 else 1
    return Place(rows.reshape(-1), indices[-1] * columns, sizes[-1] * columns)


def _units(tensor: Tensor) -> tuple[int, ...]:
    """The tensor's shape in tiles, or in elements where it has none; shards may reach beyond a matrix."""
    if tensor.layout.kind == "interleaved":
        return tensor.shape
    if tensor.layout.kind == "sharded" and len(tensor.shape) == 2:
        return tensor.layout.tiles
    return *tensor.shape[:-2], -(-tensor.shape[-2] // TILE), -(-tensor.shape[-1] // TILE)


def _numbered(
    op: Operation, thread: CoreThread, tensor: Tensor, number: int, whole: tuple[int, ...]
) -> tuple[int, ...]:
    """The place of the block that begins at page or shard `number`."""
    if tensor.layout.kind == "sharded":
        grid_columns = tensor.layout.grid[1]
        shards = tensor.layout.grid[0] * grid_columns
        if not 0 <= number < shards:
            raise wrong(op, thread, f"copies shard {number} of tensor '{tensor.name}', which has {shards}")
        height, width = tensor.layout.tiles_per_shard
        return number // grid_columns * height, number % grid_columns * width
    last = () if tensor.layout.kind == "tiled" else (0,)
    counted = whole if tensor.layout.kind == "tiled" else whole[:-1]
    if not 0 <= number < prod(counted):
        raise wrong(op, thread, f"copies page {number} of tensor '{tensor.name}', which has {prod(counted)}")
    return *(int(each) for each in np.unravel_index(number, counted)), *last


def _spelled(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _pages_of(tensor: Tensor, place: Place) -> list[int]:
    """Numbers for the tiles or rows of a place, row-major."""
    if tensor.layout.kind == "interleaved":
        return place.rows.tolist()
    width = tensor.layout.padded(tensor.shape)[1] // TILE
    first, count = place.column // TILE, place.columns // TILE
    return [row * width + first + each for row in (place.rows[::TILE] // TILE).tolist() for each in range(count)]


def _land_read(op: Operation, thread: CoreThread, tensor: Tensor, place: Place, view: View, begun: Moment) -> None:
    for page in _pages_of(tensor, place):
        note_read(op, thread, tensor, page, begun)
    values = _cached(thread, tensor)[place.rows, place.column : place.column + place.columns]
    if tensor.layout.kind != "interleaved":
        values = values.reshape(-1, TILE, place.columns // TILE, TILE).swapaxes(1, 2)
    view.write(op, values)


def _land_write(op: Operation, thread: CoreThread, tensor: Tensor, place: Place, view: View, begun: Moment) -> None:
    for page in _pages_of(tensor, place):
        note_write(op, thread, tensor, page, begun)
    values = view.read(op)
    if tensor.layout.kind != "interleaved":
        values = values.reshape(-1, place.columns // TILE, TILE, TILE).swapaxes(1, 2)
    matrix = _cached(thread, tensor)
    values = values.reshape(-1, place.columns).astype(matrix.dtype)
    matrix[place.rows, place.column : place.column + place.columns] = values


def _cached(thread: CoreThread, tensor: Tensor) -> Array:
    """The tensor as a matrix, in which a run of blocks works; `to_pages` is for the end."""
    matrices: dict[Tensor, Array] = cast(Any, thread.machine).matrices
    found = matrices.get(tensor)
    if found is None:
        found = matrices[tensor] = matrix_of(tensor.pages, tensor.shape, tensor.dtype, tensor.layout)
    return found


def finish(matrices: dict[Tensor, Array]) -> None:
    """Let the pages of tensors have what was written; padding is zero, whatever was written there."""
    for tensor, matrix in matrices.items():
        tensor.pages = to_pages(cut(matrix, tensor.shape, tensor.layout), tensor.dtype, tensor.layout)


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
