"""The debugger over the Debug Adapter Protocol: a client of its specification drives `tlx debug --dap`."""

import argparse
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.unit.docs.test_debugger_pages import kernel_of, sections
from tlx_xdsl.tools.commands.debug_kernel import opened
from tlx_xdsl.tools.debug.adapter import Adapter
from tlx_xdsl.tools.tlx import main, parser

TIMEOUT = 60
"""Seconds for one message: a busy machine imports slowly."""


class Client:
    """An editor: it sends requests, and reads what comes back (specification, "Base Protocol")."""

    def __init__(self, given, shown):
        self._given, self._shown = given, shown
        self._sent = 0
        self.events: list[dict] = []

    def read(self) -> dict:
        length = None
        while (line := self._shown.readline()) != b"\r\n":
            assert line, "the stream has ended"
            name, _, value = line.decode().partition(":")
            if name.lower() == "content-length":
                length = int(value)
        assert length is not None
        return json.loads(self._shown.read(length))

    def ask(self, command: str, **arguments) -> dict:
        """The response to a request, whatever events come before it."""
        self._sent += 1
        message = {"seq": self._sent, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(message).encode()
        self._given.write(b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body)
        self._given.flush()
        while (answer := self.read())["type"] == "event":
            self.events.append(answer)
        assert (answer["type"], answer["request_seq"], answer["command"]) == ("response", self._sent, command)
        return answer

    def get(self, command: str, **arguments) -> dict:
        answer = self.ask(command, **arguments)
        assert answer["success"], answer
        return answer.get("body", {})

    def until(self, event: str) -> dict:
        """The next event of that name."""
        while True:
            found = next((each for each in self.events if each["event"] == event), None)
            if found is not None:
                self.events.remove(found)
                return found.get("body", {})
            self.events.append(self.read())

    # What an editor does with them.

    def start(self, kernel: str, *args: str, lines=(), **options) -> dict:
        """Launch a kernel as VS Code does, and return where it stops."""
        able = self.get("initialize", clientID="test", adapterID="tlx", linesStartAt1=True, columnsStartAt1=True)
        assert able["supportsStepBack"]
        assert able["supportsDataBreakpoints"]
        self.get("launch", kernel=kernel, args=list(args), **options)
        self.until("initialized")
        source = {"path": str(Path(kernel.partition(":")[0]).resolve())}
        found = self.get("setBreakpoints", source=source, breakpoints=list(lines))
        assert all(each["verified"] for each in found["breakpoints"])
        self.get("setExceptionBreakpoints", filters=[])
        self.get("configurationDone")
        return self.until("stopped")

    def move(self, command: str, thread: int) -> dict:
        self.get(command, threadId=thread)
        return self.until("stopped")

    def line(self, thread: int) -> int:
        return self.get("stackTrace", threadId=thread)["stackFrames"][0]["line"]

    def value(self, thread: int, text: str) -> str:
        frame = self.get("stackTrace", threadId=thread)["stackFrames"][0]["id"]
        return self.get("evaluate", expression=text, frameId=frame, context="hover")["result"].partition(" = ")[2]

    def console(self, text: str) -> str:
        return self.get("evaluate", expression=text, context="repl")["result"]

    def scope(self, thread: int, name: str) -> dict[str, dict]:
        frame = self.get("stackTrace", threadId=thread)["stackFrames"][0]["id"]
        (scope,) = [each for each in self.get("scopes", frameId=frame)["scopes"] if each["name"] == name]
        found = self.get("variables", variablesReference=scope["variablesReference"])["variables"]
        return {each["name"]: {**each, "scope": scope["variablesReference"]} for each in found}


@pytest.fixture
def client(tmp_path, monkeypatch):
    """The server in a thread of this process: to start one of its own takes seconds."""
    monkeypatch.chdir(tmp_path)
    (server_reads, client_writes), (client_reads, server_writes) = os.pipe(), os.pipe()
    with (
        open(server_reads, "rb") as given,
        open(server_writes, "wb") as shown,
        open(client_writes, "wb") as to_server,
        open(client_reads, "rb") as from_server,
    ):
        args = argparse.Namespace(kernel=None)
        adapter = Adapter(given, shown, args, opened, lambda: parser("debug"))
        server = threading.Thread(target=adapter.run, daemon=True)
        server.start()
        made = Client(to_server, from_server)
        yield made
        made.get("disconnect")
        made.until("terminated")
        server.join(TIMEOUT)
        assert not server.is_alive()


@pytest.fixture
def process(tmp_path, monkeypatch):
    """`tlx debug --dap` as an editor starts it."""
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-m", "tlx_xdsl.tools.tlx", "debug", "--dap"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as started:
        # A server that hangs ends the test, not the suite.
        timer = threading.Timer(TIMEOUT, started.kill)
        timer.start()
        made = Client(started.stdin, started.stdout)
        yield made
        made.get("disconnect")
        made.until("terminated")
        assert started.wait(TIMEOUT) == 0
        timer.cancel()


def written(title: str) -> tuple[str, str]:
    """Write the kernel of a section; returns its file, and its text."""
    name, source = kernel_of(sections()[title])
    Path(name).write_text(source)
    return name, source


def line_of(source: str, text: str) -> int:
    return next(n for n, line in enumerate(source.splitlines(), 1) if text in line)


PIPELINE = ("--grid", "1", "--arg", "src=randn[384,64]", "--arg", "dst=nan[384,64]", "--check", "dst=src*2")


def test_a_deadlock_leads_to_the_wrong_parity(process):
    client = process
    name, source = written("A deadlock: the wrong parity")
    faulty = line_of(source, "(t // SLOTS) & 1)")
    stopped = client.start(f"{name}:pipeline", *PIPELINE)
    assert stopped["reason"] == "exception"
    assert "deadlock" in client.get("exceptionInfo", threadId=stopped["threadId"])["description"]
    threads = client.get("threads")["threads"]
    assert [each["name"].partition(" of program")[0] for each in threads] == [
        "the default task",
        "partition 0",
        "partition 1",
    ]
    assert client.line(stopped["threadId"]) == faulty
    assert client.value(stopped["threadId"], "t") == "0"
    assert "takes parity 1" in client.console("why")
    assert client.scope(stopped["threadId"], "Barriers")["empty[0]"]["value"] == "phase 0, 0 of 2 arrivals"
    client.move("stepBack", stopped["threadId"])
    assert client.line(stopped["threadId"]) <= faulty


def test_a_race_leads_to_the_barrier_that_counts_too_few(client):
    name, source = written("A race: a barrier that counts too few arrivals")
    stopped = client.start(f"{name}:pipeline", *PIPELINE)
    assert stopped["reason"] == "exception"
    thread = stopped["threadId"]
    assert client.line(thread) == line_of(source, "async_descriptor_load(src")
    # Whoever has let the loader go on: the last change of the barrier, watched as data, and found backwards.
    barrier = client.scope(thread, "Barriers")["empty[0]"]
    info = client.get("dataBreakpointInfo", variablesReference=barrier["scope"], name="empty[0]")
    client.get("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"], "accessType": "write"}])
    back = client.move("reverseContinue", thread)
    assert back["reason"] == "data breakpoint"
    assert client.line(back["threadId"]) == line_of(source, "tlx.barrier_arrive(empty[t % SLOTS])")
    answer = client.console("print empty[0]")
    assert "initialised for 1 arrival at " in answer
    assert f"{name}:{line_of(source, 'empty = tlx.alloc')}:" in answer


