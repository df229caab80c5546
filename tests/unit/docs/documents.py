"""Blocks of text of documents, and the output of the commands in them."""

import contextlib
import io
import os
import re
import shlex
from pathlib import Path

from tlx_xdsl.tools.tlx import main

ROOT = Path(__file__).parents[3]


def blocks(document: str, language: str) -> list[str]:
    """The texts between fences of a document."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def consoles(document: str) -> list[tuple[str, str]]:
    """The `tlx run` commands of a document, and what it says they print."""
    shown = [block.partition("\n") for block in blocks(document, "console")]
    return [(command.removeprefix("$ tlx "), output) for command, _, output in shown if command.startswith("$ tlx run")]


def printed(command: str) -> str:
    """Return both streams of a command's output; the documents show files without their directory."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        main(shlex.split(command))
    return stream.getvalue().replace(f"{Path.cwd()}{os.sep}", "")


def stable(output: str) -> str:
    """The same without times and random numbers, which differ between machines and versions of numpy."""
    return re.sub(r"-?\d+\.\d+(?:e[-+]\d+)?(?= |,|$)", "NUMBER", output, flags=re.MULTILINE)


def changed(source: str, diff: str) -> str:
    """A source with the lines that begin with `-` replaced, where they first stand, by those that begin with `+`."""
    old = "".join(line[1:] for line in diff.splitlines(keepends=True) if line.startswith("-"))
    new = "".join(line[1:] for line in diff.splitlines(keepends=True) if line.startswith("+"))
    assert old in source, old
    return source.replace(old, new, 1)


def shows(shown: str, output: str) -> bool:
    """Return whether a document shows an output; a line `...` stands for lines that it leaves out."""
    pattern = "".join(
        "(?:.*\n)+" if line.strip() == "..." else re.escape(line) for line in shown.splitlines(keepends=True)
    )
    return re.fullmatch(pattern, output) is not None
