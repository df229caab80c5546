"""Semaphores: a word of each core that threads of this core set and wait for, and others set or add to from afar.

What comes from another core is an arrival until a thread of this core has waited for it. To set a word that has an
arrival loses it; to wait again for a value that was waited for before finds what has been there all along. Both are
faults of a protocol, whether or not they do harm in this schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xdsl.ir import Operation

from tlx_xdsl.interpreter.faults import location_of

from .clocks import Moment
from .core_writes import NocAddress, overtaken, receivers
from .machine import SEMAPHORE_BASE, SEMAPHORES, Arrival, Core, CoreThread, Semaphore, wrong
from .translate import Builder, Local, Step, Touch, integer


def get_semaphore(op: Operation) -> Local:
    """The number of a semaphore of the kernel."""
    index = integer(op, "index")

    def run(thread: CoreThread) -> int:
        have = len(thread.core.semaphores)
        if not 0 <= index < min(have, SEMAPHORES):
            raise wrong(op, thread, f"takes semaphore {index}, but the kernel has {have}, and a core {SEMAPHORES}")
        return index

    return run


def _address(op: Operation) -> Local:
    """The address of the word, which is the same on all cores."""

    def run(thread: CoreThread, index: int) -> int:
        return SEMAPHORE_BASE + 16 * index

    return run


def _pointer(op: Operation) -> Local:
    """The core's own word: here it is the semaphore's number, too."""

    def run(thread: CoreThread, index: int) -> int:
        return index

    return run


def set_own(op: Operation) -> Step:
    """Set the own word."""

    def run(thread: CoreThread, index: int, value: int) -> None:
        _no_update_reads(op, thread, index)
        assign(op, thread, thread.core, index, value, thread.clock.release())

    return Step(op, run, touches=_writes_own)


def assign(op: Operation, thread: CoreThread, core: Core, index: int, value: int, moment: Moment) -> None:
    """Set the word of a core: no arrival may be lost."""
    word = core.semaphores[index]
    if word.arrivals and thread.machine.checks:
        lost = word.arrivals[0]
        raise wrong(
            op, thread, f"sets semaphore {index} of {core.label} over an arrival that was not waited for: it is lost",
            [f"{location_of(lost.op)}: {lost.thread.label} has {'set' if lost.is_set else 'added to'} it here"],
        )  # fmt: skip
    word.set(value, moment)


def _no_update_reads(op: Operation, thread: CoreThread, index: int) -> None:
    """Check that no update is under way that copies the own word."""
    for each in thread.posted:
        if ("semaphore", thread.core, index, "copied") in each.touches:
            raise wrong(
                op, thread,
                f"sets semaphore {index} while a copy of it to other cores is under way: use a barrier before",
                [f"{location_of(each.op)}: that is begun here"],
            )  # fmt: skip


def wait(op: Operation) -> Step:
    """Wait until the own word has a value."""
    return _wait(op, "", lambda word, value: word.value == value, is_least=False)


def wait_min(op: Operation) -> Step:
    """Wait until the own word has at least a value."""
    return _wait(op, "at least ", lambda word, value: word.value >= value, is_least=True)


def _wait(op: Operation, how: str, holds: Callable[[Semaphore, int], bool], *, is_least: bool) -> Step:
    def ready(thread: CoreThread, index: int, value: int) -> bool:
        return holds(thread.core.semaphores[index], value)

    def run(thread: CoreThread, index: int, value: int) -> None:
        word = thread.core.semaphores[index]
        if word.waited.get(thread) == (value, word.changes) and thread.machine.checks:
            raise wrong(
                op, thread,
                f"waits for semaphore {index} to be {how}{value}, which it was when it last waited: reset it before",
            )  # fmt: skip
        for reached, moment in word.history:
            thread.clock.acquire(moment)
            if is_least and reached >= value:
                break
        word.waited[thread] = (value, word.changes)
        word.arrivals.clear()

    def waits_for(thread: CoreThread, index: int, value: int) -> str:
        return f"waits for semaphore {index} to be {how}{value}, it is {thread.core.semaphores[index].value}"

    def touches(thread: CoreThread, index: int, value: int) -> tuple[Touch, ...]:
        return (("semaphore", thread.core, index, "read"),)

    return Step(op, run, ready, waits_for, touches)


def increment(op: Operation) -> Local:
    """Begin to add to the word of a core."""

    def run(thread: CoreThread, address: NocAddress, value: int) -> None:
        index = index_at(op, thread, address)
        (core, *more) = receivers(op, thread, address, None, loopback=True)
        if more:
            raise wrong(op, thread, "adds to the semaphores of several cores: an increment goes to one")
        post_add(op, thread, core, index, value)

    return run


def post_add(op: Operation, thread: CoreThread, core: Core, index: int, value: int) -> None:
    """Begin to add to the word of a core."""
    arrive = partial(_arrive_add, op, thread, core, index, value, thread.clock.release())
    _post(op, thread, core, arrive, (("semaphore", core, index, "add"),), is_multicast=False)


def _post(
    op: Operation, thread: CoreThread, core: Core, arrive: Callable[[], None], touches: tuple[Touch, ...], *,
    is_multicast: bool,
) -> None:  # fmt: skip
    """Begin a change of a core's semaphore, which may have to arrive after writes to that core."""
    serial = thread.machine.serial

    def apply() -> None:
        for each in overtaken(thread, core, serial, is_multicast=is_multicast):
            each.land_at(core)
        arrive()

    data = [touch for each in overtaken(thread, core, serial, is_multicast=is_multicast) for touch in each.touches]
    thread.machine.post(op, thread, apply, (*touches, *data))


