"""The exception that carries a located, one-line compiler error (see docs/architecture.md, "Errors")."""

from __future__ import annotations

import traceback
from dataclasses import dataclass


@dataclass(frozen=True)
class SourceLocation:
    """A position in a source text: `line` counts from 1, `column` from 1; 0 means unknown."""

    filename: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        """Return `file:line:col`, leaving out what is unknown."""
        if not self.line:
            return self.filename
        if not self.column:
            return f"{self.filename}:{self.line}"
        return f"{self.filename}:{self.line}:{self.column}"


class CompilationError(Exception):
    """A compile-time error in the user's input.

    `str(error)` is the text that the command lines print: the line `file:line:col: error: message`, then the
    source line and a caret where they are known, then one `note:` line per note.
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
        super().__init__(message)

    def __str__(self) -> str:
        """Return the rendered error."""
        return render("error", self.message, self.location, self.source_line, self.notes)


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
        text = source_line.rstrip()
        lines.append(f"    {text}")
        if location.column:
            # A tab stays a tab under the line, so that the caret lands where the reader's terminal put it.
            padding = "".join("\t" if c == "\t" else " " for c in text[: location.column - 1])
            lines.append(f"    {padding}^")
    lines.extend(f"note: {note}" for note in notes)
    return "\n".join(lines)


def internal_error(error: Exception) -> CompilationError:
    """What to tell the user about an exception that is no fault of the input but of tlx_xdsl."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    return CompilationError(
        f"internal error: {type(error).__name__}: {error}", notes=(f"this is a defect of tlx_xdsl{where}",)
    )
