"""Notebook pages of a kernel, of its text stages and of a run; and `show`, for any module."""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from html import escape
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.analysis.storage_map_reader import storage_maps
from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.frontend.python.source import KernelSource, Parameter
from tlx_xdsl.text.diagnostics import Diagnostic
from tlx_xdsl.text.kept_names import with_names_of
from tlx_xdsl.text.located import LocatedLine, located_lines
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module

from .diffs import STYLE as DIFF_STYLE, coloured_pieces, rows_as_html, rows_of, spans_of
from .storage_map_svg import map_as_svg

if TYPE_CHECKING:
    from tlx_xdsl.text.highlight import Language


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
        head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>tlx_xdsl</title>'
        page = f"<!doctype html>{head}{self.html}"
        Path(path).write_text(page, encoding="utf-8")


def show(
    module: ModuleOp | str,
    *,
    title: str = "module",
    since: ModuleOp | str | None = None,
    layouts: Sequence[str] = (),
) -> Page:
    """A module, or the text of one, beside the Python that it was made of, with the map of its memory.

    `layouts` names values whose layouts are drawn, `%acc_1` as printed or a Python variable; those that
    `tlx.dump_layout` asks for are drawn, too.
    With `since`, a module before it, what changed between the two instead: side by side, with the words that differ.
    Raises CompilationError for text that is no module, and for a name of no value with a layout.
    """
    parsed = _module(module, title)
    printed = print_module(parsed, locations=False)
    if since is None:
        return Page(module_page(parsed, title=title, layouts=layouts), printed)
    return diff_page(print_module(_module(since, f"before {title}"), locations=False), printed, title=title)


def _module(module: ModuleOp | str, title: str) -> ModuleOp:
    return parse_module(module, filename=title) if isinstance(module, str) else module


def diff_page(before: str, after: str, *, title: str) -> Page:
    """The texts of two modules side by side, the second in the names of the first, and as text their unified diff."""
    old, new = before.splitlines(), with_names_of(before, after).splitlines()
    text = "\n".join(unified_diff(old, new, f"before {title}", f"after {title}", lineterm=""))
    body = rows_as_html(rows_of(old, new)) if text else "<pre>nothing has changed</pre>"
    return Page(_card(title, body), text or "nothing has changed")


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
    lines = _python(source.filename, first, last).items()
    rows = "".join(f'<div class="l"><i>{number}</i>{text}</div>' for number, text in lines)
    return f'<div class="side">{rows}</div>'


def _python(name: str, first: int, last: int) -> dict[int, str]:
    """The HTML of lines of a Python file, by number."""
    numbers = range(first, last + 1)
    lines = [linecache.getline(name, number).rstrip("\n") for number in numbers]
    return dict(zip(numbers, _coloured(lines, "python"), strict=True))


def _coloured(lines: Sequence[str], language: Language = "mlir") -> list[str]:
    """The HTML of each line."""
    return [spans_of([(*piece, False) for piece in pieces]) for pieces in coloured_pieces(lines, language)]


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


