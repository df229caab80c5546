"""A position in a recorded run, moves from it, and questions about it."""

from __future__ import annotations

import ast
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Block, Operation, SSAValue

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.tt import PointerType, TensorDescType
from tlx_xdsl.errors import BREAKPOINT, CompilationError, SourceLocation, shown_path
from tlx_xdsl.frontend.python.source import KernelSource, Signature
from tlx_xdsl.frontend.python.suggestions import did_you_mean
from tlx_xdsl.interpreter.causes import cause_of
from tlx_xdsl.interpreter.deadlock import barrier_notes
from tlx_xdsl.interpreter.engine import InFlight
from tlx_xdsl.interpreter.grid import Program
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.memory import View
from tlx_xdsl.interpreter.users import arrivals, lines, named_barrier_users, task_of
from tlx_xdsl.language.core import constexpr
from tlx_xdsl.numerics.host_arrays import is_descriptor
from tlx_xdsl.runtime.driver.host_values import defaults_of
from tlx_xdsl.runtime.simulate.interpret import Interpretation, interpret_source
from tlx_xdsl.runtime.simulate.options import Options

from ..launch_line.expressions import evaluate
from .places import BarrierPlace, BufferPlace, GlobalPlace, Hit, NamedBarrierPlace, Place, Touches
from .recording import Code, Kind, Recorder, Who


@dataclass
class Stop:
    """A breakpoint or a watchpoint."""

    number: int
    text: str
    """What was asked for."""
    hits: list[int]
    """The events at which it stops, in rising order."""
    found: dict[int, Hit] = field(default_factory=dict[int, Hit])
    """What each of them changes, for a watchpoint."""


@dataclass(frozen=True)
class Frame:
    """A function that runs in a task."""

    function: str
    place: SourceLocation | None
    op: Operation
    code: Code | None
    values: list[Any] | None
    """The value of each SSA value by its slot; None of a function that was inlined."""