def test_wrong_numbers_lead_to_the_wrong_index(client):
    name, source = written("Wrong numbers: a wrong index")
    faulty = line_of(source, "[k * TILE, row]")
    args = [f"{each}_desc={fill}[128,128]" for each, fill in (("a", "randn"), ("b", "randn"), ("c", "nan"))]
    launch = ["--grid", "2,2", *(part for each in args for part in ("--arg", each)), "--arg", "K=128"]
    condition = {"line": faulty, "condition": "column == 64 and row == 0"}
    stopped = client.start(
        f"{name}:gemm", *launch, "--check", "c_desc=a_desc@b_desc", "--tolerance", "1e-2", lines=[condition]
    )
    assert stopped["reason"] == "exception"
    assert "c_desc" in stopped["text"]
    # The console moves, too, and an event says where it stands then.
    client.console("who c_desc[0, 64]")
    client.console("goto")
    moved = client.until("stopped")
    assert client.line(moved["threadId"]) == line_of(source, "async_descriptor_store(c_desc")
    back = client.move("reverseContinue", moved["threadId"])
    assert back["reason"] == "breakpoint"
    assert client.line(back["threadId"]) == faulty
    assert (client.value(back["threadId"], "row"), client.value(back["threadId"], "column")) == ("0", "64")
    # Only where the condition holds: two steps of the loop, in one of four programs.
    again = client.move("reverseContinue", back["threadId"])
    assert client.line(again["threadId"]) == faulty
    start = client.move("reverseContinue", again["threadId"])
    assert (start["reason"], start["text"]) == ("pause", "the start of the run")


