"""Small kernels and helpers for the tests of the frontend."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module

HEADER = """\
import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

"""
_numbers = itertools.count()


def load(tmp_path: Path, source: str):
    """The module that `source` makes, after the usual imports, which take four lines."""
    path = tmp_path / f"kernels_{next(_numbers)}.py"
    path.write_text(HEADER + source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_source(tmp_path: Path, source: str, signature: dict[str, str], **constexprs) -> str:
    """The verified text of the kernel `kernel` in `source`, without locations."""
    module = build_module(source_of(load(tmp_path, source).kernel), signature, constexprs)
    verify_module(module)
    return print_module(module, locations=False)


def body(text: str) -> list[str]:
    """The operations of a function's body, without the return."""
    lines = [line.strip() for line in text.splitlines()]
    start = next(index for index, line in enumerate(lines) if line.startswith("tt.func"))
    return lines[start + 1 : lines.index("tt.return")]
