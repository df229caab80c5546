"""The modules of Meta's Triton that scripts import and stock Triton lacks, made of ours.

Each is a module of its own with the names of ours: importing it leaves no trace in `tlx_xdsl`. A finder in
`sys.meta_path` makes them when they are imported, so nothing is written anywhere.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

TLX = "triton.language.extra.tlx"
"""The module where scripts expect Meta's tlx."""

_OUR_TLX = "tlx_xdsl.language.tlx"

_TOPICS = (
    "async_task_utils",
    "barrier",
    "dynamic_launch",
    "mem_ops",
    "mma_ops",
    "types",
    "utility",
    "warp_ops",
    "warp_spec",
)
"""Meta's modules below tlx. All of their public names stand in our tlx itself."""

MODULES = {
    TLX: _OUR_TLX,
    **{f"{TLX}.{topic}": _OUR_TLX for topic in _TOPICS},
    f"{TLX}.mxfp8_utils": "tlx_xdsl.language.extra.mxfp8_utils",
    "triton.language.extra.subtile_ops": "tlx_xdsl.language.extra.subtile_ops",
    "triton.language.extra.cuda.inline_ptx_lib": "tlx_xdsl.language.extra.cuda.inline_ptx_lib",
}
"""Our module for each of Meta's."""

_OURS = "tlx_xdsl.language"


def is_ours(value: Any) -> bool:
    """Return whether a value is of our language or one of the modules above, or belongs to such a module."""
    if isinstance(value, ModuleType):
        return _is_name_of_ours(value.__name__)
    if isinstance(value, bool | int | float | str | None):
        return False
    home = getattr(value, "__module__", None)
    return (isinstance(home, str) and _is_name_of_ours(home)) or _is_name_of_ours(type(value).__module__)


def _is_name_of_ours(name: str) -> bool:
    return name == _OURS or name.startswith(_OURS + ".") or name in MODULES


class Finder(MetaPathFinder, Loader):
    """Finds the modules above.

    `on_use` is called before the first of them is made.
    """

    def __init__(self, on_use: Callable[[], None]):
        self._on_use = on_use

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of one of the modules above; None for any other."""
        if fullname not in MODULES:
            return None
        spec = ModuleSpec(fullname, self, origin=MODULES[fullname], is_package=fullname == TLX)
        if spec.submodule_search_locations is not None:
            # What lies in the package's own place, such as a copy of Meta's tutorials, is found there.
            spec.submodule_search_locations += [str(Path(each) / "tlx") for each in path or ()]
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module with the docstring of ours."""
        self._on_use()
        return ModuleType(spec.name, importlib.import_module(MODULES[spec.name]).__doc__)

    def exec_module(self, module: ModuleType) -> None:
        """Give the module all names of ours that are no modules; our module answers for the rest."""
        ours = importlib.import_module(MODULES[module.__name__])
        for name, value in vars(ours).items():
            if not isinstance(value, ModuleType) and not (name.startswith("__") and name != "__all__"):
                setattr(module, name, value)
        fallback = getattr(ours, "__getattr__", None)
        if fallback is not None:
            module.__dict__["__getattr__"] = fallback


def forget_modules() -> dict[str, ModuleType]:
    """Take the modules above out of `sys.modules` and off their packages; returns what `recall_modules` needs."""
    taken: dict[str, ModuleType] = {}
    for name in sorted([*MODULES, *(name for name in sys.modules if name.startswith(TLX + "."))], reverse=True):
        package, _, last = name.rpartition(".")
        owner = sys.modules.get(package)
        module = sys.modules.pop(name, None)
        if module is not None:
            taken[name] = module
        if owner is not None and isinstance(vars(owner).get(last), ModuleType):
            delattr(owner, last)
    return taken


def recall_modules(taken: dict[str, ModuleType]) -> None:
    """Put modules back that `forget_modules` has taken: those of a Triton that has them itself."""
    for name in sorted(taken):
        sys.modules[name] = taken[name]
        package, _, last = name.rpartition(".")
        owner = sys.modules.get(package)
        if owner is not None:
            setattr(owner, last, taken[name])
