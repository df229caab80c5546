"""The exception that carries a located, one-line compiler error (see docs/architecture.md, "Errors")."""

from __future__ import annotations

import os
import traceback
import unicodedata
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import CO_VARARGS
from typing import cast

BREAKPOINT = "breakpoint()"
"""The end of the message of an assertion that stands for a breakpoint; loading it takes no compiler."""
PRINTS = "a print"
"""The beginning of that of one before a print."""


@dataclass(frozen=True)
class SourceLocation:
    """A position in a source text: `line` counts from 1, `column` from 1; 0 means unknown."""

    filename: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        """Return `file:line:col`, leaving out what is unknown."""
        filename = shown_path(self.filename)
        if not self.line:
            return filename
        if not self.column:
            return f"{filename}:{self.line}"
        return f"{filename}:{self.line}:{self.column}"


class _Shown:
    """The folder that paths below it are shown relative to."""

    folder: str | None = ""
    """Empty for the current folder, whichever that is; None for no folder."""


def _folder() -> str:
    """The folder of paths that are shown, with a slash at its end; empty for none."""
    folder = _Shown.folder
    if folder == "":
        try:
            folder = os.path.join(os.getcwd(), "")
        except FileNotFoundError:
            # It was removed meanwhile.
            return ""
    # All paths are below the root, and its name is a part of each of them, and of other texts.
    return "" if folder is None or folder == os.sep else folder


def shown_path(path: str) -> str:
    """A path as diagnostics show it: relative to the current folder, where it is below that."""
    return path.removeprefix(_folder())


def with_shown_paths(text: str) -> str:
    """A text that was made with whole paths, with those that are shown."""
    return text.replace(folder, "") if (folder := _folder()) else text


@contextmanager
def relative_paths(folder: str | None) -> Generator[None]:
    """Show paths relative to a folder within; None shows all of each."""
    before, _Shown.folder = _Shown.folder, None if folder is None else os.path.join(folder, "")
    try:
        yield
    finally:
        _Shown.folder = before


class Note(str):
    """A line below a message that programs can act on: it names another place, or it says what to do.

    >>> Note("written at f.py:3", SourceLocation("f.py", 3)).place.line
    3
    """

    place: SourceLocation | None
    """The place that it names."""
    is_remedy: bool
    """True if it says what to do."""

    def __new__(cls, text: str, place: SourceLocation | None = None, *, is_remedy: bool = False) -> Note:
        """Make the text a note."""
        made = super().__new__(cls, text)
        made.place, made.is_remedy = place, is_remedy
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[str, SourceLocation | None], dict[str, bool]]:
        """Keep what a note has besides its text in another process."""
        return (str(self), self.place), {"is_remedy": self.is_remedy}

    def after(self, text: str) -> Note:
        """The note with a text before it."""
        return Note(text + self, self.place, is_remedy=self.is_remedy)


class InputError(ValueError):
    """A value that a caller has given is wrong: its message is for that caller.

    Command lines and passes show the message of this class, of `InputTypeError` and of `InputOverflowError`. Any other
    ValueError or TypeError is a defect, and is reported as one.
    """


class MissingLibraryError(InputError):
    """An optional library that a request needs is not installed, or can't be loaded."""


class InputTypeError(TypeError):
    """A value that a caller has given has the wrong type, or there are too many or too few: see `InputError`."""


class InputOverflowError(OverflowError):
    """A number that a caller has given is too large, as Python's own conversions to C integers report it."""


class CompilationError(Exception):
    """A compile-time error in the user's input.

    `str(error)` is the text that the command lines print: the line `file:line:col: error: message`, then the
    source line and a caret where they are known, then one `note:` line per note. The message is one line.
    """

    def __init__(
        self,
        message: str,
        location: SourceLocation | None = None,
        *,
        source_line: str | None = None,
        notes: tuple[str, ...] = (),
    ):
        self.message = message
        self.location = location
        self.source_line = source_line
        self.notes = notes
        # Not the next class in line: with Triton, that is its error of the same name, which wants its own arguments.
        Exception.__init__(self, message)

    def without_history(self) -> CompilationError:
        """Drop traceback, cause and context, for another process; return the error.

        Pickle leaves them out, but not where tblib is installed, as dask.distributed does: a traceback of many frames
        is then nested too deeply for it.
        """
        self.__traceback__ = self.__cause__ = self.__context__ = None
        return self

    def __str__(self) -> str:
        """Return the rendered error."""
        return render("error", self.message, self.location, self.source_line, self.notes)


