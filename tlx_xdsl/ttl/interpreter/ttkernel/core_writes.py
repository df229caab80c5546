"""Transfers to the memories of other cores: their threads must have reserved where the bytes arrive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation

from tlx_xdsl.interpreter.faults import location_of
from tlx_xdsl.numerics.arrays import Array

from .machine import ORIGIN, CircularBuffer, Core, CoreThread, Transfer, of_thread, shown, wrong
from .places import claims_source, inside, where
from .translate import Builder, Local, Step, Touch


@dataclass(frozen=True)
class NocAddress:
    """An address in the memories of a rectangle of cores, in the network's coordinates; x0 <= x1, y0 <= y1."""

    x0: int
    y0: int
    x1: int
    y1: int
    address: int


@dataclass(eq=False)
class CoreWrite(Transfer):
    """A write to other cores, which can arrive at one of them earlier than at another."""

    serial: int = 0
    """The number of the next update when it was begun."""
    is_multicast: bool = False
    land_one: Callable[[Core], None] = lambda core: None
    arrived: set[Core] = field(default_factory=set[Core])

    def land_everywhere(self) -> None:
        """Let it take effect at each core where it has not."""
        for core in self.targets:
            self.land_at(core)

    def land_at(self, core: Core) -> None:
        """Let it take effect at a core, once."""
        if core not in self.arrived:
            self.arrived.add(core)
            self.land_one(core)


def noc_address(op: Operation) -> Local:
    """An address in the memory of a core."""

    def run(thread: CoreThread, x: int, y: int, address: int) -> NocAddress:
        return _checked_address(op, thread, NocAddress(x, y, x, y, address))

    return run


def multicast_address(op: Operation) -> Local:
    """An address in the memories of a rectangle of cores."""

    def run(thread: CoreThread, x0: int, y0: int, x1: int, y1: int, address: int) -> NocAddress:
        first, last = ((x1, y1), (x0, y0)) if thread.noc else ((x0, y0), (x1, y1))
        if first[0] > last[0] or first[1] > last[1]:
            way = "larger to smaller" if thread.noc else "smaller to larger"
            message = f"multicasts from ({x0}, {y0}) to ({x1}, {y1}), but NOC_{thread.noc} goes from {way} coordinates"
            raise wrong(op, thread, message)
        return _checked_address(op, thread, NocAddress(*first, *last, address))

    return run


def _checked_address(op: Operation, thread: CoreThread, made: NocAddress) -> NocAddress:
    columns, rows = thread.machine.grid
    for x, y in ((made.x0, made.y0), (made.x1, made.y1)):
        if x - ORIGIN[0] not in thread.machine.columns or not 0 <= y - ORIGIN[1] < rows:
            notes: list[str] = []
            if 0 <= x < columns and 0 <= y < rows:
                notes.append("these are coordinates of the grid: the network has coordinates of its own")
            raise wrong(
                op,
                thread,
                f"names the core ({x}, {y}) of the network, which is none of the {columns}x{rows} grid",
                notes,
            )
    return made


def cores_of(thread: CoreThread, address: NocAddress) -> list[Core]:
    """The cores of a rectangle."""
    columns = [x for x, at in enumerate(thread.machine.columns) if address.x0 <= at + ORIGIN[0] <= address.x1]
    rows = range(address.y0 - ORIGIN[1], address.y1 - ORIGIN[1] + 1)
    return [thread.machine.cores[x, y] for y in rows for x in columns]


def receivers(
    op: Operation, thread: CoreThread, address: NocAddress, num_dests: int | None, *, loopback: bool
) -> list[Core]:
    """The cores that a multicast, or without `num_dests` a single write, reaches; there must be as many as given."""
    cores = cores_of(thread, address)
    if num_dests is None:
        return cores
    if not loopback:
        cores = [core for core in cores if core is not thread.core]
    elif thread.core not in cores:
        raise wrong(op, thread, "multicasts with loopback to a range without its own core")
    if num_dests != len(cores):
        raise wrong(
            op, thread,
            f"multicasts to {len(cores)} cores, but says num_dests = {num_dests}, and its barrier waits for so many",
        )  # fmt: skip
    if num_dests == 1:
        raise wrong(
            op, thread, "multicasts to one core: that may hang",
            ["write to a single core with 'noc_async_write' and 'noc_semaphore_set_remote'"],
        )  # fmt: skip
    return cores


