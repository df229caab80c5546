"""Checks of the protocol between the threads of a kernel, as far as it is known before the kernel runs.

Each block that is pushed to a circular buffer is waited for and popped, and no thread waits for something that never
happens. What depends on values that are known on the device only is accepted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import error_at, source_location

from ..dialects.ttl import (
    AcquireOp,
    CBOp,
    CBPopOp,
    CBPushOp,
    CBWaitOp,
    KernelOp,
    SemaphoreOp,
    role_of,
    second_owner,
    steps,
)
from .core_values import Core, ThreadWalk, Undecidable, cores_of
from .protocol_run import LEAST_STEPS, MOST_STEPS, End, ProtocolRun, ThreadRun, core_groups, run_of
from .trip_counts import totals_of

_Role = tuple[SSAValue, bool]
"""A circular buffer, and whether blocks are produced for it (True) or consumed."""

VIOLATION = "circular buffer protocol violation: "


def check_protocol(kernel: KernelOp) -> None:
    """Check the circular buffers and the progress of a kernel.

    Raises CompilationError where a thread waits for ever, blocks are left over, or a block is used out of turn.
    """
    every = [*steps(kernel)]
    _check_sides(every)
    groups = core_groups(kernel)
    for group in groups:
        for core in group:
            _check_counts(kernel, core, every)
        run = run_of(kernel, group, max(LEAST_STEPS, MOST_STEPS // len(groups)))
        if run.fault is not None:
            raise _fault(run.fault)
        if run.end is End.STUCK:
            raise _stuck(run)


def check_roles(kernel: KernelOp) -> None:
    """Check that no core runs two threads that produce the blocks of one circular buffer, or that consume them.

    Raises CompilationError, also where it can't be known which threads a core runs.
    """
    first: dict[_Role, dict[Operation, CBOp]] = {}
    for thread in kernel.threads:
        for op in steps(thread):
            first.setdefault((op.cb, op.PRODUCES), {}).setdefault(thread, op)
    shared = {key: ops for key, ops in first.items() if len(ops) > 1}
    threads = dict.fromkeys(thread for ops in shared.values() for thread in ops)
    for core in cores_of(kernel.grid) if shared else ():
        taken = {thread: _roles_on(core, thread, shared) for thread in threads}
        for key, ops in shared.items():
            mine = [op for thread, op in ops.items() if key in taken[thread]]
            for op in mine[1:]:
                where = f" on core {core.place}" if kernel.grid.cores > 1 else ""
                raise error_at(op, second_owner(op) + where, [f"the first {role_of(op)} is at {place_of(mine[0])}"])


def _roles_on(core: Core, thread: Operation, roles: Collection[_Role]) -> Collection[_Role]:
    """Return the ones of some roles that a thread has on a core: all of them if that is unknown."""
    walk, found = ThreadWalk(thread, core), set[_Role]()
    try:
        for number, op in enumerate(walk.steps()):
            if number > MOST_STEPS:
                return roles
            if isinstance(op, CBOp):
                found.add((op.cb, op.PRODUCES))
    except Undecidable:
        return roles
    return found


def check_progress(kernel: KernelOp) -> None:
    """Check, after a pass that has moved steps, that no thread waits for ever; of a kernel with all of its threads.

    Raises CompilationError.
    """
    sides = {(op.cb, op.PRODUCES) for op in kernel.walk() if isinstance(op, CBOp)}
    if any((buffer, not produces) not in sides for buffer, produces in sides):
        return
    groups = core_groups(kernel)
    for group in groups:
        run = run_of(kernel, group, max(LEAST_STEPS, MOST_STEPS // len(groups)))
        if run.end is End.STUCK:
            raise _stuck(run)


def _check_sides(steps: list[CBOp]) -> None:
    """Check that each buffer is filled and emptied; the verifier sees to it that one thread does each."""
    sides = {(op.cb, op.PRODUCES) for op in steps}
    for op in steps:
        if (op.cb, not op.PRODUCES) not in sides:
            name = name_of(op.cb)
            missing = (
                f"the blocks of {name} are never popped: no thread waits for them"
                if op.PRODUCES
                else f"consumer waits indefinitely: no thread pushes to {name}"
            )
            raise error_at(op, VIOLATION + missing, [f"the circular buffer is made at {place_of(op.cb)}"])


def _check_counts(kernel: KernelOp, core: Core, steps: list[CBOp]) -> None:
    """Check that as many blocks are popped as are pushed."""
    totals: Counter[tuple[SSAValue, type[CBOp]]] = Counter()
    for thread in kernel.threads:
        found = totals_of(thread, core)
        if found is None:
            return
        totals.update(found)
    for cb in dict.fromkeys(op.cb for op in steps):
        pushed, popped = totals[cb, CBPushOp], totals[cb, CBPopOp]
        if pushed == popped:
            continue
        where = f" on core {core.place}" if kernel.grid.cores > 1 else ""
        producer = _step(steps, cb, CBPushOp)
        if pushed < popped:
            raise error_at(
                _step(steps, cb, CBWaitOp),
                f"{VIOLATION}consumer waits indefinitely: it waits for {_blocks(popped)} of {name_of(cb)}, "
                f"the producer pushes {pushed}{where}",
                [f"corresponding producer at {place_of(producer)}"],
            )
        raise error_at(
            producer,
            f"{VIOLATION}{_blocks(pushed)} of {name_of(cb)} are pushed, the consumer pops {popped}{where}: "
            "wait for and pop each of them",
            [f"corresponding consumer at {place_of(_step(steps, cb, CBPopOp))}"],
        )


def _step(steps: list[CBOp], cb: SSAValue, kind: type[CBOp]) -> CBOp:
    """The first step of this kind, or, where there is none, of the same side."""
    own = [op for op in steps if op.cb is cb and op.PRODUCES == kind.PRODUCES]
    return next((op for op in own if isinstance(op, kind)), own[0])


def _fault(fault: tuple[Operation, str, Operation | None]) -> CompilationError:
    op, message, other = fault
    prefix = VIOLATION if isinstance(op, CBOp) else ""
    return error_at(op, prefix + message, [] if other is None else [f"the first one at {place_of(other)}"])


def _stuck(run: ProtocolRun) -> CompilationError:
    """The error in a run in which all threads that are left wait."""
    blocked = run.blocked()
    for thread in blocked:
        other = _awaited(run, thread)
        if other is not None and other.finished:
            return _abandoned(thread, other)
    for thread in blocked:
        chain = _chain(run, thread)
        if chain is not None:
            names = ", ".join(name_of_thread(each) for each in chain)
            return error_at(
                _waits_at(chain[0]),
                f"deadlock: {names} wait for each other for ever: let one of them push or pop before it waits, or "
                "make a buffer_factor larger",
                [_describe(each) for each in chain],
            )
    thread = next(each for each in blocked if isinstance(each.waits_at, SemaphoreOp))
    where = f" on core {thread.core.place}" if len({each.core for each in run.threads}) > 1 else ""
    return error_at(
        _waits_at(thread),
        f"deadlock: {name_of_thread(thread)} waits for a semaphore for ever{where}",
        [f"{_describe(each)} on core {each.core.place}" for each in blocked[:_MOST_NOTES]],
    )


_MOST_NOTES = 8


def _awaited(run: ProtocolRun, thread: ThreadRun) -> ThreadRun | None:
    """The thread that must go on before a blocked one can; None for a semaphore, which anyone can change."""
    step = _waits_at(thread)
    if not isinstance(step, CBOp):
        return None
    found = [
        other for other in run.threads if other.core == thread.core and _has(other.thread, step.cb, not step.PRODUCES)
    ]
    # Of several, the others have their role on other cores.
    return next((each for each in found if not each.finished), found[0] if found else None)


def _has(thread: Operation, cb: SSAValue, produces: bool) -> bool:
    return any(isinstance(op, CBOp) and op.cb is cb and op.PRODUCES is produces for op in thread.walk())


def _chain(run: ProtocolRun, thread: ThreadRun) -> list[ThreadRun] | None:
    """The threads that wait for each other in a circle, if there is one that begins or leads on at `thread`."""
    path: list[ThreadRun] = []
    current: ThreadRun | None = thread
    while current is not None:
        if current in path:
            return path[path.index(current) :]
        path.append(current)
        current = _awaited(run, current)
    return None


def _abandoned(thread: ThreadRun, other: ThreadRun) -> CompilationError:
    """The error in a step that waits for a thread that has ended."""
    step = _waits_at(thread)
    assert isinstance(step, AcquireOp)
    role, partner = ("producer", "consumer") if step.PRODUCES else ("consumer", "producer")
    what = "room" if step.PRODUCES else "data"
    last = [op for op in other.thread.walk() if isinstance(op, CBOp) and op.cb is step.cb][-1]
    return error_at(
        step,
        f"{VIOLATION}{role} waits indefinitely: no {what} for {_blocks(step.num_blocks)} of {name_of(step.cb)} after "
        f"the {partner} has ended",
        [f"corresponding {partner} at {place_of(last)}"],
    )


def _describe(thread: ThreadRun) -> str:
    """Return what a thread waits for, and where."""
    step = _waits_at(thread)
    match step:
        case SemaphoreOp():
            what = f"the semaphore {name_of(step.semaphore)}"
        case CBOp(PRODUCES=True):
            what = f"room in {name_of(step.cb)}"
        case _:
            what = f"data in {name_of(step.cb)}"
    return f"{name_of_thread(thread)} waits for {what} at {place_of(step)}"


def _waits_at(thread: ThreadRun) -> CBOp | SemaphoreOp:
    assert thread.waits_at is not None
    return thread.waits_at


def name_of_thread(thread: ThreadRun) -> str:
    """Return how messages call a thread."""
    name = thread.thread.properties.get("sym_name")
    if isinstance(name, StringAttr):
        return f"'{name.data}'"
    return f"the {thread.thread.name.removeprefix('ttl.')} {thread.place}"


def name_of(value: SSAValue) -> str:
    """Return how messages call a circular buffer or another value of the kernel."""
    return "the circular buffer" if value.name_hint is None else f"'{value.name_hint}'"


def place_of(op: Operation | SSAValue) -> str:
    """The line of an operation, or of the one that makes a value, for a note."""
    if isinstance(op, SSAValue):
        assert isinstance(op.owner, Operation)
        op = op.owner
    return str(source_location(op.location) or "an unknown line")


def _blocks(number: int) -> str:
    return f"{number} block{'s' if number != 1 else ''}"
