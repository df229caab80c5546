"""The debugger for editors: a server of the Debug Adapter Protocol, written after its public specification.

Source: https://microsoft.github.io/debug-adapter-protocol/specification (1.6x). A message is a header
`Content-Length: N`, an empty line, and N bytes of JSON. A thread of the protocol is a task of the kernel.
"""

from __future__ import annotations

import argparse
import io
import json
import shlex
import socket
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import numpy as np

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.memory import View

from ..parser import Parser
from .commands import Commands, described
from .places import BarrierPlace
from .session import Frame, Session, Stop, content

MOST_CHILDREN = 64
"""Elements of an array, or slots of a buffer, that are shown below it."""

Open: TypeAlias = Callable[[argparse.Namespace], tuple[Session, CompilationError | None]]
"""Records the run that a command line says; returns it, and what is wrong with it."""


def read_message(stream: BinaryIO) -> dict[str, Any] | None:
    """Read a message; None at the end of the stream."""
    length = 0
    while (line := stream.readline()) not in (b"\r\n", b"\n"):
        if not line:
            return None
        name, _, value = line.decode("ascii").partition(":")
        if name.strip().lower() == "content-length":
            length = int(value)
    return json.loads(stream.read(length))


def write_message(stream: BinaryIO, message: Mapping[str, Any]) -> None:
    """Write a message."""
    body = json.dumps(message).encode("utf-8")
    stream.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    stream.flush()


def serve(args: argparse.Namespace, open_session: Open, make_parser: Callable[[], Parser]) -> int:
    """Speak the protocol until the editor leaves: on standard input and output, or with one editor at a port.

    Raises OSError where the port is taken.
    """
    if not args.dap:
        given, shown = sys.stdin.buffer, sys.stdout.buffer
        Adapter(given, shown, args, open_session, make_parser).run()
        return 0
    with socket.create_server(("127.0.0.1", args.dap)) as server:
        print(f"waiting for an editor at 127.0.0.1:{args.dap}", file=sys.stderr)
        connection, _ = server.accept()
        with connection, connection.makefile("rwb") as stream:
            Adapter(cast(BinaryIO, stream), cast(BinaryIO, stream), args, open_session, make_parser).run()
    return 0


_Event: TypeAlias = tuple[str, dict[str, Any]]
"""An event of the protocol, with its body."""
_INITIALIZED: _Event = ("initialized", {})
_TERMINATED: _Event = ("terminated", {})


class _Failure(Exception):
    """A request that can't be answered."""


@dataclass(frozen=True)
class _Variable:
    """A variable with children."""

    text: str
    """The expression that gives it; empty for a scope."""
    task: int
    scope: str = ""


class _Output(io.TextIOBase):
    """Text that is printed while a kernel runs: an event, not part of the stream of messages."""

    def __init__(self, send: Callable[[str, dict[str, Any]], None], category: str):
        self._send, self._category = send, category

    def write(self, text: str) -> int:
        """Send the text."""
        self._send("output", {"category": self._category, "output": text})
        return len(text)


