"""Cubins of a kernel's PTX by one assembler or another, each compared with the PTX (`tlx_xdsl.sass`)."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tlx_xdsl.backend import BackendResult, Toolchain
from tlx_xdsl.backend.assemblers import Assembler, assembler, stock_tool
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.targets import target_named

ASSEMBLE_SECONDS = 120.0
"""Time that an assembler has."""

_FIRST_WITH_ALLOCATION = (3, 7)
"""The Triton from which on every ptxas gets `--regAllocOptLevel=2`. Source: its `compiler.py`."""


def own_assembler(toolchain: Toolchain, target: str) -> Assembler | None:
    """Return the ptxas that a Triton takes for a target by itself; None where it does not run."""
    name = stock_tool(target_named(target).capability, toolchain.version)
    path = toolchain.tool(name)
    return None if path is None else assembler(str(path), f"triton {toolchain.version}'s {name}")


def named_assembler(path: str) -> Assembler:
    """Return the ptxas at a path. Raises CompilationError where it does not run."""
    if (found := assembler(path, "named")) is None:
        raise CompilationError(f"--ptxas: expected a ptxas that runs, found '{path}'")
    return found


def assembled(result: BackendResult, tool: Assembler, target: str) -> bytes:
    """Assemble PTX as stock Triton of the result's version does.

    Raises CompilationError where the assembler refuses it, or takes too long.
    """
    version = tuple(map(int, result.triton_version.split(".")[:2]))
    options = [*([] if result.fp_fusion else ["--fmad=false"])]
    options += ["--regAllocOptLevel=2"] if version >= _FIRST_WITH_ALLOCATION else []
    with tempfile.TemporaryDirectory(prefix="tlx-xdsl-") as folder:
        ptx, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        ptx.write_text(result.ptx, encoding="utf-8")
        options += ["-lineinfo", f"--gpu-name={target_named(target).name}"]
        command = [tool.path, *options, str(ptx), "-o", str(cubin)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=ASSEMBLE_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise CompilationError(f"{tool} ran for {ASSEMBLE_SECONDS:g} s") from error
        if done.returncode:
            raise CompilationError(f"{tool} refuses it: {_first(done.stderr.splitlines())}")
        return cubin.read_bytes()


def _first(lines: Sequence[str]) -> str:
    return next((line.strip() for line in lines if line.strip()), "it does not say why")
