"""Errors that point at a place in the user's source."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, LocationAttr, NameLoc
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import ParseError

from tlx_xdsl.errors import CompilationError, SourceLocation


def source_location(location: Attribute) -> SourceLocation | None:
    """The innermost file position that `location` names, or None when it names none."""
    match location:
        case FileLineColLoc():
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
            lines.append(f"{place}: called from here")
    return tuple(lines)


def location_of(value: SSAValue) -> LocationAttr:
    """Where `value` comes from."""
    return value.location if isinstance(value, BlockArgument) else value.owner.location  # pyright: ignore


def error_at(
    location: LocationAttr | SSAValue | Operation, message: str, notes: Sequence[str] = ()
) -> CompilationError:
    """The error `message` at a location, an operation or a value, with the source line when its file can be read."""
    if isinstance(location, Operation):
        location = location.location
    elif isinstance(location, SSAValue):
        location = location_of(location)
    place = source_location(location)
    line = None if place is None else linecache.getline(place.filename, place.line).rstrip("\n") or None
    return CompilationError(message, place, source_line=line, notes=(*notes, *call_chain(location)))


def parse_error(error: ParseError) -> CompilationError:
    """An error of xDSL's parser in our form."""
    at = error.span.get_location()
    line = error.span.input.content.split(error.span.input.newline)[at.line - 1 - error.span.line_offset]  # pyright: ignore
    text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    return CompilationError(error.msg.strip(), SourceLocation(at.file, at.line, at.col), source_line=text)


def report_warning(op: Operation, message: str) -> None:
    """Print `file:line:col: warning: message` for the place of `op` to standard error."""
    place = source_location(op.location)
    print(f"{'' if place is None else f'{place}: '}warning: {message}", file=sys.stderr)
