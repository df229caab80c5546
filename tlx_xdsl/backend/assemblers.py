"""The ptxas that makes the binary: which ones are here, and which of them a compile gets.

Stock Triton has two in its package and takes one by the target (`stock_tool`), whatever else is installed. Some of them
miscompile Hopper's products, so by default a compile gets the newest one here whose binaries the driver loads. What the
user says goes before that: a pin (`ptxas=`, `--ptxas`, TLX_PTXAS), then Triton's own variables.

Only the assembler changes: the `.version` of the PTX is the one that stock would write, unless the chosen ptxas is too
old for it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .errors import BackendError
from .options import ALLOW_VARIABLE, PTXAS_VARIABLE
from .toolchain import installed_package

STOCK = "stock"
"""The pin that means stock Triton's own choice."""
SECOND_ALLOCATION = "--regAllocOptLevel=2"
"""What stock passes to any ptxas since 3.7, against a defect of 13.x; 3.6 knew no such ptxas."""
TOOLS = {"ptxas": "TRITON_PTXAS_PATH", "ptxas-blackwell": "TRITON_PTXAS_BLACKWELL_PATH"}
"""The assemblers in Triton's package, and the variable that puts another in the place of each."""

RIGHT_FROM = (13, 3)
"""The first release that leaves the registers of a product alone until wgmma has read them. Source: CUDA 13.3 release
notes; triton-lang/triton#11781 has numbers that 12.9 gets wrong."""
_GOOD_ENOUGH, _INVALID_WRITES = (12, 9), (13, 0)
"""ptxas 12.8 computes descriptors of products from registers that hold something else: in its binaries of one kernel
every launch is wrong, in those of 12.9 none. Of another one 12.8 and 13.0 make a write outside of shared memory, and
13.1 does not (fla-org/flash-linear-attention#1262)."""

_RELEASE = re.compile(r"\brelease (\d+\.\d+)(?:, V(\d+\.\d+\.\d+))?")
_PIN = re.compile(r"\d+(\.\d+){0,2}")
_INSTALLED = Path("/usr/local")
"""Where NVIDIA's installer puts toolkits, as folders `cuda-13.0`."""
_SECONDS = 20
"""Seconds that an assembler gets to say its release."""


@dataclass(frozen=True)
class Assembler:
    """A ptxas that runs. As text: `ptxas 13.4.59 (triton's ptxas-blackwell)`."""

    path: str
    origin: str
    """Who has brought it: a package, a folder, or the variable or the option that names it."""
    release: str

    def __str__(self) -> str:
        """Return release and origin."""
        return f"ptxas {self.release} ({self.origin})"

    @property
    def numbers(self) -> tuple[int, ...]:
        """The release, to compare."""
        return tuple(map(int, self.release.split(".")))

    @property
    def is_right(self) -> bool:
        """True if nothing is known that it gets wrong."""
        return self.numbers >= RIGHT_FROM

    @property
    def is_wrong(self) -> bool:
        """True if it has made binaries that are wrong in every launch."""
        return self.numbers < _GOOD_ENOUGH or self.numbers[:2] == _INVALID_WRITES

    @property
    def ptx_version(self) -> int:
        """The newest PTX that it reads, as Triton writes it: 87 for 8.7.

        Source: PTX ISA, "Release Notes". CUDA 12.5 and 12.6 brought the same version.
        """
        major, minor = self.numbers[:2]
        return 90 + 10 * (major - 13) + minor if major > 12 else 80 + minor - (minor > 5)


def remedy_for_products(newest_cuda: int | None) -> str:
    """Say how to get an assembler that has Hopper's products right, on a driver of this major CUDA version."""
    need = ".".join(map(str, RIGHT_FROM))
    if newest_cuda is None or newest_cuda >= RIGHT_FROM[0]:
        return f"ptxas {need} and later are right: pip install nvidia-cuda-nvcc, which is then taken"
    return (
        f"ptxas {need} and later are right, and need a driver of CUDA {RIGHT_FROM[0]}; for this one of CUDA "
        f"{newest_cuda} 12.9 is the best: pip install nvidia-cuda-nvcc-cu12"
    )


def stock_tool(capability: int, triton_version: str) -> str:
    """Return which of its two assemblers stock Triton takes. Source: `get_ptxas` of its NVIDIA backend."""
    major, minor = map(int, triton_version.split(".")[:2])
    return "ptxas-blackwell" if capability >= (90 if (major, minor) >= (3, 9) else 100) else "ptxas"


