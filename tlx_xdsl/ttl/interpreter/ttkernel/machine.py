"""The state of a run: cores, their threads, the tensors in DRAM, and what is under way on the network on chip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.interpreter.faults import Fault, fault_at, location_of
from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.text.diagnostics import Diagnostic, source_location
from tlx_xdsl.ttl.tiles import PageLayout

from .cores import Core
from .threads import Thread, Update
from .translate import Local, Touch

ORIGIN = (1, 2)
"""The coordinates on the network of the core that is (0, 0) in the grid: other ones, so that mixing them is found."""
DRAM_BASE, DRAM_STEP = 0x1000_0000, 0x0100_0000
"""Address of the first tensor, and from one to the next."""


@dataclass(eq=False)
class Tensor:
    """A tensor in DRAM, as pages of bytes."""

    index: int
    name: str
    shape: tuple[int, int]
    dtype: str
    layout: PageLayout
    pages: Array
    """[page, byte]"""
    reads: dict[int, list[Operation]] = field(default_factory=dict[int, list[Operation]])
    """Who has read a page of the input."""
    writes: dict[int, list[tuple[Thread, Operation]]] = field(default_factory=dict[int, list[tuple[Thread, Operation]]])
    """Who has written a page since it was read."""
    written: set[int] = field(default_factory=set[int])
    """Pages that were written."""
    overwritten: dict[int, tuple[Operation, Operation]] = field(default_factory=dict[int, tuple[Operation, Operation]])
    """Pages that were written twice without a read in between."""

    @property
    def base(self) -> int:
        """Its address."""
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
    registers: Any = None
    """The destination registers of a compute thread."""
    end: Operation | None = None

    def ended(self) -> None:
        """Nothing may be under way, and nothing held."""
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
    serial: int = 0
    noc_bytes: int = 0
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
