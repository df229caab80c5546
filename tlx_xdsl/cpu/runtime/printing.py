"""The functions by which machine code prints: those of MLIR's runner library that the lowering of `tt.print` calls.

The text is the interpreter's. A line is written when it is complete, so that those of several threads do not mix.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np


class _Line(threading.local):
    """The line that a thread has begun."""

    def __init__(self) -> None:
        self.parts: list[str] = []


_line = _Line()


def _print_number(value: int | float) -> None:
    _line.parts.append(str(value))


def _print_float32(value: float) -> None:
    _line.parts.append(str(np.float32(value)))


def _print_newline() -> None:
    text = "".join(_line.parts)
    _line.parts.clear()
    # The user's own stream of the moment, which may not be a file.
    sys.stdout.write(text + "\n")


_FUNCTIONS: dict[str, tuple[Callable[..., None], tuple[Any, ...]]] = {
    "printI64": (_print_number, (ctypes.c_int64,)),
    "printU64": (_print_number, (ctypes.c_uint64,)),
    "printF32": (_print_float32, (ctypes.c_float,)),
    "printF64": (_print_number, (ctypes.c_double,)),
    "printNewline": (_print_newline, ()),
}
"""mlir/ExecutionEngine/CRunnerUtils.h"""

_callbacks: dict[str, Any] = {}
"""What machine code calls: kept as long as the process lives."""


def prints(symbols: Iterable[str]) -> bool:
    """Return whether some of the functions that a kernel calls print."""
    return not _FUNCTIONS.keys().isdisjoint(symbols)


def externals(symbols: Iterable[str]) -> dict[str, Any]:
    """Return what the functions that a kernel calls are: callbacks that print, or None for those of the C library."""
    return {name: _callback(name) if name in _FUNCTIONS else None for name in symbols}


def _callback(name: str) -> Any:
    if name not in _callbacks:
        function, types = _FUNCTIONS[name]
        _callbacks[name] = ctypes.CFUNCTYPE(None, *types)(function)
    return _callbacks[name]
