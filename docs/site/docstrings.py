"""Docstrings as Markdown, and what only the source knows: docstrings of fields."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from functools import cache
from typing import Any


def doc_of(thing: Any) -> str:
    """The docstring of a class, function or module itself, without indentation.

    Raises ValueError where it has none: a reference has no gaps.
    """
    doc = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    if not doc:
        raise ValueError(f"{thing!r} has no docstring")
    return inspect.cleandoc(doc)


def module_of(thing: Any) -> str:
    """The docstring of the module that defines a class or function."""
    module = inspect.getmodule(thing)
    assert module is not None
    return doc_of(module)


_FIELD = re.compile(r"^([a-z_]\w*): +(?=\S)")
"""A line of a docstring that begins to explain a field: `shape:   extents in elements`."""


def as_markdown(doc: str) -> str:
    """A docstring as Markdown.

    An example has a paragraph of its own, a fence an empty line before it; what explains fields becomes a list.
    """
    doc = "\n\n".join(map(_fields_as_list, doc.split("\n\n")))
    lines: list[str] = []
    fenced = False
    for line in doc.splitlines():
        goes_on = line.startswith("- ") and lines and lines[-1].startswith(("- ", "  "))
        if not fenced and not goes_on and line.startswith(("```", "- ", "Example", "Syntax")):
            lines.append("")
        lines.append(line)
        if line.startswith("```"):
            fenced = not fenced
            if not fenced:
                lines.append("")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _fields_as_list(paragraph: str) -> str:
    """A paragraph; if it explains fields, one in each line or several that are indented, as a list."""
    lines = paragraph.split("\n")
    if not _FIELD.match(lines[0]) or not all(_FIELD.match(line) or line.startswith("  ") for line in lines):
        return paragraph
    return "\n".join(_FIELD.sub(r"- `\1`: ", line) if _FIELD.match(line) else f"  {line.strip()}" for line in lines)


def without_own_name(doc: str, name: str) -> str:
    """The docstring of a module without the name of the pass that it begins with."""
    text = doc.removeprefix(f"`{name}`: ")
    return text[:1].upper() + text[1:] if text != doc else doc


@cache
def field_docs(cls: type) -> dict[str, str]:
    """Read the strings below annotated fields and assignments of a class: Python drops them."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(node, ast.ClassDef)
    found: dict[str, str] = {}
    for statement, following in zip(node.body, node.body[1:], strict=False):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = inspect.cleandoc(text)
            case _:
                pass
    return found


def cell(text: str) -> str:
    """A text as one cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(heading: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table; nothing for no rows."""
    if not rows:
        return ""
    lines = [heading, tuple("---" for _ in heading), *rows]
    return "\n".join("| " + " | ".join(cell(each) for each in line) + " |" for line in lines) + "\n"
