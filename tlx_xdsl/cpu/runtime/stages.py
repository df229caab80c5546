"""A kernel compiled ahead of any launch, with the text of each stage on its way to machine code.

What runs in this process is made by `build`; here the cache takes no part, the CPU may be another one of the same
architecture, and functions that print have names of the kernel's own, so that several objects can be linked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.runtime.driver.phases import Clock

from .build import CpuSpecialization, bufferized_module
from .printing import prints

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ..codegen.host import Host
    from ..codegen.metadata import Metadata

TextCallback = Callable[[str, str], None]
"""Called with the name of a stage and the text of the module after it."""


@dataclass(frozen=True)
class CpuStages:
    """What a kernel becomes."""

    llvm_ir: str
    """As it is given to LLVM."""
    optimized: str
    """LLVM IR after LLVM's passes."""
    assembly: str
    code: bytes
    """An object file, of the format of this system."""
    metadata: Metadata
    """`symbols` has the names of the functions as the object calls them."""
    host: Host
    """What it was compiled for."""
    times_ms: dict[str, float]
    """Milliseconds per stage: `frontend`, each pass by its name, `to LLVM IR`, `LLVM's passes`, `machine code`."""


def compile_stages(
    source: KernelSource, wanted: CpuSpecialization, target: Host, on_stage: TextCallback | None = None
) -> CpuStages:
    """Compile a kernel for the CPU `target`; `on_stage` gets the text after the frontend and each pass, for tlx-opt.

    Raises CompilationError for every fault in the kernel, at its line, and for what is no plain Triton; InputError
    where llvmlite is missing.
    """
    from ..codegen.llvm import optimized
    from ..codegen.module import llvm_module

    module, times = bufferized_stages(source, wanted, on_stage)
    clock = Clock(times)
    text, metadata = llvm_module(module, target, checks=wanted.checks)
    text, symbols = with_own_prints(text, metadata.name, metadata.symbols)
    clock.lap("to LLVM IR")
    compiled = optimized(text, wanted.opt_level, target)
    clock.lap("LLVM's passes")
    after_passes = compiled.llvm_ir()
    clock.skip()
    code = compiled.object_code()
    clock.lap("machine code")
    # To make code changes a module: the assembly is made of a fresh one, so that it is that of the object.
    assembly = optimized(text, wanted.opt_level, target).assembly()
    return CpuStages(text, after_passes, assembly, code, replace(metadata, symbols=symbols), target, times)


def bufferized_stages(
    source: KernelSource, wanted: CpuSpecialization, on_stage: TextCallback | None = None
) -> tuple[ModuleOp, dict[str, float]]:
    """The module that `cpu/codegen` takes, and the milliseconds of each stage; it needs no llvmlite.

    `on_stage` and what it raises are as for `compile_stages`.
    """
    from tlx_xdsl.text.printer import print_module

    clock = Clock()

    def staged(stage: str, module: ModuleOp) -> None:
        clock.lap(stage)
        if on_stage is not None:
            on_stage(stage, print_module(module))
            clock.skip()

    return bufferized_module(source, wanted, staged), clock.times


def with_own_prints(text: str, name: str, symbols: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """LLVM IR, and the functions that it calls, with `NAME_printI64` for `printI64` and so on."""
    found: list[str] = []
    for symbol in symbols:
        own = f"{name}_{symbol}" if prints((symbol,)) else symbol
        text = text.replace(f"@{symbol}(", f"@{own}(")
        found.append(own)
    return text, tuple(found)


def text_bytes(code: bytes) -> int:
    """The bytes of machine code in an object file."""
    from ..codegen.host import llvm

    opened: Any = llvm().ObjectFileRef.from_data(code)
    with opened as file:
        return sum(section.size() for section in file.sections() if section.is_text())