def _core_write(op: Operation, *, multicast: bool = False, loopback: bool = False) -> Step:
    """Begin to write bytes to other cores, whose threads must have reserved them."""

    def run(thread: CoreThread, source: int, address: NocAddress, size: int, num_dests: int | None = None) -> None:
        targets = receivers(op, thread, address, num_dests if multicast else None, loopback=loopback)
        words = f"write of {size} bytes to {_names(targets)}"
        if size <= 0:
            raise wrong(op, thread, f"begins a {words}")
        buffer = thread.core.buffer_at(source, 1)
        page = 1 if buffer is None else buffer.page_bytes
        if size % page:
            raise wrong(op, thread, f"begins a {words} from {page_bytes(buffer)}: expected a multiple")
        claims_source(op, thread, source, size, page, words)
        for core in targets:
            if core is not thread.core or address.address != source:
                _reserved_there(op, thread, core, address.address, size, words)
        start, machine = address.address, thread.machine
        transfer = CoreWrite(
            op, words, False, source, source + size,
            lambda: transfer.land_everywhere(),
            _touches_targets(targets, start, size), targets, start, start + size,
            serial=machine.serial, is_multicast=multicast,
            land_one=lambda core: _land_core_write(op, thread, core, source, start, size, words),
        )  # fmt: skip
        thread.transfers.append(transfer)
        machine.noc_bytes += size * len(targets)

    def touches(
        thread: CoreThread, source: int, address: NocAddress, size: int, num_dests: int = 0
    ) -> tuple[Touch, ...]:
        return _touches_targets(cores_of(thread, address), address.address, size)

    return Step(op, run, touches=touches)


def page_bytes(buffer: CircularBuffer | None) -> str:
    """`pages of 4096 bytes`."""
    return "no page" if buffer is None else f"pages of {buffer.page_bytes} bytes"


def _names(targets: Sequence[Core]) -> str:
    return targets[0].label if len(targets) == 1 else f"{len(targets)} cores"


def _reserved_there(op: Operation, thread: CoreThread, core: Core, start: int, size: int, words: str) -> None:
    """Check that the bytes that will arrive at a core are reserved there."""
    buffer = core.buffer_at(start, size)
    claim = None if buffer is None else buffer.reserved
    if buffer is None or claim is None or not inside(buffer, buffer.received, claim.pages, start, size):
        place = f"bytes {start} to {start + size}" if buffer is None else where(buffer, start, size)
        raise wrong(
            op, thread, f"has begun a {words}, but {place} is not reserved on {core.label}", shown(claim, "reserved")
        )  # fmt: skip
    if claim.thread is not thread:
        for each in thread.machine.threads:
            for other in each.transfers if isinstance(each, CoreThread) and each is not thread else ():
                if core in other.targets and other.remote < start + size and start < other.remote_end:
                    raise wrong(
                        op, thread, f"has begun a {words} where another transfer is under way",
                        [f"{location_of(other.op)}: {each.label} has begun a {other.words}"],
                    )  # fmt: skip


def _land_core_write(
    op: Operation, thread: CoreThread, core: Core, source: int, start: int, size: int, words: str
) -> None:
    data: Array = thread.core.memory[source : source + size].copy()
    if core is not thread.core or start != source:
        _reserved_there(op, thread, core, start, size, words)
    core.store(start, data)


def overtaken(thread: CoreThread, core: Core, serial: int, *, is_multicast: bool) -> list[CoreWrite]:
    """Writes to a core that arrive before a signal which the thread has begun later, though it has no barrier yet.

    A thread has one network, and writes of one channel arrive in their order there: unicasts and increments have one,
    multicasts another (TT-Metalium, "Ordering (NOC, CMD_BUF, VC)"). On Blackhole they may leave the core in another
    order, since they have different command buffers: there only a barrier helps.
    """
    if not thread.machine.orders_signals:
        return []
    return [
        each for each in thread.transfers
        if isinstance(each, CoreWrite) and each.is_multicast == is_multicast
        and each.serial <= serial and core in each.targets and core not in each.arrived
    ]  # fmt: skip


def _touches_targets(targets: Sequence[Core], start: int, size: int) -> tuple[Touch, ...]:
    found = [(core, core.buffer_at(start, size)) for core in targets]
    return tuple(("arrive", buffer) for _, buffer in found if buffer is not None)


def _virtual_x(op: Operation) -> Local:
    def run(thread: CoreThread, x: int) -> int:
        if not 0 <= x < len(thread.machine.columns):
            raise wrong(op, thread, f"asks for the network's coordinate of column {x}, which the grid does not have")
        return thread.machine.columns[x] + ORIGIN[0]

    return run


BUILDERS: dict[str, Builder] = {
    "ttkernel.get_noc_addr": noc_address,
    "ttkernel.get_noc_multicast_addr": multicast_address,
    "ttkernel.noc_async_write": _core_write,
    "ttkernel.noc_async_write_multicast": lambda op: _core_write(op, multicast=True),
    "ttkernel.noc_async_write_multicast_loopback_src": lambda op: _core_write(op, multicast=True, loopback=True),
    "ttkernel.my_x": lambda _: of_thread(lambda thread: thread.machine.columns[thread.x] + ORIGIN[0]),
    "ttkernel.my_y": lambda _: of_thread(lambda thread: thread.y + ORIGIN[1]),
    "ttkernel.my_logical_x": lambda _: of_thread(lambda thread: thread.x),
    "ttkernel.my_logical_y": lambda _: of_thread(lambda thread: thread.y),
    "ttkernel.virtual_x": _virtual_x,
}
