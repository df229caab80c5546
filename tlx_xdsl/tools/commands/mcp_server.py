"""The work of `tlx mcp`: commands as tools of the Model Context Protocol, over standard input and output.

A call runs a command in a process of its own, which ends with the time that there is for it: neither a crash, nor a
kernel's file that prints or never ends, is one of the server. What a tool returns is the command's document of
`--format json`, cut where it is too long; an error is one line.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, cast

from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.version import __version__

from ..documents import SCHEMA

try:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from pydantic import Field
except ModuleNotFoundError as error:
    raise CompilationError("tlx mcp needs the package mcp: pip install 'tlx-xdsl[mcp]'") from error

INSTRUCTIONS = """\
Tools for kernels in Triton and TLX. A kernel is named FILE.py:KERNEL, relative to the folder of the server. Files are \
run, as Python does when it imports them. Results are documents of the schema tlx://documents.schema.json."""

MOST_READ = 1 << 26
"""Bytes of a command's output that are read."""
LONG = 256
"""Characters up to which no text is cut."""
_SPANS = ("tracks", "spans", "places", "critical", "strings")
"""The parts of a timeline that grow with its length."""

Kernel = Annotated[str, Field(description="FILE.py:KERNEL")]
Grid = Annotated[str, Field(description="Programs along x, y, z, as in cdiv(M, BLOCK),4: over arguments and sizes")]
Texts = dict[str, str]
Arguments = Annotated[
    Texts,
    Field(
        description="Arguments by name: 512 for a number, randn:fp16[512,64], zeros:fp32[N] or nan[64] for arrays, "
        "*fp16 or i32 for a type alone"
    ),
]
Sizes = Annotated[Texts, Field(description="Numbers that grid and arguments name: 3; several as in 1..4,8; or small")]
Constants = Annotated[Texts, Field(description="Compile-time arguments by name, beside the file's TLX_COMPILE")]
Choices = Annotated[Texts, Field(description="Values to choose from by name: BLOCK is 64,128, num_warps is 4,8")]
Decisions = Annotated[Texts, Field(description="Decisions by name, such as depth, which is 3")]
Seconds = Annotated[float, Field(description="Time for runs, in seconds")]
Target = Annotated[str, Field(description="The GPU: sm_90a, sm_100a, ...")]
NONE: Texts = {}


