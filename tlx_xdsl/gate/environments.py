"""The Tritons that a gate asks: the installed one, folders that are given, and folders that pip fills on demand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tlx_xdsl.backend import Toolchain, installed_toolchain
from tlx_xdsl.backend.toolchain import versions_in
from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.runtime.driver.cache import cache_folder
from tlx_xdsl.text.profiles import profile_for

INSTALLED = "installed"
"""The name of the Triton of this environment."""


def toolchains(names: Sequence[str], folders: Mapping[str, Path]) -> list[Toolchain]:
    """Return the Tritons of some versions, such as `3.7.1`, or `installed`; what is in no folder is fetched by pip.

    `folders` has the places of some versions. The others are kept where compiled kernels are (`TLX_CACHE_DIR`).

    Raises CompilationError for a version that is not supported, for one that can't be had, and for a folder with
    another one.
    """
    found: list[Toolchain] = []
    for name in names:
        installed = installed_toolchain()
        if name not in folders and (name == INSTALLED or (installed is not None and name == installed.version)):
            if installed is None:
                raise CompilationError("no Triton is installed here: name versions, such as --triton 3.7.1,3.9.0")
            found.append(installed)
            continue
        try:
            profile_for(name)
            found.append(Toolchain(name, folders[name] if name in folders else _fetched(name)))
        except InputError as error:
            raise CompilationError(f"--triton: {error}") from error
    return found


def _fetched(version: str) -> Path:
    """Return the folder of a version in the cache, which pip fills if it is not there yet."""
    folder = cache_folder() / "gate" / f"triton-{version}"
    if version in versions_in(folder):
        return folder
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(folder), f"triton=={version}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise CompilationError(
            f"Triton {version} can't be fetched: {said[0] if said else f'pip ends with {done.returncode}'}",
            notes=("--triton-path VERSION=FOLDER names one that lies somewhere",),
        )
    return folder
