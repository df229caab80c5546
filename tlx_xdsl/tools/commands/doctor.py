"""`tlx doctor`: what tlx_xdsl finds on this machine, and what to do about what it lacks."""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from importlib import metadata
from itertools import groupby
from pathlib import Path
from types import MappingProxyType

from tlx_xdsl import wings
from tlx_xdsl.backend import BackendError, assemblers, installed_triton_version
from tlx_xdsl.backend.options import PTXAS_VARIABLE
from tlx_xdsl.errors import InputError
from tlx_xdsl.runtime.launch.cuda_driver import CudaDriver, CudaDriverError, cuda_major, default_driver
from tlx_xdsl.targets import targets_of
from tlx_xdsl.text.profiles import PROFILES, parse_version, profile_for, version_name
from tlx_xdsl.version import __version__

from ..launch_line.kernel_options import add_format_argument
from ..output import print_document

_HOPPER = 90
"""The capability whose products some assemblers miscompile."""
OLDEST_GPU = 8
"""The oldest major compute capability that stock Triton's passes and ours lower for."""
CACHE = "TRITON_CACHE_DIR"
LITTLE = 512 * 2**20
"""Free bytes on the cache's disk below which compiling may soon fail: a kernel's stages take up to some MiB."""
MANY = 10_000
"""Folders of the cache that are looked into."""
_OLDEST, _NEWEST = PROFILES[0].version, PROFILES[-1].version
INSTALL = f"pip install 'triton>={version_name(_OLDEST)},<{version_name((_NEWEST[0], _NEWEST[1] + 1))}'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_format_argument(parser)
    parser.description = "Show what is installed here, what tlx_xdsl can do with it, and how to get what is missing."


def run(args: argparse.Namespace) -> None:
    """Carry the command out; what is missing is no error."""
    found = list(findings())
    if args.format == "json":
        # Reads places in sources, which a report in words does without.
        from ..documents import document

        print_document(document("tlx doctor", {"findings": [asdict(each) for each in found]}))
    else:
        print(report(found))


def report(found: list[Finding]) -> str:
    """The findings as text, each remedy below what it is for."""
    width = max(len(finding.subject) for finding in found)
    lines: list[str] = []
    for finding in found:
        lines.append(f"{finding.subject:{width}}  {finding.found}")
        if finding.remedy is not None:
            lines.append(f"{'':{width}}  -> {finding.remedy}")
    return "\n".join(lines)


def findings(driver: CudaDriver | None = None) -> Iterator[Finding]:
    """Return what is found here; with `driver` in place of the process's own."""
    yield Finding("tlx_xdsl", f"{__version__}, in {Path(__file__).parents[2]}")
    yield Finding("Python", f"{platform.python_version()}, {sys.executable}")
    yield Finding("libraries", ", ".join(f"{name} {metadata.version(name)}" for name in ("xdsl", "numpy", "ml-dtypes")))
    yield from of_wings()
    version = installed_triton_version()
    yield triton(version)
    newest_cuda = cuda_major() if driver is None else driver.version() // 1000
    chosen = {} if version is None else ptxas(version, newest_cuda)
    yield from dict.fromkeys(chosen.values())
    if version is not None:
        yield other_ptxas()
    yield cache()
    yield from gpu(driver or default_driver(), {name: each.found.partition(" ")[0] for name, each in chosen.items()})
    yield torch()


def of_wings() -> Iterator[Finding]:
    """The plug-ins of other packages, and what all wings find of what they need."""
    for each in wings.installed():
        if not each.is_ours:
            yield Finding("plug-in", f"{each.name} of {each.distribution} {each.version}: {_contents_of(each.wing)}")
        for place in each.wing.findings:
            yield from wings.guarded(each, lambda place=place: list(wings.attribute(place)())) or ()


def _contents_of(wing: wings.Wing) -> str:
    """The kinds of things that a wing names, with their numbers."""
    kinds = ((each.name.replace("_", " "), len(getattr(wing, each.name))) for each in fields(wing))
    return ", ".join(f"{kind} {count}" for kind, count in kinds if count) or "nothing"


def triton(version: str | None) -> Finding:
    """Stock Triton, and the profile of the text that is emitted for it."""
    if version is None:
        remedy = f"to make PTX and cubins: {INSTALL}; text stages, tlx-opt and tlx run work without"
        return Finding("Triton", "not installed", remedy)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            profile = profile_for(version)
        except InputError as error:
            return Finding("Triton", f"{version}, no profile: {error}", INSTALL)
    remedy = f"tried are {version_name(_OLDEST)} to {version_name(_NEWEST)}: {INSTALL}" if caught else None
    return Finding("Triton", f"{version}, profile {profile.name}", remedy)


