"""What command lines say on standard error, in one look: `file:line:col: severity: message`, the line, notes."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

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
