"""Accesses to pages of tensors that nothing orders.

A transfer reads or writes at any time from its begin to its barrier. So an access comes after another one if, when it
began, its thread knew the epoch in which the other one ended (`clocks`).
"""

from __future__ import annotations

from xdsl.ir import Operation

from tlx_xdsl.interpreter.faults import Fault, Race, fault_at, location_of, remedy

from ...tiles import TILE
from .clocks import Access, Moment, PageAccesses
from .machine import CoreThread, Tensor


def note_read(op: Operation, thread: CoreThread, tensor: Tensor, page: int, begun: Moment) -> None:
    """Note that a read of a page, which has `begun` some time ago, has landed.

    Raises Race where a write is not ordered before it.
    """
    found = tensor.accesses.setdefault(page, PageAccesses())
    if (earlier := found.write) is not None and thread.machine.checks and not _is_before(earlier, begun):
        raise _race(op, thread, "reads", tensor, page, earlier, "writes")
    found.reads[thread.agent] = Access(thread, op, thread.clock.epoch)
    tensor.reads.setdefault(page, []).append((thread, op))


def note_write(op: Operation, thread: CoreThread, tensor: Tensor, page: int, begun: Moment) -> None:
    """Note that a write to a page, which has `begun` some time ago, has landed.

    Raises Race where another thread's write, or any read, is not ordered before it. Writes of one thread to one page
    arrive in their order.
    """
    found = tensor.accesses.setdefault(page, PageAccesses())
    earlier = found.write
    if thread.machine.checks:
        if earlier is not None and earlier.thread is not thread and not _is_before(earlier, begun):
            raise _race(op, thread, "writes", tensor, page, earlier, "writes")
        for read in found.reads.values():
            if not _is_before(read, begun):
                raise _race(op, thread, "writes", tensor, page, read, "reads")
    if earlier is not None and earlier.thread is thread and not found.reads:
        tensor.overwritten[page] = (earlier.op, op)
    found.write = Access(thread, op, thread.clock.epoch)
    found.reads.clear()
    tensor.written.add(page)


def _is_before(earlier: Access, begun: Moment) -> bool:
    """Return whether an access has ended before another one began."""
    agent = earlier.thread.agent
    if agent == begun.agent:
        return earlier.epoch < begun.epoch
    return begun.known.get(agent, 0) >= earlier.epoch


def _race(op: Operation, thread: CoreThread, verb: str, tensor: Tensor, page: int, earlier: Access, did: str) -> Fault:
    other = earlier.thread
    if other is thread:
        advice = "wait for the first transfer before the second one begins"
        who = "the same thread"
    else:
        advice = "wait for the transfer, then increment a semaphore that the other thread waits for before it begins"
        who = other.label
    return fault_at(
        op,
        f"race: {thread.label} {verb} {place_of_page(tensor, page)}, which {who} {did}, and nothing orders them",
        [f"{location_of(earlier.op)}: {who} {did} it here", remedy(advice)],
        Race,
    )


def place_of_page(tensor: Tensor, page: int) -> str:
    """`page 5 of tensor 'a' (tile row 1, column 1)`."""
    layout, words = tensor.layout, f"page {page} of tensor '{tensor.name}'"
    columns = layout.padded(tensor.shape)[-1] // TILE
    match layout.kind:
        case "interleaved":
            return f"{words} (row {page})"
        case "sharded":
            height, width = layout.tiles_per_shard
            shard, tile = divmod(page, height * width)
            row = shard // layout.grid[1] * height + tile // width
            column = shard % layout.grid[1] * width + tile % width
        case _:
            row, column = divmod(page, columns)
    return f"{words} (tile row {row}, column {column})"
