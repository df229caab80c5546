"""`ttl` and `ttnn` for files that import them as tt-lang's kernels do, where they are not installed."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType

from .. import language as ttl


class _Nothing:
    """Whatever a file takes from `ttnn` while it is read: types of annotations, and functions of its main program."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> _Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing(f"{self._name}.{name}")

    def __call__(self, *arguments: object, **named: object) -> _Nothing:
        raise RuntimeError(f"{self._name} needs ttnn, which is not installed")


class _Ttnn(ModuleType):
    def __getattr__(self, name: str) -> _Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing(f"ttnn.{name}")


@contextmanager
def ttl_importable() -> Generator[None]:
    """Within, `import ttl` gives our language, and `import ttnn` names without anything in them."""
    stand_ins: dict[str, ModuleType] = {"ttl": ttl, "ttl.math": ttl.math, "ttnn": _Ttnn("ttnn")}
    missing = [name for name in stand_ins if not _is_installed(name.partition(".")[0])]
    before = {name: sys.modules[name] for name in missing if name in sys.modules}
    sys.modules.update({name: stand_ins[name] for name in missing})
    try:
        yield
    finally:
        for name in missing:
            del sys.modules[name]
        sys.modules.update(before)


def _is_installed(name: str) -> bool:
    """Return whether there is such a module; a folder of that name without code is none."""
    if (module := sys.modules.get(name)) is not None:
        return module.__file__ is not None
    spec = find_spec(name)
    return spec is not None and spec.origin is not None