def ptxas(version: str, newest_cuda: int | None) -> dict[str, Finding]:
    """The assembler of each target by its name, and by whose choice; neighbours that are alike share a finding."""
    found: dict[str, Finding] = {}
    targets = targets_of(parse_version(version))
    for said, group in groupby(targets, lambda target: _chosen(target.capability, version, newest_cuda)):
        names = [target.name for target in group]
        subject = f"ptxas {names[0]}" + (f" to {names[-1]}" if len(names) > 1 else "")
        found |= dict.fromkeys(names, Finding(subject, *said))
    return found


def _chosen(capability: int, version: str, newest_cuda: int | None) -> tuple[str, str | None]:
    """Return what a target gets, and what to do about it."""
    variable = assemblers.TOOLS[assemblers.stock_tool(capability, version)]
    try:
        chosen = assemblers.candidates(capability, version, newest_cuda=newest_cuda)[0]
        stock = assemblers.stock_choice(capability, version)
    except BackendError as error:
        return error.message, f"unset or correct {PTXAS_VARIABLE} and {variable}, or reinstall Triton: {INSTALL}"
    said = f"{chosen.release} ({chosen.origin}), "
    if PTXAS_VARIABLE in os.environ:
        said += f"by {PTXAS_VARIABLE}"
    elif chosen.path == stock.path:
        said += "as stock Triton takes"
    else:
        limit = "here" if newest_cuda is None else f"for CUDA {newest_cuda}"
        said += f"the best {limit}; stock Triton takes {stock.release}"
    named = os.environ.get(variable)
    if named and stock.origin != variable:
        return said, f"{variable}={named} does not run, Triton takes its own: unset or correct it"
    if capability != _HOPPER or chosen.is_right:
        return said, None
    return said, f"of products with an operand in registers, {assemblers.remedy_for_products(newest_cuda)}"


def other_ptxas() -> Finding:
    """All assemblers here, from which TLX_PTXAS and `--ptxas` may choose another one."""
    found = ", ".join(f"{each.release} ({each.origin})" for each in assemblers.found())
    return Finding("ptxas here", found or "none", None if found else "pip install nvidia-cuda-nvcc")


def cache() -> Finding:
    """The folder of Triton's compiled kernels: its version is part of the names, so several versions may share it."""
    chosen = os.environ.get(CACHE)
    folder = Path(chosen) if chosen else Path(os.environ.get("TRITON_HOME") or Path.home(), ".triton", "cache")
    return cache_finding("cache", folder, CACHE, LITTLE, _amount)


def _amount(folder: Path) -> str:
    size, count, is_all = _contents(folder)
    return f"{'' if is_all else 'more than '}{size / 2**20:.0f} MiB in {count} kernels"


def _contents(folder: Path) -> tuple[int, int, bool]:
    """Bytes in the folders of a cache, their number, and whether all were looked into: a large one takes too long."""
    size = count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if count == MANY:
                return size, count, False
            if entry.is_dir():
                count += 1
                # Another process may be writing, and moves its files when they are complete.
                with contextlib.suppress(FileNotFoundError), os.scandir(entry.path) as files:
                    size += sum(file.stat().st_size for file in files if file.is_file())
    return size, count, True


def gpu(driver: CudaDriver, releases: Mapping[str, str] = MappingProxyType({})) -> Iterator[Finding]:
    """NVIDIA's driver and the GPU that it launches on; with the assembler's release of each target."""
    try:
        version = driver.version()
    except CudaDriverError as error:
        yield Finding(
            "CUDA driver", str(error), "kernels compile, and run on the CPU or in the interpreter (tlx run), without"
        )
        return
    yield Finding("CUDA driver", f"CUDA {version // 1000}.{version % 1000 // 10}")
    if not driver.available():
        yield Finding("GPU", "none", "is it in CUDA_VISIBLE_DEVICES?")
        return
    try:
        major, minor = driver.compute_capability()
        shared = driver.max_shared_memory()
        processors = driver.multiprocessor_count()
    except CudaDriverError as error:
        yield Finding("GPU", str(error), "look at nvidia-smi: is another process holding the GPU, or its memory?")
        return
    found = f"sm_{major}{minor}, {processors} SMs, {shared} bytes of shared memory a CTA"
    release = next((each for name, each in releases.items() if name.startswith(f"sm_{major}{minor}")), "")
    yield Finding("GPU", found, _misfit(version, major, release))


def _misfit(driver: int, major: int, release: str) -> str | None:
    """The reason why kernels can't run on a GPU of this major capability by a driver of this CUDA version (12080)."""
    if major < OLDEST_GPU:
        return f"kernels are compiled for sm_{OLDEST_GPU}0 and newer GPUs; the interpreter (tlx run) needs none"
    if (cuda := release.partition(".")[0]).isdigit() and int(cuda) > driver // 1000:
        return f"the driver is too old for binaries of ptxas {release}: install one of CUDA {cuda}.0 on"
    return None


def torch() -> Finding:
    """PyTorch, whose tensors launches take; neither compiling nor interpreting needs it."""
    try:
        return Finding("torch", metadata.version("torch"))
    except metadata.PackageNotFoundError:
        return Finding("torch", "not installed", "only launches on a GPU's tensors need it: pip install torch")


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
