"""Notebook pages of a kernel, of its text stages and of a run; and `show`, for any module."""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path, PurePath
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.analysis.storage_map_reader import storage_maps
from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.frontend.python.source import KernelSource, Parameter
from tlx_xdsl.text.diagnostics import Diagnostic
from tlx_xdsl.text.located import LocatedLine, located_lines
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module

from .storage_map_svg import map_as_svg


@dataclass(frozen=True)
class Page:
    """HTML of something, which a notebook shows as the value of a cell."""

    html: str
    text: str
    """The same for people without a browser."""

    def _repr_html_(self) -> str:
        return self.html

    def __str__(self) -> str:
        """Return the text."""
        return self.text

    def save(self, path: str | Path) -> None:
        """Write a file that a browser shows, with nothing else beside it."""
        page = f'<!doctype html><meta charset="utf-8"><title>tlx_xdsl</title>{self.html}'
        Path(path).write_text(page, encoding="utf-8")


def show(module: ModuleOp | str, *, title: str = "module") -> Page:
    """A module, or the text of one, beside the Python that it was made of, with the map of its memory.

    Raises CompilationError for text that is no module.
    """
    parsed = parse_module(module, filename=title) if isinstance(module, str) else module
    return Page(module_page(parsed, title=title), print_module(parsed, locations=False))


def kernel_page(source: KernelSource, kinds: Mapping[str, object], module: ModuleOp | None) -> str:
    """A kernel: its parameters and what each is compiled for, and its IR beside its source where there is some."""
    table = _table((_parameter(each, kinds) for each in source.parameters), ("parameter", "kind", "compiled for"))
    if module is None:
        return _card(f"kernel {source.name}", table + _listing(source))
    return _card(f"kernel {source.name}", table) + module_page(module, title=f"{source.name}, frontend")


def error_page(source: KernelSource, error: CompilationError) -> str:
    """A kernel that can't be compiled, and why."""
    return _card(f"kernel {source.name}", f"<pre>{escape(str(error))}</pre>")


def compiled_page(name: str, times_ms: Mapping[str, float], stages: Mapping[str, str]) -> str:
    """The text stages of a kernel, of which the first is unfolded, and how long it took to make them."""
    times = _table(((stage, f"{ms:.1f}") for stage, ms in times_ms.items()), ("stage", "ms"))
    return _card(f"kernel {name}, compiled", times) + "".join(
        f"<details{'' if index else ' open'}><summary>{stage}</summary>"
        f"{module_page(parse_module(text, filename=stage), title=stage)}</details>"
        for index, (stage, text) in enumerate(stages.items())
    )


def run_page(rows: Mapping[str, object], warnings: Sequence[Diagnostic]) -> str:
    """Return how a run went, and each warning with its source line."""
    return _card("run", _table(rows.items()) + "".join(f"<pre>{escape(str(each))}</pre>" for each in warnings))


def _parameter(parameter: Parameter, kinds: Mapping[str, object]) -> tuple[object, ...]:
    kind = "constexpr" if parameter.is_constexpr else "argument"
    return parameter.name, kind, kinds.get(parameter.name, "")


def _listing(source: KernelSource) -> str:
    first, last = source.tree.lineno, source.tree.end_lineno or source.tree.lineno
    rows = (linecache.getline(source.filename, number).rstrip("\n") for number in range(first, last + 1))
    lines = "".join(f'<div class="l"><i>{first + i}</i>{escape(text)}</div>' for i, text in enumerate(rows))
    return f'<div class="side">{lines}</div>'


def _table(rows: Iterable[tuple[Any, ...]], head: tuple[str, ...] = ()) -> str:
    top = "".join(f"<th>{escape(each)}</th>" for each in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>" if top else f"<table>{body}</table>"


def _card(title: str, body: str) -> str:
    return f'<div class="tlx"><style>{STYLE}</style><div class="title">{escape(title)}</div>{body}</div>'


# --- a module beside its Python ---------------------------------------------------------------------------------------
#
# A module beside the Python that it was made of: pointing at a line shows what belongs to it on the other side.
#
# The lines of both sides carry the number of their Python line, and a rule of CSS for each number colours them together
# while the pointer is over one of them (`:has`, which all browsers have had since 2023).


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