def _arrive_add(op: Operation, thread: CoreThread, core: Core, index: int, value: int, moment: Moment) -> None:
    word = core.semaphores[index]
    if any(each.is_set for each in word.arrivals) and thread.machine.checks:
        lost = next(each for each in word.arrivals if each.is_set)
        raise wrong(
            op, thread, f"adds to semaphore {index} of {core.label}, which was set and not waited for",
            [f"{location_of(lost.op)}: {lost.thread.label} has set it here"],
        )  # fmt: skip
    word.add(value, moment)
    word.arrivals.append(Arrival(op, thread, False))


def _set_others(op: Operation, *, multicast: bool, loopback: bool) -> Step:
    """Begin to copy the own word to other cores."""

    def run(thread: CoreThread, index: int, address: NocAddress, num_dests: int | None = None) -> None:
        target = index_at(op, thread, address)
        cores = receivers(op, thread, address, num_dests if multicast else None, loopback=loopback)
        value = thread.core.semaphores[index].value
        for core in cores:
            post_set(op, thread, core, index, target, value, is_multicast=multicast)

    def touches(thread: CoreThread, index: int, *_: object) -> tuple[Touch, ...]:
        return (("semaphore", thread.core, index, "read"),)

    return Step(op, run, touches=touches)


def post_set(
    op: Operation, thread: CoreThread, core: Core, index: int | None, target: int, value: int,
    *, is_multicast: bool = False,
) -> None:  # fmt: skip
    """Begin to set the word `target` of a core to the value of the own word `index`; None if that may change now."""
    arrive = partial(_arrive_set, op, thread, core, target, value, thread.clock.release())
    copied = () if index is None else (("semaphore", thread.core, index, "copied"),)
    touches = (("semaphore", core, target, "write"), *copied)
    _post(op, thread, core, arrive, touches, is_multicast=is_multicast)


def _arrive_set(op: Operation, thread: CoreThread, core: Core, index: int, value: int, moment: Moment) -> None:
    assign(op, thread, core, index, value, moment)
    if core is not thread.core:
        core.semaphores[index].arrivals.append(Arrival(op, thread, True))


def index_at(op: Operation, thread: CoreThread, address: NocAddress) -> int:
    """The semaphore at an address."""
    offset = address.address - SEMAPHORE_BASE
    index = offset // 16
    if offset % 16 or not 0 <= index < len(thread.core.semaphores):
        raise wrong(op, thread, f"changes a semaphore at address {address.address}, where none is")
    return index


def _writes_own(thread: CoreThread, index: int, value: int) -> tuple[Touch, ...]:
    return (("semaphore", thread.core, index, "write"),)


def _value(op: Operation) -> Step:
    """The own word's value."""

    def run(thread: CoreThread, index: int) -> int:
        return thread.core.semaphores[index].value

    def touches(thread: CoreThread, index: int) -> tuple[Touch, ...]:
        return (("semaphore", thread.core, index, "read"),)

    return Step(op, run, touches=touches)


BUILDERS: dict[str, Builder] = {
    "ttkernel.get_semaphore": get_semaphore,
    "ttkernel.cast_to_l1_ptr": _pointer,
    "ttkernel.semaphore_address": _address,
    "ttkernel.semaphore_value": _value,
    "ttkernel.noc_semaphore_set": set_own,
    "ttkernel.noc_semaphore_wait": wait,
    "ttkernel.noc_semaphore_wait_min": wait_min,
    "ttkernel.noc_semaphore_inc": increment,
    "ttkernel.noc_semaphore_set_remote": lambda op: _set_others(op, multicast=False, loopback=False),
    "ttkernel.noc_semaphore_set_multicast": lambda op: _set_others(op, multicast=True, loopback=False),
    "ttkernel.noc_semaphore_set_multicast_loopback_src": lambda op: _set_others(op, multicast=True, loopback=True),
}
