"""The version of the installed stock Triton, found without importing it."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def installed_triton_version() -> str | None:
    """Return the version of the installed `triton` distribution, such as `3.9.0`; None if there is none.

    Reads the distribution's metadata only, once in a process: importing Triton costs 0.1 to 0.2 s and loads a shared
    library.
    """
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        return None
