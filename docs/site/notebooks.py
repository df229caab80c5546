"""Pages of the notebooks: their text, code and what they show, run when the site is built, readable without marimo.

marimo's own exported pages load its scripts from another server, so they are blank without a network. These are pages
of the site like all others. What is interactive in a notebook (menus, editors) shows what it begins with.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import textwrap
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from docs.site import playground
from tlx_xdsl.runtime.answers import Verdict

ROOT = Path(__file__).parents[2]

FOLDER = ROOT / "notebooks"


def pages() -> dict[str, Path]:
    """The notebook of each page, by the page's path below `docs/`."""
    files = [*FOLDER.glob("*.py"), *FOLDER.glob("puzzles/[0-9]*.py")]
    return {f"notebooks/{path.relative_to(FOLDER).with_suffix('.md').as_posix()}": path for path in sorted(files)}


def page(path: Path) -> str:
    """The Markdown of a notebook's page."""
    cells = cells_of(path.read_text(encoding="utf-8"))
    outputs = _outputs(path)
    if len(cells) != len(outputs):
        raise ValueError(f"{path.name}: expected an output of each of {len(cells)} cells, found {len(outputs)}")
    name = path.relative_to(ROOT)
    run = f"*This is the notebook `{name}` as it was given: `marimo edit {name}` opens it, in a checkout.*"
    shown = [_shown(code, output) for code, output in zip(cells, outputs, strict=True)]
    title, *rest = [each for each in shown if each]
    heading, _, text = title.partition("\n")
    opened = [playground.notebook_link(path)] if path.parent.name == "puzzles" else []
    return "\n\n".join([heading, run, *opened, text.strip(), *rest]) + "\n"


def cells_of(source: str) -> list[str]:
    """The code of a notebook's cells, as it stands in the notebook: without the function around it and its return."""
    found: list[str] = []
    for each in ast.parse(source).body:
        if not isinstance(each, ast.FunctionDef) or not each.decorator_list:
            continue
        last = each.body[-1]
        end = last.lineno - 1 if isinstance(last, ast.Return) else last.end_lineno
        start = min(getattr(each.body[0], "decorator_list", None) or [each.body[0]], key=lambda node: node.lineno)
        lines = source.splitlines()[start.lineno - 1 : end]
        found.append(textwrap.dedent("\n".join(lines)).strip())
    return found


@cache
def _outputs(path: Path) -> tuple[Any, ...]:
    spec = importlib.util.spec_from_file_location(f"notebook_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs, _ = module.app.run()
    return tuple(outputs)


def _shown(code: str, output: Any) -> str:
    """A cell as a part of a page: text alone without its code, of anything else code and output."""
    if code.startswith("import marimo"):
        return ""
    if code.startswith('mo.md("""'):
        return _result(output)
    return f"```python\n{code}\n```\n\n{_result(output)}".strip()


def _result(output: Any) -> str:
    """Write the output of a cell in Markdown; empty for nothing, and for what only a notebook can show."""
    if type(output).__module__.startswith("marimo."):
        rows = getattr(output, "data", None)
        if isinstance(rows, list) and rows and isinstance(rows[0], dict):
            return _table(rows)
        # All else, such as menus and editors, is of marimo's own elements.
        return output._repr_markdown_() if type(output).__module__ == "marimo._output.md" else ""
    if hasattr(output, "_repr_html_") and not isinstance(output, Verdict):
        return f'<div class="notebook-output">\n{output._repr_html_()}\n</div>'
    return "" if output is None else f"```text\n{output}\n```"


def _table(rows: list[dict[str, Any]]) -> str:
    """The data of a table, in Markdown."""

    def row(values: Any) -> str:
        cells = (re.sub(r"([\\*_`|<\[])", r"\\\1", str(value).replace("\n", " ")) for value in values)
        return f"| {' | '.join(cells)} |"

    return "\n".join([row(rows[0]), "| --- " * len(rows[0]) + "|", *(row(each.values()) for each in rows)])
