"""Running a command again whenever the kernel's file changes."""

from __future__ import annotations

import linecache
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from .failures import as_compilation_error
from .output import say

SECONDS = 0.3
"""Time between two looks at the files."""


def watched(path: str, run: Callable[[], object]) -> None:
    """Run now, and after each change of the file or of what it imports from its folder, until Ctrl-C.

    What is wrong is printed, and does not end it.
    """
    own = set(sys.modules)
    while True:
        try:
            run()
        except Exception as error:
            say(as_compilation_error(error))
        before = _stamps(path, own)
        print(f"watching {path}: Ctrl-C ends", file=sys.stderr, flush=True)
        while _stamps(path, own) == before:
            time.sleep(SECONDS)
        # It is read again as if for the first time.
        for name in set(sys.modules) - own:
            if _is_beside(path, name):
                del sys.modules[name]
        linecache.clearcache()


def _is_beside(path: str, module: str) -> bool:
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and Path(file).resolve().is_relative_to(Path(path).resolve().parent)


def _stamps(path: str, own: set[str]) -> list[tuple[str, int]]:
    """Return when the files were changed: that of the kernel, and those of modules beside it."""
    files = {path, *(str(sys.modules[name].__file__) for name in set(sys.modules) - own if _is_beside(path, name))}
    return sorted((file, os.stat(file).st_mtime_ns) for file in files if os.path.exists(file))
