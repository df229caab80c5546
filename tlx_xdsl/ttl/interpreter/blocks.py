"""Blocks in circular buffers: the steps of the protocol, and the views that they give.

A block lies in the memory of its core as rows of elements, tile after tile; its circular buffer counts blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from xdsl.ir import Attribute, Operation

from tlx_xdsl.interpreter.faults import location_of
from tlx_xdsl.numerics.arrays import Array

from ..dialects.ttcore import TileType
from ..dialects.ttl.types import CBType
from ..formats import format_for
from .ttkernel import circular_buffers
from .ttkernel.machine import CircularBuffer, Claim, CoreThread, wrong
from .ttkernel.translate import Builder, Local, Step, Touch, integer


@dataclass(frozen=True)
class View:
    """The place of blocks that a thread has waited for, or reserved."""

    thread: CoreThread
    buffer: CircularBuffer
    claim: Claim
    first: int
    """The first block, counted from the start."""
    count: int
    shape: tuple[int, ...]
    """Of the elements."""
    is_written: bool
    """Whether the thread writes it: it has reserved it."""

    @property
    def start(self) -> int:
        """Return the address of the first block."""
        return self.buffer.address(self.first)

    @property
    def size(self) -> int:
        """Return the size of the blocks in bytes."""
        return self.count * self.buffer.page_bytes

    def check_held(self, op: Operation) -> None:
        """Check that its blocks are still the thread's; raises Fault."""
        buffer = self.buffer
        claim, at = (buffer.reserved, buffer.received) if self.is_written else (buffer.waited, buffer.acked)
        if claim is not self.claim or self.first < at:
            verb = "pushed" if self.is_written else "popped"
            raise wrong(
                op, self.thread, f"uses a block of {buffer.label} after it was {verb}",
                [f"{location_of(self.claim.op)}: it is the block of this"],
            )  # fmt: skip

    def read(self, op: Operation) -> Array:
        """The elements; raises Fault if it was not written, or not waited for."""
        self.check_held(op)
        core = self.thread.core
        if not core.valid[self.start : self.start + self.size].all():
            pending = circular_buffers.pending(self.thread, self.start, self.size)
            notes = [] if pending is None else [f"{location_of(pending.op)}: a {pending.words} is not waited for"]
            raise wrong(op, self.thread, f"reads a block of {self.buffer.label}, which was not written", notes)
        if not self.is_written:
            self.buffer.read.update(dict.fromkeys(range(self.first, self.first + self.count), op))
        data = core.memory[self.start : self.start + self.size]
        return self.buffer.format.unpack(data.reshape(self.count, -1)).reshape(self.shape)

    def write(self, op: Operation, values: Array) -> None:
        """Write all elements; raises Fault if the blocks were not reserved."""
        self.write_part(op, values.reshape(self.count, -1), 0)

    def write_part(self, op: Operation, values: Array, number: int) -> None:
        """Write a part of the elements, counted in parts of that size; raises Fault if they were not reserved."""
        self.check_held(op)
        if not self.is_written:
            raise wrong(op, self.thread, f"writes a block of {self.buffer.label} that it has waited for, not reserved")
        data = self.buffer.format.pack(values).reshape(-1)
        self.thread.core.store(self.start + number * len(data), data)


def elements(shape: tuple[int, ...], element: Attribute) -> tuple[int, ...]:
    """The shape of a block's elements."""
    return (*shape, element.rows, element.columns) if isinstance(element, TileType) else shape


def make_buffer(op: Operation, index: int, base: int, name: str) -> CircularBuffer:
    """A circular buffer whose pages are blocks."""
    type_ = op.results[0].type
    assert isinstance(type_, CBType)
    size = format_for(type_.data_type).bytes_of(prod(elements(type_.shape, type_.element_type)))
    return CircularBuffer(op, index, base, type_.buffer_factor, size, type_.element_type, name)


def _acquire(step: Builder, *, reserves: bool) -> Builder:
    """A step that gives a view."""

    def build(op: Operation) -> Step:
        made = step(op)
        assert isinstance(made, Step) and made.ready is not None and made.waits_for is not None
        count = integer(op, "blocks", 1)
        inner, ready, waits_for = made.run, made.ready, made.waits_for
        type_: Any = op.results[0].type
        shape = elements(tuple(type_.get_shape()), type_.get_element_type())

        def run(thread: CoreThread, buffer: CircularBuffer) -> View:
            inner(thread, buffer, count)
            claim = buffer.reserved if reserves else buffer.waited
            assert claim is not None
            return View(thread, buffer, claim, buffer.received if reserves else buffer.acked, count, shape, reserves)

        def is_ready(thread: CoreThread, buffer: CircularBuffer) -> bool:
            return ready(thread, buffer, count)

        def reason(thread: CoreThread, buffer: CircularBuffer) -> str:
            return waits_for(thread, buffer, count).replace("page", "block")

        def touches(thread: CoreThread, buffer: CircularBuffer) -> tuple[Touch, ...]:
            return made.touches(thread, buffer, count)

        return Step(op, run, is_ready, reason, touches)

    return build


def _release(step: Builder) -> Builder:
    def build(op: Operation) -> Step:
        made = step(op)
        assert isinstance(made, Step)
        count = integer(op, "blocks", 1)

        def run(thread: CoreThread, buffer: CircularBuffer) -> None:
            made.run(thread, buffer, count)

        def touches(thread: CoreThread, buffer: CircularBuffer) -> tuple[Touch, ...]:
            return made.touches(thread, buffer, count)

        return Step(op, run, touches=touches)

    return build


def _block(op: Operation) -> Local:
    """Take a block of several."""

    def run(thread: CoreThread, view: View, index: int) -> View:
        if not 0 <= index < view.count:
            raise wrong(op, thread, f"takes block {index} of {view.count}")
        return View(thread, view.buffer, view.claim, view.first + index, 1, view.shape[1:], view.is_written)

    return run


BUILDERS: dict[str, Builder] = {
    "ttl.cb_reserve": _acquire(circular_buffers.reserve_back, reserves=True),
    "ttl.cb_push": _release(circular_buffers.push_back),
    "ttl.cb_wait": _acquire(circular_buffers.wait_front, reserves=False),
    "ttl.cb_pop": _release(circular_buffers.pop_front),
    "ttl.block": _block,
}
