"""The threads of a kernel as they meet: a run of their steps alone, without data.

A circular buffer has one producer and one consumer, and all that a step does is to wait, so every order in which the
threads may run leads to the same end: the k-th wait follows the k-th push, and the k-th reserve the pop that made room
for it. One run therefore decides whether a kernel finishes. What a thread knows of the others' progress is kept as a
vector clock, which is the happens-before relation of its steps (Lamport, "Time, clocks, and the ordering of events").

Semaphores are words that threads of all cores change. A kernel with them is run on all cores together; that is one of
its possible runs, and one that gets stuck is one that hangs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from ..dialects.ttl import (
    CBOp,
    CoreOp,
    CreateCBOp,
    CreateSemaphoreOp,
    GetShardIdOp,
    IfDstOp,
    IfSrcOp,
    KernelOp,
    SemaphoreIncOp,
    SemaphoreOp,
    SemaphorePublishOp,
    SemaphoreSetOp,
    SemaphoreWaitEqOp,
    SemaphoreWaitMinOp,
    SemaphoreWaitPublishedOp,
)
from .core_values import Core, ThreadWalk, Undecidable, cores_of, with_steps

# The order in which a kernel's circular buffers are used.
#
# `ordered_lifetimes(kernel) -> frozenset[tuple[SSAValue, SSAValue]]`: all pairs (A, B) of circular buffers, by the
# results of their `ttl.create_cb`, such that on every core every use of A happens before every use of B. B may have
# the memory of A then. The threads of a core run at the same time, so the order of two operations in the text says
# nothing unless they are in one thread; across threads, the k-th push comes before the k-th wait, and the pop of a
# block before the reserve that gets its place again (`analysis.ttl.protocol_run`).
#
# Uses are the steps of the protocol: the first one is a reserve or a wait, and the block may be touched until the push
# or pop that follows. Where trip counts or branches are unknown, where the kernel is too long to be followed, or where
# it does not finish, no pair is ordered.


def ordered_lifetimes(kernel: KernelOp) -> frozenset[tuple[SSAValue, SSAValue]]:
    """The pairs (A, B) of circular buffers of which A is used for the last time before B is for the first time.

    A buffer that a core never uses is ordered with all others there.
    """
    buffers = [op.result for op in kernel.body.block.ops if isinstance(op, CreateCBOp)]
    found = {(a, b) for a in buffers for b in buffers if a is not b}
    groups = core_groups(kernel)
    for group in groups:
        run = run_of(kernel, group, max(LEAST_STEPS, MOST_STEPS // len(groups)))
        if run.end is not End.FINISHED:
            return frozenset()
        for core in group:
            threads = [each for each in run.threads if each.core == core]
            found = {(a, b) for a, b in found if _is_before(threads, a, b)}
    return frozenset(found)


def core_groups(kernel: KernelOp) -> list[list[Core]]:
    """The cores that must be run together: all with semaphores, else each for itself.

    One stands for all where neither loops nor branches around steps depend on the core.
    """
    cores = cores_of(kernel.grid)
    if any(isinstance(op, SemaphoreOp) for op in kernel.walk()):
        return [cores]
    return [[core] for core in cores] if differs_by_core(kernel) else [[cores[0]]]


def differs_by_core(kernel: KernelOp) -> bool:
    """Return whether the steps of a thread may depend on the core that runs it."""
    for thread in kernel.threads:
        for op in with_steps(thread):
            if isinstance(op, IfSrcOp | IfDstOp) or (op.regions and _depends_on_core(op)):
                return True
    return False


def _depends_on_core(op: Operation) -> bool:
    """Return whether an operand, or what a region yields, comes from the coordinates of the core."""
    pending = list(op.operands)
    for region in op.regions:
        for block in region.blocks:
            last = block.last_op
            pending.extend(() if last is None else last.operands)
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        if isinstance(owner, CoreOp | GetShardIdOp):
            return True
        around = owner if isinstance(owner, Operation) else owner.parent_op()
        # The arguments of a block, and the results of what has one, depend on all that goes into it.
        if around is not None and not isinstance(around, KernelOp):
            pending.extend(around.operands)
            pending.extend(operand for inner in around.walk() for operand in inner.operands if inner is not around)
    return False


def _is_before(threads: list[ThreadRun], a: SSAValue, b: SSAValue) -> bool:
    """Return whether each thread that uses `b` knows, at its first use, of all uses of `a`."""
    return all(
        user.first[b][other.place] >= other.last[a]
        for user in threads
        if b in user.first
        for other in threads
        if a in other.last
    )


MOST_STEPS = 50_000
"""Steps after which the runs of a kernel are given up as undecided: about a second."""
LEAST_STEPS = 2_000
"""Those of each group of cores that are run in any case."""

Clock = tuple[int, ...]
"""For each thread of a core, how many of its steps have happened."""


StepOp = CBOp | SemaphoreOp


class End(Enum):
    """Ways in which a run ends."""

    FINISHED = auto()
    STUCK = auto()
    """Every thread that is left waits for another one."""
    FAULT = auto()
    """A step breaks the rules of a circular buffer or a semaphore."""
    UNDECIDED = auto()
    """What a thread does depends on something unknown, or it takes too many steps."""


class _Fact(NamedTuple):
    """Properties of a step of a circular buffer, looked up once: a run asks for them often."""

    op: CBOp
    cb: SSAValue
    blocks: int
    produces: bool
    acquires: bool
    factor: int
    """Blocks for which there is room."""


def _fact(op: CBOp) -> _Fact:
    return _Fact(op, op.cb, op.num_blocks, op.PRODUCES, op.ACQUIRES, op.cb_type.buffer_factor)


@dataclass
class _Buffer:
    """A circular buffer of one core: when each block was pushed and popped, and the blocks that each side holds."""

    pushes: list[Clock] = field(default_factory=list[Clock])
    pops: list[Clock] = field(default_factory=list[Clock])
    held: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    untouched: dict[bool, Operation | None] = field(default_factory=lambda: {True: None, False: None})
    """The last acquisition of the producer and the consumer, while nothing of it was given back."""


@dataclass
class ThreadRun:
    """Progress of one core in one of its threads."""

    thread: Operation
    core: Core
    place: int
    """The number of the thread in its kernel."""
    walk: ThreadWalk
    clock: list[int]
    remaining: Iterator[Operation]
    waits_at: StepOp | None = None
    """The step that can't happen yet."""
    finished: bool = False
    first: dict[SSAValue, Clock] = field(default_factory=dict[SSAValue, Clock])
    """When the thread first used a circular buffer."""
    last: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """The number of the step with which it used it last."""