def candidates(
    capability: int, triton_version: str, *, pin: str | None = None, newest_cuda: int | None = None
) -> tuple[Assembler, ...]:
    """Return the assemblers for a target, best first; the next one is for what the one before does not know.

    `pin` is a path, a release such as `13.4`, or `stock`; `newest_cuda` the major CUDA version that the driver is of.

    Raises BackendError for a pin that is not here, and where nothing runs.
    """
    if pin := pin or os.environ.get(PTXAS_VARIABLE):
        return (stock_choice(capability, triton_version) if pin == STOCK else _pinned(pin),)
    own = stock_choice(capability, triton_version)
    if own.origin in TOOLS.values():
        return (own,)
    # Binaries of a later minor version load, too. Source: NVIDIA, CUDA Compatibility, "Minor Version Compatibility".
    # Those of a later major version need not: ptxas 13 writes another ELF (ABI version 8) than ptxas 12 (7).
    return tuple(each for each in found() if newest_cuda is None or each.numbers[0] <= newest_cuda) or (own,)


def stock_choice(capability: int, triton_version: str) -> Assembler:
    """Return what stock Triton takes: what its variable names, where that runs, else what is in its package.

    Raises BackendError where neither runs.
    """
    name = stock_tool(capability, triton_version)
    named, own = os.environ.get(TOOLS[name]), _of_triton(name)
    made = (named and assembler(named, TOOLS[name])) or (own and assembler(own, f"triton's {name}"))
    if not made:
        raise BackendError(f"Triton's {name} does not run: reinstall Triton, or set {TOOLS[name]}", stage="start")
    return made


def _pinned(pin: str) -> Assembler:
    if _PIN.fullmatch(pin) is None:
        if (made := assembler(pin, "pinned")) is None:
            raise BackendError(f"ptxas: expected a ptxas that runs, a release or {STOCK}, found '{pin}'", stage="start")
        return made
    wanted, here = tuple(map(int, pin.split("."))), found()
    for each in here:
        if each.numbers[: len(wanted)] == wanted:
            return Assembler(each.path, f"{each.origin}, pinned", each.release)
    names = ", ".join(map(str, here)) or "none"
    raise BackendError(f"ptxas: expected one of release {pin}, found {names}", stage="start")


def found() -> tuple[Assembler, ...]:
    """Return the assemblers that run here, one of each release: the newest first, those that are wrong last."""
    here = [each for path, origin in places() if (each := assembler(path, origin)) is not None]
    # Of two alike the first is Triton's.
    releases = {each.release: each for each in reversed(here)}
    return tuple(sorted(releases.values(), key=lambda each: (not each.is_wrong, each.numbers), reverse=True))


def places() -> Iterator[tuple[str, str]]:
    """Yield path and origin of each file here that is an assembler by its name; none is started."""
    seen: set[str] = set()
    for path, origin in _named_places():
        real = os.path.realpath(path)
        if os.path.isfile(real) and real not in seen:
            seen.add(real)
            yield str(path), origin


def _named_places() -> Iterator[tuple[str | Path, str]]:
    for name in TOOLS:
        if (own := _of_triton(name)) is not None:
            yield own, f"triton's {name}"
    for entry in sys.path:
        for package, folder in (("nvidia-cuda-nvcc", "cu[0-9]*"), ("nvidia-cuda-nvcc-cu12", "cuda_nvcc")):
            for path in sorted(Path(entry).glob(f"nvidia/{folder}/bin/ptxas")):
                yield path, package
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if folder := os.environ.get(variable):
            yield Path(folder, "bin", "ptxas"), variable
    for path in sorted(_INSTALLED.glob("cuda*/bin/ptxas")):
        yield path, str(path.parents[1])
    if path := shutil.which("ptxas"):
        yield path, "PATH"


def _of_triton(name: str) -> str | None:
    """The path of an assembler in Triton's package."""
    package = installed_package()
    return None if package is None else str(package / "backends" / "nvidia" / "bin" / name)


def identity(pin: str | None = None, *, allow_old: bool = False, newest_cuda: int | None = None) -> str:
    """Return a text that covers what `candidates` depends on, for the keys of caches: files by stamps, none started."""
    variables = [os.environ.get(name) for name in (*TOOLS.values(), PTXAS_VARIABLE, ALLOW_VARIABLE)]
    files = [*(path for path, _ in places()), *(each for each in (pin, *variables) if each and os.path.isfile(each))]
    stamps = [(path, *_stamp(path)) for path in files]
    return repr((pin, allow_old, newest_cuda, variables, stamps))


def _stamp(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def assembler(path: str, origin: str) -> Assembler | None:
    """Return the assembler at a path; None where nothing there runs and says a release."""
    try:
        release = _release(path, _stamp(path))
    except OSError:
        return None
    return None if release is None else Assembler(path, origin, release)


@cache
def _release(path: str, _stamp: tuple[int, int]) -> str | None:
    """The release that a file says it is, such as `12.9.86`; each is started once in a process."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = _RELEASE.search(said)
    return None if match is None else match[2] or match[1]
