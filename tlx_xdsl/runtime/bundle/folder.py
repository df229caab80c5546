"""Replacing a kernel's folder in one step: a reader sees the old bundle or the new one, never a mixture."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .manifest import MANIFEST, BundleError, bundle_error, read_manifest

_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
"""Linux: renameat2(2)."""


def replace_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make `folder` hold `files`, by name; what else lies in it (objects of a build) stays.

    Where the folder exists, a new one is written beside it and takes its name at once; where the system can't exchange
    two folders, the old one is gone for a moment.

    Raises BundleError when the folder exists and holds something else than a bundle; OSError when it can't be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    old = _own_names(folder)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        # mkdtemp's folders are its owner's alone.
        fresh.chmod(0o777 & ~_umask())
        for name, content in files.items():
            (fresh / name).write_bytes(content)
        if old is None:
            _take_name(fresh, folder)
        else:
            # Now `fresh` is the old folder.
            _exchange(fresh, folder)
            for path in fresh.iterdir():
                if path.name not in old and path.name not in files:
                    path.rename(folder / path.name)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _own_names(folder: Path) -> set[str] | None:
    """Names of the files that belong to the bundle in `folder`; None where there is nothing yet.

    Raises BundleError for what is no bundle, which is not replaced.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise bundle_error(folder, "there is something here that is no bundle, and it is not replaced")
    try:
        files = read_manifest(manifest, manifest.read_bytes()).files.values()
    except BundleError:
        # A damaged bundle, or one of another version: what else is in the folder stays, and is harmless.
        return {MANIFEST}
    return {MANIFEST, *(file.name for file in files)}


def _take_name(fresh: Path, folder: Path) -> None:
    try:
        fresh.rename(folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        # Another process was faster.
        _exchange(fresh, folder)


def _exchange(fresh: Path, folder: Path) -> None:
    """Let two folders change their names."""
    if sys.platform == "linux" and _renameat2(fresh, folder):
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    folder.rename(aside)
    try:
        fresh.rename(folder)
    except OSError:
        aside.rename(folder)
        raise
    aside.rename(fresh)


def _renameat2(one: Path, other: Path) -> bool:
    """Exchange the two at once; False where the C library or the file system can't."""
    call = getattr(ctypes.CDLL(None), "renameat2", None)
    return call is not None and not call(
        _AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), ctypes.c_uint(_RENAME_EXCHANGE)
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
