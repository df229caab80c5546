"""Recordings of a run in the interpreter: which task did what, in which order, at 8 bytes for each event.

The interpreter does the same each time for the same order, so values and memory are not kept. To look at them, the run
is repeated as far as the position (`Recorder.replay`), and to find who has touched a place it is repeated with a probe.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol, cast

from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import tt
from tlx_xdsl.errors import CompilationError, Note, SourceLocation
from tlx_xdsl.interpreter.code import Plan
from tlx_xdsl.interpreter.engine import Transfer
from tlx_xdsl.interpreter.global_memory import Buffer
from tlx_xdsl.interpreter.grid import Program, program_text
from tlx_xdsl.interpreter.machine import Cluster, Task, ThreadBlock
from tlx_xdsl.interpreter.mbarrier import Mbarrier
from tlx_xdsl.interpreter.memory import View
from tlx_xdsl.interpreter.registry import Coroutine, Kind as RunKind, Run
from tlx_xdsl.numerics.arrays import Integers
from tlx_xdsl.text.diagnostics import call_chain, collected_diagnostics, source_line, users_place

MOST_EVENTS = 20_000_000
"""Events of a recording, which takes 160 MB then."""


class Kind(IntEnum):
    """Kinds of events."""

    STEP = 0
    """A task comes to an operation."""
    RESUMED = 1
    """A task goes on with the operation at which others had their turn."""
    DONE = 2
    """An asynchronous operation takes effect."""
    BLOCKED = 3
    """A task can't go on."""
    FLIPPED = 4
    """A phase of an mbarrier is complete."""
    ENDED = 5
    """A task ends."""


@dataclass(eq=False)
class Code:
    """One thing that may happen, at an operation."""

    kind: Kind
    op: Operation
    text: str = ""
    """Which phase is complete, or the kind of an asynchronous operation."""
    slot: Callable[[SSAValue], int] | None = None
    """Slots of values in the frame of the operation's function."""

    def __post_init__(self) -> None:
        self.place: SourceLocation | None = users_place(self.op.location)
        """The line in the user's code."""
        chain = call_chain(self.op.location)
        self.callers = [each.place for each in chain if isinstance(each, Note) and each.place is not None]
        """The calls through which the line was inlined, innermost first."""
        self.function = _function_of(self.op)

    @property
    def line(self) -> str:
        """Return the text of the line, else the operation's name."""
        return (source_line(self.place) or self.op.name).strip()


def _function_of(op: Operation) -> Operation:
    while not isinstance(op, tt.FuncOp) and (parent := op.parent_op()) is not None:
        op = parent
    return op


@dataclass(frozen=True)
class Who:
    """A task of the recorded run."""

    label: str
    """`the default task` or `partition 0`, with its CTA where a cluster has several."""
    program: str
    number: int
    """0 for the default task, else the number of the partition, from 1."""
    warps: range
    """Of its thread block."""
    cluster: int
    """The number of its cluster, in the order of their launches."""
    rank: int
    """Of its thread block in the cluster."""


class Probe(Protocol):
    """Looks at a run that is repeated."""

    def before(self, event: int, recorder: Recorder) -> None:
        """An event is about to happen; all before it has."""
        ...

    def wrote(self, event: int, recorder: Recorder, block: ThreadBlock, view: View) -> None:
        """Event `event` is about to write a buffer of that thread block."""
        ...

    def wrote_global(self, event: int, recorder: Recorder, buffer: Buffer, offsets: Integers) -> None:
        """Event `event` is about to write those bytes of an array."""
        ...


class _Stop(BaseException):
    """The run has come to where it is to stop; no one on the way may take it for a fault."""


