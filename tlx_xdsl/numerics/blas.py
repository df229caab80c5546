"""One thread for numpy's matrix products.

The products of tiles are too small to be shared out: on two cores, threads of OpenBLAS save 4 % of the time when the
machine is idle, and wait for each other 10 times as long as they compute when it is not.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

_LIBRARY = re.compile(r"/\S*(?:openblas|mkl_rt|blis)\S*")
"""A shared library that numpy may multiply with, in a line of the process's memory map."""
_NAMES = (
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads64_", "openblas_set_num_threads64_"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
)
"""Names of the functions that get and set the number of threads, by library; numpy's wheels have the first two."""


@cache
def _controls() -> list[tuple[Callable[[], Any], Callable[[int], Any]]]:
    """The functions of the libraries that this process has loaded; none where that is not known, as on macOS."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return []
    found: list[tuple[Callable[[], Any], Callable[[int], Any]]] = []
    for path in dict.fromkeys(_LIBRARY.findall(maps.read_text(encoding="utf-8", errors="replace"))):
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        found.extend(
            (getattr(library, getter), getattr(library, setter))
            for getter, setter in _NAMES
            if hasattr(library, getter) and hasattr(library, setter)
        )
    return found


@contextmanager
def one_thread() -> Generator[None]:
    """Keep matrix products to one thread inside of the `with`."""
    before = [(setter, int(getter())) for getter, setter in _controls()]
    for setter, _ in before:
        setter(1)
    try:
        yield
    finally:
        for setter, count in before:
            setter(count)
