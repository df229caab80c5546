"""What a notebook shows of a kernel, of its text stages and of a run; and `show`, for any module."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.source import KernelSource, Parameter
from tlx_xdsl.runtime.compilation import CompiledText, Specialization, frontend_module
from tlx_xdsl.runtime.defaults import kernel_defaults
from tlx_xdsl.runtime.show.module import STYLE, module_page
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module

if TYPE_CHECKING:
    from tlx_xdsl.runtime.interpret import Interpretation


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


def kernel_page(source: KernelSource) -> str:
    """A kernel: its parameters, and its IR beside its source when its file says how it is compiled.

    What is wrong with the kernel is shown in the place of the IR.
    """
    head = f"kernel {source.name}"
    try:
        defaults = kernel_defaults(source.filename, source.fn.__globals__, source.name)
        kinds: Mapping[str, object] = {**defaults.signature, **defaults.constexprs}
        table = _table((_parameter(each, kinds) for each in source.parameters), ("parameter", "kind", "compiled for"))
        if not kinds:
            return _card(head, table + _listing(source))
        known = {each.name for each in fields(Specialization)}
        options = {name: value for name, value in defaults.options.items() if name in known}
        module = frontend_module(source, Specialization(defaults.signature, defaults.constexprs, **options))
        return _card(head, table) + module_page(module, title=f"{source.name}, frontend")
    except CompilationError as error:
        return _card(head, f"<pre>{escape(str(error))}</pre>")


def compiled_page(compiled: CompiledText) -> str:
    """Both text stages of a kernel, and how long it took to make them."""
    times = _table(((name, f"{ms:.1f}") for name, ms in compiled.times_ms.items()), ("stage", "ms"))
    stages = (("TTGIR", compiled.ttgir, " open"), ("TTIR", compiled.ttir, ""))
    return _card(f"kernel {compiled.name}, compiled", times) + "".join(
        f"<details{state}><summary>{name}</summary>"
        f"{module_page(parse_module(text, filename=name), title=name)}</details>"
        for name, text, state in stages
    )


def interpretation_page(run: Interpretation) -> str:
    """How a run went, and each warning with its source line."""
    rows = (
        ("clusters", run.clusters),
        ("turns", f"{run.turns:,}"),
        ("seconds", f"{run.seconds:.2f}"),
        ("processes", run.jobs),
        ("warnings", len(run.warnings)),
    )
    return _card("run", _table(rows) + "".join(f"<pre>{escape(str(each))}</pre>" for each in run.warnings))


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
