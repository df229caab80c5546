"""Checks that nothing is left when a thread ends, and when all have."""

from __future__ import annotations

from tlx_xdsl.interpreter.faults import fault_at, location_of
from tlx_xdsl.text.diagnostics import Diagnostic, source_location

from .compute import Registers
from .machine import CircularBuffer, Core, CoreThread, Machine, Tensor, page_count, wrong

SHOWN = 8
"""Numbers of pages in a warning."""


def check_thread_end(thread: CoreThread, *, updates: bool = True) -> None:
    """Check that nothing is under way (`updates` of semaphores, too) and nothing held; raises Fault."""
    if thread.transfers:
        transfer = thread.transfers[0]
        raise wrong(transfer.op, thread, f"ends before a barrier for this {transfer.words}")
    if not thread.machine.checks:
        return
    if updates and thread.posted:
        update = thread.posted[0]
        kind = "noc_async_atomic_barrier" if "inc" in update.op.name else "noc_async_write_barrier"
        raise wrong(update.op, thread, f"ends before a '{kind}' for this update of a semaphore")
    registers: Registers | None = thread.registers
    if registers is not None and registers.phase != "released" and registers.since is not None:
        raise wrong(registers.since, thread, f"ends while the registers are {registers.phase}, since here")
    for buffer in thread.core.buffers.values():
        if (claim := buffer.reserved) is not None and claim.thread is thread:
            raise wrong(claim.op, thread, f"ends with {page_count(claim.pages)} of {buffer.label} reserved, not pushed")
        if (claim := buffer.waited) is not None and claim.thread is thread:
            raise wrong(
                claim.op, thread, f"ends with {page_count(claim.pages)} of {buffer.label} waited for, not popped"
            )


def check_end(machine: Machine) -> None:
    """Check that buffers are drained, arrivals waited for, and tensors written as a whole; raises Fault."""
    for core in machine.cores.values():
        for buffer in core.buffers.values():
            if buffer.received != buffer.acked:
                raise _not_drained(core, buffer)
        for word in core.semaphores:
            for arrival in word.arrivals:
                raise wrong(
                    arrival.op, arrival.thread,
                    f"changes semaphore {word.index} of {core.label}, but no thread there waits for it afterwards",
                )  # fmt: skip
    for tensor in machine.tensors:
        _check_pages(tensor)


def _not_drained(core: Core, buffer: CircularBuffer):
    assert buffer.producer is not None
    thread, op = buffer.producer
    if buffer.consumer is None:
        notes = [f"no thread waits for {buffer.label}"]
    else:
        notes = [f"{location_of(buffer.consumer[1])}: {buffer.consumer[0].label} has taken {page_count(buffer.acked)}"]
    left = buffer.received - buffer.acked
    return fault_at(
        op,
        f"{page_count(left)} of {buffer.label} of {core.label}, pushed by {thread.label}, are left at the end",
        notes,
    )


def _check_pages(tensor: Tensor) -> None:
    """A tensor with pages that were written twice and others that never were was written at wrong places."""
    if not tensor.overwritten:
        return
    missing = [page for page in range(len(tensor.pages)) if page not in tensor.written]
    if not missing:
        return
    page, (first, second) = next(iter(tensor.overwritten.items()))
    raise fault_at(
        second,
        f"page {page} of tensor '{tensor.name}' is written once more, while page {missing[0]} never is",
        [f"{location_of(first)}: page {page} is written here"],
    )


def write_warnings(machine: Machine) -> list[Diagnostic]:
    """Tensors of which some pages were written, and others never were; at the line that has written last."""
    found: list[Diagnostic] = []
    for tensor in machine.tensors:
        missing = [page for page in range(len(tensor.pages)) if page not in tensor.written]
        if missing and tensor.written:
            op = next(each.write.op for each in reversed(tensor.accesses.values()) if each.write is not None)
            shown = ", ".join(map(str, missing[:SHOWN])) + (", ..." if len(missing) > SHOWN else "")
            message = f"{len(missing)} pages of '{tensor.name}' were not written: {shown}"
            found.append(Diagnostic("warning", message, source_location(op.location)))
    return found


def read_warnings(machine: Machine) -> list[Diagnostic]:
    """Tensors of which a thread has read some pages again and again by one line, and others never were read."""
    found: list[Diagnostic] = []
    for tensor in machine.tensors:
        missing = [page for page in range(len(tensor.pages)) if page not in tensor.reads]
        if not tensor.reads or not missing:
            continue
        for page, reads in tensor.reads.items():
            again = next((op for number, (thread, op) in enumerate(reads) if (thread, op) in reads[:number]), None)
            if again is not None:
                message = f"page {page} of tensor '{tensor.name}' is read again, while page {missing[0]} never is"
                found.append(Diagnostic("warning", message, source_location(again.location)))
                break
    return found
