"""Semaphores of the module-level form: those of the machine, with the coordinates of the grid."""

from __future__ import annotations

from xdsl.ir import Operation

from ..dialects.ttl.pipes import ADDRESS_UNIT, PUBLISHED
from .blocks import View
from .ttkernel import semaphores
from .ttkernel.machine import Core, CoreThread, wrong
from .ttkernel.translate import Builder, Local, Step, Touch, attribute


def _targets(op: Operation, thread: CoreThread, coordinates: tuple[int, ...], *, loopback: bool) -> list[Core]:
    """The cores that coordinates name: one, or a range with or without the own one."""
    x0, y0, x1, y1 = coordinates if len(coordinates) == 4 else (*coordinates, *coordinates)
    places = [(x, y) for y in range(y0, y1 + 1) for x in range(x0, x1 + 1)]
    missing = [place for place in places if place not in thread.machine.cores]
    if missing or not places:
        columns, rows = thread.machine.grid
        named = missing[0] if missing else "an empty range"
        raise wrong(op, thread, f"changes the semaphore of core {named}, which is none of the {columns}x{rows} grid")
    cores = [thread.machine.cores[place] for place in places]
    return cores if loopback or len(coordinates) == 2 else [core for core in cores if core is not thread.core]


def _set(op: Operation) -> Local | Step:
    """Set the own semaphore, or begin to set those of other cores to the own one's value."""
    own = semaphores.set_own(op)
    if len(op.operands) == 2:
        return own
    loopback = attribute(op, "loopback") is not None

    def run(thread: CoreThread, index: int, value: int, *coordinates: int) -> None:
        held = thread.core.semaphores[index].value
        if held != value:
            raise wrong(
                op, thread, f"sets semaphores of other cores to {value}: its own one, which is copied, is {held}"
            )
        for core in _targets(op, thread, coordinates, loopback=loopback):
            # The own word is read at once: `ttl-lower-synchronization` puts a barrier after it.
            semaphores.post_set(op, thread, core, None, index, value)

    def touches(thread: CoreThread, index: int, *_: int) -> tuple[Touch, ...]:
        return (("semaphore", thread.core, index, "read"),)

    return Step(op, run, touches=touches)


def _increment(op: Operation) -> Local:
    """Begin to add to a semaphore."""

    def run(thread: CoreThread, index: int, value: int, *coordinates: int) -> None:
        for core in _targets(op, thread, coordinates or (thread.x, thread.y), loopback=True):
            semaphores.post_add(op, thread, core, index, value)

    return run


def _publish(op: Operation) -> Local:
    """Begin to report a core an address."""
    increment = _increment(op)

    def run(thread: CoreThread, index: int, address: int, *coordinates: int) -> None:
        increment(thread, index, PUBLISHED + address // ADDRESS_UNIT, *coordinates)

    return run


def _wait_published(op: Operation) -> Step:
    """Wait for addresses, which must be the same, and give it."""
    inner = semaphores.wait_min(op)
    assert inner.ready is not None and inner.waits_for is not None
    ready = inner.ready

    def run(thread: CoreThread, index: int, count: int) -> int:
        inner.run(thread, index, count * PUBLISHED)
        reported = thread.core.semaphores[index].value - count * PUBLISHED
        if reported % count:
            raise wrong(op, thread, f"is reported different addresses by {count} cores")
        semaphores.assign(op, thread, thread.core, index, 0, thread.clock.release())
        return reported // count * ADDRESS_UNIT

    def waits_for(thread: CoreThread, index: int, count: int) -> str:
        reported = thread.core.semaphores[index].value // PUBLISHED
        return f"waits until {count} cores have reported an address, {reported} have"

    def touches(thread: CoreThread, index: int, count: int) -> tuple[Touch, ...]:
        return (("semaphore", thread.core, index, "write"),)

    def is_ready(thread: CoreThread, index: int, count: int) -> bool:
        return ready(thread, index, count * PUBLISHED)

    return Step(op, run, is_ready, waits_for, touches)


def _address(op: Operation) -> Local:
    """The address of a block."""

    def run(thread: CoreThread, view: View) -> int:
        return view.start

    return run


BUILDERS: dict[str, Builder] = {
    "ttl.semaphore_wait_eq": semaphores.wait,
    "ttl.semaphore_wait_min": semaphores.wait_min,
    "ttl.semaphore_set": _set,
    "ttl.semaphore_inc": _increment,
    "ttl.semaphore_publish": _publish,
    "ttl.semaphore_wait_published": _wait_published,
    "ttl.block_address": _address,
}
