"""Reports of the interpreter: faults end a run, warnings do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.errors import CompilationError, Note
from tlx_xdsl.text.diagnostics import error_at, users_place


class Fault(CompilationError):
    """A kernel did something wrong while it ran: located like every error, at the line that did it."""

    program: tuple[int, int, int] | None = None
    """The program that did it, where machine code has run."""


class Unsupported(Fault):
    """The interpreter can't run something, which says nothing about the kernel."""


class Race(Fault):
    """Two accesses to the same bytes that nothing orders."""

    before: Any = None
    """Who has made the earlier access, where one buffer is accessed twice (`races.Actor`)."""


class OutOfBounds(Fault):
    """An access to global memory outside of all arrays."""

    op: Operation | None = None
    """What makes it."""


class UninitializedRead(Fault):
    """A read of shared or tensor memory that was not written, or that another buffer has overwritten."""


class Deadlock(Fault):
    """Every task waits for something that no task can bring about any more."""


class Left(BaseException):
    """A task ends before the end of its code: no fault, so no handler of exceptions takes it but the scheduler's."""


def fault_at(
    where: LocationAttr | SSAValue | Operation,
    message: str,
    notes: Sequence[str] = (),
    kind: type[Fault] = Fault,
) -> Fault:
    """The fault `message` of an operation, with its source line where that can be read."""
    error = error_at(where, message, notes)
    return kind(error.message, error.location, source_line=error.source_line, notes=error.notes)


def place_note(before: str, op: Operation, after: str = "") -> Note:
    """The note `before`, the place of an operation, `after`."""
    return Note(f"{before} {location_of(op)}{after}", users_place(op.location))


def remedy(text: str) -> Note:
    """The note that says what to do."""
    return Note(text, is_remedy=True)


def location_of(op: Operation) -> str:
    """`file:line:col` of an operation in the user's code, or its name where its location is unknown."""
    found = users_place(op.location)
    return f"'{op.name}'" if found is None else str(found)
