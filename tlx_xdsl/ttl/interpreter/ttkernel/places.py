"""Places in a core's memory that transfers may use: pages that their thread holds, and whole ones."""

from __future__ import annotations

from xdsl.ir import Operation

from tlx_xdsl.interpreter.faults import location_of

from .machine import NOC_ALIGNMENT, CircularBuffer, CoreThread, page_count, shown, wrong


def claims_destination(op: Operation, thread: CoreThread, local: int, total: int, page: int, words: str) -> None:
    """Check that the thread has reserved the bytes that a transfer will change."""
    buffer = _aligned(op, thread, local, total, page, words)
    claim = buffer.reserved
    if claim is None or claim.thread is not thread or not inside(buffer, buffer.received, claim.pages, local, total):
        have = 0 if claim is None or claim.thread is not thread else claim.pages
        raise wrong(
            op, thread,
            f"begins a {words} into {where(buffer, local, total)}, but has reserved "
            f"{_held(buffer, have, buffer.received)}",
            shown(claim, "reserved"),
        )  # fmt: skip
    for each in thread.transfers:
        if each.local < local + total and local < each.local_end:
            raise wrong(
                op, thread, f"begins a {words} where its {each.words} is still under way",
                [f"{location_of(each.op)}: that is begun here"],
            )  # fmt: skip
    thread.core.poison(local, total)


def claims_source(op: Operation, thread: CoreThread, local: int, total: int, page: int, words: str) -> None:
    """Check that the thread holds the bytes that a transfer reads, and that they were written."""
    buffer = _aligned(op, thread, local, total, page, words)
    waited, reserved = buffer.waited, buffer.reserved
    if waited is not None and waited.thread is thread and inside(buffer, buffer.acked, waited.pages, local, total):
        first = buffer.acked
    elif (
        reserved is not None
        and reserved.thread is thread
        and inside(buffer, buffer.received, reserved.pages, local, total)
    ):
        first = buffer.received
    else:
        have = waited.pages if waited is not None and waited.thread is thread else 0
        raise wrong(
            op,
            thread,
            f"begins a {words} from {where(buffer, local, total)}, but has waited for "
            f"{_held(buffer, have, buffer.acked)}",
            [*shown(waited, "waited for"), *shown(reserved, "reserved")],
        )
    first += (local - buffer.address(first)) // buffer.page_bytes
    buffer.read.update(dict.fromkeys(range(first, first + -(-total // buffer.page_bytes)), op))
    _check_source(op, thread, buffer, local, total, words)


def _check_source(
    op: Operation, thread: CoreThread, buffer: CircularBuffer, local: int, total: int, words: str
) -> None:
    if not thread.core.valid[local : local + total].all():
        pending = next(
            (each for each in thread.transfers if each.local < local + total and local < each.local_end), None
        )
        notes = [] if pending is None else [f"{location_of(pending.op)}: a {pending.words} is under way to it"]
        raise wrong(op, thread, f"begins a {words} from {where(buffer, local, total)}, which was not written", notes)


def _aligned(op: Operation, thread: CoreThread, local: int, total: int, page: int, words: str) -> CircularBuffer:
    if local % NOC_ALIGNMENT:
        raise wrong(op, thread, f"begins a {words} at address {local}: expected a multiple of {NOC_ALIGNMENT}")
    buffer = thread.core.buffer_at(local, total)
    if buffer is None:
        part = thread.core.buffer_at(local, 1)
        where = "outside of all circular buffers" if part is None else f"over the end of {part.label}"
        raise wrong(op, thread, f"begins a {words} at bytes {local} to {local + total}, {where}")
    if page != buffer.page_bytes:
        raise wrong(
            op, thread,
            f"begins a {words}, whose pages have {page} bytes: those of {buffer.label} have {buffer.page_bytes}",
            [f"{location_of(buffer.op)}: it is declared here"],
        )  # fmt: skip
    if (local - buffer.base) % buffer.page_bytes and total >= buffer.page_bytes:
        raise wrong(
            op,
            thread,
            f"begins a {words} at byte {(local - buffer.base) % buffer.page_bytes} of a page of {buffer.label}",
        )
    return buffer


def inside(buffer: CircularBuffer, first: int, pages: int, start: int, size: int) -> bool:
    """Return whether bytes lie in some pages from a first one on, which do not wrap around."""
    begin = buffer.address(first)
    return begin <= start and start + size <= begin + pages * buffer.page_bytes


def where(buffer: CircularBuffer, local: int, total: int) -> str:
    first = (local - buffer.base) // buffer.page_bytes
    last = (local + total - 1 - buffer.base) // buffer.page_bytes
    return f"page {first} of {buffer.label}" if first == last else f"pages {first} to {last} of {buffer.label}"


def _held(buffer: CircularBuffer, count: int, first: int) -> str:
    return "none" if not count else f"{page_count(count)} from {first % buffer.pages} on"
