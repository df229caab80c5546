"""The families over stock Triton's objects: the same files, with the imports of Triton."""

from __future__ import annotations

import functools
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from tests.gallery.plain.family import Family

_LANGUAGE = re.compile(r"^import tlx_xdsl\.language as tl$", re.MULTILINE)
_PACKAGE = re.compile(r"^import tlx_xdsl$", re.MULTILINE)


@functools.cache
def over_stock(family: Family) -> Family:
    """The same family, with a kernel that stock Triton compiles and launches."""
    return _executed(text_over_stock(family), Path(family.kernel.source.filename), family)


def text_over_stock(family: Family) -> str:
    """The family's file with the imports of Triton; the lines are the same."""
    text = _LANGUAGE.sub(
        "import triton.language as tl", Path(family.kernel.source.filename).read_text(encoding="utf-8")
    )
    return _PACKAGE.sub("import triton as tlx_xdsl", text)


def loaded(path: Path, family: Family) -> Family:
    """The family with the kernel of another file, which imports Triton."""
    return _executed(path.read_text(encoding="utf-8"), path, family)


def _executed(text: str, path: Path, family: Family) -> Family:
    module = ModuleType(f"stock_{path.stem}")
    # Triton reads the source of a function from the file of its code.
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    return replace(family, kernel=vars(module)[family.name])
