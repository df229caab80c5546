"""The state of a run: cores, their threads, the tensors in DRAM, and what is under way on the network on chip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import Attribute, Operation

from tlx_xdsl.interpreter.faults import Fault, fault_at, location_of
from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.text.diagnostics import Diagnostic, source_location
from tlx_xdsl.ttl.dialects.ttcore import ARCHITECTURES, L1_BYTES, TileType
from tlx_xdsl.ttl.formats import format_for
from tlx_xdsl.ttl.tiles import PageLayout

from .clocks import START, Clock, Moment, PageAccesses, Trail
from .threads import Thread, Update
from .translate import Local, Touch

# A core: its memory as bytes, the circular buffers in it, and its semaphores.
#
# Bytes that hold nothing are poisoned, and known to be: every bit is set (NaN as a float), and `valid` is False.

ALIGNMENT = 32
"""Of circular buffers, in bytes."""
NOC_ALIGNMENT = 16
"""Of the addresses in a core's memory that transfers read and write, in bytes."""
SEMAPHORES = 16
"""Of a core."""
SEMAPHORE_BASE = max(each.l1_bytes for each in ARCHITECTURES.values())
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
    pushes: Trail = field(default_factory=Trail)
    pops: Trail = field(default_factory=Trail)

    def __post_init__(self) -> None:
        element = self.element
        self.format = format_for(element.data_type if isinstance(element, TileType) else element)

    @property
    def label(self) -> str:
        """Return how messages call it."""
        return f"circular buffer '{self.name}'" if self.name else f"circular buffer {self.index}"

    @property
    def end(self) -> int:
        """The first address after it."""
        return self.base + self.pages * self.page_bytes

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is in it or may come into it."""
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
    history: list[tuple[int, Moment]] = field(default_factory=list[tuple[int, Moment]])
    """The values since it was set, each with the moment that has made it."""

    def __post_init__(self) -> None:
        self.history.append((self.value, START))

    def set(self, value: int, moment: Moment) -> None:
        """Forget all values before."""
        self.value = value
        self.changes += 1
        self.history = [(value, moment)]

    def add(self, value: int, moment: Moment) -> None:
        """Add to the value."""
        self.value += value
        self.changes += 1
        self.history.append((self.value, moment))

    @property
    def address(self) -> int:
        """Return the semaphore's address, the same on each core."""
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
        """Return how messages call it."""
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


