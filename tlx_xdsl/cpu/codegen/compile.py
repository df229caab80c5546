"""From a module of bufferized linalg to an object file."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from .host import host
from .llvm import Compiled, optimized
from .metadata import Metadata
from .module import llvm_module


@dataclass(frozen=True)
class CpuObject:
    """An object file, and what a launch has to know of it."""

    code: bytes
    metadata: Metadata


def compile_module(module: ModuleOp, *, checks: bool = False, opt_level: int = 2) -> CpuObject:
    """Compile a module without tensors (`cpu/bufferize`) for this machine.

    With `checks` every access outside of its array ends the program with an error. Raises CompilationError, at the
    user's line, for what has no counterpart on a CPU; InputError where llvmlite is missing.
    """
    compiled, metadata = lowered(module, checks=checks, opt_level=opt_level)
    return CpuObject(compiled.object_code(), metadata)


def lowered(module: ModuleOp, *, checks: bool = False, opt_level: int = 2) -> tuple[Compiled, Metadata]:
    """The same before the object file is written, for those who want the assembly."""
    text, metadata = llvm_module(module, host(), checks=checks)
    return optimized(text, opt_level), metadata
