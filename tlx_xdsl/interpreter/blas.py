"""One thread for numpy's matrix products: in each of several processes, more of them would only fight for the cores."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

_LIBRARY = re.compile(r"/\S*(?:openblas|mkl_rt|blis)\S*")
"""A shared library that numpy may multiply with, in a line of the process's memory map."""
_SETTERS = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
    "MKL_Set_Num_Threads",
    "bli_thread_set_num_threads",
)
"""What they call the function that sets the number of threads: the first two are those of numpy's wheels."""


def use_one_thread() -> int:
    """Keep this process's matrix products to one thread, on Linux; gives the number of libraries that were told."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return 0
    paths = dict.fromkeys(_LIBRARY.findall(maps.read_text(encoding="utf-8", errors="replace")))
    told = 0
    for path in paths:
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        setter = next((name for name in _SETTERS if hasattr(library, name)), None)
        if setter is not None:
            getattr(library, setter)(1)
            told += 1
    return told
