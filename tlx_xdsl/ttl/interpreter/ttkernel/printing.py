"""Text of threads: each line begins with the core and the thread, as the host of a device shows it."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.ttl.tiles import TILE, from_faces

from .circular_buffers import read_tile, reserved_tile
from .machine import CircularBuffer, CoreThread, wrong
from .translate import Builder, Local, attribute, integer


def write(thread: CoreThread, text: str) -> None:
    """Write text of a thread, line by line."""
    for line in text.splitlines() or [""]:
        print(f"({thread.x},{thread.y}) {thread.name}: {line}")


def elements_text(values: Array) -> str:
    """Rows of numbers; of many, the first and the last ones."""
    with np.printoptions(precision=4, linewidth=160, suppress=True):
        return str(values.astype(np.float32) if values.dtype.kind == "V" else values)


def buffer_text(buffer: CircularBuffer) -> str:
    """The size and the state of a circular buffer."""
    return (
        f"{buffer.label}: {buffer.pages} pages of {buffer.page_bytes} bytes, {buffer.received} pushed, "
        f"{buffer.acked} popped, read at {buffer.address(buffer.acked)}, written at {buffer.address(buffer.received)}"
    )


def format_of(op: Operation) -> str:
    """The text of an operation, with `{}` in the place of values."""
    found = attribute(op, "format")
    assert isinstance(found, StringAttr)
    return found.data


def _integers(op: Operation) -> Local:
    def run(thread: CoreThread, *values: int) -> None:
        write(thread, format_of(op).format(*values))

    return run


def _state(op: Operation) -> Local:
    def run(thread: CoreThread, buffer: CircularBuffer) -> None:
        write(thread, buffer_text(buffer))

    return run


def _tiles(op: Operation) -> Local:
    count, is_written = integer(op, "tiles"), attribute(op, "written") is not None

    def read(thread: CoreThread, buffer: CircularBuffer, tile: int) -> Array:
        if not is_written:
            return read_tile(op, thread, buffer, tile)
        start = reserved_tile(op, thread, buffer, tile)
        end = start + buffer.page_bytes
        if not thread.core.valid[start:end].all():
            raise wrong(op, thread, f"prints tile {tile} of {buffer.label}, which was not written")
        return buffer.format.unpack(thread.core.memory[start:end])

    def run(thread: CoreThread, buffer: CircularBuffer) -> None:
        for tile in range(count):
            values = read(thread, buffer, tile)
            write(thread, elements_text(from_faces(values) if values.size == TILE * TILE else values))

    return run


BUILDERS: dict[str, Builder] = {
    "ttkernel.dprint": _integers,
    "ttkernel.dprint_buffer": _state,
    "ttkernel.dprint_tiles": _tiles,
}
