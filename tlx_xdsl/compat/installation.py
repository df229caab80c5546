"""The changes of the drop-in to stock Triton, and their removal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal, get_args

from tlx_xdsl.errors import InputError
from tlx_xdsl.targets import target_named

from .modules import Finder, forget_modules, recall_modules

Mode = Literal["launch", "cpu", "interpret", "check", "ptx", "record", "compile"]
"""The effect of a launch."""

_MISSING = object()


class Replaced:
    """Names that have been replaced, and what they stood for; as a context, those of `replacements`."""

    def __init__(self, replacements: Callable[[], Iterable[tuple[Any, str, Any]]] = tuple):
        self._before: list[tuple[Any, str, Any]] = []
        self._replacements = replacements

    def __enter__(self) -> None:
        """Replace."""
        try:
            self.replace(self._replacements())
        except BaseException:
            self.revert()
            raise

    def __exit__(self, *_: object) -> None:
        """Take all back."""
        self.revert()

    def replace(self, replacements: Iterable[tuple[Any, str, Any]]) -> None:
        """Replace names, each given as what has it, the name and the value."""
        for owner, name, value in replacements:
            self._before.append((owner, name, owner.__dict__.get(name, _MISSING)))
            setattr(owner, name, value)

    def revert(self) -> None:
        """Take all back."""
        for owner, name, before in reversed(self._before):
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        self._before.clear()


class Installation:
    """One installation of the drop-in; nothing is changed before `begin`.

    Raises ValueError for an unknown mode or target.
    """

    def __init__(self, mode: Mode | Literal["read"], target: str, warp_specialize: Any = None):
        if mode not in (*get_args(Mode), "read"):
            raise InputError(f"unknown mode '{mode}', expected one of {', '.join(get_args(Mode))}")
        target_named(target)
        self.mode = mode
        self.target = target
        self.warp_specialize = warp_specialize
        self._finder = Finder(self._change_triton)
        self._replaced = Replaced()
        self._theirs: dict[str, ModuleType] = {}
        self._changed = False
        self._stand_ins: Sequence[str] = ()

    def begin(self) -> None:
        """Change Triton.

        Where there is none, scripts for the CPU find a stand-in; else this raises ModuleNotFoundError.
        """
        if self.mode == "cpu" and "triton" not in sys.modules and find_spec("triton") is None:
            self._stand_in()
            return
        import_module("triton")
        self.begin_lazily()
        try:
            self._change_triton()
        except BaseException:
            self.revert()
            raise

    def _stand_in(self) -> None:
        """Let scripts find a Triton that runs on the CPU where there is none."""
        from .cuda_as_cpu import replacements_of_torch
        from .triton_stand_in import install_stand_in

        self._changed = True
        self.begin_lazily()
        self._stand_ins = install_stand_in(self.target)
        self._replaced.replace(replacements_of_torch(self.target))

    def begin_lazily(self) -> None:
        """Change Triton as soon as tlx is imported."""
        self._theirs = forget_modules()
        sys.meta_path.insert(0, self._finder)

    def revert(self) -> None:
        """Take all changes back."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        self._replaced.revert()
        forget_modules()
        recall_modules(self._theirs)
        if self._stand_ins:
            from .triton_stand_in import remove_stand_in

            remove_stand_in(self._stand_ins)
            self._stand_ins = ()
        self._changed = False

    def _change_triton(self) -> None:
        if self._changed:
            return
        self._changed = True
        from .replacements import replacements

        self._replaced.replace(replacements(self.mode, self.target, self.warp_specialize))
