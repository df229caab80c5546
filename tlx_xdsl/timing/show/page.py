"""The page that shows timelines in a browser: one file with its style, script and data, which asks no network.

The page gets timelines as JSON (`Timeline.to_json`), so that timelines can show themselves in notebooks.
"""

from __future__ import annotations

import json
import linecache
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from itertools import pairwise

_VIEWER = files("tlx_xdsl.timing.show") / "viewer"
_CONTEXT = 60
"""Lines between two that have spans, above which a gap is shown as a gap."""
DIGITS = 2
"""Decimals of a cycle in a page."""

_FRAME_HEIGHT = 680
"""Pixels of a timeline in a notebook."""


def document(title: str, timelines: Sequence[str], lines: Iterable[tuple[str, int, str]]) -> str:
    """Return the HTML of a page that shows timelines, each as JSON of `Timeline.to_json`.

    `lines` are those of the source, as file, number and text. Lines between them are read from the files where these
    still have the texts.
    """
    data = f'{{"timelines":[{",".join(timelines)}],"sources":{json.dumps(_sources(lines))}}}'
    parts = {
        "title": escape(title),
        "style": _text("viewer.css"),
        "model": _text("model.js"),
        "chart": _text("chart.js"),
        "page": _text("page.js"),
        "data": _within_script(data),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _text("viewer.html"))


def frame(html: str, title: str) -> str:
    """Return an element of HTML that shows a page within another, as in a notebook's cell.

    The page has no access to what is around it.
    """
    return (
        f'<iframe srcdoc="{escape(html)}" title="{escape(title)}" sandbox="allow-scripts" '
        f'style="width:100%;height:{_FRAME_HEIGHT}px;border:1px solid #8884"></iframe>'
    )


def _text(name: str) -> str:
    return (_VIEWER / name).read_text(encoding="utf-8")


def _within_script(data: str) -> str:
    """Return JSON in which no character can end the element of HTML around it."""
    for character in "<>&\u2028\u2029":
        data = data.replace(character, f"\\u{ord(character):04x}")
    return data


def _sources(lines: Iterable[tuple[str, int, str]]) -> dict[str, dict[int, str]]:
    """Return the text of lines by file and number, with those between them."""
    found: dict[str, dict[int, str]] = {}
    for file, line, text in lines:
        own = found.setdefault(file, {})
        own[line] = text or own.get(line, "")
    for file, own in found.items():
        now = {line: linecache.getline(file, line).rstrip("\n") for line in own}
        if any(text.strip() not in ("", now[line].strip()) for line, text in own.items()):
            continue
        own.update(now)
        for first, last in pairwise(sorted(own)):
            if last - first <= _CONTEXT:
                own.update({line: linecache.getline(file, line).rstrip("\n") for line in range(first + 1, last)})
    return found