def run(args: argparse.Namespace) -> None:
    """Serve until standard input ends; a call has `--seconds` of time, and its result at most `--bytes`."""
    server = MCPServer("tlx_xdsl", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    tools = Tools(args.seconds, args.bytes)
    for each in (tools.check, tools.prove, tools.gate, tools.explain, tools.timeline, tools.warp_specialize):
        server.add_tool(each)

    def schema() -> str:
        """Give the JSON Schema of all results."""
        return SCHEMA.read_text(encoding="utf-8")

    server.resource("tlx://documents.schema.json", mime_type="application/schema+json")(schema)
    server.run("stdio")


class Tools:
    """Tools of the server; each returns a document, and raises ToolError where the command ends in an error."""

    def __init__(self, seconds: float, size: int):
        self._seconds = seconds
        self._size = size
        self._processes = asyncio.Semaphore(os.cpu_count() or 1)

    async def check(
        self, kernel: Kernel, grid: Grid, arguments: Arguments, sizes: Sizes = NONE, constants: Constants = NONE,
        seconds: Seconds = 10.0, target: Target = "",
    ) -> dict[str, Any]:  # fmt: skip
        """Run a kernel in all orders of its tasks that matter, and report races, deadlocks and other faults."""
        launch = _launch(grid, arguments, sizes, constants, target)
        return await self._document("check", kernel, *launch, f"--seconds={seconds}")

    async def prove(
        self, kernel: Kernel, grid: Grid, arguments: Arguments, sizes: Sizes = NONE, constants: Constants = NONE,
        target: Target = "",
    ) -> dict[str, Any]:  # fmt: skip
        """Prove a kernel's synchronisation for all trip counts, or say which line stops the proof."""
        launch = _launch(grid, arguments, sizes, constants, target)
        return await self._document("check", kernel, *launch, "--prove", "--stages=frontend", "--seconds=1")

    async def gate(
        self, kernel: Kernel, grid: Grid, arguments: Arguments, choices: Choices = NONE, constants: Constants = NONE,
        seconds: Seconds = 10.0, target: Target = "",
    ) -> dict[str, Any]:  # fmt: skip
        """Judge the final code that the installed Triton makes of a kernel, in each configuration."""
        launch = _launch(grid, arguments, NONE, constants, target)
        return await self._document("gate", kernel, *launch, *_pairs("set", choices), f"--seconds={seconds}", "-q")

    async def explain(
        self, kernel: Kernel, constants: Constants = NONE, arguments: Arguments = NONE, grid: Grid = "",
        diff: Annotated[str, Field(description="A pass, whose changes are to be shown")] = "",
        why: Annotated[str, Field(description="A value, whose layout is to be explained")] = "", target: Target = "",
    ) -> dict[str, Any]:  # fmt: skip
        """Say what every pass does to a kernel and what layouts cost; with a grid, what costs the launch time."""
        asked = [f"--{name}={value}" for name, value in (("diff", diff), ("why", why)) if value]
        asked += ["--why-slow"] if grid else []
        return await self._document("explain", kernel, *_launch(grid, arguments, NONE, constants, target), *asked)

    async def timeline(
        self, kernel: Kernel, grid: Grid, arguments: Arguments, constants: Constants = NONE, target: Target = "",
        spans: Annotated[bool, Field(description="Give all spans, too, which are many")] = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Predict a launch on a GPU, in cycles: what tasks, copies, products and waits take, and what limits it."""
        launch = _launch(grid, arguments, NONE, constants, target)
        document = await self._called("run", kernel, *launch, "--timeline=-")
        if not spans:
            document["timelines"] = [
                {key: value for key, value in each.items() if key not in _SPANS} for each in document["timelines"]
            ]
        return shortened(document, self._size)

    async def warp_specialize(
        self, kernel: Kernel, decisions: Decisions = NONE, grid: Grid = "", arguments: Arguments = NONE,
        constants: Constants = NONE, target: Target = "",
    ) -> dict[str, Any]:  # fmt: skip
        """Write a kernel of plain Triton as warp-specialised TLX, with the reason of each decision and a proof."""
        launch = _launch(grid, arguments, NONE, constants, target)
        return await self._document("warp-specialize", kernel, *launch, *_pairs("set", decisions))

    async def _document(self, command: str, *arguments: str) -> dict[str, Any]:
        return shortened(await self._called(command, *arguments), self._size)

    async def _called(self, *command: str) -> dict[str, Any]:
        """Run a command; return its document. Raises ToolError, of one line, for an error and where time is over."""
        if command[1].startswith("-"):
            raise ToolError(f"error: expected FILE.py:KERNEL, found '{command[1]}'")
        async with self._processes:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tlx_xdsl.tools.tlx", *command, "--format=json",
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
            try:
                async with asyncio.timeout(self._seconds):
                    printed, said = await asyncio.gather(_read(process.stdout), _read(process.stderr))
                    await process.wait()
            except TimeoutError:
                raise ToolError(f"tlx {command[0]}: not done after {self._seconds:g} s, and ended") from None
            finally:
                # Those that it has started, too.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        try:
            document: dict[str, Any] = json.loads(printed)
        except ValueError:
            last = said.decode(errors="replace").strip().rpartition("\n")[2]
            raise ToolError(f"tlx {command[0]} has ended with {process.returncode}: {last[:LONG]}") from None
        if (error := document.get("error")) is not None:
            place = SourceLocation(error["file"], error["line"] or 0, error["column"] or 0) if error["file"] else None
            raise ToolError(f"{'' if place is None else f'{place}: '}error: {error['message']}")
        return document


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    """Read a stream to its end. Raises ToolError where that is too far."""
    assert stream is not None
    parts: list[bytes] = []
    size = 0
    while part := await stream.read(1 << 16):
        parts.append(part)
        size += len(part)
        if size > MOST_READ:
            raise ToolError(f"the command has printed more than {MOST_READ:,} bytes, and was ended")
    return b"".join(parts)


def _launch(grid: str, arguments: Texts, sizes: Texts, constants: Texts, target: str) -> list[str]:
    """Return a launch as options of a command line, each with its value, so that none is taken for another."""
    options = [f"--{name}={value}" for name, value in (("grid", grid), ("target", target)) if value]
    return [*options, *_pairs("arg", arguments), *_pairs("size", sizes), *_pairs("constexpr", constants)]


def _pairs(option: str, values: Mapping[str, str]) -> list[str]:
    return [f"--{option}={name}={value}" for name, value in values.items()]


def shortened(document: dict[str, Any], size: int) -> dict[str, Any]:
    """Return a document of at most `size` bytes: the largest lists and texts in it are halved until it fits.

    Its `truncated` then names those. Raises ToolError where nothing is left to halve.
    """
    cut: dict[str, None] = {}
    while (now := len(json.dumps({**document, "truncated": [*cut]}).encode())) > size:
        found = max(_parts(document, ""), key=lambda part: part[0], default=None)
        if found is None:
            raise ToolError(f"the report has {now:,} bytes, more than the {size:,} of a result")
        _, path, holder, key = found
        holder[key] = holder[key][: len(holder[key]) // 2]
        cut[path] = None
    return {**document, "truncated": [*cut]} if cut else document


def _parts(value: Any, path: str) -> Iterator[tuple[int, str, Any, Any]]:
    """Yield lists and texts that can be cut: bytes, place as a JSON pointer, and what has it under which key."""
    if not isinstance(value, dict | list):
        return
    items = cast("dict[Any, Any]", value).items() if isinstance(value, dict) else enumerate(cast("list[Any]", value))
    for key, each in items:
        at = f"{path}/{key}"
        if (isinstance(each, list) and len(cast("list[Any]", each)) > 1) or (
            isinstance(each, str) and len(each) > LONG
        ):
            yield len(json.dumps(each)), at, value, key
        yield from _parts(each, at)
