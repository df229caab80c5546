"""Rows of elements in circular buffers, which become tiles, and tiles in registers that become rows."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.ttl.tiles import TILE, to_faces

from .circular_buffers import reserved_rows, reserved_tile, rows_to_read
from .compute import expect_phase, register_of
from .machine import CircularBuffer, CoreThread, wrong
from .translate import Builder, Local, integer


def tilize_init(op: Operation) -> Local:
    """Let the unpacker read rows of so many tiles."""

    def run(thread: CoreThread, rows: CircularBuffer, width: int, tiles: CircularBuffer) -> None:
        if thread.registers.tilized is not None:
            raise wrong(op, thread, "prepares the unpacker for rows once more: expected 'tilize_uninit' before")
        thread.registers.tilized = width

    return run


def tilize_uninit(op: Operation) -> Local:
    """Let the unpacker read tiles."""

    def run(thread: CoreThread, rows: CircularBuffer, tiles: CircularBuffer) -> None:
        thread.registers.tilized = None

    return run


def tilize_block(op: Operation) -> Local:
    """Write 32 rows as tiles."""

    def run(
        thread: CoreThread, rows: CircularBuffer, width: int, tiles: CircularBuffer, source: int, target: int
    ) -> None:
        expect_phase(op, thread, "released")
        if thread.registers.tilized != width:
            raise wrong(op, thread, f"makes rows of {width} tiles, which the unpacker is not prepared for")
        if source % width:
            raise wrong(op, thread, f"begins at tile {source}, which is not the first one of {width} in a row")
        data = rows_to_read(op, thread, rows, source // width * TILE, rows.format.bytes_of(width * TILE))
        values = rows.format.unpack(data).reshape(TILE, width, TILE).swapaxes(0, 1)
        for number in range(width):
            start = reserved_tile(op, thread, tiles, target + number)
            thread.core.store(start, tiles.format.pack(to_faces(values[number])))

    return run


def untilize_init(op: Operation) -> Local:
    """Let the packer write rows."""
    sizes = integer(op, "width"), integer(op, "full_width")

    def run(thread: CoreThread, buffer: CircularBuffer) -> None:
        if thread.registers.untilized is not None:
            raise wrong(op, thread, "prepares the packer for rows once more: expected 'pack_untilize_uninit' before")
        thread.registers.untilized = sizes

    return run


def untilize_uninit(op: Operation) -> Local:
    """Let the packer write tiles."""

    def run(thread: CoreThread, buffer: CircularBuffer) -> None:
        thread.registers.untilized = None

    return run


def pack_untilize(op: Operation) -> Local:
    """Write the tiles of the first registers as a part of 32 rows."""
    width, full_width = sizes = integer(op, "width"), integer(op, "full_width")

    def run(thread: CoreThread, buffer: CircularBuffer, part: int) -> None:
        if thread.registers.untilized != sizes:
            raise wrong(
                op, thread, f"packs {width} of {full_width} tiles as rows, which the packer is not prepared for"
            )
        tiles = [register_of(op, thread, number, "waited").value for number in range(width)]
        if not 0 <= part < full_width // width:
            raise wrong(op, thread, f"packs part {part} of {full_width // width}")
        start = reserved_rows(op, thread, buffer, buffer.format.bytes_of(full_width * TILE))
        for row, data in enumerate(buffer.format.pack(np.hstack(tiles))):
            thread.core.store(start + row * buffer.page_bytes + part * len(data), data)

    return run


BUILDERS: dict[str, Builder] = {
    "ttkernel.tilize_init": tilize_init,
    "ttkernel.tilize_block": tilize_block,
    "ttkernel.tilize_uninit": tilize_uninit,
    "ttkernel.pack_untilize_dest_init": untilize_init,
    "ttkernel.pack_untilize_dest": pack_untilize,
    "ttkernel.pack_untilize_uninit": untilize_uninit,
}
