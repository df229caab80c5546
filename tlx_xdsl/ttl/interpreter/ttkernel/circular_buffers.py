"""The steps of a circular buffer's protocol, and what a thread may touch between them.

A producer reserves pages, writes each of them, and pushes them; a consumer waits for pages, reads each of them, and
pops them. Counts are pages, and divide those of the buffer, so that no block wraps around the end of the ring. Only
steps of the same thread are compared, but for the counts: a fault that is found here is found in every schedule.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation

from tlx_xdsl.interpreter.faults import Fault, location_of
from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.ttl.tiles import TILE

from .machine import CircularBuffer, Claim, CoreThread, Transfer, page_count, shown, wrong
from .threads import Thread
from .translate import Builder, Local, Step, Touch


def reserve_back(op: Operation) -> Step:
    """Wait until so many pages are free."""

    def ready(thread: CoreThread, buffer: CircularBuffer, count: int) -> bool:
        return buffer.pages - (buffer.received - buffer.acked) >= count or count > buffer.pages

    def run(thread: CoreThread, buffer: CircularBuffer, count: int) -> None:
        _own(op, thread, buffer, "producer")
        _check_count(op, thread, buffer, count)
        if (claim := buffer.reserved) is not None:
            raise wrong(op, thread, f"reserves {buffer.label} again before it has pushed", shown(claim, "reserved"))
        for other in buffer.shares:
            if not other.is_idle:
                raise _overlap(op, thread, buffer, other)
        _check_wrap(op, thread, buffer, buffer.received, count)
        thread.clock.acquire(buffer.pops.reached(buffer.received + count - buffer.pages))
        buffer.reserved = Claim(thread, op, count)
        buffer.packed = 0

    def waits_for(thread: CoreThread, buffer: CircularBuffer, count: int) -> str:
        free = buffer.pages - (buffer.received - buffer.acked)
        other = _other(thread, buffer.producer, "producer")
        return f"waits for {page_count(count, 'free')} of {buffer.label}, which has {free} of {buffer.pages}{other}"

    return Step(op, run, ready, waits_for, _touches("reserve"))


def push_back(op: Operation) -> Step:
    """Give pages to the consumer."""

    def run(thread: CoreThread, buffer: CircularBuffer, count: int) -> None:
        _own(op, thread, buffer, "producer")
        claim = _claimed(op, thread, buffer, count, "pushes", "reserved")
        core = thread.core
        for page in range(buffer.received, buffer.received + count):
            start = buffer.address(page)
            _check_barrier(op, thread, buffer, start, "pushes")
            if not core.valid[start : start + buffer.page_bytes].all():
                offset = page - buffer.received
                notes = [*shown(claim, "reserved"), *thread.machine.transfers_to(core, start, buffer.page_bytes)]
                raise wrong(
                    op, thread, f"pushes page {offset} of {count} of {buffer.label}, which was not written", notes
                )
        buffer.received += count
        buffer.pushes.add(buffer.received, thread.clock.release())
        claim.pages -= count
        buffer.packed = 0
        if not claim.pages:
            buffer.reserved = None

    return Step(op, run, touches=_touches("push"))


def wait_front(op: Operation) -> Step:
    """Wait until so many pages were pushed."""

    def ready(thread: CoreThread, buffer: CircularBuffer, count: int) -> bool:
        return buffer.received - buffer.acked >= count or count > buffer.pages

    def run(thread: CoreThread, buffer: CircularBuffer, count: int) -> None:
        _own(op, thread, buffer, "consumer")
        _check_count(op, thread, buffer, count)
        if (claim := buffer.waited) is not None:
            raise wrong(
                op, thread, f"waits for {buffer.label} again before it has popped: that gives the same pages",
                shown(claim, "waited for"),
            )  # fmt: skip
        _check_wrap(op, thread, buffer, buffer.acked, count)
        thread.clock.acquire(buffer.pushes.reached(buffer.acked + count))
        buffer.waited = Claim(thread, op, count)

    def waits_for(thread: CoreThread, buffer: CircularBuffer, count: int) -> str:
        other = _other(thread, buffer.consumer, "consumer")
        return f"waits for {page_count(count)} of {buffer.label}, which has {buffer.received - buffer.acked}{other}"

    return Step(op, run, ready, waits_for, _touches("wait"))


def pop_front(op: Operation) -> Step:
    """Give pages back to the producer."""

    def run(thread: CoreThread, buffer: CircularBuffer, count: int) -> None:
        _own(op, thread, buffer, "consumer")
        claim = _claimed(op, thread, buffer, count, "pops", "waited for")
        core = thread.core
        if thread.machine.checks and "internal" not in buffer.op.properties:
            _check_read(op, thread, buffer, count)
        for page in range(buffer.acked, buffer.acked + count):
            start = buffer.address(page)
            _check_barrier(op, thread, buffer, start, "pops")
            buffer.read.pop(page, None)
            core.poison(start, buffer.page_bytes)
        buffer.acked += count
        buffer.pops.add(buffer.acked, thread.clock.release())
        claim.pages -= count
        if not claim.pages:
            buffer.waited = None

    return Step(op, run, touches=_touches("pop"))


def write_pointer(op: Operation) -> Local:
    """The address of the first reserved page."""

    def run(thread: CoreThread, buffer: CircularBuffer) -> int:
        if not _pages_of(buffer.reserved, thread):
            raise wrong(op, thread, f"asks where to write in {buffer.label}, but has reserved none of its pages")
        return buffer.address(buffer.received)

    return run


def read_pointer(op: Operation) -> Local:
    """The address of the first page that was waited for."""

    def run(thread: CoreThread, buffer: CircularBuffer) -> int:
        if not _pages_of(buffer.waited, thread):
            raise wrong(op, thread, f"asks where to read in {buffer.label}, but has waited for none of its pages")
        return buffer.address(buffer.acked)

    return run


BUILDERS: dict[str, Builder] = {
    "ttkernel.cb_reserve_back": reserve_back,
    "ttkernel.cb_push_back": push_back,
    "ttkernel.cb_wait_front": wait_front,
    "ttkernel.cb_pop_front": pop_front,
    "ttkernel.get_write_ptr": write_pointer,
    "ttkernel.get_read_ptr": read_pointer,
}


# Accesses ------------------------------------------------------------------------------------------------------------


def read_tile(op: Operation, thread: CoreThread, buffer: CircularBuffer, index: int) -> Array:
    """The elements of a tile that was waited for, in the order in which they lie in memory."""
    claim = buffer.waited
    if not 0 <= index < (have := _pages_of(claim, thread)):
        raise wrong(
            op, thread, f"reads tile {index} of {buffer.label}, but has waited for {page_count(have)}",
            shown(claim, "waited for"),
        )  # fmt: skip
    page = buffer.acked + index
    start = buffer.address(page)
    end = start + buffer.page_bytes
    core = thread.core
    if not core.valid[start:end].all():
        raise wrong(op, thread, f"reads tile {index} of {buffer.label}, which was not written")
    buffer.read[page] = op
    return buffer.format.unpack(core.memory[start:end])


def reserved_tile(op: Operation, thread: CoreThread, buffer: CircularBuffer, index: int) -> int:
    """The address of a tile of the reservation."""
    claim = buffer.reserved
    if not 0 <= index < (have := _pages_of(claim, thread)):
        message = f"packs into tile {index} of {buffer.label}, but has reserved {page_count(have)}"
        raise wrong(op, thread, message, shown(claim, "reserved"))
    return buffer.address(buffer.received + index)


def rows_to_read(op: Operation, thread: CoreThread, buffer: CircularBuffer, first: int, size: int) -> Array:
    """The bytes [32, size] of rows that were waited for, from row `first` on."""
    claim = buffer.waited
    _check_rows(op, thread, buffer, "reads", first, _pages_of(claim, thread), size)
    start = buffer.address(buffer.acked + first)
    end = start + TILE * size
    if not thread.core.valid[start:end].all():
        raise wrong(op, thread, f"reads rows {first} to {first + TILE - 1} of {buffer.label}, which were not written")
    buffer.read.update(dict.fromkeys(range(buffer.acked + first, buffer.acked + first + TILE), op))
    return thread.core.memory[start:end].reshape(TILE, size)


def reserved_rows(op: Operation, thread: CoreThread, buffer: CircularBuffer, size: int) -> int:
    """The address of the first 32 rows of the reservation, each of `size` bytes."""
    _check_rows(op, thread, buffer, "packs into", 0, _pages_of(buffer.reserved, thread), size)
    return buffer.address(buffer.received)


# Checks --------------------------------------------------------------------------------------------------------------


def _pages_of(claim: Claim | None, thread: CoreThread) -> int:
    """The pages that a thread has claimed."""
    return 0 if claim is None or claim.thread is not thread else claim.pages


def _check_rows(
    op: Operation, thread: CoreThread, buffer: CircularBuffer, verb: str, first: int, have: int, size: int
) -> None:
    """Check that a thread has 32 rows from `first` on, each of which is a page of `size` bytes."""
    if buffer.page_bytes != size:
        raise wrong(op, thread, f"{verb} rows of {size} bytes of {buffer.label}, whose pages have {buffer.page_bytes}")
    if have < first + TILE:
        raise wrong(op, thread, f"{verb} rows {first} to {first + TILE - 1} of {buffer.label}, but has {have}")


def _claimed(op: Operation, thread: CoreThread, buffer: CircularBuffer, count: int, verb: str, how: str) -> Claim:
    """The claim of which some pages are given up, which must be that large."""
    claim = buffer.reserved if how == "reserved" else buffer.waited
    if claim is None or not 1 <= count <= claim.pages:
        have = 0 if claim is None else claim.pages
        message = f"{verb} {page_count(count)} of {buffer.label}, but has {how} {have}"
        raise wrong(op, thread, message, shown(claim, how))
    return claim


def _check_barrier(op: Operation, thread: CoreThread, buffer: CircularBuffer, start: int, verb: str) -> None:
    """No transfer of the thread is under way from or to a page that it gives up."""
    if (transfer := pending(thread, start, buffer.page_bytes)) is not None:
        message = f"{verb} {buffer.label} before a barrier for its {transfer.words}"
        raise wrong(op, thread, message, [f"{location_of(transfer.op)}: it is begun here"])


def _check_read(op: Operation, thread: CoreThread, buffer: CircularBuffer, count: int) -> None:
    """Check that each page that is popped was read; none at all may be meant: reads may depend on a condition."""
    unread = [page for page in range(count) if buffer.acked + page not in buffer.read]
    if len(unread) == count:
        thread.machine.warn(op, f"{thread.label} pops {page_count(count)} of {buffer.label}, none of which was read")
    elif unread:
        found = {page - buffer.acked: by for page, by in buffer.read.items() if page < buffer.acked + count}
        reads = [f"{location_of(by)}: page {page} is read here" for page, by in sorted(found.items())]
        message = f"pops page {unread[0]} of {count} of {buffer.label}, which was not read"
        raise wrong(op, thread, message, [*shown(buffer.waited, "waited for"), *reads])


def _other(thread: CoreThread, owner: tuple[Thread, Operation] | None, role: str) -> str:
    """A hint at a protocol with two threads on one side."""
    return "" if owner is None or owner[0] is thread else f"; its {role} is {owner[0].label}"


def _own(op: Operation, thread: CoreThread, buffer: CircularBuffer, role: str) -> None:
    """One thread is the producer of a buffer, and one its consumer."""
    owner: tuple[Thread, Operation] | None = getattr(buffer, role)
    if owner is None:
        setattr(buffer, role, (thread, op))
    elif owner[0] is not thread:
        raise wrong(
            op, thread, f"is a second {role} of {buffer.label}: a circular buffer has one",
            [f"{location_of(owner[1])}: the first {role} is {owner[0].label}"],
        )  # fmt: skip


def _check_count(op: Operation, thread: CoreThread, buffer: CircularBuffer, count: int) -> None:
    if count < 1 or count > buffer.pages:
        raise wrong(op, thread, f"asks for {page_count(count)} of {buffer.label}, which has {buffer.pages}")
    if buffer.pages % count:
        raise wrong(
            op,
            thread,
            f"asks for {page_count(count)} of {buffer.label}: its {buffer.pages} pages are no multiple of that",
        )


def _check_wrap(op: Operation, thread: CoreThread, buffer: CircularBuffer, first: int, count: int) -> None:
    if first % buffer.pages + count > buffer.pages:
        raise wrong(
            op, thread,
            f"asks for {page_count(count)} of {buffer.label} from page {first % buffer.pages} on: these wrap around "
            f"its end, after page {buffer.pages - 1}",
        )  # fmt: skip


def _overlap(op: Operation, thread: CoreThread, buffer: CircularBuffer, other: CircularBuffer) -> Fault:
    notes = [*shown(other.reserved, "reserved"), *shown(other.waited, "waited for")]
    inside = other.received - other.acked
    if inside:
        notes.append(f"{other.label} still holds {page_count(inside)}")
    bytes_ = f"bytes {max(buffer.base, other.base)} to {min(buffer.end, other.end)}"
    return wrong(op, thread, f"reserves {buffer.label}, whose {bytes_} {other.label} uses, too", notes)


def pending(thread: CoreThread, start: int, size: int) -> Transfer | None:
    """A transfer of this thread that is under way from or to these bytes."""
    return next((each for each in thread.transfers if each.local < start + size and start < each.local_end), None)


def _touches(kind: str) -> Callable[..., tuple[Touch, ...]]:
    def touches(thread: CoreThread, buffer: CircularBuffer, count: int) -> tuple[Touch, ...]:
        touch: Touch = (kind, buffer, count)
        return (touch, ("share", thread.core, kind, buffer.index)) if buffer.shares else (touch,)

    return touches