class Recorder:
    """Sees a run of a plan (`interpreter.code.Debugger`, `interpreter.machine.Observer`), and repeats it."""

    def __init__(self, run: Callable[[Recorder], object], programs: Sequence[Program] = ()):
        self._programs = programs
        """The programs that run, if not all do."""
        self._run = run
        """Runs the kernel from the start, on arrays as they were at first, with this recorder as its debugger."""
        self.codes: list[Code] = []
        self.who: array[int] = array("i")
        """The task of each event, by its number."""
        self.what: array[int] = array("i")
        """The number of its code."""
        self.issues: dict[int, int] = {}
        """The event in which each asynchronous operation was started, by that of its effect."""
        self.tasks: list[Who] = []
        self.fault: CompilationError | None = None
        """The error that ended the run, where one did."""
        self.result: Any = None
        """The result of the run, where no fault ended it."""
        self.live: list[Task] = []
        """The tasks of the run that is repeated."""
        self.frames: dict[tuple[Task, Operation], tuple[Operation, list[Any]]] = {}
        """For a task and a function, the call that led there last, and the caller's values."""
        self._known: dict[tuple[Kind, Operation, str], int] = {}
        self._plan: Plan | None = None
        self._numbers: dict[Task, int] = {}
        self._clusters: dict[Cluster, int] = {}
        self._launched = 0
        self._count = 0
        self._until: int | None = None
        """The event at which the run is to stop; None while it is recorded."""
        self._turn = 0
        """The first event of the turn that goes on."""
        self._probe: Probe | None = None
        self._note: Callable[[Task | None, int], None] = self._record
        """Notes an event, which is about to happen; the task is None for what the hardware does by itself."""

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.what)

    def code(self, event: int) -> Code:
        """Return what happens in an event."""
        return self.codes[self.what[event]]

    # The run ---------------------------------------------------------------------------------------------------------

    def record(self) -> None:
        """Run the kernel once, and note what happens. Raises CompilationError for what does not compile."""
        self._begin(None, None)
        try:
            self.result = self._run(self)
        except CompilationError as fault:
            if self._plan is None:
                raise
            self.fault = fault
        if self.fault is not None and self._turn < len(self):
            # What explains a fault lets what is in flight arrive: that is no part of the run.
            first = self._turn
            if self.code(first).kind is not Kind.DONE:
                first = max(
                    (each for each in range(first, len(self)) if self.code(each).kind <= Kind.RESUMED), default=first
                )
            del self.who[first + 1 :], self.what[first + 1 :]

    @property
    def ends_in_event(self) -> bool:
        """Return whether the last event is what ends the run: else no task can go on, or all have ended."""
        return self.fault is not None and self._turn < len(self)

    def replay(self, until: int, probe: Probe | None = None) -> None:
        """Repeat the run up to an event, and leave its tasks and memory as they are before it.

        Raises CompilationError where the run does something else than it did.
        """
        turn = self._turn
        self._begin(until, probe)
        try:
            with redirect_stdout(io.StringIO()), collected_diagnostics():
                self._run(self)
        except _Stop:
            pass
        except CompilationError as error:
            if isinstance(error, Diverged) or self.fault is None:
                raise
        self._turn = turn

    def _begin(self, until: int | None, probe: Probe | None) -> None:
        self._until, self._probe = until, probe
        self._count = self._launched = self._turn = 0
        self._numbers.clear()
        self._clusters.clear()
        self.live.clear()
        self.frames.clear()
        self._note = self._record if until is None else self._repeat

    def block(self, cluster: int, rank: int) -> ThreadBlock | None:
        """Return a thread block of the run that is repeated, by its cluster's number; None where it is not there."""
        return next((each.blocks[rank] for each, number in self._clusters.items() if number == cluster), None)

    def cluster_of(self, block: ThreadBlock) -> int:
        """Return the number of the cluster of a thread block, in the order of their launches."""
        return self._clusters[block.cluster]

    # What the plan asks ----------------------------------------------------------------------------------------------

    def kept(self, make: Callable[[], Plan]) -> Plan:
        """Return the plan, made once."""
        if self._plan is None:
            self._plan = make()
        return self._plan

    def chosen(self, firsts: Sequence[Program]) -> Sequence[Program]:
        """Return the clusters that run."""
        return [first for first in firsts if first in self._programs] if self._programs else firsts

    def wrapped(self, op: Operation, kind: RunKind, run: Run, slot: Callable[[SSAValue], int]) -> tuple[RunKind, Run]:
        """Return what notes an operation, and runs it; constants are no events."""
        if isinstance(op, ConstantOp):
            return kind, run
        code = self._code_of(Kind.STEP, op, slot=slot)
        if kind == RunKind.PURE:

            def compute(task: Task, *operands: Any) -> Any:
                self._note(task, code)
                return run(*operands)

            return RunKind.EFFECT, compute
        if kind == RunKind.EFFECT or op.regions or isinstance(op, tt.CallOp):

            def act(task: Task, *operands: Any) -> Any:
                self._note(task, code)
                if isinstance(op, tt.CallOp) and self._until is not None:
                    self._called(task, op)
                return run(task, *operands)

            return kind, act
        resumed = self._code_of(Kind.RESUMED, op, slot=slot)

        def go_on(task: Task, *operands: Any) -> Coroutine:
            self._note(task, code)
            coroutine = run(task, *operands)
            while True:
                try:
                    waiting = next(coroutine)
                except StopIteration as end:
                    return end.value
                yield waiting
                self._note(task, resumed)

        return kind, go_on

    def _called(self, task: Task, op: tt.CallOp) -> None:
        assert self._plan is not None
        callee = self._plan.functions.get(op.callee.string_value())
        if callee is not None:
            self.frames[task, callee.op] = op, task.frame

    def _code_of(self, kind: Kind, op: Operation, text: str = "", slot: Callable[[SSAValue], int] | None = None) -> int:
        key = kind, op, text
        if (number := self._known.get(key)) is None:
            number = self._known[key] = len(self.codes)
            self.codes.append(Code(kind, op, text, slot))
        return number

    # What happens ----------------------------------------------------------------------------------------------------

    def _record(self, task: Task | None, code: int) -> None:
        number = -1 if task is None else self._numbers.get(task)
        self.who.append(self._met(cast(Task, task)) if number is None else number)
        self.what.append(code)
        if len(self.what) >= MOST_EVENTS:
            raise CompilationError(f"the run has more than {MOST_EVENTS:,} events: debug a smaller launch")

    def _repeat(self, task: Task | None, code: int) -> None:
        event = self._count
        if event == self._until or event == len(self.what):
            raise _Stop
        number = -1 if task is None else self._numbers.get(task)
        if number is None:
            number = self._met(cast(Task, task))
        if self.what[event] != code or self.who[event] != number:
            raise Diverged(
                f"event {event} of the run is another one than when it was recorded: the kernel depends on more than "
                "its arguments and the order of its tasks"
            )
        if self._probe is not None:
            self._probe.before(event, self)
        self._count = event + 1

    def _met(self, task: Task) -> int:
        """Return the number of a task that is new, or stands in a block whose earlier tasks have numbers."""
        number = self._numbers[task] = len(self.live)
        self.live.append(task)
        if self._until is None:
            first = sum(each.warps for each in task.block.crew[: task.number])
            program = program_text(task.program, task.cluster.number)
            warps = range(first, first + task.warps)
            cluster = self._clusters[task.cluster]
            self.tasks.append(Who(task.label, program, task.number, warps, cluster, task.block.rank))
        return number

    def began(self, cluster: Cluster) -> None:
        """The thread blocks of a cluster stand at their programs."""
        self._clusters[cluster] = self._launched
        self._launched += 1
        if self._probe is None:
            return
        probe = self._probe
        for block in cluster.blocks:
            for memory in (block.shared, block.tensor):
                memory.listener = lambda view, block=block: probe.wrote(self._count - 1, self, block, view)
        cluster.launch.memory.changes.listener = lambda buffer, offsets: probe.wrote_global(
            self._count - 1, self, buffer, offsets
        )

    def ran(self, task: Task) -> None:
        """A task had a turn."""
        waiting = task.waiting
        if task.ended:
            self._note(task, self._code_of(Kind.ENDED, task.cluster.plan.function))
        elif waiting is not None and not waiting.ready():
            self._note(task, self._code_of(Kind.BLOCKED, waiting.op))
        self._turn = len(self.what)

    def issued(self, cluster: Cluster, transfer: Transfer) -> None:
        """A task has started an asynchronous operation, whose effect is an event."""
        code, finish = self._code_of(Kind.DONE, transfer.op, transfer.queue.kind), transfer.finish
        event = len(self.what) - 1

        def take_effect(done: Transfer) -> None:
            if self._until is None:
                self.issues[len(self.what)] = event
            self._note(done.issuer, code)
            finish(done)

        transfer.finish = take_effect

    def completed(self, cluster: Cluster, transfer: Transfer) -> None:
        """An asynchronous operation has taken effect."""
        self._turn = len(self.what)

    def flipped(self, barrier: Mbarrier, block: ThreadBlock) -> None:
        """A phase of an mbarrier is complete."""
        text = f"{barrier.name} completes phase {barrier.phase - 1}"
        event = (len(self.what) if self._until is None else self._count) - 1
        task = self.live[self.who[event]] if event >= 0 and self.who[event] >= 0 else None
        self._note(task, self._code_of(Kind.FLIPPED, barrier.op, text))


class Diverged(CompilationError):
    """A run that is repeated does something else than it did."""
