"""Compilation of a TTL kernel to C++ and its manifest, stage by stage."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import InputError
from tlx_xdsl.text.diagnostics import Diagnostic, collected_diagnostics, report_again
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module

from ..cpp import MAIN_PROFILE, cpp_profile, print_cpp
from ..dialects.ttcore import ARCHITECTURES, Architecture
from ..frontend import compile_kernel as frontend
from ..language.kernel import Kernel
from ..transforms.manifest import manifest
from ..transforms.pipeline import ttl_pipeline
from .specs import Spec

CPP = "cpp"
"""Name of the stage after all passes: the text of the C++ files."""
FRONTEND = "frontend"
EMITC = "convert-ttkernel-to-emitc"


@dataclass(frozen=True)
class Options:
    """Options that a user has for the compilation."""

    profile: str = MAIN_PROFILE
    """The TT-Metalium release that the C++ is for: `0.81` or `2025-12`."""
    schedule: bool = True
    """Whether transfers are reordered and batched (docs/ttl.md, "Schedules")."""
    capacity: int | None = None
    """Destination registers, in tiles; the hardware's number by default."""
    fpu: str = "auto"
    """When the matrix unit does element-wise operations: `auto`, `always` or `never`."""
    lines: bool = True
    """Whether the C++ has `#line` directives that name the lines of the Python source."""
    block_calls: bool = True
    """Whether calls for several tiles, such as `matmul_block`, are used where they do the same."""
    zones: bool = False
    """Whether the C++ has a zone of the device's profiler for each run of a loop and each wait, named by its line."""
    strict: bool = False
    """Whether it is an error what the compiler repairs otherwise, and says in a remark."""
    arch: str = "wormhole"
    """The chip: `wormhole` or `blackhole`."""
    grid: tuple[int, int] | None = None
    """Columns and rows of cores that the device has, where some are harvested or others' work."""
    l1: int | None = None
    """Bytes of a core's memory for circular buffers; those of the chip by default."""

    @property
    def chip(self) -> Architecture:
        """The chip with the cores that there are.

        Raises InputError for an unknown one, and for a grid that is larger than it has.
        """
        if self.arch not in ARCHITECTURES:
            raise InputError(f"expected one of the architectures {', '.join(ARCHITECTURES)}, found '{self.arch}'")
        chip = ARCHITECTURES[self.arch]
        columns, rows = self.grid or (chip.columns, chip.rows)
        if not (1 <= columns <= chip.columns and 1 <= rows <= chip.rows):
            raise InputError(f"a {chip.name} has {chip.columns}x{chip.rows} cores for kernels, found {columns}x{rows}")
        if self.l1 is not None and not 0 < self.l1 <= chip.l1_bytes:
            message = f"a core of a {chip.name} has {chip.l1_bytes:,} B for circular buffers, found {self.l1:,}"
            raise InputError(message)
        return replace(chip, columns=columns, rows=rows, l1_bytes=self.l1 or chip.l1_bytes)

    @property
    def passes(self) -> Mapping[str, Any]:
        """The options of the pipeline."""
        names = ("schedule", "capacity", "fpu", "profile", "block_calls", "strict")
        return {**{name: getattr(self, name) for name in names}, "budget": self.chip.l1_bytes}


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel as C++ for the threads of each core, and what a host has to know to launch it."""

    name: str
    module: ModuleOp
    """The kernel in `ttkernel`, which the interpreter runs."""
    sources: Mapping[str, str]
    """The text of each C++ file by its name, such as `read.cpp`."""
    manifest: Mapping[str, Any]
    """What `ttl/transforms/manifest.py` documents."""
    stages: Sequence[str] = field(default=(), repr=False)

    @cached_property
    def manifest_text(self) -> str:
        """The manifest as JSON."""
        return json.dumps(self.manifest, indent=2) + "\n"


def frontend_module(kernel: Kernel, specs: Sequence[Spec], options: Options | None = None) -> ModuleOp:
    """The verified module that the frontend makes of a kernel.

    Raises CompilationError, at the user's line, for what is wrong in the kernel.
    """
    return frontend(kernel, specs, (Options() if options is None else options).chip)


def synchronized_module(kernel: Kernel, specs: Sequence[Spec], options: Options | None = None) -> ModuleOp:
    """The module of a kernel on whole blocks, with what the kernel leaves to the compiler: waits and steps of buffers.

    Raises CompilationError, at the user's line, for what is wrong in the kernel.
    """
    module = frontend_module(kernel, specs, options)
    for each in ttl_pipeline(**(Options() if options is None else options).passes, to="synchronized"):
        each.apply(make_context(), module)
    verify_module(module)
    return module


def compile_kernel(
    kernel: Kernel,
    specs: Sequence[Spec],
    options: Options | None = None,
    *,
    on_stage: Callable[[str, str], None] | None = None,
) -> CompiledKernel:
    """Compile a kernel for tensors with these specs.

    `on_stage` gets the name of each pass and the module after it as text.

    Raises CompilationError, at the user's line, for what is wrong in the kernel or does not fit the hardware.
    """
    with _no_collections():
        return compile_module(frontend_module(kernel, specs, options), options, on_stage=on_stage)


@contextmanager
def _no_collections() -> Generator[None]:
    """Let Python not look for garbage: nearly all of a module is in use, and looking takes a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def compile_module(
    module: ModuleOp, options: Options | None = None, *, on_stage: Callable[[str, str], None] | None = None
) -> CompiledKernel:
    """Compile the frontend's module, or one that was printed and read again.

    Raises CompilationError as `compile_kernel` does.
    """
    chosen = Options() if options is None else options
    context = make_context()
    if on_stage is not None:
        on_stage(FRONTEND, print_module(module))
    ready: ModuleOp | None = None
    facts: dict[str, Any] = {}
    remarks: list[Diagnostic] = []
    for each in ttl_pipeline(**chosen.passes):
        if each.name == EMITC:
            verify_module(module)
            ready, facts = module.clone(), manifest(module)
            if chosen.capacity is not None:
                facts["options"]["dst_capacity"] = chosen.capacity
        with collected_diagnostics() as found:
            each.apply(context, module)
        for diagnostic in found:
            report_again(diagnostic)
        remarks += [each for each in found if each.severity == "remark"]
        if on_stage is not None:
            on_stage(each.name, print_module(module))
    assert ready is not None, "the pipeline ends in C++"
    facts["remarks"] = [_as_json(each) for each in remarks]
    profiler = cpp_profile(chosen.profile).profiler if chosen.zones else None
    sources = print_cpp(module, lines=chosen.lines, profiler=profiler)
    return CompiledKernel(facts["kernel"], ready, sources, facts)


def _as_json(remark: Diagnostic) -> dict[str, Any]:
    place = remark.location
    where = {} if place is None else {"file": place.filename, "line": place.line, "column": place.column}
    return {**where, "message": remark.message, "notes": [str(each) for each in remark.notes]}