class OverBudgetError(CompilationError):
    """The kernel needs more of a resource than a thread block can have on the target: it can never launch.

    `resource`, `required` and `limit` are what Triton's own OutOfResources carries: `shared memory` in bytes,
    `tensor memory` in columns, `threads` and `registers` in numbers.
    """

    def __init__(
        self,
        message: str,
        location: SourceLocation | None = None,
        *,
        source_line: str | None = None,
        notes: tuple[str, ...] = (),
        resource: str = "",
        required: int = 0,
        limit: int = 0,
    ):
        super().__init__(message, location, source_line=source_line, notes=notes)
        self.resource = resource
        self.required = required
        self.limit = limit

    @staticmethod
    def of(error: CompilationError, resource: str, required: int, limit: int) -> OverBudgetError:
        """The same error, with what there is too little of."""
        return OverBudgetError(
            error.message,
            error.location,
            source_line=error.source_line,
            notes=error.notes,
            resource=resource,
            required=required,
            limit=limit,
        )


def render(
    severity: str,
    message: str,
    location: SourceLocation | None,
    source_line: str | None,
    notes: tuple[str, ...],
) -> str:
    """The text of a diagnostic: `file:line:col: severity: message`, the source line with a caret, and the notes."""
    prefix = f"{location}: " if location is not None else ""
    lines = [f"{prefix}{severity}: {message}"]
    if source_line is not None and location is not None:
        before, text = _excerpt(source_line.rstrip(), location.column)
        lines.append(f"    {text}")
        if location.column:
            lines.append(f"    {''.join(map(_blank, before))}^")
    lines.extend(f"note: {note}" for note in notes)
    return "\n".join(lines)


_WIDEST = 200
"""Characters of a source line that are shown."""


def _excerpt(line: str, column: int) -> tuple[str, str]:
    """Return the part of a shown source line before the column, and all that is shown of the line."""
    if len(line) <= _WIDEST:
        return line[: max(column - 1, 0)], line
    start = max(0, column - _WIDEST // 2)
    head, tail = ("..." if start else ""), ("..." if start + _WIDEST < len(line) else "")
    return head + line[start : max(column - 1, 0)], head + line[start : start + _WIDEST] + tail


def _blank(character: str) -> str:
    """The blanks as wide as a character in a terminal: a tab stays a tab, so that the caret is in its column."""
    if character == "\t":
        return "\t"
    if unicodedata.combining(character):
        return ""
    return "  " if unicodedata.east_asian_width(character) in ("W", "F") else " "


def let_through(error: Exception) -> None:
    """Raise an exception again that a handler of a signal has raised, such as the time limit of a test.

    Python runs handlers between any two steps of the main thread, and gives them the frame that they interrupt.
    """
    interrupted: object = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if interrupted is not None:
            names = frame.f_code.co_varnames[: frame.f_code.co_argcount + bool(frame.f_code.co_flags & CO_VARARGS)]
            given: list[object] = [frame.f_locals.get(name) for name in names]
            # A member may be an array, of which no comparison by value has one answer.
            given += [item for each in given if isinstance(each, tuple) for item in cast("tuple[object, ...]", each)]
            if any(each is interrupted for each in given):
                raise error
        interrupted = frame


def internal_error(error: Exception) -> CompilationError:
    """Return the error to report for an exception that is no fault of the input but of tlx_xdsl.

    Raises the exception itself where a handler of a signal has raised it.
    """
    let_through(error)
    if isinstance(error, RecursionError):
        return CompilationError("this is nested too deeply for Python's stack: split it into several statements")
    if isinstance(error, MemoryError):
        return CompilationError(f"out of memory: {error}" if str(error) else "out of memory")
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    return CompilationError(
        f"internal error: {type(error).__name__}: {' '.join(str(error).split())}",
        notes=(f"this is a defect of tlx_xdsl{where}",),
    )
