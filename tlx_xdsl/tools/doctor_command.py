"""`tlx doctor`: what tlx_xdsl finds on this machine, and what to do about what it lacks."""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from tlx_xdsl.backend import installed_triton_version
from tlx_xdsl.runtime.cuda_driver import CudaDriver, CudaDriverError, default_driver
from tlx_xdsl.text.profiles import PROFILES, profile_for, version_name
from tlx_xdsl.version import __version__

PTXAS = {"ptxas": "TRITON_PTXAS_PATH", "ptxas-blackwell": "TRITON_PTXAS_BLACKWELL_PATH"}
"""The assemblers that Triton brings, and the variable that puts another in the place of each."""
_OLDEST, _NEWEST = PROFILES[0].version, PROFILES[-1].version
INSTALL = f"pip install 'triton>={version_name(_OLDEST)},<{version_name((_NEWEST[0], _NEWEST[1] + 1))}'"


@dataclass(frozen=True)
class Finding:
    """One line of the report; `remedy` is None when there is nothing to do."""

    subject: str
    found: str
    remedy: str | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command: none."""
    parser.description = "Show what is installed here, what tlx_xdsl can do with it, and how to get what is missing."


def run(args: argparse.Namespace) -> None:
    """Carry the command out; what is missing is no error."""
    print(report(list(findings())))


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
    """What is found here; with `driver` in place of the process's own."""
    yield Finding("tlx_xdsl", f"{__version__}, in {Path(__file__).parents[1]}")
    yield Finding("Python", f"{platform.python_version()}, {sys.executable}")
    yield Finding("libraries", ", ".join(f"{name} {metadata.version(name)}" for name in ("xdsl", "numpy", "ml-dtypes")))
    version = installed_triton_version()
    yield triton(version)
    if version is not None:
        yield from map(ptxas, PTXAS)
    yield from gpu(driver or default_driver())
    yield torch()


def triton(version: str | None) -> Finding:
    """Stock Triton, and the profile whose spelling it gets."""
    if version is None:
        remedy = f"to make PTX and cubins: {INSTALL}; text stages, tlx-opt and tlx run work without"
        return Finding("Triton", "not installed", remedy)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            profile = profile_for(version)
        except ValueError as error:
            return Finding("Triton", f"{version}, no profile: {error}", INSTALL)
    remedy = f"tried are {version_name(_OLDEST)} to {version_name(_NEWEST)}: {INSTALL}" if caught else None
    return Finding("Triton", f"{version}, profile {profile.name}", remedy)


def ptxas(name: str) -> Finding:
    """One of the assemblers: the one that its variable names, or else the one in Triton's package.

    Triton falls back to its own without a word when the variable names nothing that runs.
    """
    variable = PTXAS[name]
    chosen = os.environ.get(variable)
    own = metadata.distribution("triton").locate_file(f"triton/backends/nvidia/bin/{name}")
    if chosen and (release := _release(chosen)) is not None:
        return Finding(name, f"{release}, {chosen} ({variable})")
    release = _release(str(own))
    found = f"{release}, {own}" if release is not None else f"{own} does not run"
    if chosen:
        return Finding(name, found, f"{variable}={chosen} does not run, Triton takes its own: unset or correct it")
    return Finding(name, found, None if release is not None else f"set {variable}, or reinstall Triton: {INSTALL}")


def gpu(driver: CudaDriver) -> Iterator[Finding]:
    """NVIDIA's driver and the GPU that it launches on."""
    try:
        version = driver.version()
    except CudaDriverError as error:
        yield Finding("CUDA driver", str(error), "kernels compile and run in the interpreter (tlx run) without")
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
    yield Finding("GPU", f"sm_{major}{minor}, {processors} SMs, {shared} bytes of shared memory a CTA")


def torch() -> Finding:
    """PyTorch, which the examples' benchmarks use; nothing else needs it."""
    try:
        return Finding("torch", metadata.version("torch"))
    except metadata.PackageNotFoundError:
        return Finding("torch", "not installed", "only the examples' own main programs need it: pip install torch")


def _release(program: str) -> str | None:
    """The release that a CUDA tool says it is, such as `12.9`; None when it can't be run or says none."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"release (\d+\.\d+)", said)
    return None if match is None else match[1]
