"""Files of specialised kernels: the source is written where the cache is, and imported from there."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from ..driver.cache import cache_folder
from ..driver.defaults import DEFAULTS, KernelDefaults, kernel_defaults
from ..kernel import Kernel

FOLDER = "specialised"
"""The folder of the cache that holds the files."""


def write(text: str, name: str) -> Path:
    """Write the source of a kernel under a name that its content says, and return the path.

    A cache that can't be written is replaced by a folder that lives as long as the process's temporary files do.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()
    path = cache_folder() / FOLDER / digest[:2] / digest[2:18] / f"{name}.py"
    try:
        return _written(path, text)
    except OSError:
        return _written(Path(tempfile.mkdtemp(prefix="tlx_specialised_")) / f"{name}.py", text)


def _written(path: Path, text: str) -> Path:
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return path
    # It is imported, and so run: no other user may put something there.
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def kernel_of(path: Path) -> tuple[Kernel, KernelDefaults]:
    """Import the file of a specialised kernel, and return the kernel with its entry of `TLX_COMPILE`."""
    module = _imported(path)
    name: str = next(iter(getattr(module, DEFAULTS)))
    return getattr(module, name), kernel_defaults(str(path), module.__dict__, name)


def _imported(path: Path) -> Any:
    # The folder's name is the hash of the text: the same text is one module.
    name = f"tlx_specialised_{path.parent.name}_{path.stem}"
    if (known := sys.modules.get(name)) is not None and known.__file__ == str(path):
        return known
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    # Sweeps in other processes, and Triton, find functions by the name of their module.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
