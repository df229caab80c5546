"""Phases of a compile: the time that each takes, and ranges for nsys, off unless TLX_NVTX is 1.

Launches through Triton's runtime have ranges, too.

NVTX 3 is a header and has no library to load, so the package `nvtx` makes the ranges, or torch, where either is there.
"""

# Both packages are optional, and of unknown type to a checker.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

VARIABLE = "TLX_NVTX"

_NOTHING: AbstractContextManager[None] = nullcontext()


def phase(name: str, what: str) -> AbstractContextManager[None]:
    """A range around a phase of a compile, `tlx: NAME of WHAT`; nothing where ranges are off."""
    return _range(f"tlx: {name} of {what}") if _wanted() else _NOTHING


def follow_launches() -> None:
    """Have every launch of Triton's runtime be a range with the kernel's name, where ranges are wanted."""
    if not _wanted() or _functions() is None:
        return
    from triton import knobs

    if _enter not in knobs.runtime.launch_enter_hook.calls:
        knobs.runtime.launch_enter_hook.add(_enter)
        knobs.runtime.launch_exit_hook.add(_exit)


def _wanted() -> bool:
    return os.environ.get(VARIABLE, "0") not in ("", "0")


@contextmanager
def _range(name: str) -> Generator[None]:
    functions = _functions()
    if functions is None:
        yield
        return
    push, pop = functions
    push(name)
    try:
        yield
    finally:
        pop()


@cache
def _functions() -> tuple[Callable[[str], Any], Callable[[], Any]] | None:
    """Return what begins and ends a range; None, with a warning, where nothing does."""
    if find_spec("nvtx") is not None:
        nvtx: Any = import_module("nvtx")
        return nvtx.push_range, nvtx.pop_range
    if "torch" in sys.modules or find_spec("torch") is not None:
        torch: Any = import_module("torch")
        if torch.cuda.is_available():
            return torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop
    warnings.warn(f"{VARIABLE} asks for ranges, which the package nvtx makes, or torch on a GPU", stacklevel=4)
    return None


def _enter(metadata: Any) -> None:
    functions = _functions()
    if functions is not None:
        functions[0](f"tlx: launch of {metadata.get()['name']}")


def _exit(metadata: Any) -> None:
    functions = _functions()
    if functions is not None:
        functions[1]()


class Clock:
    """Adds up milliseconds by name."""

    def __init__(self, times: dict[str, float] | None = None) -> None:
        self.times: dict[str, float] = {} if times is None else times
        self._last = time.perf_counter()

    def lap(self, name: str) -> float:
        """Book the time since the last call under `name`; returns it."""
        now = time.perf_counter()
        passed = (now - self._last) * 1e3
        self.times[name] = self.times.get(name, 0.0) + passed
        self._last = now
        return passed

    def skip(self) -> None:
        """Book the time since the last call nowhere."""
        self._last = time.perf_counter()
