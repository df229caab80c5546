"""Compilation of a kernel's source to machine code of this CPU, through the cache on disk."""

from __future__ import annotations

import functools
import hashlib
import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

from tlx_xdsl.frontend.python.source import Fixed, KernelSource, Signature
from tlx_xdsl.runtime.driver import cache
from tlx_xdsl.runtime.driver.fingerprint import (
    compiler_changed,
    compiler_fingerprint,
    kernel_fingerprint,
    values_fingerprint,
)
from tlx_xdsl.runtime.driver.phases import Clock

from ..codegen.metadata import Metadata
from .printing import externals, prints
from .program import Program

if TYPE_CHECKING:
    # What compiles is loaded when the cache has not got what is wanted.
    from xdsl.dialects.builtin import ModuleOp

    from tlx_xdsl.runtime.driver.compilation import Specialization

    from ..codegen.host import Host
    from ..codegen.module import CpuObject

StageCallback = Callable[[str, "ModuleOp"], None]
"""Called with the name of a stage and the module after it, which the next stage changes."""

NOT_FOR_THE_CPU = (
    "the CPU runs plain Triton; shared memory, barriers and tasks of tlx run in the interpreter: "
    "kernel.interpret(grid, ...), or 'tlx run'"
)


@dataclass(frozen=True)
class CpuSpecialization:
    """The types, constants and options that a kernel is compiled for."""

    signature: Mapping[str, Signature]
    """Type of each runtime argument in Triton's spelling."""
    constexprs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Value of each compile-time argument."""
    checks: bool = False
    """True if every access is checked to lie in its array."""
    debug: bool = False
    """True if `tl.device_assert` has an effect; with `checks` it has one anyway."""
    opt_level: int = 2
    """LLVM's."""
    breakpoints: bool = False
    """True if a program fails where it comes to `breakpoint()`, which else is nothing."""
    stops_at_prints: bool = False
    """True if it fails where it is about to print, too."""
    symbol: str | None = None
    """The kernel's name in the object; that of its function if None."""

    def for_frontend(self) -> Specialization:
        """Return what the frontend is asked for. A kernel for the CPU has no warps: any number gives the same."""
        from tlx_xdsl.runtime.driver.compilation import Specialization

        return Specialization(
            self.signature, self.constexprs, debug=self.debug or self.checks, symbol=self.symbol
        )  # fmt: skip


def load_program(source: KernelSource, wanted: CpuSpecialization, key: str | None = None) -> Program:
    """The program of a kernel, from the cache where it has been compiled before; `key` is that of `object_key`.

    Raises CompilationError, located in the kernel, for every fault in it; InputError where llvmlite is missing, or does
    not know this CPU.
    """
    key = object_key(source, wanted) if key is None else key
    if (found := _unpacked(cache.load(key))) is not None:
        return load_code(*found)
    made = _compiled(source, wanted, key)
    return load_code(made.code, made.metadata)


def load_code(code: bytes, known: Metadata) -> Program:
    """Load object code of this CPU into the process.

    Raises CompilationError for code that LLVM does not read, and for functions that it calls and that no library has.
    """
    from ..codegen.llvm import load

    loaded = load(code, known.symbol, externals(known.symbols))
    return Program(loaded.address, known, loaded)


def _compiled(source: KernelSource, wanted: CpuSpecialization, key: str) -> CpuObject:
    made = compile_object(source, wanted)
    if not compiler_changed():
        cache.store(key, _packed(made))
    return made


def compile_object(source: KernelSource, wanted: CpuSpecialization, on_stage: StageCallback | None = None) -> CpuObject:
    """Compile a kernel for this CPU, whatever the cache holds."""
    from ..codegen.module import compile_module

    module = bufferized_module(source, wanted, on_stage)
    return compile_module(module, checks=wanted.checks, opt_level=wanted.opt_level)


