"""A module beside the Python that it was made of: pointing at a line shows what belongs to it on the other side.

The lines of both sides carry the number of their Python line, and a rule of CSS for each number colours them together
while the pointer is over one of them (`:has`, which all browsers have had since 2023).
"""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Sequence
from html import escape
from pathlib import PurePath

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.analysis.storage_map_reader import storage_maps
from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.text.located import LocatedLine, located_lines

from .storage_map_svg import map_as_svg

STYLE = (
    ".tlx{font:12px/1.45 ui-monospace,Menlo,Consolas,monospace;color:#222;background:#fff;border:1px solid #ccc}"
    ".tlx .title{padding:4px 8px;background:#eee;border-bottom:1px solid #ccc;font-weight:bold}"
    ".tlx .sides{display:flex;max-height:70vh}"
    ".tlx .side{overflow:auto;flex:1 1 50%;padding:4px 0}"
    ".tlx .side+.side{border-left:1px solid #ccc;flex-grow:1.6}"
    ".tlx .l{white-space:pre;padding:0 8px;min-width:max-content}"
    ".tlx .l i{display:inline-block;width:4ch;margin-right:1ch;color:#999;font-style:normal;text-align:right;"
    "user-select:none}"
    ".tlx .file{padding:0 8px;color:#666;font-weight:bold}"
    ".tlx .quiet{color:#999}"
    ".tlx details{border-top:1px solid #ccc;padding:4px 8px}"
    ".tlx td,.tlx th{text-align:left;padding:1px 12px 1px 8px}.tlx th{color:#666}.tlx pre{margin:4px 8px}"
)
_LIT = "background:#fff0b3"


def module_page(module: ModuleOp, *, title: str = "module") -> str:
    """HTML of a module beside its Python source, with the storage map of what allocates memory below.

    Only the part of each file is shown that the module comes from; sources that can't be read are left out.
    """
    lines = located_lines(module)
    files = _files(lines)
    places = {place: number for number, place in enumerate(_places(lines))}
    left = "".join(_source(name, first, last, places) for name, (first, last) in files.items())
    right = "".join(_ir_line(line, places) for line in lines)
    # One page of a notebook may hold many modules: the rules of each apply to it alone.
    mark = "t" + hashlib.sha256((title + left + right).encode()).hexdigest()[:12]
    rules = "".join(f".{mark}:has(.n{n}:hover) .n{n}{{{_LIT}}}" for n in places.values())
    source = f'<div class="side">{left}</div>' if left else ""
    return (
        f'<div class="tlx {mark}"><style>{STYLE}{rules}</style><div class="title">{escape(title)}</div>'
        f'<div class="sides">{source}<div class="side">{right}</div></div>{_storage(module)}</div>'
    )


def _places(lines: Sequence[LocatedLine]) -> list[tuple[str, int]]:
    """Each line of Python that operations come from, once."""
    return list(dict.fromkeys(key for line in lines if (key := _key(line.place)) is not None))


def _key(place: SourceLocation | None) -> tuple[str, int] | None:
    return None if place is None or not place.line else (place.filename, place.line)


def _files(lines: Sequence[LocatedLine]) -> dict[str, tuple[int, int]]:
    """First and last line that operations come from, of each file that can be read."""
    found: dict[str, tuple[int, int]] = {}
    for name, number in _places(lines):
        if linecache.getline(name, number):
            first, last = found.get(name, (number, number))
            found[name] = min(first, number), max(last, number)
    return found


def _source(name: str, first: int, last: int, places: dict[tuple[str, int], int]) -> str:
    rows = [f'<div class="file" title="{escape(name)}">{escape(PurePath(name).name)}</div>']
    for number in range(first, last + 1):
        text = linecache.getline(name, number).rstrip("\n")
        mark = places.get((name, number))
        kind = "l quiet" if mark is None else f"l n{mark}"
        rows.append(f'<div class="{kind}"><i>{number}</i>{escape(text)}</div>')
    return "".join(rows)


def _ir_line(line: LocatedLine, places: dict[tuple[str, int], int]) -> str:
    key = _key(line.place)
    if key is None:
        return f'<div class="l"><i></i>{escape(line.text)}</div>'
    name, number = key
    hint = f"{line.place}\n{linecache.getline(name, number).strip()}".strip()
    return f'<div class="l n{places[key]}" title="{escape(hint)}"><i>{number}</i>{escape(line.text)}</div>'


def _storage(module: ModuleOp) -> str:
    try:
        maps = storage_maps(module)
    except CompilationError as error:
        # The module is what is asked for: that its buffers can't be laid out is no reason not to show it.
        return f"<pre>{escape(str(error))}</pre>"
    return "".join(
        f"<details><summary>storage map of {escape(each.kernel)}</summary>{map_as_svg(each)}</details>" for each in maps
    )
