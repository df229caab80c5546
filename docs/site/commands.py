"""The reference of the command lines: what `--help` prints, at the width of a page."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator, Sequence
from unittest.mock import patch

from tlx_xdsl.tools import tlx
from tlx_xdsl.tools.opt import main as tlx_opt

COLUMNS = "100"
"""Width of the help texts, in characters."""


def commands() -> list[str]:
    """The commands of `tlx`, in the order of its help."""
    return list(tlx.COMMANDS)


def help_of(program: str, main: Callable[[Sequence[str]], int], *arguments: str) -> str:
    """Return the text that a program prints for `--help`."""
    printed = io.StringIO()
    with (
        patch.dict(os.environ, {"COLUMNS": COLUMNS}),
        patch("sys.argv", [program]),
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),
    ):
        main([*arguments, "--help"])
    if not printed.getvalue().startswith("usage:"):
        raise ValueError(f"{program} {' '.join(arguments)} --help printed no usage: {printed.getvalue()!r}")
    return printed.getvalue().rstrip()


def page() -> str:
    """The page, in Markdown."""
    return "\n".join(_sections())


def _sections() -> Iterator[str]:
    yield "# Command lines\n"
    yield (
        "What the programs print for `--help`. An error is one line with its place, on standard error, and exit\n"
        "status 1. `tlx-gui FILE` is xDSL's pass explorer with our passes ([tlx-opt](../tlx-opt.md)).\n"
    )
    yield from _block("tlx", help_of("tlx", tlx.main))
    for name in commands():
        yield from _block(f"tlx {name}", help_of("tlx", tlx.main, name), level=3)
    yield from _block("tlx-opt", help_of("tlx-opt", tlx_opt.main))


def _block(title: str, text: str, level: int = 2) -> Iterator[str]:
    yield f"{'#' * level} {title}\n\n```text\n{text}\n```\n"
