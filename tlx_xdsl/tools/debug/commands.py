"""Commands of the debugger: a line of text in, lines of text out, at a terminal, from a script, and from an editor."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.frontend.python.suggestions import did_you_mean
from tlx_xdsl.interpreter.memory import UNINITIALIZED, View
from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.text.diagnostics import source_line, users_place

from .places import BarrierPlace, BufferPlace, Hit, Place
from .recording import Code, Kind
from .session import Session, Stop, content, place_text

MOST_LINES = 20
"""Entries that a list shows."""


class Commands:
    """Carries out the commands of one session."""

    def __init__(self, session: Session):
        self.session = session
        self.is_over = False
        """Whether the last command was to leave."""
        self._last = ""

    def run(self, text: str) -> list[str]:
        """Carry out a command, and return what it says; an empty one does the last one again.

        Raises CompilationError for a command that means nothing, or can't be carried out here.
        """
        text = text.strip() or self._last
        self._last = text
        word, _, rest = text.partition(" ")
        if not word or word.startswith("#"):
            return []
        function = self._function(word)
        try:
            return function(self, rest.strip())
        except InputError as error:
            raise CompilationError(str(error)) from error

    def _function(self, word: str) -> Callable[[Commands, str], list[str]]:
        if word in SHORT:
            return COMMANDS[SHORT[word]]
        if word in COMMANDS:
            return COMMANDS[word]
        meant = did_you_mean(word, COMMANDS) or ": 'help' lists what there is"
        raise CompilationError(f"there is no command '{word}'{meant}")

    # Moves -----------------------------------------------------------------------------------------------------------

    def step(self, rest: str) -> list[str]:
        """Go to the next line of any task, its wait, or the effect of an asynchronous operation."""
        return self._moved(lambda: self.session.step(1), rest)

    def back(self, rest: str) -> list[str]:
        """Go back as `step` goes on."""
        return self._moved(lambda: self.session.step(-1), rest)

    def next(self, rest: str) -> list[str]:
        """Go to the next line of this task."""
        return self._moved(lambda: self.session.next(1), rest)

    def previous(self, rest: str) -> list[str]:
        """Go back to the line before of this task."""
        return self._moved(lambda: self.session.next(-1), rest)

    def into(self, rest: str) -> list[str]:
        """Go to the next line of this task, into calls."""
        return self._moved(lambda: self.session.into(1), rest)

    def up(self, rest: str) -> list[str]:
        """Go on to the caller of this function."""
        return self._moved(lambda: self.session.next(1, out=True), rest)

    def _moved(self, move: Callable[[], bool], rest: str) -> list[str]:
        for _ in range(_number(rest or "1")):
            if not move():
                break
        return self.here()

    def go_on(self, _rest: str) -> list[str]:
        """Go on to a breakpoint, a watched change, or the end."""
        return self._stopped(self.session.go_on(1))

    def reverse(self, _rest: str) -> list[str]:
        """Go back to a breakpoint, a watched change, or the start."""
        return self._stopped(self.session.go_on(-1))

    def _stopped(self, stop: Stop | None) -> list[str]:
        if stop is None:
            return self.here()
        hit = stop.found.get(self.session.at)
        change = "" if hit is None else _change(hit)
        return [f"stopped by {stop.number}: {stop.text}{change}", *self.here()]

    def goto(self, rest: str) -> list[str]:
        """Go to an event by its number; without one, to the event that was named last."""
        self.session.go(_number(rest) if rest else self.session.named)
        return self.here()

    def start(self, _rest: str) -> list[str]:
        """Go to the start of the run."""
        self.session.go(0)
        return self.here()

    def end(self, _rest: str) -> list[str]:
        """Go to the end of the run."""
        self.session.end()
        return self.here()

    # The position ----------------------------------------------------------------------------------------------------

    def here(self) -> list[str]:
        """Return the position: the event, its task, and the line."""
        session = self.session
        if not session.recorder.tasks:
            return ["nothing has run"]
        who = session.recorder.tasks[session.task]
        where = f"event {session.at:,} of {len(session):,}, program {who.program}, {who.label}"
        if session.at < len(session):
            code = session.recorder.code(session.at)
            if code.kind is Kind.DONE:
                return [f"{where}: its {code.text} takes effect", _source(code)]
            if code.kind is Kind.FLIPPED:
                return [f"{where}: {code.text}", _source(code)]
        state = session.state_of(session.task)
        at = session.code_of(session.task)
        said = "" if state == "runs" else f" {state}"
        return [f"{where}{said}", *([] if at is None else [_source(at)])]

    def where(self, _rest: str) -> list[str]:
        """Show the position, and the calls that led there."""
        frames = self.session.frames()
        calls = [f"    in {each.function}, {place_text(each.place)}" for each in frames[1:]]
        return [*self.here(), *calls]

    def source(self, rest: str) -> list[str]:
        """Show the lines around the position."""
        code = self.session.code_of(self.session.task)
        if code is None or code.place is None:
            return ["no line is known"]
        around = _number(rest or "4")
        here = code.place
        found: list[str] = []
        for line in range(max(1, here.line - around), here.line + around + 1):
            text = source_line(type(here)(here.filename, line, 1))
            if text is not None:
                found.append(f"{'>' if line == here.line else ' '} {line:4} {text}")
        return found

    def tasks(self, _rest: str) -> list[str]:
        """List the tasks that run, with their lines and what they wait for, and what is in flight."""
        session = self.session
        found: list[str] = []
        for number in session.tasks_here()[:MOST_LINES]:
            who, code, state = session.recorder.tasks[number], session.code_of(number), session.state_of(number)
            warps = f"warps {who.warps.start} to {who.warps.stop - 1}" if len(who.warps) > 1 else f"warp {who.warps[0]}"
            mark = "*" if number == session.task else " "
            waits = session.wait_of(number) or state
            line = "" if code is None else f", {place_text(code.place)}: {code.line}"
            found.append(f"{mark} {number}: program {who.program}, {who.label} ({warps}) {waits}{line}")
        task = session.live(session.task)
        if task is not None:
            for queue in task.cluster.busy:
                for transfer in queue.pending:
                    found.append(f"    in flight: {transfer.what}, {_line_of(transfer.op)}")
        return found

    def task(self, rest: str) -> list[str]:
        """Look at another task: by its number in `tasks`, its name, or `warp N`."""
        session = self.session
        tasks = session.recorder.tasks
        here = session.tasks_here()
        if (match := re.fullmatch(r"warp (\d+)", rest)) is not None:
            mine = tasks[session.task]
            found = [
                each for each in here
                if int(match[1]) in tasks[each].warps
                and (tasks[each].cluster, tasks[each].rank) == (mine.cluster, mine.rank)
                and session.state_of(each) in ("runs", "waits")
            ]  # fmt: skip
        elif rest.isdecimal():
            found = [int(rest)] if int(rest) < len(tasks) else []
        else:
            found = [each for each in here if rest in (tasks[each].label, tasks[each].label.removeprefix("the "))]
            found = found or [each for each in here if rest == "default" and not tasks[each].number]
        if not found:
            raise CompilationError(f"there is no task '{rest}' here, 'tasks' lists them")
        session.select(found[0])
        return self.here()

    # Stops -----------------------------------------------------------------------------------------------------------

    def break_at(self, rest: str) -> list[str]:
        """Stop at a line: `break 24`, `break FILE.py:24`, `break 24 if t == 3`; without one, list all stops."""
        if not rest:
            return [f"{stop.number}: {stop.text}, {_times(len(stop.hits))}" for stop in self.session.stops]
        where, _, condition = rest.partition(" if ")
        filename, _, line = where.strip().rpartition(":")
        stop = self.session.break_at(filename or None, _number(line), condition.strip())
        return [f"{stop.number}: {stop.text}, {_times(len(stop.hits))}"]

    def watch(self, rest: str) -> list[str]:
        """Stop where a buffer, an element, an array or a barrier changes: `watch tiles[0]`, `watch full[1]`."""
        stop = self.session.watch(rest)
        return [f"{stop.number}: {stop.text}, {_times(len(stop.hits))}"]

    def delete(self, rest: str) -> list[str]:
        """Delete a breakpoint or a watchpoint by its number; without one, all."""
        number = _number(rest) if rest else None
        self.session.stops = [stop for stop in self.session.stops if number is not None and stop.number != number]
        return []

    # Questions -------------------------------------------------------------------------------------------------------

    def print_value(self, rest: str) -> list[str]:
        """Show what an expression is here: a variable, a buffer, a barrier, an argument, arithmetic of numpy."""
        place = self._place_or_none(rest)
        if isinstance(place, BarrierPlace):
            return self._barrier(place)
        if isinstance(place, BufferPlace):
            return [f"{rest} = {described(self.session.value(rest))}{self._unwritten(place)}"]
        return [f"{rest} = {described(self.session.value(rest))}"]

    def _place_or_none(self, text: str) -> Place | None:
        try:
            return self.session.place(text)
        except CompilationError:
            return None

    def _unwritten(self, place: BufferPlace) -> str:
        block = place.block(self.session.recorder)
        if block is None:
            return ""
        memory = block.shared if place.memory == block.shared.name else block.tensor
        writers = memory.writers[place.offsets.ravel()]
        count = int((writers == UNINITIALIZED).sum())
        families = sorted({
            family.name for family in memory.placement.families if family.number in set(writers.tolist())
        })  # fmt: skip
        said = f", {count} of {writers.size} elements uninitialized" if count else ""
        return said + (f", written as {', '.join(families)}" if len(families) > 1 else "")

    def _barrier(self, place: BarrierPlace) -> list[str]:
        self.session.show()
        block = place.block(self.session.recorder)
        barrier = None if block is None else block.shared.barriers.get(place.address)
        if barrier is None:
            return [f"{place.text} is not there"]
        lacks = barrier.missing or "nothing"
        state = f"{barrier.name}: phase {barrier.phase}, of parity {barrier.phase & 1}, lacks {lacks}"
        return [state, *(str(note) for note in barrier.history())]

    def variables(self, _rest: str) -> list[str]:
        """List the variables of the task at its line."""
        found = self.session.variables()
        return [f"{name} = {described(value)}" for name, value in found.items() if "." not in name]

    def who(self, rest: str) -> list[str]:
        """Show who wrote a place last, before here: `who c[3, 5]`, `who tiles[0][0, 0]`, `who out[7]`."""
        session = self.session
        place = session.place(rest)
        hits = [hit for hit in session.history(place) if hit.event < session.at]
        if not hits:
            return [f"nothing has written {place.text} before event {session.at:,}"]
        return [
            f"{place.text} was written last in {self._event(hits[-1])}",
            _source(session.recorder.code(hits[-1].event)),
        ]

    def arrived(self, rest: str) -> list[str]:
        """Show who arrived at a barrier last, before here, with all arrivals of this phase and the one before."""
        session = self.session
        place = session.place(rest)
        if not place.is_barrier:
            raise CompilationError(f"'{rest}' is no barrier")
        hits = [hit for hit in session.history(place) if hit.event < session.at]
        if not hits:
            return [f"nothing has arrived at {place.text} before event {session.at:,}"]
        now = _phase(hits[-1].after)
        shown = [hit for hit in hits if _phase(hit.before) >= now - 1][-MOST_LINES:] or hits[-1:]
        found = [f"{place.text} is in {hits[-1].after}; it has got, the last one at the end:"]
        return found + [f"    {self._event(hit)}: {self._line(hit.event)}" for hit in shown]

    def history(self, rest: str) -> list[str]:
        """List the events that write or change a place, of the whole run."""
        hits = self.session.history(self.session.place(rest))
        if not hits:
            return [f"nothing writes {rest}"]
        before = [hit for hit in hits if hit.event < self.session.at]
        first = max(0, min(len(before) - MOST_LINES // 2, len(hits) - MOST_LINES))
        shown = hits[first : first + MOST_LINES]
        left = [f"and {len(hits) - len(shown)} more"] if len(hits) > len(shown) else []
        return [f"{self._event(hit)}: {self._line(hit.event)}" for hit in shown] + left

    def _event(self, hit: Hit) -> str:
        recorder = self.session.recorder
        code, who = recorder.code(hit.event), self.session.who(hit.event)
        # Where it was started, its operands can be looked at.
        self.session.named = recorder.issues.get(hit.event, hit.event)
        label = "the hardware" if who is None else who.label
        several = len({each.program for each in recorder.tasks}) > 1
        program = f" of program {who.program}" if who is not None and several else ""
        agent, issued = label, ""
        if code.kind is Kind.DONE:
            agent, issued = f"the {code.text} of {label}", f", started in event {self.session.named:,}"
        return f"event {hit.event:,} by {agent}{program}{issued}{_change(hit)}"

    def _line(self, event: int) -> str:
        code = self.session.recorder.code(event)
        return f"{place_text(code.place)}: {code.line}"

    def why(self, rest: str) -> list[str]:
        """Show why a task waits, and why those wait that could release it."""
        if rest:
            self.task(rest)
        return self.session.why(self.session.task)

    def error(self, _rest: str) -> list[str]:
        """Show again what ended the run."""
        return ["nothing is wrong with the run"] if self.session.fault is None else str(self.session.fault).split("\n")

    def help(self, rest: str) -> list[str]:
        """List the commands, or say what one does."""
        known = [rest] if rest in COMMANDS else list(COMMANDS)
        short = {name: word for word, name in SHORT.items()}
        names = {name: f"{name}, {short[name]}" if name in short else name for name in known}
        width = max(map(len, names.values()))
        return [f"{names[name]:{width}}  {(COMMANDS[name].__doc__ or '').splitlines()[0]}" for name in known]

    def quit(self, _rest: str) -> list[str]:
        """Leave the debugger."""
        self.is_over = True
        return []


COMMANDS: dict[str, Callable[[Commands, str], list[str]]] = {
    "step": Commands.step, "back": Commands.back, "next": Commands.next, "previous": Commands.previous,
    "into": Commands.into, "up": Commands.up, "continue": Commands.go_on, "reverse": Commands.reverse,
    "goto": Commands.goto, "start": Commands.start, "end": Commands.end, "break": Commands.break_at,
    "watch": Commands.watch, "delete": Commands.delete, "print": Commands.print_value,
    "variables": Commands.variables, "who": Commands.who, "arrived": Commands.arrived, "history": Commands.history,
    "why": Commands.why, "where": Commands.where, "list": Commands.source, "tasks": Commands.tasks,
    "task": Commands.task, "error": Commands.error, "help": Commands.help, "quit": Commands.quit,
}  # fmt: skip
"""Commands by name."""

SHORT = {
    "s": "step", "b": "back", "n": "next", "p": "print", "c": "continue", "r": "reverse", "g": "goto", "l": "list",
    "t": "tasks", "w": "where", "v": "variables", "h": "help", "q": "quit",
}  # fmt: skip
"""Commands by a letter."""


def described(value: Any) -> str:
    """Return a value in short: a number, or an array's type, shape, range and first elements."""
    if isinstance(value, View):
        return f"buffer of {value.dtype}{list(value.shape)} at byte {value.address} of {value.memory.name}"
    if isinstance(value, tuple):
        return ", ".join(map(described, cast("tuple[Any, ...]", value)))
    held = content(value)
    if not isinstance(held, np.ndarray) or held.ndim == 0:
        return f"{held}"
    array = cast(Array, held)
    text = f"{array.dtype}{list(array.shape)}"
    if not array.size:
        return text
    numbers = array.astype(np.float64) if array.dtype.kind not in "biuf" else array
    shown = np.array2string(numbers, threshold=12, edgeitems=2, precision=5, separator=", ").replace("\n", "")
    return f"{text} {re.sub(' +', ' ', shown)}"