@dataclass
class ProtocolRun:
    """A run of all threads of some cores."""

    threads: list[ThreadRun]
    end: End = End.UNDECIDED
    fault: tuple[Operation, str, Operation | None] | None = None
    """The step that broke the rules, the rule, and the step before it that it collides with."""

    def blocked(self) -> list[ThreadRun]:
        """The threads that wait."""
        return [each for each in self.threads if each.waits_at is not None]


def run_of(kernel: KernelOp, cores: Sequence[Core] | None = None, most_steps: int = MOST_STEPS) -> ProtocolRun:
    """Run the threads of a kernel on some cores, by default on all of them, until they end or are stuck."""
    return _Machine(kernel, cores_of(kernel.grid) if cores is None else cores).run(most_steps)


class _Fault(Exception):
    """A step breaks a rule."""

    def __init__(self, message: str, other: Operation | None = None):
        super().__init__(message)
        self.message = message
        self.other = other


class _Machine:
    """The buffers and semaphores that the threads share."""

    def __init__(self, kernel: KernelOp, cores: Sequence[Core]):
        self.buffers: defaultdict[tuple[Core, SSAValue], _Buffer] = defaultdict(_Buffer)
        self.words: dict[tuple[tuple[int, int], SSAValue], int] = {}
        self.cores = {core.place for core in cores}
        threads = [(thread, with_steps(thread)) for thread in kernel.threads]
        self.facts: dict[Operation, _Fact] = {
            op: _fact(op) for _, steps in threads for op in steps if isinstance(op, CBOp)
        }
        self.result = ProtocolRun([])
        for core in cores:
            for place, (thread, relevant) in enumerate(threads):
                walk = ThreadWalk(thread, core, relevant)
                self.result.threads.append(ThreadRun(thread, core, place, walk, [0] * len(threads), iter(walk.steps())))

    def run(self, most_steps: int) -> ProtocolRun:
        """Let the threads run in turn, each until it must wait."""
        left, moved = most_steps, True
        current: ThreadRun | None = None
        try:
            while moved:
                moved = False
                for current in self.result.threads:
                    taken = self._advance(current, left)
                    left -= taken
                    moved = moved or taken > 0
                    if left <= 0:
                        return self.result
        except Undecidable:
            return self.result
        except _Fault as fault:
            assert current is not None and current.waits_at is not None
            self.result.end, self.result.fault = End.FAULT, (current.waits_at, fault.message, fault.other)
            return self.result
        self.result.end = End.STUCK if self.result.blocked() else End.FINISHED
        return self.result

    def _advance(self, thread: ThreadRun, most: int) -> int:
        """Let a thread run until it must wait; return the number of its steps."""
        taken = 0
        while not thread.finished and taken < most:
            if thread.waits_at is None:
                step = next(thread.remaining, None)
                if step is None:
                    thread.finished = True
                    break
                assert isinstance(step, CBOp | SemaphoreOp)
                thread.waits_at = step
            if not self._happens(thread, thread.waits_at):
                break
            thread.waits_at = None
            taken += 1
        return taken

    def _happens(self, thread: ThreadRun, step: StepOp) -> bool:
        """Let a step happen, if it can."""
        fact = self.facts.get(step)
        if fact is None:
            assert isinstance(step, SemaphoreOp)
            return self._semaphore(thread, step)
        cb, place, clock = fact.cb, thread.place, thread.clock
        buffer = self.buffers[thread.core, cb]
        if fact.acquires:
            if not _can_acquire(buffer, fact):
                return False
            _merge(clock, _awaited(buffer, fact))
        clock[place] += 1
        now = tuple(clock)
        thread.first.setdefault(cb, now)
        thread.last[cb] = now[place]
        if fact.acquires:
            buffer.held[fact.produces], buffer.untouched[fact.produces] = fact.blocks, fact.op
        else:
            _release(buffer, fact, now)
        return True

    def _semaphore(self, thread: ThreadRun, step: SemaphoreOp) -> bool:
        # What is reported, an address, is known on the device only; here it counts.
        value = 1 if isinstance(step, SemaphorePublishOp) else thread.walk.values.of(step.value)
        if value is None:
            raise Undecidable(step)
        targets = self._targets(thread, step)
        match step:
            case SemaphoreWaitEqOp():
                return self._word(targets[0], step.semaphore) == value
            case SemaphoreWaitMinOp():
                return self._word(targets[0], step.semaphore) >= value
            case SemaphoreSetOp():
                self.words.update({(target, step.semaphore): value for target in targets})
            case SemaphoreWaitPublishedOp():
                if self._word(targets[0], step.semaphore) != value:
                    return False
                self.words[targets[0], step.semaphore] = 0
            case SemaphoreIncOp() | SemaphorePublishOp():
                for target in targets:
                    self.words[target, step.semaphore] = self._word(target, step.semaphore) + value
            case _:
                raise Undecidable(step)
        return True

    def _targets(self, thread: ThreadRun, step: SemaphoreOp) -> list[tuple[int, int]]:
        """The cores whose word an operation is about."""
        own = thread.core.place
        numbers = [thread.walk.values.of(each) for each in step.coordinates]
        if None in numbers:
            raise Undecidable(step)
        match [number for number in numbers if number is not None]:
            case [x, y]:
                targets = [(x, y)]
            case [x0, y0, x1, y1]:
                targets = [(x, y) for y in range(y0, y1 + 1) for x in range(x0, x1 + 1)]
                if step.loopback is None:
                    targets = [each for each in targets if each != own]
            case _:
                targets = [own]
        outside = [each for each in targets if each not in self.cores]
        if outside:
            x, y = outside[0]
            raise _Fault(f"{step.name} at core ({x}, {y}), which is not in the kernel's grid")
        return targets

    def _word(self, core: tuple[int, int], semaphore: SSAValue) -> int:
        made = semaphore.owner
        initial = made.initial.value.data if isinstance(made, CreateSemaphoreOp) else 0
        return self.words.setdefault((core, semaphore), initial)


