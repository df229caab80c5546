"""The exception that carries a located, one-line compiler error (see docs/architecture.md, "Errors")."""

from __future__ import annotations

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
        prefix = f"{self.location}: " if self.location is not None else ""
        lines = [f"{prefix}error: {self.message}"]
        if self.source_line is not None and self.location is not None:
            text = self.source_line.rstrip()
            lines.append(f"    {text}")
            if self.location.column:
                # A tab stays a tab under the line, so that the caret lands where the reader's terminal put it.
                padding = "".join("\t" if c == "\t" else " " for c in text[: self.location.column - 1])
                lines.append(f"    {padding}^")
        lines.extend(f"note: {note}" for note in self.notes)
        return "\n".join(lines)