LIGHT = (
    "--text:#222;--paper:#fff;--edge:#ccc;--head:#eee;--faint:#565e67;--lit:#fff0b3;--gone:#ffebe9;--came:#e6ffec;"
    "--gone-word:#ffccc6;--came-word:#a9edb5;--none:#f3f4f6;--keyword:#5b32a8;--value:#0550ae;--type:#0f5c26;"
    "--number:#8a3200;--string:#0a3069;--function:#6a1fae;--attribute:#7d3f00;color-scheme:light"
)
DARK = (
    "--text:#e6edf3;--paper:#0d1117;--edge:#3d444d;--head:#1c2128;--faint:#b4bcc6;--lit:#4d3f00;--gone:#3c1618;"
    "--came:#12301b;--gone-word:#702428;--came-word:#175429;--none:#161b22;--keyword:#d9b8ff;--value:#8ecbff;"
    "--type:#7ee787;--number:#ffb26b;--string:#a5d6ff;--function:#e2c5ff;--attribute:#e3b341;color-scheme:dark"
)
"""Colours, of which each of text has a contrast of 4.5 to 1 or more on each of the grounds."""
STYLE = (
    f".tlx{{{LIGHT}}}@media(prefers-color-scheme:dark){{.tlx{{{DARK}}}}}"
    ".tlx{font:12px/1.45 ui-monospace,Menlo,Consolas,monospace;color:var(--text);background:var(--paper);"
    "border:1px solid var(--edge)}"
    ".tlx .title{padding:4px 8px;background:var(--head);border-bottom:1px solid var(--edge);font-weight:bold}"
    ".tlx .sides{display:flex;max-height:70vh}"
    ".tlx .side{overflow:auto;flex:1 1 50%;padding:4px 0}"
    ".tlx .side+.side{border-left:1px solid var(--edge);flex-grow:1.6}"
    ".tlx .l{white-space:pre;padding:0 8px;min-width:max-content}"
    ".tlx .l i{display:inline-block;width:4ch;margin-right:1ch;color:var(--faint);font-style:normal;text-align:right;"
    "user-select:none}"
    ".tlx .file{padding:0 8px;color:var(--faint);font-weight:bold}"
    ".tlx .quiet{opacity:.6}"
    ".tlx details{border-top:1px solid var(--edge);padding:4px 8px}"
    ".tlx td,.tlx th{text-align:left;padding:1px 12px 1px 8px}.tlx th{color:var(--faint)}.tlx pre{margin:4px 8px;"
    "white-space:pre-wrap}"
    # A storage map keeps a size at which it can be read, and is scrolled on a phone.
    ".tlx details{overflow-x:auto}.tlx svg{max-width:100%;height:auto}.tlx .tlx-map{min-width:700px}"
    "@media(max-width:700px){.tlx .sides{display:block;max-height:none}.tlx .side{max-height:60vh}"
    ".tlx .side+.side{border-left:0;border-top:1px solid var(--edge)}}"
    + "".join(
        f".tlx .{kind}{{color:var(--{kind})}}"
        for kind in ("keyword", "value", "type", "number", "string", "function", "attribute")
    )
    + ".tlx .comment{color:var(--faint)}"
    + DIFF_STYLE
)
_LIT = "background:var(--lit)"


def module_page(module: ModuleOp, *, title: str = "module", layouts: Sequence[str] = ()) -> str:
    """HTML of a module beside its Python source, with layouts and the storage map of what allocates memory below.

    Only the part of each file is shown that the module comes from; sources that can't be read are left out.
    """
    lines = located_lines(module)
    files = _files(lines)
    places = {place: number for number, place in enumerate(_places(lines))}
    left = "".join(_source(name, first, last, places) for name, (first, last) in files.items())
    texts = _coloured([line.text for line in lines])
    right = "".join(_ir_line(line, text, places) for line, text in zip(lines, texts, strict=True))
    # One page of a notebook may hold many modules: the rules of each apply to it alone.
    mark = "t" + hashlib.sha256((title + left + right).encode()).hexdigest()[:12]
    rules = "".join(f".{mark}:has(.n{n}:hover) .n{n}{{{_LIT}}}" for n in places.values())
    source = f'<div class="side">{left}</div>' if left else ""
    return (
        f'<div class="tlx {mark}"><style>{STYLE}{rules}</style><div class="title">{escape(title)}</div>'
        f'<div class="sides">{source}<div class="side">{right}</div></div>'
        f"{_layouts(module, layouts)}{_storage(module)}</div>"
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
    for number, text in _python(name, first, last).items():
        mark = places.get((name, number))
        kind = "l quiet" if mark is None else f"l n{mark}"
        rows.append(f'<div class="{kind}"><i>{number}</i>{text}</div>')
    return "".join(rows)


def _ir_line(line: LocatedLine, text: str, places: dict[tuple[str, int], int]) -> str:
    key = _key(line.place)
    if key is None:
        return f'<div class="l"><i></i>{text}</div>'
    name, number = key
    hint = f"{line.place}\n{linecache.getline(name, number).strip()}".strip()
    return f'<div class="l n{places[key]}" title="{escape(hint)}"><i>{number}</i>{text}</div>'


def _layouts(module: ModuleOp, names: Sequence[str]) -> str:
    if not names and "tlx.dump_layout" not in {op.name for op in module.walk()}:
        return ""
    # Layouts are computed in numpy, which modules without them need not load.
    from .layouts import dumped_layouts, layouts_of, layouts_picture

    drawn = [*layouts_of(module, names, "layouts"), *dumped_layouts(module)]
    return "".join(
        f"<details open><summary>layout of {escape(each.title)}</summary>{layouts_picture([each], module)}</details>"
        for each in drawn
    )


def _storage(module: ModuleOp) -> str:
    try:
        maps = storage_maps(module)
    except CompilationError as error:
        # The module is what is asked for: that its buffers can't be laid out is no reason not to show it.
        return f"<pre>{escape(str(error))}</pre>"
    return "".join(
        f"<details><summary>storage map of {escape(each.kernel)}</summary>{map_as_svg(each)}</details>" for each in maps
    )