def test_lines_forward_and_back_are_the_same(client):
    name, _ = written("Wrong numbers: a stale buffer")
    stopped = client.start(f"{name}:smooth", "--grid", "1", "--arg", "x=arange[4,64]", "--arg", "out=nan[4,64]")
    assert stopped["reason"] == "entry"
    forward = [client.line(1)]
    for _ in range(8):
        client.move("next", 1)
        forward.append(client.line(1))
    back = [forward[-1]]
    for _ in range(8):
        client.move("stepBack", 1)
        back.append(client.line(1))
    assert back == forward[::-1]
    assert len(set(forward)) > 4


def test_elements_of_buffers_and_arrays_are_below_them(client):
    name, source = written("Wrong numbers: a stale buffer")
    lines = [{"line": line_of(source, "tl.store(out"), "condition": "row == 2"}]
    launch = ("--grid", "1", "--arg", "x=arange[4,64]", "--arg", "out=nan[4,64]")
    assert client.start(f"{name}:smooth", *launch, lines=lines, stopOnEntry=False)["reason"] == "breakpoint"
    kept = client.scope(1, "Variables")["kept"]
    slots = client.get("variables", variablesReference=kept["variablesReference"])["variables"]
    assert [each["evaluateName"] for each in slots] == ["kept[0]", "kept[1]"]
    numbers = client.get("variables", variablesReference=slots[0]["variablesReference"])["variables"]
    assert [each["value"] for each in numbers[:3]] == ["0.0", "1.0", "2.0"]
    rows = client.get("variables", variablesReference=client.scope(1, "Arguments")["x"]["variablesReference"])
    assert len(rows["variables"]) == 4


def test_what_can_not_be_done_is_said(client):
    answer = client.ask("initialize", adapterID="tlx")
    assert answer["success"]
    assert not client.ask("threads")["success"]
    assert "nothing was launched" in client.ask("threads")["message"]
    assert "not supported" in client.ask("readMemory")["message"]
    refused = client.ask("launch", kernel="absent.py:kernel", args=["--grid", "1"])
    assert not refused["success"]
    assert "absent.py" in refused["message"]
    refused = client.ask("launch", kernel="absent.py:kernel", args=["--gird", "1"])
    assert "--gird" in refused["body"]["error"]["format"]
    name, _ = written("Wrong numbers: a stale buffer")
    client.get("launch", kernel=f"{name}:smooth", args="--grid 1 --arg x=arange[4,64] --arg out=nan[4,64]")
    client.until("initialized")
    source = {"path": str(Path(name).resolve())}
    (found,) = client.get("setBreakpoints", source=source, breakpoints=[{"line": 1}])["breakpoints"]
    assert not found["verified"]
    assert "the next one with code is 9" in found["message"]
    client.get("configurationDone")
    assert client.get("dataBreakpointInfo", name="absent")["dataId"] is None
    assert "there is no command" in client.ask("evaluate", expression="wander", context="repl")["message"]


def test_at_a_port(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, _ = written("Wrong numbers: a stale buffer")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    launch = ["--grid", "1", "--arg", "x=arange[4,64]", "--arg", "out=nan[4,64]"]
    server = threading.Thread(
        target=main, args=(["debug", f"{name}:smooth", *launch, "--dap", str(port)],), daemon=True
    )
    server.start()
    for _ in range(600):
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    with connection, connection.makefile("rwb") as stream:
        client = Client(stream, stream)
        client.get("initialize", adapterID="tlx")
        # The command line has said the kernel: the editor attaches.
        client.get("attach")
        client.until("initialized")
        client.get("configurationDone")
        assert client.until("stopped")["reason"] == "entry"
        client.get("disconnect")
    server.join(TIMEOUT)
    assert not server.is_alive()