class Session:
    """A run, the event at which it stands, and the task that is looked at: what the event does has not happened."""

    def __init__(
        self,
        run: Callable[[Recorder], object],
        arguments: Mapping[str, Any],
        constants: Mapping[str, Any],
        programs: Sequence[Program] = (),
    ):
        self.recorder = Recorder(run, programs)
        self.arrays = arrays_of(arguments)
        """The arguments that are arrays, which each run writes in place."""
        self.constants = constants
        self.stops: list[Stop] = []
        self.at = 0
        self.task = 0
        """The number of the task that is looked at."""
        self.named = 0
        """The event that an answer has named last."""
        self._shown = -1
        """The event at which the arrays and tasks stand."""
        self.recorder.record()
        self._stop_at_breakpoints()
        if self.fault is not None:
            self.end()

    @classmethod
    def of(
        cls,
        source: KernelSource,
        grid: tuple[int, int, int],
        arguments: Mapping[str, Any],
        options: Callable[[], Options],
        types: Mapping[str, Signature] | None = None,
        programs: Sequence[Program] = (),
    ) -> Session:
        """Record a launch in the interpreter, or some of its programs; `options` makes those of one run.

        Raises CompilationError for a kernel that does not compile.
        """
        before = {name: array.copy() for name, array in arrays_of(arguments).items()}
        values = {name: value.value if isinstance(value, constexpr) else value for name, value in arguments.items()}
        constants = {name: value for name, value in values.items() if isinstance(value, bool | int | float)}

        def run(recorder: Recorder) -> Interpretation:
            for name, held in arrays_of(arguments).items():
                held[...] = before[name]
            return interpret_source(source, grid, arguments, options(), types, debugger=recorder)

        return cls(run, arguments, {**defaults_of(source), **constants}, programs)

    # The recording ---------------------------------------------------------------------------------------------------

    @property
    def fault(self) -> CompilationError | None:
        """The error that ended the run, where one did."""
        return self.recorder.fault

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.recorder)

    def who(self, event: int) -> Who | None:
        """Return the task of an event; None for what the hardware does by itself."""
        number = self.recorder.who[event]
        return None if number < 0 else self.recorder.tasks[number]

    @cached_property
    def _by_task(self) -> list[array[int]]:
        """The events of each task."""
        found = [array("i") for _ in self.recorder.tasks]
        for event, number in enumerate(self.recorder.who):
            if number >= 0:
                found[number].append(event)
        return found

    @cached_property
    def _leaders(self) -> set[Operation]:
        """The operations that are the first ones of their lines in their blocks: with them a line begins anew."""
        leaders: set[Operation] = set()
        seen: dict[tuple[Block | None, SourceLocation | None], Operation] = {}
        for code in self.recorder.codes:
            if code.kind is not Kind.STEP or isinstance(code.op, ConstantOp):
                continue
            key = code.op.parent, _line_of(code)
            first = seen.get(key)
            if first is None or (code.op is not first and code.op.is_before_in_block(first)):
                leaders.discard(first) if first is not None else None
                seen[key] = code.op
                leaders.add(code.op)
        return leaders

    @cached_property
    def _begins(self) -> bytearray:
        """1 for each event with which a task comes to a line, and its nesting in calls plus 1, at most 255."""
        begins = bytearray(len(self))
        last: dict[int, tuple[SourceLocation | None, Operation]] = {}
        chains: dict[int, list[Operation]] = {}
        for event, (number, what) in enumerate(zip(self.recorder.who, self.recorder.what, strict=True)):
            code = self.recorder.codes[what]
            if code.kind is not Kind.STEP or code.place is None:
                continue
            chain = chains.setdefault(number, [])
            if code.function in chain:
                del chain[chain.index(code.function) + 1 :]
            else:
                chain.append(code.function)
            line = _line_of(code)
            if last.get(number, (None, None))[0] != line or code.op in self._leaders:
                begins[event] = min(len(chain) + len(code.callers), 255)
            last[number] = line, code.op
        return begins

    @cached_property
    def _steps(self) -> dict[Operation, Code]:
        """The event with which a task comes to each operation."""
        return {code.op: code for code in self.recorder.codes if code.kind is Kind.STEP}

    def code_of(self, task: int, at: int | None = None) -> Code | None:
        """Return where a task is: at the operation that it is about to run, or inside of it."""
        at = self.at if at is None else at
        events = self._by_task[task]
        kinds = Kind.STEP, Kind.RESUMED, Kind.BLOCKED
        if at < len(self) and self.recorder.who[at] == task and self.recorder.code(at).kind in kinds:
            return self._steps.get(self.recorder.code(at).op)
        for index in range(bisect_left(events, at) - 1, -1, -1):
            code = self.recorder.code(events[index])
            if code.kind in kinds:
                return self._steps.get(code.op)
        return None

    def state_of(self, task: int) -> str:
        """Return whether a task runs, waits, has ended, or has not begun."""
        events = self._by_task[task]
        index = bisect_left(events, self.at) - 1
        if index < 0:
            return "runs" if events[0] == self.at else "has not begun"
        kinds = {Kind.BLOCKED: "waits", Kind.ENDED: "has ended"}
        while index > 0 and self.recorder.code(events[index]).kind in (Kind.DONE, Kind.FLIPPED):
            index -= 1
        return kinds.get(self.recorder.code(events[index]).kind, "runs")

    def tasks_here(self) -> list[int]:
        """Return the tasks of the clusters that run at the position: those of the task that is looked at come first."""
        alive = [each for each in range(len(self.recorder.tasks)) if self.state_of(each) in ("runs", "waits")]
        alive = alive or [self.task]
        cluster = self.recorder.tasks[self.task].cluster
        mine = [n for n, each in enumerate(self.recorder.tasks) if each.cluster == cluster and self._has_begun(n)]
        return mine + [each for each in alive if self.recorder.tasks[each].cluster != cluster]

    def _has_begun(self, task: int) -> bool:
        return self._by_task[task][0] <= self.at

    # Moves -----------------------------------------------------------------------------------------------------------

    def go(self, event: int) -> None:
        """Stand before an event; at the number of events, all have happened."""
        self.at = max(0, min(event, len(self)))
        if self.at < len(self) and self.recorder.who[self.at] >= 0:
            self.task = self.recorder.who[self.at]

    def end(self) -> None:
        """Stand where the run has ended: before what is wrong, or where nothing goes on."""
        self.go(len(self) - 1 if self.recorder.ends_in_event else len(self))
        if self.fault is None and len(self) and self.recorder.who[-1] >= 0:
            self.task = self.recorder.who[-1]
        if self.fault is not None and not self.recorder.ends_in_event:
            blocked = [each for each in range(len(self.recorder.tasks)) if self.state_of(each) == "waits"]
            self.task = next((each for each in blocked if self._is_blamed(each)), blocked[0] if blocked else self.task)

    def _is_blamed(self, task: int) -> bool:
        fault, code = self.fault, self.code_of(task)
        assert fault is not None
        return code is not None and code.place == fault.location and self.recorder.tasks[task].label in fault.message

    def select(self, task: int) -> None:
        """Look at another task; the position stays."""
        self.task = task

    def step(self, direction: int) -> bool:
        """Go to where any task comes to a line or is blocked, or to the effect of an asynchronous operation."""
        return self._first(
            direction,
            lambda event: self._begins[event] or self.recorder.code(event).kind in (Kind.DONE, Kind.BLOCKED),
        )

    def next(self, direction: int, *, out: bool = False) -> bool:
        """Go to the next line of the task, over calls; with `out`, to one of the caller."""
        number, here = self.task, self._depth()
        return self._first(
            direction,
            lambda event: (
                self.recorder.who[event] == number
                and (0 < self._begins[event] < here + (not out) or self.recorder.code(event).kind is Kind.ENDED)
            ),
        )

    def into(self, direction: int) -> bool:
        """Go to the next line of the task, into calls."""
        number = self.task
        return self._first(
            direction,
            lambda event: (
                self.recorder.who[event] == number
                and (self._begins[event] or self.recorder.code(event).kind is Kind.ENDED)
            ),
        )

    def _depth(self) -> int:
        """The nesting of the line at which the task is, plus 1."""
        events = self._by_task[self.task]
        for index in range(min(bisect_right(events, self.at), len(events)) - 1, -1, -1):
            if depth := self._begins[events[index]]:
                return depth
        return 255

    def _first(self, direction: int, wanted: Callable[[int], Any]) -> bool:
        events = range(self.at + 1, len(self)) if direction > 0 else range(self.at - 1, -1, -1)
        for event in events:
            if wanted(event):
                self.go(event)
                return True
        task = self.task
        if direction < 0:
            self.go(0)
        elif self.recorder.ends_in_event:
            self.end()
        else:
            self.go(len(self))
            self.task = task
        return False

    def go_on(self, direction: int) -> Stop | None:
        """Go to the next event at which a breakpoint or a watchpoint stops, or to the end or the start."""
        found: tuple[int, Stop] | None = None
        for stop in self.stops:
            hits = stop.hits
            index = bisect_right(hits, self.at) if direction > 0 else bisect_left(hits, self.at) - 1
            if 0 <= index < len(hits) and (found is None or (hits[index] - found[0]) * direction < 0):
                found = hits[index], stop
        if found is not None:
            self.go(found[0])
            return found[1]
        if direction > 0:
            self.end()
        else:
            self.go(0)
        return None

    def stop_at(self, place: SourceLocation | None) -> None:
        """Go to where a task first comes to a place, if one does."""
        codes = self.recorder.codes
        wanted = {number for number, code in enumerate(codes) if code.kind is Kind.STEP and code.place == place}
        self.go(next((event for event, what in enumerate(self.recorder.what) if what in wanted), 0))

    def _stop_at_breakpoints(self) -> None:
        """Stop where the kernel calls `breakpoint()`."""
        codes = self.recorder.codes
        wanted = {
            number
            for number, code in enumerate(codes)
            if code.kind is Kind.STEP and isinstance(code.op, tt.AssertOp) and code.op.is_breakpoint
        }
        if wanted:
            self._add(BREAKPOINT, [event for event, what in enumerate(self.recorder.what) if what in wanted])

    # Breakpoints and watchpoints -------------------------------------------------------------------------------------

    def break_at(self, filename: str | None, line: int, condition: str = "") -> Stop:
        """Stop where a task comes to a line of a file, by default of the kernel's; where a condition holds, if any.

        Raises CompilationError for a line that no task comes to, and a condition that has no value there.
        """
        wanted = {
            number
            for number, code in enumerate(self.recorder.codes)
            if code.place is not None and code.place.line == line and code.kind is Kind.STEP
            and (filename is None or _same_file(filename, code.place.filename))
        }  # fmt: skip
        hits = [
            event for event, what in enumerate(self.recorder.what) if what in wanted and self._begins[event]
        ]  # fmt: skip
        if not wanted:
            raise CompilationError(f"no code of the kernel is of line {line}{self._lines_near(line)}")
        if condition:
            hits = self._where(hits, condition)
        text = f"line {line}" + (f" if {condition}" if condition else "")
        return self._add(text, hits)

    def _lines_near(self, line: int) -> str:
        codes = [code for code in self.recorder.codes if code.kind is Kind.STEP]
        known = sorted({code.place.line for code in codes if code.place is not None})
        later = next((each for each in known if each > line), None)
        return "" if later is None else f", the next one with code is {later}"

    def _where(self, events: list[int], condition: str) -> list[int]:
        session, wanted, found = self, set(events), list[int]()

        class Conditional(Touches):
            def before(self, event: int, recorder: Recorder) -> None:
                if event in wanted:
                    names = session.names(session.frames_of(recorder.who[event], event)[0])
                    if evaluate("break", condition, names):
                        found.append(event)

        self._repeat(Conditional())
        return found

    def watch(self, text: str) -> Stop:
        """Stop at each event that writes a buffer, an element or an argument, or that changes a barrier.

        Raises CompilationError for what is none of these.
        """
        place = self.place(text)
        hits = self.history(place)
        return self._add(f"watch {text}", [hit.event for hit in hits], {hit.event: hit for hit in hits})

    def _add(self, text: str, hits: list[int], found: dict[int, Hit] | None = None) -> Stop:
        number = max((stop.number for stop in self.stops), default=0) + 1
        stop = Stop(number, text, hits, found or {})
        self.stops.append(stop)
        return stop

    # Values ----------------------------------------------------------------------------------------------------------

    def _repeat(self, probe: Touches) -> None:
        self._shown = -1
        self.recorder.replay(len(self), probe)
        self._shown = -1

    def show(self) -> None:
        """Let the tasks, their memory and the arrays be what they are at the position."""
        if self._shown != self.at:
            self._shown = -1
            self.recorder.replay(self.at)
            self._shown = self.at

    def live(self, number: int) -> Task | None:
        """Return a task as it is at the position; None where it has not begun."""
        self.show()
        return self.recorder.live[number] if number < len(self.recorder.live) else None

    def frames(self) -> list[Frame]:
        """Return the functions that run in the task, innermost first, with their values at the position."""
        self.show()
        return self.frames_of(self.task, self.at)

    def frames_of(self, number: int, at: int) -> list[Frame]:
        """Return the same of any task, in the run that is repeated and has come to that event."""
        code = self.code_of(number, at)
        if code is None:
            return []
        task = self.recorder.live[number] if number < len(self.recorder.live) else None
        frames = [Frame(_name_of(code.function), code.place, code.op, code, None if task is None else task.frame)]
        frames += [Frame("a caller", each, code.op, None, None) for each in code.callers]
        while task is not None and (call := self.recorder.frames.get((task, code.function))) is not None:
            op, values = call
            code = self._steps[op]
            frames.append(Frame(_name_of(code.function), code.place, op, code, values))
            frames += [Frame("a caller", each, op, None, None) for each in code.callers]
        return frames

    def names(self, frame: Frame | None) -> Mapping[str, Any]:
        """Return what expressions may name in a function: its variables, and the kernel's arguments and constants."""
        variables = {} if frame is None else self._variables(frame)
        return _Contents({**self.constants, **self.arrays, **variables})

    def variables(self) -> dict[str, Any]:
        """Return the values of the task's variables, by name, buffers as they are."""
        frames = self.frames()
        return self._variables(frames[0]) if frames else {}

    def _variables(self, frame: Frame) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if frame.values is None or frame.code is None or frame.code.slot is None:
            return found
        for value in _visible(frame.op):
            slot = frame.code.slot(value)
            if value.name_hint in self.arrays and isinstance(value.type, PointerType | TensorDescType):
                # The array that it leads to says more.
                continue
            if value.name_hint and slot < len(frame.values) and frame.values[slot] is not None:
                found.setdefault(value.name_hint, frame.values[slot])
        return found

    def value(self, text: str) -> Any:
        """Return what an expression is at the position, in the task that is looked at.

        Raises CompilationError for one that has no value.
        """
        frames = self.frames()
        return evaluate("print", text, self.names(frames[0] if frames else None))

    # Places ----------------------------------------------------------------------------------------------------------

    def place(self, text: str) -> Place:
        """Return the barrier, the buffer or the part of an array that a text such as `tiles[0][3, 5]` names.

        Raises CompilationError for a text that names none.
        """
        name, indices = self._parsed(text)
        task = self.recorder.tasks[self.task]
        if name == "named":
            return NamedBarrierPlace(text, task.cluster, task.rank, int(indices[0]) if indices else 0)
        held = self.variables().get(name)
        view = held if isinstance(held, View) else self._buffer(name)
        if view is not None:
            return self._place_in(text, view, indices, task)
        if name in self.arrays:
            return GlobalPlace.of(text, name, self.arrays[name], indices)
        known = [*self.arrays, *(each for each, value in self.variables().items() if isinstance(value, View))]
        have = did_you_mean(name, known) or f", there are {', '.join(known)}"
        raise CompilationError(f"'{name}' is no buffer, barrier or array here{have}")

    def _parsed(self, text: str) -> tuple[str, list[Any]]:
        try:
            node = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            node = None
        indices: list[Any] = []
        while isinstance(node, ast.Subscript):
            indices[:0] = _slices(node.slice) if _has_slice(node.slice) else self._indices(node.slice)
            node = node.value
        if not isinstance(node, ast.Name):
            raise CompilationError(f"expected a buffer, a barrier or an array, as in tiles[0][3, 5], found '{text}'")
        return node.id, indices

    def _indices(self, node: ast.expr) -> list[Any]:
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        return [self.value(ast.unparse(part)) for part in parts]

    def _buffer(self, name: str) -> View | None:
        """A buffer that the task does not name here, but another one of its thread block does."""
        for number in self.tasks_here():
            frames = self.frames_of(number, self.at)
            held = self._variables(frames[0]).get(name) if frames else None
            if isinstance(held, View):
                return held
        return None

    def _place_in(self, text: str, view: View, indices: list[Any], task: Who) -> Place:
        try:
            offsets = np.atleast_1d(view.offsets[tuple(indices)])
        except IndexError as error:
            raise CompilationError(f"'{text}': the buffer has the shape {list(view.shape)}") from error
        address = int(offsets.min())
        where = task.cluster, view.memory.rank
        if (barrier := view.memory.barriers.get(address)) is not None and offsets.size == 1:
            return BarrierPlace(barrier.name, *where, address)
        return BufferPlace.of(text, *where, view, offsets)

    def barriers(self) -> list[BarrierPlace]:
        """Return the mbarriers of the thread block of the task that is looked at."""
        self.show()
        who = self.recorder.tasks[self.task]
        block = self.recorder.block(who.cluster, who.rank)
        held = {} if block is None else block.shared.barriers
        return [BarrierPlace(each.name, who.cluster, who.rank, address) for address, each in held.items()]

    def history(self, place: Place) -> list[Hit]:
        """Return the events that write a place, or change it where it is a barrier, and what each changes."""
        touches = Touches(place)
        self._repeat(touches)
        touches.finish(self.recorder)
        return touches.hits

    def wait_of(self, number: int) -> str:
        """Return what a task waits for, in a line; empty where it does not wait."""
        task = self.live(number)
        if self.state_of(number) != "waits" or task is None or task.waiting is None:
            return ""
        return task.waiting.reason()

    def why(self, number: int) -> list[str]:
        """Return why a task waits, and why those do that could release it."""
        asked, found, done = [number], list[str](), set[int]()
        while asked:
            each = asked.pop(0)
            if each in done:
                continue
            done.add(each)
            found += self._why(each, asked)
        return found

    def _why(self, number: int, asked: list[int]) -> list[str]:
        who, task = self.recorder.tasks[number], self.live(number)
        code = self.code_of(number)
        where = "" if code is None else f"{code.place}: "
        if self.state_of(number) != "waits" or task is None or (waiting := task.waiting) is None:
            return [f"{where}{who.label} {self.state_of(number)}" + (f": {code.line}" if code is not None else "")]
        text = f"{where}{who.label} {waiting.reason()}{cause_of(task, task.cluster).text}"
        notes: list[str] = []
        if waiting.named is not None:
            releases = named_barrier_users(waiting.op, waiting.named)
            notes += [f"    others arrive at {line}" for line in lines(releases)]
            releasing = [task_of(op) for op in releases]
        elif (view := waiting.barrier) is not None:
            barrier = view.memory.barriers.get(view.address)
            notes += [] if barrier is None else barrier_notes(barrier)
            releasing = [] if barrier is None else [task_of(op) for op in arrivals(barrier.allocation)]
        else:
            releasing = [child.name for child in task.cluster.tasks if child is not task]
        names = {name or "the default task" for name in releasing}
        asked += [
            other for other, each in enumerate(self.recorder.tasks)
            if each.cluster == who.cluster and other != number and self._has_begun(other)
            and any(each.label == name or each.label.startswith(f"{name} of ") for name in names)
        ]  # fmt: skip
        return [text, *notes]


