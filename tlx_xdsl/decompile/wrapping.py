"""Lines of Python that are too long, as several: brackets open a block of lines, which end in commas."""

from __future__ import annotations

import textwrap

WIDTH = 100
"""Characters of a line."""

_OPEN, _CLOSE = "([{", ")]}"
_STEP = "    "


def wrapped(line: str) -> list[str]:
    """Return the lines that a line becomes; one without a bracket stays."""
    indent = line[: len(line) - len(line.lstrip())]
    text = line.lstrip()
    if len(line) <= WIDTH:
        return [line]
    if text.startswith("#"):
        return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}# ")
    pair = _last_brackets(text)
    if pair is None:
        return [line]
    start, end = pair
    inside = text[start + 1 : end]
    if not inside:
        return [line]
    whole = f"{indent}{_STEP}{inside}"
    # A subscript has no comma at its end: that would be another one.
    body = [whole] if len(whole) <= WIDTH and not inside.endswith(",") else _items(inside, indent + _STEP)
    return [f"{indent}{text[: start + 1]}", *body, f"{indent}{text[end:]}"]


def _items(inside: str, indent: str) -> list[str]:
    """The items of a list, as many in a line as fit, and one that is too long in several."""
    items = _split(inside)
    if len(items) == 1:
        return wrapped(indent + inside)
    lines: list[str] = []
    for item in items:
        if not item:
            continue
        longer = f"{lines[-1]} {item}," if lines else f"{indent}{item},"
        if lines and len(longer) <= WIDTH:
            lines[-1] = longer
        else:
            lines += wrapped(f"{indent}{item},")
    return lines


def _depths(text: str) -> list[int]:
    """The number of brackets around each character, of which those in a string are none."""
    depths: list[int] = []
    depth, quote, at = 0, "", 0
    while at < len(text):
        char = text[at]
        if quote:
            if char == "\\":
                depths.append(depth + 1)
                at += 1
            elif char == quote:
                quote = ""
            depths.append(depth + 1)
        elif char in "\"'":
            quote = char
            depths.append(depth + 1)
        else:
            depth -= char in _CLOSE
            depths.append(depth)
            depth += char in _OPEN
        at += 1
    return depths


def _last_brackets(text: str) -> tuple[int, int] | None:
    """The last pair of brackets with nothing around it."""
    depths = _depths(text)
    closing = [at for at, char in enumerate(text) if char in _CLOSE and not depths[at]]
    if not closing:
        return None
    opening = [at for at in range(closing[-1]) if text[at] in _OPEN and not depths[at]]
    return opening[-1], closing[-1]


def _split(text: str) -> list[str]:
    """The items between commas."""
    depths, items, start = _depths(text), list[str](), 0
    for at, char in enumerate(text):
        if char == "," and not depths[at]:
            items.append(text[start:at].strip())
            start = at + 1
    return [*items, text[start:].strip()]
