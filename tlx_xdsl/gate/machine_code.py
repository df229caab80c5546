"""The assemblers that the gate makes cubins with: a Triton's own, and those that the user names."""

from __future__ import annotations

from tlx_xdsl.backend import Toolchain
from tlx_xdsl.backend.assemblers import Assembler, assembler, stock_tool
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.targets import target_named


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
