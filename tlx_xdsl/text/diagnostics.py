"""Errors that point at a place in the user's source, and a location that xDSL lacks: a range of it."""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, BlockArgument, BuiltinAttribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from tlx_xdsl.errors import CompilationError, Note, SourceLocation, render
from tlx_xdsl.terminal import coloured


@irdl_attr_definition
class FileLineColRange(ParametrizedAttribute, BuiltinAttribute):
    """A range of a file: `loc("f.py":1:2 to 3:4)`; lines and columns count from 1."""

    name = "tlx.file_line_col_range"

    filename: StringAttr = param_def()
    line: IntAttr = param_def()
    column: IntAttr = param_def()
    end_line: IntAttr = param_def()
    end_column: IntAttr = param_def()

    def print_builtin(self, printer: Printer) -> None:
        """Print the location, with the end line only where it differs."""
        with printer.in_location():
            printer.print_attribute(self.filename)
            end_line = "" if self.end_line == self.line else str(self.end_line.data)
            printer.print_string(f":{self.line.data}:{self.column.data} to {end_line}:{self.end_column.data}")


LOCATIONS = (FileLineColLoc, FileLineColRange, CallSiteLoc, NameLoc, FusedLoc, UnknownLoc)
"""Every class of location."""


_LANGUAGE = str(Path(__file__).parents[1] / "language")
"""The folder of the functions of the language that are written in it, such as `tl.sum`."""


def source_location(location: Attribute) -> SourceLocation | None:
    """The innermost file position that `location` names, or None when it names none."""
    match location:
        case FileLineColLoc() | FileLineColRange():
            return SourceLocation(location.filename.data, location.line.data, location.column.data)
        case NameLoc():
            return source_location(location.location)
        case CallSiteLoc():
            return source_location(location.callee) or source_location(location.caller)
        case FusedLoc():
            found = (source_location(part) for part in cast(ArrayAttr[Attribute], location.locations))
            return next((place for place in found if place is not None), None)
        case _:
            return None


def call_chain(location: Attribute) -> tuple[str, ...]:
    """One line per call site through which an inlined operation was reached, innermost first."""
    lines: list[str] = []
    while isinstance(location, CallSiteLoc):
        location = location.caller
        if (place := source_location(location)) is not None:
            lines.append(Note(f"{place}: called from here", place))
    return tuple(lines)


def location_of(value: SSAValue) -> LocationAttr:
    """Return where `value` comes from."""
    return value.location if isinstance(value, BlockArgument) else value.owner.location  # pyright: ignore


def _place_of(value: SSAValue) -> LocationAttr:
    """Return where `value` comes from; of an argument without a place, where the operation around its block does."""
    location = location_of(value)
    parent = value.owner.parent_op() if isinstance(value, BlockArgument) else None
    return location if parent is None or source_location(location) is not None else parent.location


def _in_users_code(location: Attribute) -> Attribute:
    """`location`, or the call that led there from the user's code when it lies in a function of our language."""
    while isinstance(location, CallSiteLoc):
        callee = source_location(location.callee)
        if callee is None or not callee.filename.startswith(_LANGUAGE):
            break
        location = location.caller
    return location


def users_place(location: Attribute) -> SourceLocation | None:
    """The position in the user's code that `location` names; in a function of our language, that of the call."""
    return source_location(_in_users_code(location))


def source_line(place: SourceLocation | None) -> str | None:
    """The text of the line that `place` names, or None when it can't be read."""
    return None if place is None else linecache.getline(place.filename, place.line).rstrip("\n") or None


def error_at(
    location: LocationAttr | SSAValue | Operation, message: str, notes: Sequence[str] = ()
) -> CompilationError:
    """The error `message` at a location, an operation or a value, with the source line when its file can be read."""
    if isinstance(location, Operation):
        location = location.location
    elif isinstance(location, SSAValue):
        location = _place_of(location)
    shown = _in_users_code(location)
    place = source_location(shown)
    return CompilationError(message, place, source_line=source_line(place), notes=(*notes, *call_chain(shown)))


def parse_error(error: ParseError) -> CompilationError:
    """An error of xDSL's parser in our form."""
    at = error.span.get_location()
    content = error.span.input.content
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
    lines = text.split("\n")
    line = lines[at.line - 1 - error.span.line_offset]
    return CompilationError(error.msg.strip(), SourceLocation(at.file, at.line, at.col), source_line=line)


def with_place(error: CompilationError, cause: Exception) -> CompilationError:
    """`error`, at the operation or value that was worked on when `cause` was raised, unless it has a place already.

    That is the one which the innermost function with any has at hand.
    """
    if error.location is None and (shown := _worked_on(cause)) is not None:
        error.location = source_location(shown)
        error.source_line = source_line(error.location)
        error.notes = (*error.notes, *call_chain(shown))
    return error


def _worked_on(error: Exception) -> Attribute | None:
    """The location of the operation or value that was worked on when an exception was raised."""
    for frame, _ in reversed([*traceback.walk_tb(error.__traceback__)]):
        for value in frame.f_locals.values():
            if not isinstance(value, Operation | SSAValue):
                continue
            held = cast(Operation | SSAValue, value)
            location = _in_users_code(held.location if isinstance(held, Operation) else _place_of(held))
            if source_location(location) is not None:
                return location
    return None


# --- diagnostics that do not end the compilation --------------------------------------------------------------------


@dataclass(frozen=True)
class Diagnostic:
    """A message for the user."""

    severity: Literal["error", "warning", "remark"]
    message: str
    location: SourceLocation | None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the rendered diagnostic."""
        return render(self.severity, self.message, self.location, source_line(self.location), self.notes)


def _print(diagnostic: Diagnostic) -> None:
    print(coloured(str(diagnostic)), file=sys.stderr)


_SINK: ContextVar[Callable[[Diagnostic], None]] = ContextVar("diagnostic sink", default=_print)


@contextmanager
def collected_diagnostics() -> Generator[list[Diagnostic]]:
    """Collect the diagnostics that are reported inside the `with`, instead of printing them to standard error."""
    found: list[Diagnostic] = []
    token = _SINK.set(found.append)
    try:
        yield found
    finally:
        _SINK.reset(token)


def report_warning(op: Operation, message: str, notes: Sequence[str] = ()) -> None:
    """Warn about `op`."""
    _report("warning", op, message, notes)


def report_remark(op: Operation, message: str, notes: Sequence[str] = ()) -> None:
    """Report something about `op` that is no fault."""
    _report("remark", op, message, notes)


def report_again(diagnostic: Diagnostic) -> None:
    """Report what was collected before."""
    _SINK.get()(diagnostic)


def _report(severity: Literal["warning", "remark"], op: Operation, message: str, notes: Sequence[str]) -> None:
    _SINK.get()(diagnostic_at(severity, op, message, notes))


def diagnostic_at(
    severity: Literal["warning", "remark"], op: Operation, message: str, notes: Sequence[str] = ()
) -> Diagnostic:
    """The diagnostic about `op`, at the user's line that has made it."""
    shown = _in_users_code(op.location)
    return Diagnostic(severity, message, source_location(shown), (*notes, *call_chain(shown)))
