"""Documents of `--format json`: one object of JSON from each command, which `documents.schema.json` describes.

Each has the command, the version of tlx_xdsl, the version of the form, and whether all is well, as the exit status has
it. An error that ends a command is a document, too. Standard output then has nothing else: what a file of kernels says
when it is run, and what commands say on the way, goes to standard error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tlx_xdsl.errors import CompilationError, Note, SourceLocation
from tlx_xdsl.text.diagnostics import Diagnostic
from tlx_xdsl.version import __version__

from .failures import as_compilation_error
from .output import documents_alone, has_printed, print_document

SCHEMA = Path(__file__).with_name("documents.schema.json")
"""The JSON Schema of all documents."""

FORMAT = 1
"""Version of the form: it rises when a key goes, or changes its meaning. Keys may be added in a version."""


def document(tool: str, facts: Mapping[str, Any], *, ok: bool = True) -> str:
    """Return the document of a command, such as `tlx map`, on one object."""
    made = {"tool": tool, "version": __version__, "format": FORMAT, "ok": ok, **facts}
    return json.dumps(made, indent=2)


def show_texts(facts: Mapping[str, Any], texts: Mapping[str, str], form: str) -> None:
    """Print the stages that `tlx compile -o -` asks for: as they are, or by name in a document of the form `json`."""
    if form == "json":
        print_document(document("tlx compile", {**facts, "files": [], "texts": texts}))
    else:
        print("".join(texts.values()), end="")


def place_as_json(place: SourceLocation | None) -> dict[str, Any]:
    """Return file, line and column, each null where it is not known."""
    if place is None:
        return {"file": None, "line": None, "column": None}
    return {"file": place.filename, "line": place.line or None, "column": place.column or None}


def diagnostic_as_json(found: Diagnostic | CompilationError) -> dict[str, Any]:
    """Return an error, a warning or a remark with its lines and its remedy."""
    notes = [each for each in found.notes if isinstance(each, Note)]
    return {
        "severity": "error" if isinstance(found, CompilationError) else found.severity,
        "message": found.message,
        **place_as_json(found.location),
        "related": [{**place_as_json(each.place), "text": each.strip()} for each in notes if each.place is not None],
        "remedy": "; ".join(each for each in notes if each.is_remedy) or None,
        "notes": list(found.notes),
    }


def plain(value: Any) -> Any:
    """Return a value that JSON has, else its text."""
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def reported(tool: str, run: Callable[[], int | None]) -> int | None:
    """Carry a command out whose report is a document; an error before that is one itself.

    Raises what the command raises.
    """
    with documents_alone():
        try:
            return run()
        except BrokenPipeError:
            raise
        except Exception as error:
            found = as_compilation_error(error)
            if not has_printed():
                print_document(document(tool, {"error": diagnostic_as_json(found)}, ok=False))
            raise found from error
