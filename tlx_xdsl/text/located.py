"""The lines of a printed module, each with the operation that begins there and where that comes from."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.errors import SourceLocation

from .diagnostics import source_location
from .printer import Printer
from .profiles import Profile


@dataclass(frozen=True)
class LocatedLine:
    """A line of IR."""

    text: str
    op: Operation | None
    """The operation that begins in this line; None in lines that end a region or define an alias."""

    @property
    def place(self) -> SourceLocation | None:
        """Return where the operation comes from; an inlined one from the function that was inlined."""
        return None if self.op is None else source_location(self.op.location)


class _CountingStream(StringIO):
    """A stream that counts its lines."""

    line = 0

    def write(self, text: str, /) -> int:
        """Write `text`."""
        self.line += text.count("\n")
        return super().write(text)


class _Recorder(Printer):
    def __init__(self, stream: _CountingStream, profile: Profile | None):
        super().__init__(stream, profile, locations=False)
        self._lines = stream
        self.starts: dict[int, Operation] = {}

    def print_op(self, op: Operation) -> None:
        self.starts.setdefault(self._lines.line, op)
        super().print_op(op)


def located_lines(module: ModuleOp, *, profile: Profile | None = None) -> list[LocatedLine]:
    """The lines of `print_module(module, locations=False)`, each with its operation.

    Raises CompilationError when the version of `profile` can't express the module.
    """
    stream = _CountingStream()
    recorder = _Recorder(stream, profile)
    recorder.print_op(module)
    header = [LocatedLine(text, None) for text in recorder.header().splitlines()]
    body = stream.getvalue().split("\n")
    return header + [LocatedLine(text, recorder.starts.get(number)) for number, text in enumerate(body)]
