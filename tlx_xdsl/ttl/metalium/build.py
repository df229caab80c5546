"""Builds by g++: the machine once, and programs, of which many go into one call. Both are kept by their content."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tlx_xdsl.runtime.driver.cache import cache_folder

from .program import MetaliumError, Program

COMPILER = "CXX"
"""The environment variable that names the C++ compiler."""

_INCLUDE = Path(__file__).parent / "include"
_FLAGS = ("-std=c++20", "-Wall", "-Wextra", "-Wno-unused", "-Werror=return-type")
_ERROR = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<message>.*)$", re.MULTILINE)

_PROLOGUE = """#include <cstdint>
#include "metalium.h"
#include "metalium_objects.h"
#define NAMESPACE kernel
#define MAIN run_main()
"""


@dataclass(frozen=True)
class Compiled:
    """A program in a shared object, under the name of the array of its kernels."""

    library: Path
    entries: str


@cache
def find_compiler() -> str:
    """The path of the C++ compiler: of `CXX`, else g++.

    Raises MetaliumError where there is none.
    """
    name = os.environ.get(COMPILER) or "g++"
    if sys.platform != "linux":
        raise MetaliumError(f"the machine that runs kernels of TT-Metalium needs Linux, this is {sys.platform}")
    if (found := shutil.which(name)) is None:
        raise MetaliumError(
            f"there is no C++ compiler '{name}': install g++ (apt install g++), or set {COMPILER} to one with C++20"
        )
    return found


def machine() -> Path:
    """The program that runs kernels; compiled at its first use, which takes seconds."""
    files = sorted(path for path in _INCLUDE.rglob("*") if path.suffix in (".h", ".cpp"))
    key = _hash(_version(), *(path.read_text(encoding="utf-8") for path in files))
    name = f"machine-{key}"
    path = _kept(name)
    if path is None:
        source = str(_INCLUDE / "machine" / "main.cpp")
        path = _compile("machine", ["-O2", "-rdynamic", source, "-ldl"], None)
        _write(_folder() / f"{name}.link", path.name)
    return path


def compile_many(programs: Sequence[Program]) -> list[Compiled]:
    """Compile programs, those that are not in the cache together in one call.

    Raises MetaliumError for the first error of the compiler, at its line.
    """
    base = _hash(_version(), *(path.read_text(encoding="utf-8") for path in sorted(_INCLUDE.glob("*.h"))))
    texts = [program.text("PROGRAM") for program in programs]
    names = [f"program_{_hash(base, text)}" for text in texts]
    libraries = {name: path for name in names if (path := _kept(name)) is not None}
    missing = {name: text for name, text in zip(names, texts, strict=True) if name not in libraries}
    if missing:
        body = _PROLOGUE + "".join(text.replace("PROGRAM_", f"{name}_") for name, text in missing.items())
        library = _compile("programs", ["-O1", "-shared", "-fPIC", "-I", str(_INCLUDE), "-x", "c++", "-"], body)
        for name in missing:
            _write(_folder() / f"{name}.link", library.name)
            libraries[name] = library
    return [Compiled(libraries[name], f"{name}_entries") for name in names]


def _kept(name: str) -> Path | None:
    """The file that a name stands for, whose own name has the hash of its content; None where it is not whole."""
    folder = _folder()
    try:
        path = folder / Path((folder / f"{name}.link").read_text(encoding="utf-8")).name
        digest = _digest(path.read_bytes())
    except (OSError, ValueError):
        return None
    return path if path.stem.endswith(f"-{digest}") else None


def _compile(kind: str, arguments: Sequence[str], text: str | None) -> Path:
    """Compile to a file whose name has the hash of its content."""
    folder = _folder()
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".part")
    os.close(handle)
    try:
        command = [find_compiler(), *_FLAGS, "-o", temporary, *arguments]
        result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if result.returncode:
            raise _compiler_error(result.stderr)
        target = folder / f"{kind}-{_digest(Path(temporary).read_bytes())}"
        os.replace(temporary, target)
        return target
    finally:
        Path(temporary).unlink(missing_ok=True)


def _compiler_error(text: str) -> MetaliumError:
    if (found := _ERROR.search(text)) is None:
        return MetaliumError(f"the C++ compiler failed: {' '.join(text.split())[:500]}")
    return MetaliumError(f"C++ compiler: {found['message']}", found["file"], int(found["line"]))


def _write(path: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, suffix=".part", delete=False) as file:
        file.write(text)
    os.replace(file.name, path)


@cache
def _version() -> str:
    result = subprocess.run([find_compiler(), "--version"], capture_output=True, text=True, check=False)
    return f"{find_compiler()} {result.stdout}"


def _folder() -> Path:
    folder = cache_folder() / "metalium"
    # What is here is run: no other user may put something there.
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _hash(*parts: str) -> str:
    return _digest("".join(f"{len(part)}:{part}" for part in parts).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:24]