def make_core(x: int, y: int, buffers: list[CircularBuffer], semaphores: list[int], l1_bytes: int = L1_BYTES) -> Core:
    """A core with circular buffers, and semaphores with initial values.

    Raises Fault for buffers where none can be.
    """
    for each in buffers:
        if each.base % ALIGNMENT:
            raise fault_at(each.op, f"{each.label} is at address {each.base}: expected a multiple of {ALIGNMENT}")
        if each.base < 0 or each.end > l1_bytes:
            raise fault_at(
                each.op,
                f"{each.label} takes the bytes up to {each.end}, but a core has {l1_bytes}: "
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


ORIGIN = (1, 2)
"""The coordinates on the network of the core that is (0, 0) in the grid: other ones, so that mixing them is found."""
DRAM_BASE, DRAM_STEP = 0x1000_0000, 0x0100_0000
"""Address of the first tensor, and from one to the next."""


@dataclass(eq=False)
class Tensor:
    """A tensor in DRAM, as pages of bytes."""

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    layout: PageLayout
    pages: Array
    """[page, byte]"""
    reads: dict[int, list[tuple[Thread, Operation]]] = field(default_factory=dict[int, list[tuple[Thread, Operation]]])
    """Who has read a page."""
    accesses: dict[int, PageAccesses] = field(default_factory=dict[int, PageAccesses])
    """Those of each page that later ones are compared with."""
    written: set[int] = field(default_factory=set[int])
    """Pages that were written."""
    overwritten: dict[int, tuple[Operation, Operation]] = field(default_factory=dict[int, tuple[Operation, Operation]])
    """Pages that a thread has written twice without a read in between."""

    @property
    def base(self) -> int:
        """Return the tensor's address."""
        return DRAM_BASE + self.index * DRAM_STEP


@dataclass(eq=False)
class Transfer:
    """A transfer that a thread has begun: it takes effect at the thread's barrier."""

    op: Operation
    words: str
    """What it is, for messages: `read of tensor 'a'`."""
    is_read: bool
    local: int
    """Its first address in the memory of the thread's core."""
    local_end: int
    land: Callable[[], None]
    touches: tuple[Touch, ...]
    targets: Sequence[Core] = ()
    """Cores whose memory it changes, at `remote` and on."""
    remote: int = 0
    remote_end: int = 0


@dataclass(eq=False)
class CoreThread(Thread):
    """A thread of a core: a function of the module."""

    machine: Machine = None  # pyright: ignore[reportAssignmentType]
    core: Core = None  # pyright: ignore[reportAssignmentType]
    tensors: tuple[int, ...] = ()
    """The tensors that the function works with: their addresses are its common runtime arguments."""
    transfers: list[Transfer] = field(default_factory=list[Transfer])
    posted: list[Update] = field(default_factory=list[Update])
    """Updates of semaphores that are under way."""
    noc: int = 0
    """The network on chip of the thread's processor."""
    registers: Any = None
    """The destination registers of a compute thread."""
    end: Operation | None = None

    def __post_init__(self) -> None:
        self.clock = Clock(self.agent)

    def ended(self) -> None:
        """Check that no transfer is under way, and nothing is held."""
        self.machine.thread_ends(self)


@dataclass(eq=False)
class Machine:
    """A grid of cores that run the threads of a kernel."""

    grid: tuple[int, int]
    cores: dict[tuple[int, int], Core]
    tensors: list[Tensor]
    checks: bool
    threads: list[Thread] = field(default_factory=list[Thread])
    updates: list[Update] = field(default_factory=list[Update])
    orders_signals: bool = True
    """As `Architecture.orders_signals`."""
    serial: int = 0
    noc_bytes: int = 0
    columns: tuple[int, ...] = ()
    """The columns of the grid on the network, counted from the first one."""
    order: np.random.Generator | None = None
    """Lets transfers land in any order; none: in the order in which they began."""
    warnings: dict[Operation, Diagnostic] = field(default_factory=dict[Operation, Diagnostic])
    at_end: Callable[[CoreThread], None] | None = None
    who_supplies: Callable[[Thread], Sequence[str]] | None = None

    def warn(self, op: Operation, message: str) -> None:
        """Say something about an operation that may be meant, once."""
        self.warnings.setdefault(op, Diagnostic("warning", message, source_location(op.location)))

    def thread_ends(self, thread: CoreThread) -> None:
        """Check what a thread leaves."""
        if self.at_end is not None:
            self.at_end(thread)

    def supplies(self, thread: Thread) -> Sequence[str]:
        """Lines on who could let a blocked thread go on."""
        return () if self.who_supplies is None else self.who_supplies(thread)

    def post(self, op: Operation, thread: CoreThread, apply: Callable[[], None], touches: tuple[Touch, ...]) -> None:
        """Let something take effect some time from now on."""
        update = Update(self.serial, op, thread, lambda: _land(thread, update, apply), touches)
        self.serial += 1
        thread.posted.append(update)
        self.updates.append(update)

    def in_any_order(self, transfers: list[Transfer]) -> list[Transfer]:
        """The order in which transfers land."""
        if self.order is None or len(transfers) < 2:
            return transfers
        keys: list[float] = self.order.random(len(transfers)).tolist()
        return [transfers[number] for number in sorted(range(len(transfers)), key=keys.__getitem__)]

    def transfers_to(self, core: Core, start: int, size: int) -> list[str]:
        """Notes on transfers of other threads that will change some bytes of a core."""
        found: list[str] = []
        for thread in self.threads:
            for each in thread.transfers if isinstance(thread, CoreThread) else ():
                if core in each.targets and each.remote < start + size and start < each.remote_end:
                    found.append(
                        f"{location_of(each.op)}: {thread.label} has begun a {each.words}, without a barrier yet"
                    )
        return found


def of_thread(run: Callable[[CoreThread], Any]) -> Local:
    """An operation without operands."""
    return run


def _land(thread: CoreThread, update: Update, apply: Callable[[], None]) -> None:
    thread.posted.remove(update)
    apply()


def wrong(op: Operation, thread: Thread, message: str, notes: Sequence[str] = ()) -> Fault:
    """The fault of an operation that a thread runs."""
    return fault_at(op, f"{thread.label} {message}", notes)


def page_count(count: int, which: str = "") -> str:
    """`1 page`, `4 free pages`."""
    return f"{count} {which + ' ' if which else ''}page{'' if count == 1 else 's'}"
