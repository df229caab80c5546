"""Errors of the reader, and reports of what a kernel does wrong while it runs, with the lines of Python and of PTX."""

from __future__ import annotations

import linecache
from collections.abc import Sequence

from tlx_xdsl.errors import CompilationError, Note, SourceLocation

from .syntax import Instruction, Module, Place


class PtxError(CompilationError):
    """PTX that cannot be read or run; the location is a line of the PTX."""


class PtxFault(CompilationError):
    """A kernel did something wrong while its PTX ran.

    The location is the line of Python where `.loc` names it, else the line of PTX, which is also a note.
    """


class PtxRace(PtxFault):
    """Two accesses to the same bytes that nothing orders."""


class PtxDeadlock(PtxFault):
    """Every thread waits for something that no thread can bring about any more."""


class PtxBudget(PtxFault):
    """The run took more steps or more time than it may."""


def error_on_line(module: Module, line: int, message: str, notes: Sequence[str] = ()) -> PtxError:
    """The error `message` about a line of the PTX."""
    text = module.line_text(line)
    if text is None:
        return PtxError(message, SourceLocation(module.filename, line), notes=tuple(notes))
    column = len(text) - len(text.lstrip()) + 1
    return PtxError(message, SourceLocation(module.filename, line, column), source_line=text, notes=tuple(notes))


def location_of(module: Module, place: Place | None) -> SourceLocation | None:
    """The place in the Python source, if the PTX names it; that of the outermost call has line 0 for unknown lines."""
    if place is None or place.line == 0 or (path := module.files.get(place.file)) is None:
        return None
    return SourceLocation(path, place.line, place.column)


def fault(
    module: Module,
    instruction: Instruction,
    message: str,
    notes: Sequence[str] = (),
    kind: type[PtxFault] = PtxFault,
) -> PtxFault:
    """The fault `message` of an instruction."""
    text = (module.line_text(instruction.line) or instruction.opcode).strip()
    shown = text if len(text) <= 120 else f"{text[:117]}..."
    ptx = f"the PTX is '{' '.join(shown.split())}' in {module.filename}:{instruction.line}"
    where = location_of(module, instruction.place)
    if where is None:
        made = error_on_line(module, instruction.line, message, notes)
        return kind(made.message, made.location, source_line=made.source_line, notes=made.notes)
    calls = [
        Note(f"called from {found}", found)
        for place in _callers(instruction.place)
        if (found := location_of(module, place))
    ]
    source = linecache.getline(where.filename, where.line).rstrip("\n") or None
    return kind(message, where, source_line=source, notes=(*notes, *calls, ptx))


def _callers(place: Place | None) -> list[Place]:
    found: list[Place] = []
    while place is not None and place.inlined_at is not None:
        place = place.inlined_at
        found.append(place)
    return found


def describe(module: Module, instruction: Instruction) -> str:
    """Return where an instruction stands: the line of Python, if it is known, and that of the PTX."""
    where = location_of(module, instruction.place)
    ptx = f"{module.filename}:{instruction.line}"
    return ptx if where is None else f"{where} ({ptx})"
