"""Output of command lines: files, parts of reports, and diagnostics in one look.

That is `file:line:col: severity: message`, the line, notes.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, TypeAlias

from tlx_xdsl.errors import SourceLocation, render, shown_path
from tlx_xdsl.terminal import coloured

_OURS = os.path.join(str(Path(__file__).parents[1]), "")


def say(diagnostic: object) -> None:
    """Print a diagnostic."""
    print(coloured(str(diagnostic)), file=sys.stderr)


def warn(message: str) -> None:
    """Print a warning that is about no place."""
    say(render("warning", message, None, None, ()))


@contextmanager
def warnings_as_diagnostics() -> Generator[None]:
    """Print Python's warnings within as diagnostics."""
    before, warnings.showwarning = warnings.showwarning, _show
    try:
        yield
    finally:
        warnings.showwarning = before


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    # A line of ours, or of a library, is not what the user has to look at.
    is_users = not filename.startswith(_OURS) and f"{os.sep}site-packages{os.sep}" not in filename and lineno > 0
    place = SourceLocation(filename, lineno) if is_users else None
    say(render("warning", shown_path(" ".join(str(message).split())), place, None, ()))


class _Documents:
    """Stream of documents, and whether it has got one."""

    stream: TextIO | None = None
    """Standard output, while all else goes to standard error."""
    has_printed: bool = False


def print_document(text: str, end: str = "\n") -> None:
    """Print a report to standard output, also where that has documents alone."""
    _Documents.has_printed = True
    print(text, end=end, file=_Documents.stream)


def has_printed() -> bool:
    """Return whether there was a report since `documents_alone`."""
    return _Documents.has_printed


@contextmanager
def documents_alone() -> Generator[None]:
    """Give standard output to documents alone: what else is printed within goes to standard error."""
    _Documents.stream, _Documents.has_printed = sys.stdout, False
    with contextlib.ExitStack() as stack:
        if sys.stdout is sys.__stdout__:
            # Processes that a command starts print, too.
            _Documents.stream = stack.enter_context(os.fdopen(os.dup(1), "w", encoding="utf-8"))
            sys.stdout.flush()
            os.dup2(2, 1)
            stack.callback(os.dup2, _Documents.stream.fileno(), 1)
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        try:
            yield
        finally:
            _Documents.stream = None


def write_text(text: str, path: str | None) -> None:
    """Print a text, or write it to a file in a folder that need not exist yet."""
    if path is None:
        print_document(text, end="")
    else:
        write_file(Path(path), text)


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file whole, or not at all, in a folder that need not exist yet."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        # Such as /dev/stdout.
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        half.write_bytes(content.encode() if isinstance(content, str) else content)
        half.replace(path)
    except BaseException:
        half.unlink(missing_ok=True)
        raise


def reader_has_gone() -> None:
    """Send the rest of standard output nowhere: its reader has gone, as in `tlx map ... | head`.

    Python would report at its end that it can't be written.
    """
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# --- parts of reports: lines with a name and a number, and tables -----------------------------------------------------


Rows: TypeAlias = Sequence[tuple[str, int]]
"""What is counted, and the number."""


def times_section(times_ms: Mapping[str, float]) -> list[str]:
    """The lines about the time of each stage, in milliseconds, and of all."""
    lines = ["  time per stage, ms"]
    lines.extend(f"    {stage:<32}{milliseconds:9.1f}" for stage, milliseconds in times_ms.items())
    lines.append(f"    {'total':<32}{sum(times_ms.values()):9.1f}")
    return lines


def section(title: str, rows: Rows) -> list[str]:
    """A title and a line for each number."""
    return [f"  {title}", *(f"    {what:<32}{amount:9d}" for what, amount in rows)]


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines with columns of equal width; columns whose cells below the first row are numbers stand to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    numeric = [all(row[column].replace(",", "").isdigit() for row in rows[1:]) for column in range(len(rows[0]))]
    return [
        "    "
        + "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in rows
    ]
