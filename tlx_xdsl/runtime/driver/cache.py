"""Machine code on disk, by what it was made from.

An entry is one file: a mark, the hash of what follows, and that. It is written beside its place and renamed to it, so
that readers, of other processes too, find all of it or nothing. What is damaged counts as absent. A disk that is full
or may not be written is one warning: kernels are compiled then, in each process anew.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import warnings
from pathlib import Path

FOLDER = "TLX_CACHE_DIR"
"""The environment variable that names the folder."""

_MARK = b"tlx cpu object 1\n"
_HASH_BYTES = 32


class CacheWarning(UserWarning):
    """The cache can't be used; kernels are compiled all the same."""


class _Said:
    """Mark that the warning was given: once in a process."""

    warned = False


def cache_folder() -> Path:
    """Return where compiled kernels are kept: `TLX_CACHE_DIR`, or the place that the system has for such files."""
    if chosen := os.environ.get(FOLDER):
        return Path(chosen)
    # `expanduser` leaves `~` where there is no home, such as in some containers.
    home = Path(os.path.expanduser("~"))
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "tlx_xdsl" / "cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "tlx_xdsl"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "tlx_xdsl"


def path_of(key: str, kind: str = "cpu") -> Path:
    """The file of an entry; few systems like thousands of files in one folder. `kind` is the folder of such entries."""
    return cache_folder() / kind / key[:2] / f"{key[2:]}.bin"


def load(key: str, kind: str = "cpu") -> bytes | None:
    """Return what was kept under a key; None where there is nothing, or nothing whole."""
    try:
        content = path_of(key, kind).read_bytes()
    except OSError:
        return None
    start = len(_MARK) + _HASH_BYTES
    body = content[start:]
    if content[:start] != _MARK + hashlib.sha256(body).digest():
        return None
    return body


def store(key: str, body: bytes, kind: str = "cpu") -> bool:
    """Keep something under a key; returns False, with a warning, where that can't be done."""
    path = path_of(key, kind)
    try:
        # What is here is run: no other user may put something there.
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MARK + hashlib.sha256(body).digest() + body)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        # On Windows an entry that another process reads can't be replaced; it holds the same.
        if not path.is_file():
            _warn(path, error)
        return False
    return True


def _warn(path: Path, error: OSError) -> None:
    if not _Said.warned:
        _Said.warned = True
        reason = error.strerror or type(error).__name__
        warnings.warn(
            f"compiled kernels are not kept: {path.parent}: {reason}; {FOLDER} names another folder",
            CacheWarning,
            stacklevel=2,
        )
