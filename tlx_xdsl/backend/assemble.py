"""PTX to a cubin by an assembler, as stock Triton calls it: for PTX that is no longer what Triton made."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.targets import target_named

from .assemblers import SECOND_ALLOCATION, Assembler
from .ptxas import parse_resources
from .result import KernelResources

ASSEMBLE_SECONDS = 120.0
"""Time that an assembler has."""

_FIRST_WITH_ALLOCATION = (3, 7)
"""The Triton from which on every ptxas gets `SECOND_ALLOCATION`. Source: its `compiler.py`."""


def assembled(
    ptx: str, tool: Assembler, target: str, *, triton_version: str, fp_fusion: bool = True
) -> tuple[bytes, KernelResources]:
    """Assemble PTX as stock Triton of a version does; return the cubin, and what it needs of a multiprocessor.

    Raises CompilationError where the assembler refuses it, or takes too long.
    """
    version = tuple(map(int, triton_version.split(".")[:2]))
    options = [] if fp_fusion else ["--fmad=false"]
    options += [SECOND_ALLOCATION] if version >= _FIRST_WITH_ALLOCATION or tool.numbers >= (13,) else []
    with tempfile.TemporaryDirectory(prefix="tlx-xdsl-") as folder:
        text, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        text.write_text(ptx, encoding="utf-8")
        options += ["-lineinfo", "-v", f"--gpu-name={target_named(target).name}"]
        command = [tool.path, *options, str(text), "-o", str(cubin)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=ASSEMBLE_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise CompilationError(f"{tool} ran for {ASSEMBLE_SECONDS:g} s") from error
        if done.returncode:
            raise CompilationError(f"{tool} refuses it: {_first(done.stderr.splitlines())}")
        return cubin.read_bytes(), parse_resources(done.stderr + done.stdout)


def _first(lines: Sequence[str]) -> str:
    return next((line.strip() for line in lines if line.strip()), "it does not say why")
