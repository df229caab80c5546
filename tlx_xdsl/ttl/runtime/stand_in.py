"""`ttl`, `ttnn` and `torch` for files that import them as tt-lang's kernels do, where they are not installed.

Where `ttnn` is missing, nothing that a file does with a device means anything. While such a file is loaded for its
kernels, whatever it makes with `ttnn` and `torch` is a `Nothing`: it has every attribute, can be called and computed
with, and a kernel that is called with one does nothing. So a file that opens a device, runs its kernel and compares
the result, at the level of the module, loads.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import Any, cast

from .. import language as ttl


class Nothing:
    """Value of a module that is not there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing(f"{self._name}.{name}")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        # A decorator leaves the function as it is.
        if len(arguments) == 1 and not named and isinstance(arguments[0], FunctionType):
            return cast(Any, arguments[0])
        return Nothing(f"{self._name}(...)")

    def __getitem__(self, key: Any) -> Nothing:
        return Nothing(f"{self._name}[...]")

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __enter__(self) -> Nothing:
        return self

    def __exit__(self, *error: object) -> None: ...

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return ()

    def __index__(self) -> int:
        return 0

    def __format__(self, form: str) -> str:
        return self._name

    def __repr__(self) -> str:
        return self._name

    __hash__ = object.__hash__


def _computed(self: Nothing, *operands: Any) -> Nothing:
    return Nothing(f"{self._name}...")  # pyright: ignore[reportPrivateUsage]


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
):
    for _form in (f"__{_name}__", f"__r{_name}__"):
        setattr(Nothing, _form, _computed)
for _name in ("neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne", "round"):
    setattr(Nothing, f"__{_name}__", _computed)


class _Module(ModuleType):
    """A module that is not there."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing(f"{self.__name__}.{name}")


@contextmanager
def ttl_importable(*, with_torch: bool = False) -> Generator[None]:
    """Make `import ttl` give our language, and `import ttnn` names without anything in them.

    Without ttnn, so does `import torch`, if torch is missing, too, or `with_torch`: for a file that asks for a device.
    """
    stand_ins: dict[str, ModuleType] = {"ttl": ttl, "ttl.ttl": ttl, "ttl.math": ttl.math, "ttl.block": ttl.block}
    stand_ins |= {name: _Module(name) for name in ("ttl.utils", "ttl.utils.correctness", "ttl.utils.block_allocation")}
    stand_ins |= {name: _Module(name) for name in ("ttnn", "torch", "torch.nn", "torch.nn.functional")}
    missing = {name for name in stand_ins if not _is_installed(name.partition(".")[0])}
    if with_torch and "ttnn" in missing:
        missing |= {name for name in stand_ins if name.startswith("torch")}
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
