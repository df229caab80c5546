"""The part of `tlx doctor` about running kernels as machine code of the CPU."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from tlx_xdsl.errors import InputError
from tlx_xdsl.runtime.driver import cache
from tlx_xdsl.tools.commands.doctor import Finding, cache_finding

from ..codegen.host import REQUIRED, host, llvm
from ..runtime.pool import VARIABLE, cpu_threads

LITTLE = 64 * 2**20
"""Free bytes on the disk of the cache below which storing may soon fail: an object takes some KiB."""
MANY = 10_000
"""Files of the cache that are looked at."""


def findings() -> Iterator[Finding]:
    """Return what is found here about the CPU."""
    try:
        version = ".".join(map(str, llvm().llvm_version_info))
    except InputError:
        yield Finding("llvmlite", *_missing())
    else:
        yield Finding("llvmlite", f"{metadata.version('llvmlite')}, LLVM {version}")
        yield cpu()
    yield threads()
    yield cache_finding("CPU cache", cache.cache_folder() / "cpu", cache.FOLDER, LITTLE, _amount)


def _missing() -> tuple[str, str]:
    """Return what is said where llvmlite can't be imported, and the remedy."""
    remedy = f"to run kernels natively on the CPU: {REQUIRED}; the interpreter (tlx run) works without"
    try:
        return f"{metadata.version('llvmlite')}, which can't be loaded", remedy
    except metadata.PackageNotFoundError:
        return "not installed", remedy


def cpu() -> Finding:
    """The CPU of this machine, as LLVM knows it."""
    try:
        known = host()
    except InputError as error:
        return Finding("CPU", str(error), "kernels can't be compiled for it; the interpreter (tlx run) works without")
    has = known.features
    half = "in hardware" if has.hardware_half else "by integer arithmetic"
    return Finding("CPU", f"{known.cpu}, {8 * has.vector_bytes}-bit vectors, f16 conversions {half}")


def threads() -> Finding:
    """The threads that a launch on the CPU takes at most."""
    named = f" ({VARIABLE})" if os.environ.get(VARIABLE) else ""
    try:
        return Finding("CPU threads", f"{cpu_threads()}{named}")
    except InputError as error:
        return Finding("CPU threads", str(error), f"unset or correct {VARIABLE}")


def _amount(folder: Path) -> str:
    """The size of the cache and the number of kernels in it; of a large one, what was seen of it."""
    size = count = 0
    with os.scandir(folder) as shelves:
        for shelf in shelves:
            # Another process may be writing, and moves its files when they are complete.
            with contextlib.suppress(OSError), os.scandir(shelf.path) as files:
                for file in files:
                    if count == MANY:
                        return f"more than {size / 2**20:.0f} MiB in {count} kernels"
                    size += file.stat().st_size
                    count += 1
    return f"{size / 2**20:.0f} MiB in {count} kernels"
