"""Kernel files, read with Triton's objects or with ours.

A kernel file is an ordinary Triton program. With `ours` its imports of `triton` become imports of `tlx_xdsl`, and
nothing else changes: not a line number, and not the name of the file, so the two modules that are made of a kernel
may be compared letter by letter.
"""

import functools
import re
import sys
from pathlib import Path
from types import ModuleType

from tests.gallery import cases
from tests.gallery.cases import Case

GALLERY = Path(__file__).parents[1] / "gallery" / "language"
KERNELS = GALLERY / "portable"

_IMPORT = re.compile(r"^(import|from) triton\b", re.MULTILINE)
_PLAIN_IMPORT = re.compile(r"^import triton$", re.MULTILINE)


def files() -> list[Path]:
    """Return the kernel files."""
    return sorted(path for path in KERNELS.glob("*.py") if path.name != "__init__.py")


CORPUS = GALLERY / "stock"
"""Stands for the kernels of the corpus, which exist over Triton's objects only."""


@functools.cache
def load(path: Path, *, ours: bool) -> dict[str, Case]:
    """Return the cases of a kernel file by name, over Triton's objects or over ours."""
    if path == CORPUS:
        return _corpus()
    text = path.read_text(encoding="utf-8")
    if ours:
        text = _PLAIN_IMPORT.sub("import tlx_xdsl as triton", text)
        text = _IMPORT.sub(r"\1 tlx_xdsl", text)
    module = ModuleType(f"oracle_{'ours' if ours else 'stock'}_{path.stem}")
    # `inspect` finds the source of a class by the file of its module.
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    with cases.collected() as found:
        exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    return cases.named(found)


def names() -> list[tuple[Path, str]]:
    """Return file and name of each case, over Triton's objects."""
    return [(path, name) for path in files() for name in load(path, ours=False)]


def corpus_names() -> list[str]:
    """Return the names of the corpus' kernels of the plain language that the installed Triton can express."""
    return list(_corpus())


@functools.cache
def _corpus() -> dict[str, Case]:
    from tests.corpus import generate

    return {name: case for name, case in generate.cases().items() if not case.is_gluon and case.skipped_reason is None}
