"""Colours of diagnostics at a terminal, and whether there are any.

NO_COLOR (https://no-color.org) takes them away, FORCE_COLOR (https://force-color.org) gives them to files, too.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TextIO

_RESET = "\033[0m"
_BOLD, _RED, _GREEN, _YELLOW, _BLUE, _CYAN = (f"\033[{code}m" for code in ("1", "1;31", "32", "1;33", "1;34", "36"))
_SEVERITY = {"error": _RED, "warning": _YELLOW, "remark": _BLUE, "note": _CYAN}
_HEAD = re.compile(rf"^(?P<place>(?:\S.*?: )??)(?P<severity>{'|'.join(_SEVERITY)}): (?P<message>.*)$")
_CARET = re.compile(r"^\s+\^\s*$")


def wants_colour(stream: TextIO) -> bool:
    """Return whether a stream shows colours: it is a terminal, unless the environment says otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def coloured(text: str, stream: TextIO | None = None) -> str:
    """A diagnostic as a stream (standard error) shows it."""
    if not wants_colour(sys.stderr if stream is None else stream):
        return text
    return "\n".join(map(_line, text.split("\n")))


def _line(line: str) -> str:
    if _CARET.match(line):
        return f"{_GREEN}{line}{_RESET}"
    found = _HEAD.match(line)
    if found is None:
        return line
    place = f"{_BOLD}{found['place']}{_RESET}" if found["place"] else ""
    message = found["message"] if found["severity"] == "note" else f"{_BOLD}{found['message']}{_RESET}"
    return f"{place}{_SEVERITY[found['severity']]}{found['severity']}:{_RESET} {message}"
