"""The reports of accesses to global memory that nothing orders: both lines, both programs, and the remedy."""

from __future__ import annotations

from tlx_xdsl.errors import Note
from tlx_xdsl.text.diagnostics import report_warning

from .faults import Fault, fault_at, place_note, remedy
from .global_access import Access, Strength
from .grid import program_text


def race(before: Access, now: Access, where: str) -> Fault:
    verb, past = ("reads" if now.reads_only else "writes"), ("read" if before.reads_only else "written")
    message = f"{now.who} {verb} {where}, and nothing orders it after {before.who}, by which it is {past}"
    return fault_at(now.actor.op, message, [place_note(f"{past} at", before.actor.op), *_remedy(before, now)])


def too_early(before: Access, now: Access, where: str) -> Fault:
    """The race of a read with the first write, by a program that starts earlier: most likely the read is too early.

    So it is where another GPU writes, since nothing says which one starts earlier.
    """
    message = f"{before.who} reads {where}, and nothing orders it after {now.who}, by which it is written"
    notes = (
        place_note("written at", now.actor.op, ", later in this run"),
        *_remedy(now, before),
        "if it is to read what was there before the launch, the write must be ordered after it instead",
    )
    return fault_at(before.actor.op, message, notes)


def of_other_threads(before: Access, now: Access, where: str, past: str) -> Fault:
    verb = "reads" if now.reads_only else "writes"
    message = f"a thread of {now.who} {verb} {where}, and nothing orders it after another one, by which it is {past}"
    notes = (
        place_note(f"{past} at", before.actor.op, ", as another element of its tensor, which another thread may have"),
        remedy("tl.debug_barrier() between the two lets all threads of the task meet"),
    )
    return fault_at(now.actor.op, message, notes)


def unfenced(before: Access, now: Access, where: str) -> Fault:
    verb = "reads" if now.reads_only else "writes"
    message = (
        f"{now.who} {verb} {where}, which {before.who} has written without a proxy fence in between: the write need "
        "not be visible to the async proxy"
    )
    notes = (
        place_note("written at", before.actor.op),
        remedy(
            'tlx.fence("async_global") must come in between: after that line, or before this one and after the acquire'
        ),
    )
    return fault_at(now.actor.op, message, notes)


def warn_of_sums(before: Access, now: Access, name: str) -> None:
    """Warn of two reductions that are issued in order, and may be done in another one."""
    where = f"'{name}' in global memory"
    other = program_text(before.program)
    message = f"{now.who} adds to {where} after that of program {other} is issued, which need not be over"
    notes = [
        "sums of floats differ from run to run, whatever orders the programs",
        *(
            []
            if before.actor.queue is None
            else [remedy(f"{before.actor.queue.end()}; the release must come after that")]
        ),
    ]
    report_warning(now.actor.op, message, notes)


def _remedy(before: Access, now: Access) -> list[Note]:
    queue = before.actor.queue
    notes = [] if queue is None else [remedy(f"{queue.end()}; that must come first")]
    if before.program == now.program:
        text = f"a barrier must order them: {before.actor.what} arrives at it, {now.actor.what} waits for it"
    elif Strength.WEAK not in (before.strength, now.strength):
        text = "an atomic operation of scope 'cta' is none for other programs: use scope='gpu'"
        if before.differs_in_size(now):
            text = f"numbers of {before.size} and {now.size} bytes: one is not atomic for the other, use one type"
            return [*notes, remedy(text)]
        if before.program[3:] != now.program[3:]:
            text = "atomic operations are that for other GPUs with scope='sys' only"
    else:
        scope = "" if before.program[3:] == now.program[3:] else ", scope='sys'"
        text = (
            f"an atomic operation with sem='release'{scope} after that line, by program "
            f"{program_text(before.program, before.launch)}, and one with sem='acquire'{scope} at the same address "
            f"before this line, by program {program_text(now.program, now.launch)}, order them"
        )
    return [*notes, remedy(text)]