def _can_acquire(buffer: _Buffer, step: _Fact) -> bool:
    """Return whether there is room for the blocks of a reserve, or data for those of a wait."""
    waiting = buffer.untouched[step.produces]
    if waiting is not None:
        verb, back = ("reserve", "push") if step.produces else ("wait", "pop")
        raise _Fault(f"this {verb} would give the same block again: {back} comes before the next {verb}", waiting)
    pushed, popped = len(buffer.pushes), len(buffer.pops)
    left = step.factor - (pushed if step.produces else popped) % step.factor
    if step.blocks > left:
        raise _Fault(
            f"{step.blocks} blocks at once, where the buffer has {left} before its end: "
            f"buffer_factor must be a multiple of {step.blocks}"
        )
    return pushed - popped + step.blocks <= step.factor if step.produces else pushed - popped >= step.blocks


def _awaited(buffer: _Buffer, step: _Fact) -> Clock:
    """Return when the last of the blocks that a step acquires was given back by the other side."""
    if step.produces:
        index = len(buffer.pushes) + step.blocks - 1 - step.factor
        return buffer.pops[index] if index >= 0 else ()
    return buffer.pushes[len(buffer.pops) + step.blocks - 1]


def _release(buffer: _Buffer, step: _Fact, clock: Clock) -> None:
    held = buffer.held[step.produces]
    if step.blocks > held:
        verb, before = ("push", "reserve") if step.produces else ("pop", "wait")
        raise _Fault(
            f"{verb}() called without matching {before}(): {step.blocks} blocks are given back, {held} are held"
        )
    buffer.held[step.produces] = held - step.blocks
    buffer.untouched[step.produces] = None
    (buffer.pushes if step.produces else buffer.pops).extend([clock] * step.blocks)


def _merge(clock: list[int], other: Clock) -> None:
    for place, steps in enumerate(other):
        if steps > clock[place]:
            clock[place] = steps
