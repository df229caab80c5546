"""From a kernel's source to machine code of this CPU, through the cache on disk."""

from __future__ import annotations

import functools
import hashlib
import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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

from .printing import externals
from .program import Program

if TYPE_CHECKING:
    # What compiles is loaded when the cache has not got what is wanted.
    from xdsl.dialects.builtin import ModuleOp

    from tlx_xdsl.runtime.driver.compilation import Specialization

    from ..codegen.compile import CpuObject
    from ..codegen.metadata import Metadata

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
    symbol: str | None = None
    """The kernel's name in the object; that of its function if None."""

    def for_frontend(self) -> Specialization:
        """What the frontend is asked for. A kernel for the CPU has no warps: any number gives the same."""
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
    from ..codegen.compile import compile_module

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

    from ..bufferize.pipeline import bufferize_pipeline
    from ..linalg.triton_to_linalg import linalg_pipeline

    with collected_diagnostics() as found:
        module = frontend_module(source, wanted.for_frontend())
        verify_module(module)
        if (op := first_beyond_plain(module, barriers=True)) is not None:
            raise error_at(op, f"'{op.name}' cannot be compiled for the CPU", (NOT_FOR_THE_CPU,))
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
        (wanted.checks, wanted.debug, wanted.opt_level, wanted.symbol),
        compiler_fingerprint(),
        _machine(),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@functools.cache
def _machine() -> tuple[str, object]:
    """What compiles, and the CPU that it compiles for."""
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
    """What `_packed` has written; None for anything else."""
    from ..codegen.metadata import Metadata

    if body is None:
        return None
    try:
        (size,) = _LENGTH.unpack_from(body)
        start = _LENGTH.size
        return body[start + size :], Metadata.from_json(body[start : start + size].decode())
    except (ValueError, KeyError, TypeError, struct.error):
        return None