class Adapter:
    """One editor's session."""

    def __init__(
        self,
        given: BinaryIO,
        shown: BinaryIO,
        args: argparse.Namespace,
        open_session: Open,
        make_parser: Callable[[], Parser],
    ):
        self._given, self._shown, self._args = given, shown, args
        self._open, self._parser = open_session, make_parser
        self._sent = 0
        self._session: Session | None = None
        self._commands: Commands | None = None
        self._wrong: CompilationError | None = None
        self._starts_at_entry = True
        self._lines: dict[str, list[Stop]] = {}
        """Breakpoints by file."""
        self._data: list[Stop] = []
        self._held: list[_Variable] = []
        """Values with children, by reference minus 1, until the next move."""
        self._is_over = False

    def run(self) -> None:
        """Answer requests until the editor leaves."""
        while not self._is_over and (message := read_message(self._given)) is not None:
            if message.get("type") == "request":
                self._answer(message)

    def _answer(self, message: Mapping[str, Any]) -> None:
        command = str(message.get("command", ""))
        reply: dict[str, Any] = {"type": "response", "request_seq": message["seq"], "command": command}
        after: Sequence[_Event] = ()
        handler = _REQUESTS.get(command)
        try:
            if handler is None:
                raise _Failure(f"'{command}' is not supported")
            with self._printing():
                result = handler(self, cast("dict[str, Any]", message.get("arguments") or {}))
            if isinstance(result, tuple):
                result, after = cast("tuple[dict[str, Any], Sequence[_Event]]", result)
            reply |= {"success": True, "body": result}
        except (_Failure, CompilationError) as error:
            text = str(error)
            reply |= {"success": False, "message": text.split("\n")[0]}
            reply["body"] = {"error": {"id": 1, "format": text.replace("{", "(").replace("}", ")"), "showUser": True}}
        self._send(reply)
        for event, body in after:
            self._event(event, body)

    @contextmanager
    def _printing(self) -> Generator[None]:
        with redirect_stdout(_Output(self._event, "stdout")), redirect_stderr(_Output(self._event, "stderr")):
            yield

    def _send(self, message: dict[str, Any]) -> None:
        self._sent += 1
        write_message(self._shown, {"seq": self._sent, **message})

    def _event(self, event: str, body: dict[str, Any]) -> None:
        self._send({"type": "event", "event": event, "body": body})

    # The life of a session -------------------------------------------------------------------------------------------

    def initialize(self, _arguments: dict[str, Any]) -> dict[str, Any]:
        """Say what there is."""
        able = (
            "supportsConfigurationDoneRequest", "supportsStepBack", "supportsConditionalBreakpoints",
            "supportsDataBreakpoints", "supportsEvaluateForHovers", "supportsExceptionInfoRequest",
            "supportsTerminateRequest",
        )  # fmt: skip
        return {**dict.fromkeys(able, True), "exceptionBreakpointFilters": []}

    def launch(self, arguments: dict[str, Any]) -> Any:
        """Record a run: `kernel` is FILE.py:KERNEL, and `args` are the other arguments of `tlx debug`."""
        args = self._args
        if "kernel" in arguments:
            rest = arguments.get("args", [])
            words = shlex.split(rest) if isinstance(rest, str) else [str(each) for each in rest]
            said = io.StringIO()
            try:
                with redirect_stderr(said):
                    args = self._parser().parse_args(["debug", str(arguments["kernel"]), *words])
            except SystemExit:
                raise _Failure(said.getvalue().strip()) from None
        self._session, self._wrong = self._open(args)
        self._commands = Commands(self._session)
        self._starts_at_entry = bool(arguments.get("stopOnEntry", True))
        return {}, [_INITIALIZED]

    def configuration_done(self, _arguments: dict[str, Any]) -> Any:
        """Stop where the run is wrong, else at its start or at the first breakpoint."""
        session = self._now
        if self._wrong is not None:
            report: _Event = ("output", {"category": "stderr", "output": f"{self._wrong}\n"})
            return {}, [report, self._stopped("exception", self._wrong.message)]
        session.go(0)
        if self._starts_at_entry:
            return {}, [self._stopped("entry")]
        return self._went(session.go_on(1))

    def leave(self, _arguments: dict[str, Any]) -> Any:
        """End the session."""
        self._is_over = True
        return {}, [_TERMINATED]

    @property
    def _now(self) -> Session:
        if self._session is None:
            raise _Failure("nothing was launched")
        return self._session

    def _stopped(self, reason: str, text: str = "") -> tuple[str, dict[str, Any]]:
        self._held.clear()
        body: dict[str, Any] = {"reason": reason, "threadId": self._now.task + 1, "allThreadsStopped": True}
        return "stopped", {**body, **({"description": text, "text": text} if text else {})}

    def _went(self, stop: Stop | None) -> Any:
        if stop is None:
            text = "the end of the run" if self._now.at else "the start of the run"
            if self._now.at and self._wrong is not None:
                return {}, [self._stopped("exception", self._wrong.message)]
            if self._now.at and self._wrong is not None:
                return {}, [self._stopped("exception", self._wrong.message)]
            text = "the end of the run" if self._now.at else "the start of the run"
            return {}, [self._stopped("pause", text)]
        return {}, [self._stopped("data breakpoint" if stop.found else "breakpoint", stop.text)]

    # Stops -----------------------------------------------------------------------------------------------------------

    def set_breakpoints(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Replace the breakpoints of a file."""
        path = str(arguments["source"].get("path", ""))
        stops: list[Stop] = []
        answers: list[dict[str, Any]] = []
        for asked in arguments.get("breakpoints", []):
            line = int(asked["line"])
            try:
                stop = self._now.break_at(path, line, asked.get("condition") or "")
                stops.append(stop)
                answers.append({"id": stop.number, "verified": True, "line": line})
            except CompilationError as error:
                answers.append({"verified": False, "line": line, "message": error.message})
        self._replace(self._lines.get(path, []))
        self._lines[path] = stops
        return {"breakpoints": answers}

    def _replace(self, old: list[Stop]) -> None:
        self._now.stops = [stop for stop in self._now.stops if not any(stop is each for each in old)]

    def data_breakpoint_info(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Say whether a variable can be watched: a buffer, a barrier, or an argument that is an array."""
        name = str(arguments["name"])
        reference = int(arguments.get("variablesReference") or 0)
        text = self._below(self._held[reference - 1], name) if 0 < reference <= len(self._held) else name
        try:
            self._now.place(text)
        except CompilationError as error:
            return {"dataId": None, "description": error.message}
        return {"dataId": text, "description": text, "accessTypes": ["write"], "canPersist": True}

    def set_data_breakpoints(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Replace what is watched."""
        stops: list[Stop] = []
        answers: list[dict[str, Any]] = []
        for asked in arguments.get("breakpoints", []):
            try:
                stops.append(self._now.watch(str(asked["dataId"])))
                answers.append({"id": stops[-1].number, "verified": True})
            except CompilationError as error:
                answers.append({"verified": False, "message": error.message})
        self._replace(self._data)
        self._data = stops
        return {"breakpoints": answers}

    def set_exception_breakpoints(self, _arguments: dict[str, Any]) -> dict[str, Any]:
        """Offer no choice: a run that is wrong stops where it is."""
        return {"breakpoints": []}

    # Moves -----------------------------------------------------------------------------------------------------------

    def _move(self, arguments: dict[str, Any], move: Callable[[Session], object]) -> Any:
        self._select(int(arguments.get("threadId", self._now.task + 1)))
        move(self._now)
        return {}, [self._stopped("step")]

    def _select(self, thread: int) -> None:
        if not 0 < thread <= len(self._now.recorder.tasks):
            raise _Failure(f"there is no thread {thread}")
        self._now.select(thread - 1)

    def next(self, arguments: dict[str, Any]) -> Any:
        """Go to the next line of a task."""
        return self._move(arguments, lambda session: session.next(1))

    def step_in(self, arguments: dict[str, Any]) -> Any:
        """Go to the next line of a task, into calls."""
        return self._move(arguments, lambda session: session.into(1))

    def step_out(self, arguments: dict[str, Any]) -> Any:
        """Go on to the caller."""
        return self._move(arguments, lambda session: session.next(1, out=True))

    def step_back(self, arguments: dict[str, Any]) -> Any:
        """Go back to the line before of a task."""
        return self._move(arguments, lambda session: session.next(-1))

    def go_on(self, _arguments: dict[str, Any]) -> Any:
        """Go on to the next stop; all tasks do."""
        body, events = self._went(self._now.go_on(1))
        return {**body, "allThreadsContinued": True}, events

    def reverse(self, _arguments: dict[str, Any]) -> Any:
        """Go back to the stop before."""
        return self._went(self._now.go_on(-1))

    def pause(self, _arguments: dict[str, Any]) -> Any:
        """Report a stop: nothing runs, it stands already."""
        return {}, [self._stopped("pause")]

    # What is there ---------------------------------------------------------------------------------------------------

    def threads(self, _arguments: dict[str, Any]) -> dict[str, Any]:
        """List the tasks."""
        session = self._now
        found = [(number, session.recorder.tasks[number]) for number in session.tasks_here()]
        return {"threads": [
            {"id": number + 1, "name": f"{who.label} of program {who.program}: {session.state_of(number)}"}
            for number, who in found
        ]}  # fmt: skip

    def stack_trace(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """List the functions in which a task is."""
        thread = int(arguments["threadId"])
        self._select(thread)
        frames = self._now.frames()
        shown = [self._frame(thread, depth, frame) for depth, frame in enumerate(frames)]
        return {"stackFrames": shown, "totalFrames": len(shown)}

    def _frame(self, thread: int, depth: int, frame: Frame) -> dict[str, Any]:
        found: dict[str, Any] = {"id": thread * 1000 + depth, "name": frame.function, "line": 0, "column": 0}
        if (place := frame.place) is not None:
            path = Path(place.filename).resolve()
            found |= {"line": place.line, "column": max(place.column, 1)}
            found["source"] = {"name": path.name, "path": str(path)}
        return found

    def scopes(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """List the groups of values of a task."""
        task = int(arguments["frameId"]) // 1000 - 1
        found = [
            {"name": name, "variablesReference": self._hold(_Variable("", task, name)), "expensive": False}
            for name in ("Variables", "Arguments", "Barriers")
        ]
        return {"scopes": found}

    def _hold(self, variable: _Variable) -> int:
        self._held.append(variable)
        return len(self._held)

    def variables(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """List the values of a group, or the elements of a value."""
        reference = int(arguments["variablesReference"])
        if not 0 < reference <= len(self._held):
            raise _Failure("these variables are of another position")
        held = self._held[reference - 1]
        session = self._now
        session.select(held.task)
        session.show()
        if held.scope == "Barriers":
            return {"variables": [self._barrier(place) for place in session.barriers()]}
        if held.scope == "Arguments":
            values = {**session.constants, **session.arrays}
        elif held.scope:
            values = {name: each for name, each in session.variables().items() if "." not in name}
            values = {name: each for name, each in values.items() if name not in session.arrays}
        else:
            whole = content(session.value(held.text))
            values = {f"[{index}]": whole[index] for index in range(min(len(whole), MOST_CHILDREN))}
        return {"variables": [self._variable(held, name, value) for name, value in values.items()]}

    def _below(self, held: _Variable, name: str) -> str:
        return name if held.scope else f"{held.text}{name}"

    def _variable(self, held: _Variable, name: str, value: object) -> dict[str, Any]:
        text = self._below(held, name)
        ndim = value.offsets.ndim if isinstance(value, View) else np.ndim(cast(Any, value))
        reference = self._hold(_Variable(text, held.task)) if ndim else 0
        return {"name": name, "value": described(value), "variablesReference": reference, "evaluateName": text}

    def _barrier(self, place: BarrierPlace) -> dict[str, Any]:
        state = place.state(self._now.recorder)
        return {"name": place.text, "value": state, "variablesReference": 0, "evaluateName": place.text}

    def evaluate(self, arguments: dict[str, Any]) -> Any:
        """Carry out a command of the debugger in the console; elsewhere, say what an expression is."""
        session, commands, text = self._now, self._commands, str(arguments["expression"])
        assert commands is not None
        if frame := int(arguments.get("frameId") or 0):
            session.select(frame // 1000 - 1)
        if arguments.get("context") != "repl":
            return {"result": "\n".join(commands.print_value(text)), "variablesReference": 0}
        before = session.at, session.task
        result = {"result": "\n".join(commands.run(text)), "variablesReference": 0}
        if (session.at, session.task) != before:
            return result, [self._stopped("goto")]
        return result

    def exception_info(self, _arguments: dict[str, Any]) -> dict[str, Any]:
        """Say what is wrong with the run."""
        if (wrong := self._wrong) is None:
            raise _Failure("nothing is wrong with the run")
        name = type(wrong).__name__
        return {
            "exceptionId": name, "description": wrong.message, "breakMode": "always",
            "details": {"message": str(wrong), "typeName": name},
        }  # fmt: skip


_REQUESTS: dict[str, Callable[[Adapter, dict[str, Any]], Any]] = {
    "initialize": Adapter.initialize, "launch": Adapter.launch, "attach": Adapter.launch,
    "configurationDone": Adapter.configuration_done, "disconnect": Adapter.leave, "terminate": Adapter.leave,
    "setBreakpoints": Adapter.set_breakpoints, "dataBreakpointInfo": Adapter.data_breakpoint_info,
    "setDataBreakpoints": Adapter.set_data_breakpoints, "setExceptionBreakpoints": Adapter.set_exception_breakpoints,
    "next": Adapter.next, "stepIn": Adapter.step_in, "stepOut": Adapter.step_out, "stepBack": Adapter.step_back,
    "continue": Adapter.go_on, "reverseContinue": Adapter.reverse, "pause": Adapter.pause,
    "threads": Adapter.threads, "stackTrace": Adapter.stack_trace, "scopes": Adapter.scopes,
    "variables": Adapter.variables, "evaluate": Adapter.evaluate, "exceptionInfo": Adapter.exception_info,
}  # fmt: skip
"""Requests of the protocol that are answered."""
