"""Notebook pages of a kernel, of its text stages and of a run; and `show`, for any module."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource, Parameter
from tlx_xdsl.text.diagnostics import Diagnostic
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module

from .module import STYLE, module_page


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