def _line_of(op: Operation) -> str:
    place = users_place(op.location)
    return f"{place_text(place)}: {(source_line(place) or op.name).strip()}"


def _source(code: Code) -> str:
    return f"    {place_text(code.place)}: {code.line}"


def _change(hit: Hit) -> str:
    return f" ({hit.before or 'nothing'} -> {hit.after})" if hit.after else ""


def _phase(text: str) -> int:
    """The number of the phase that a barrier's state names; -1 of one that was not there."""
    found = re.search(r"\d+", text)
    return int(found[0]) if found else -1


def _times(count: int) -> str:
    return "never hit in this run" if not count else f"hit {count} time{'' if count == 1 else 's'} in this run"


def _number(text: str) -> int:
    if not text.replace(",", "").isdecimal():
        raise CompilationError(f"expected a number, found '{text}'")
    return int(text.replace(",", ""))


PROMPT = "(tlx) "
"""The text before each command."""


def converse(session: Session, given: Iterable[str] | None = None) -> None:
    """Print the position, and carry out commands until there are no more: those that are given, or standard input's.

    What is not asked for at a terminal is printed with its answer.
    """
    commands = Commands(session)
    for line in commands.here():
        print(line)
    is_asked = given is None and sys.stdin.isatty()
    if given is None:
        given = _asked() if is_asked else (line.rstrip("\n") for line in sys.stdin)
    for command in given:
        if not is_asked:
            print(f"{PROMPT}{command}")
        try:
            for line in commands.run(command):
                print(line)
        except CompilationError as error:
            print(error)
        if commands.is_over:
            break


def answers(session: Session, given: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Carry out commands until there are no more, and return each with its lines, or with its error, for a document."""
    commands = Commands(session)
    for command in given:
        lines, error = list[str](), None
        try:
            lines = commands.run(command)
        except CompilationError as found:
            error = str(found)
        yield {"command": command, "event": session.at, "lines": lines, "error": error}
        if commands.is_over:
            return


def _asked() -> Iterator[str]:
    with suppress(ImportError):
        # Gives `input` its history and editing, where Python was built with it.
        import_module("readline")
    while True:
        try:
            yield input(PROMPT)
        except EOFError:
            return
