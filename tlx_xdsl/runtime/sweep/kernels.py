"""Passing a kernel to another process: by the name that it has in a file, which is run there.

What only this process knows (a notebook's cell, a function made by another one, a file that has changed) can't be
named. Then the text is made here, which is all that the backend needs.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import threading
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tlx_xdsl.frontend.python.source import KernelSource

from ..simulate.interpret import source_of_kernel

_MAIN = "__main__"
_MAIN_ELSEWHERE = "__mp_main__"
"""The name of a parent's script in multiprocessing: the guard `if __name__ == "__main__":` holds there, too."""


class UnreachableKernelError(Exception):
    """The kernel can't be had by name; the text says why."""


@dataclass(frozen=True)
class KernelReference:
    """The file and the name of a kernel."""

    module: str
    qualified_name: str
    path: str
    digest: str
    """Of the file: a process that finds another file there must not take it."""


def reference_to(source: KernelSource) -> KernelReference:
    """The name under which other processes find a kernel; raises UnreachableKernelError where there is none."""
    fn, name = source.fn, source.fn.__qualname__
    path = Path(source.filename).absolute()
    if not path.is_file():
        raise UnreachableKernelError("it is not defined in a file")
    if "<locals>" in name:
        raise UnreachableKernelError("it is defined inside another function")
    reference = KernelReference(fn.__module__, name, str(path), _digest(str(path)))
    module = sys.modules.get(fn.__module__)
    if module is None or getattr(_find(module, reference), "fn", None) is not fn:
        raise UnreachableKernelError(f"the name '{name}' of its module stands for something else")
    return reference


def resolve(reference: KernelReference) -> KernelSource:
    """The kernel of that name in this process, its module loaded if need be.

    Raises UnreachableKernelError where that is not possible.
    """
    if not Path(reference.path).is_file():
        raise UnreachableKernelError(f"there is no {reference.path} here")
    if _digest(reference.path) != reference.digest:
        raise UnreachableKernelError(f"{reference.path} is another file here, or has changed")
    return _find(_module(reference), reference)


def _find(module: ModuleType, reference: KernelReference) -> KernelSource:
    found: Any = module
    for part in reference.qualified_name.split("."):
        found = getattr(found, part, None)
    try:
        return source_of_kernel(found)
    except TypeError as error:
        raise UnreachableKernelError(f"its module has no kernel '{reference.qualified_name}' at its top") from error


def _digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


_loaded: dict[tuple[str, str], ModuleType] = {}
_lock = threading.RLock()
"""Held while a file is run: threads of one process must not run it twice."""
_loading: ContextVar[bool] = ContextVar("loading a kernel", default=False)


def is_loading() -> bool:
    """Return whether a kernel's file is being run, by this thread, only to find the kernel in it."""
    return _loading.get()


def _module(reference: KernelReference) -> ModuleType:
    """The module of the file, as it was imported already, by its name, or by its path."""
    known = sys.modules.get(reference.module)
    if known is not None and _is_of(known, reference.path):
        return known
    key = (reference.path, reference.digest)
    with _lock:
        if key not in _loaded:
            _loaded[key] = _load(reference)
        return _loaded[key]


def _load(reference: KernelReference) -> ModuleType:
    token = _loading.set(True)
    try:
        if reference.module != _MAIN and (module := _imported(reference)) is not None:
            return module
        return _run(reference)
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UnreachableKernelError(f"running {reference.path} there ends with {reason}") from error
    finally:
        _loading.reset(token)


def _imported(reference: KernelReference) -> ModuleType | None:
    """The module by its name, with the package that it may belong to."""
    try:
        module = importlib.import_module(reference.module)
    except ImportError:
        return None
    return module if _is_of(module, reference.path) else None


def _run(reference: KernelReference) -> ModuleType:
    name = _MAIN_ELSEWHERE if reference.module == _MAIN else reference.module
    spec = importlib.util.spec_from_file_location(name, reference.path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # As for a script, the file may import what lies beside it.
    sys.path.insert(0, str(Path(reference.path).parent))
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.pop(0)
    return module


def _is_of(module: ModuleType, path: str) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).absolute() == Path(path)
