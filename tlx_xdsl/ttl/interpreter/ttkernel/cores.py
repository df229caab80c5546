"""A core: its memory as bytes, the circular buffers in it, and its semaphores.

Bytes that hold nothing are poisoned, and known to be: every bit is set (NaN as a float), and `valid` is False.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import Attribute, Operation

from tlx_xdsl.interpreter.faults import fault_at, location_of
from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.ttl.dialects.ttcore import TileType

from .threads import Thread
from .tile_math import dtype_of

L1_BYTES = 1_499_136
"""Bytes of a core's memory that kernels can have."""
ALIGNMENT = 32
"""Of circular buffers, in bytes."""
NOC_ALIGNMENT = 16
"""Of the addresses in a core's memory that transfers read and write, in bytes."""
SEMAPHORES = 16
"""Of a core."""
SEMAPHORE_BASE = L1_BYTES
"""Address of the first semaphore: after all that circular buffers can have."""


@dataclass(eq=False)
class Claim:
    """Pages that a thread has reserved, or waited for, from a circular buffer."""

    thread: Thread
    op: Operation
    pages: int


@dataclass(eq=False)
class CircularBuffer:
    """A ring of pages: one thread reserves, writes and pushes them, one waits for them, reads and pops them."""

    op: Operation
    """What declares it."""
    index: int
    base: int
    pages: int
    page_bytes: int
    element: Attribute
    """A tile, or the type of the elements of rows."""
    name: str = ""
    shares: list[CircularBuffer] = field(default_factory=list["CircularBuffer"])
    """Others at the same addresses."""
    received: int = 0
    """Pages pushed since the start."""
    acked: int = 0
    """Pages popped since the start."""
    reserved: Claim | None = None
    waited: Claim | None = None
    producer: tuple[Thread, Operation] | None = None
    consumer: tuple[Thread, Operation] | None = None
    read: dict[int, Operation] = field(default_factory=dict[int, Operation])
    """Pages, counted from the start, that were read, each with what has read it last."""
    packed: int = 0
    """Tiles packed into the reservation in their order."""

    def __post_init__(self) -> None:
        element = self.element
        self.dtype = dtype_of(element.data_type if isinstance(element, TileType) else element)

    @property
    def label(self) -> str:
        """How messages call it."""
        return f"circular buffer '{self.name}'" if self.name else f"circular buffer {self.index}"

    @property
    def end(self) -> int:
        """The first address after it."""
        return self.base + self.pages * self.page_bytes

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in it or may come into it."""
        return self.received == self.acked and self.reserved is None and self.waited is None

    def address(self, page: int) -> int:
        """The address of a page that is counted from the start."""
        return self.base + page % self.pages * self.page_bytes


@dataclass(eq=False)
class Arrival:
    """An update by another thread that its owner has not waited for yet."""

    op: Operation
    thread: Thread
    is_set: bool


@dataclass(eq=False)
class Semaphore:
    """A word of a core's memory that threads wait for."""

    index: int
    value: int
    arrivals: list[Arrival] = field(default_factory=list[Arrival])
    changes: int = 0
    waited: dict[Thread, tuple[int, int]] = field(default_factory=dict[Thread, tuple[int, int]])
    """The value that a thread waited for last, and the changes up to then."""

    @property
    def address(self) -> int:
        """Its address, the same on each core."""
        return SEMAPHORE_BASE + 16 * self.index


@dataclass(eq=False)
class Core:
    """A core of the grid."""

    x: int
    y: int
    buffers: dict[int, CircularBuffer]
    """By their numbers."""
    semaphores: list[Semaphore]
    size: int
    """Bytes of memory that circular buffers take."""

    def __post_init__(self) -> None:
        self.memory = np.full(self.size, 0xFF, np.uint8)
        self.valid = np.zeros(self.size, np.bool_)

    @property
    def label(self) -> str:
        """How messages call it."""
        return f"core ({self.x}, {self.y})"

    def poison(self, start: int, size: int) -> None:
        """Forget what some bytes hold."""
        self.memory[start : start + size] = 0xFF
        self.valid[start : start + size] = False

    def store(self, start: int, data: Array) -> None:
        """Write bytes."""
        self.memory[start : start + len(data)] = data
        self.valid[start : start + len(data)] = True

    def buffer_at(self, start: int, size: int) -> CircularBuffer | None:
        """The circular buffer that has these addresses; of several the one that is in use."""
        found = [each for each in self.buffers.values() if each.base <= start and start + size <= each.end]
        if not found:
            return None
        return next((each for each in found if not each.is_idle), found[0])


def make_core(x: int, y: int, buffers: list[CircularBuffer], semaphores: list[int]) -> Core:
    """A core with circular buffers, and semaphores with initial values.

    Raises Fault for buffers where none can be.
    """
    for each in buffers:
        if each.base % ALIGNMENT:
            raise fault_at(each.op, f"{each.label} is at address {each.base}: expected a multiple of {ALIGNMENT}")
        if each.base < 0 or each.end > L1_BYTES:
            raise fault_at(
                each.op,
                f"{each.label} takes the bytes up to {each.end}, but a core has {L1_BYTES}: "
                "use smaller blocks or a smaller buffer_factor",
            )
        for other in buffers:
            if other is not each and other.base < each.end and each.base < other.end:
                each.shares.append(other)
    size = max((each.end for each in buffers), default=0)
    made = {each.index: each for each in buffers}
    return Core(x, y, made, [Semaphore(index, value) for index, value in enumerate(semaphores)], size)


def shown(claim: Claim | None, verb: str) -> list[str]:
    """A note on who has claimed pages."""
    if claim is None:
        return []
    return [f"{location_of(claim.op)}: {claim.thread.label} {verb} {claim.pages} pages here"]