def bufferized_module(
    source: KernelSource, wanted: CpuSpecialization, on_stage: StageCallback | None = None
) -> ModuleOp:
    """The module of a kernel as `cpu/codegen` takes it.

    Raises CompilationError at the first operation that is not plain Triton, and for every fault in the kernel.
    """
    from tlx_xdsl.dialects.registry import make_context
    from tlx_xdsl.runtime.driver.compilation import frontend_module
    from tlx_xdsl.text.diagnostics import collected_diagnostics, error_at, report_again
    from tlx_xdsl.text.verify import verify_module
    from tlx_xdsl.transforms.pipelines import first_beyond_plain
    from tlx_xdsl.transforms.placed import with_placed

    from ..bufferize.bufferize import bufferize_pipeline
    from ..linalg.triton_to_linalg import linalg_pipeline

    with collected_diagnostics() as found:
        module = frontend_module(source, wanted.for_frontend())
        verify_module(module)
        if (op := first_beyond_plain(module, barriers=True)) is not None:
            raise error_at(op, f"'{op.name}' cannot be compiled for the CPU", (NOT_FOR_THE_CPU,))
        _set_breakpoints(module, wanted)
        if on_stage is not None:
            on_stage("frontend", module)
        context = make_context()
        # TF32 is what tensor cores are fast at; a CPU multiplies f32 as fast as anything less.
        for each in with_placed((*linalg_pipeline(truncates_tf32=False), *bufferize_pipeline()), source.passes):
            each.apply(context, module)
            if on_stage is not None:
                on_stage(each.name, module)
    for each in found:
        # Remarks say how accesses are lowered, which `tlx explain` shows to those who ask.
        if each.severity != "remark":
            report_again(each)
    return module


def _set_breakpoints(module: ModuleOp, wanted: CpuSpecialization) -> None:
    """Leave the breakpoints of a kernel that are wanted, and put one before each print where that is."""
    from xdsl.dialects.arith import ConstantOp
    from xdsl.dialects.builtin import IntegerAttr, StringAttr, i1

    from tlx_xdsl.dialects import tt
    from tlx_xdsl.errors import BREAKPOINT, PRINTS

    for op in [*module.walk()]:
        if isinstance(op, tt.AssertOp) and op.is_breakpoint and not wanted.breakpoints:
            op.detach()
            op.erase()
        elif isinstance(op, tt.PrintOp) and wanted.stops_at_prints and op.parent is not None:
            never = ConstantOp(IntegerAttr(0, i1))
            message = StringAttr(f"{PRINTS}: {BREAKPOINT}")
            stop = tt.AssertOp.build(operands=[never.result], properties={"message": message})
            for each in (never, stop):
                each.location = op.location
            op.parent.insert_ops_before([never, stop], op)


def object_key(source: KernelSource, wanted: CpuSpecialization) -> str:
    """The hash of all that the object code of a kernel depends on.

    Raises CompilationError where the text of something that it calls is not available.
    """
    constants = {("constexpr", name): value for name, value in wanted.constexprs.items()}
    types = {name: _spelled(type_, (name,), constants) for name, type_ in wanted.signature.items()}
    parts = (
        kernel_fingerprint(source).digest,
        # Errors name the file.
        os.path.abspath(source.filename),
        sorted(types.items()),
        values_fingerprint(constants),
        (wanted.checks, wanted.debug, wanted.opt_level, wanted.symbol, wanted.breakpoints, wanted.stops_at_prints),
        compiler_fingerprint(),
        _machine(),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@functools.cache
def _machine() -> tuple[str, object]:
    """Return what compiles, and the CPU that it compiles for."""
    from ..codegen.host import host

    return metadata.version("llvmlite"), host()


def _spelled(type_: Signature, place: tuple[Any, ...], constants: dict[Any, Any]) -> str:
    """The text of a type; the constants within tuples are added to `constants`."""
    if isinstance(type_, Fixed):
        constants[place] = type_.value
        return "constexpr"
    if isinstance(type_, str):
        return type_
    items = [_spelled(item, (*place, at), constants) for at, item in enumerate(type_)]
    # The names of a named tuple are those by which the kernel asks for its items.
    return f"{getattr(type_, '_fields', '')}({', '.join(items)})"


_LENGTH = struct.Struct("<I")


def _packed(made: CpuObject) -> bytes:
    text = made.metadata.to_json().encode()
    return _LENGTH.pack(len(text)) + text + made.code


def _unpacked(body: bytes | None) -> tuple[bytes, Metadata] | None:
    """Return what `_packed` has written; None for anything else."""
    if body is None:
        return None
    try:
        (size,) = _LENGTH.unpack_from(body)
        start = _LENGTH.size
        return body[start + size :], Metadata.from_json(body[start : start + size].decode())
    except (ValueError, KeyError, TypeError, struct.error):
        return None


# A kernel compiled ahead of any launch, with the text of each stage on its way to machine code. Here the cache takes no
# part, the CPU may be another one of the same architecture, and functions that print have names of the kernel's own, so
# that several objects can be linked.

TextCallback = Callable[[str, str], None]
"""Called with the name of a stage and the text of the module after it."""


@dataclass(frozen=True)
class CpuStages:
    """Results of the stages of a compile, from LLVM IR to the object file."""

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