def arrays_of(arguments: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the arguments that are arrays, by name, of descriptors what they describe."""
    held = {name: value.base if is_descriptor(value) else value for name, value in arguments.items()}
    # Torch tensors on the CPU share their memory with numpy.
    return {name: np.asarray(value) for name, value in held.items() if hasattr(value, "__array__") and np.ndim(value)}


class _Contents(Mapping[str, Any]):
    """Values by name, of which a buffer's elements are read when they are asked for."""

    def __init__(self, values: Mapping[str, Any]):
        self._values = values

    def __getitem__(self, name: str) -> Any:
        """Return a value, of a buffer its elements."""
        return content(self._values[name])

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._values)

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self._values)


def content(value: Any) -> Any:
    """Return the elements of a buffer, or the result of a product in flight; any other value as it is."""
    if isinstance(value, View):
        return value.memory.bytes.view(value.dtype)[value.offsets // value.dtype.itemsize]
    if isinstance(value, InFlight):
        return "in flight, not waited for" if value.value is None else value.value
    return value


def _visible(op: Operation) -> Iterator[SSAValue]:
    """The values that an operation may use, the nearest first; those of constants aside."""
    here: Operation | None = op
    while here is not None and not isinstance(here, tt.FuncOp):
        before = here.prev_op
        while before is not None:
            if not isinstance(before, ConstantOp):
                yield from before.results
            before = before.prev_op
        block = here.parent
        if block is None:
            return
        yield from block.args
        here = block.parent_op()


def _line_of(code: Code) -> SourceLocation | None:
    return None if code.place is None else SourceLocation(code.place.filename, code.place.line, 0)


def _name_of(function: Operation) -> str:
    name = getattr(function, "sym_name", None)
    return "" if name is None else name.data


def _same_file(asked: str, found: str) -> bool:
    return Path(found).name == asked or Path(found) == Path(asked) or Path(found).resolve() == Path(asked).resolve()


def _has_slice(node: ast.expr) -> bool:
    return any(isinstance(each, ast.Slice) for each in ast.walk(node))


def _slices(node: ast.expr) -> list[Any]:
    """The index `1, :, 2:4` of literals."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return [
        slice(*(None if each is None else ast.literal_eval(each) for each in (part.lower, part.upper, part.step)))
        if isinstance(part, ast.Slice)
        else ast.literal_eval(part)
        for part in parts
    ]


def place_text(place: SourceLocation | None) -> str:
    """Return a place as reports show it."""
    return "an unknown line" if place is None else f"{shown_path(place.filename)}:{place.line}"
