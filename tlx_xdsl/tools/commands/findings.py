"""What `tlx doctor` finds: lines of its report, and folders that hold compiled kernels."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finding:
    """One line of the report; `remedy` is None when there is nothing to do."""

    subject: str
    found: str
    remedy: str | None = None


def cache_finding(subject: str, folder: Path, variable: str, little: int, amount: Callable[[Path], str]) -> Finding:
    """A folder of compiled kernels, which need not exist yet.

    `variable` is the environment variable that may name it; `little` are free bytes on its disk below which compiling
    may soon fail; `amount` says in words what a folder that exists holds.
    """
    named = f" ({variable})" if os.environ.get(variable) else ""
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not existing.is_dir():
        return Finding(subject, f"{folder}{named}", f"{existing} is no folder: set {variable} to another one")
    if not os.access(existing, os.W_OK | os.X_OK):
        remedy = f"{existing} can't be written: set {variable} to a folder of yours, else every start compiles anew"
        return Finding(subject, f"{folder}{named}", remedy)
    if existing is not folder:
        return Finding(subject, f"{folder}{named}, not made yet")
    free = shutil.disk_usage(folder).free
    remedy = f"the disk has {free / 2**20:.0f} MiB left: empty the folder, or set {variable}" if free < little else None
    return Finding(subject, f"{folder}{named}, {amount(folder)}", remedy)
