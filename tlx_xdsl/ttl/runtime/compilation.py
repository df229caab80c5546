"""From a TTL kernel to C++ and its manifest, stage by stage."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module

from ..cpp import MAIN_PROFILE, print_cpp
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

    @property
    def passes(self) -> Mapping[str, Any]:
        """The options of the pipeline."""
        names = ("schedule", "capacity", "fpu", "profile", "block_calls")
        return {name: getattr(self, name) for name in names}


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


def frontend_module(kernel: Kernel, specs: Sequence[Spec]) -> ModuleOp:
    """The verified module that the frontend makes of a kernel.

    Raises CompilationError, at the user's line, for what is wrong in the kernel.
    """
    return frontend(kernel, specs)


def synchronized_module(kernel: Kernel, specs: Sequence[Spec], options: Options | None = None) -> ModuleOp:
    """The module of a kernel on whole blocks, with what the kernel leaves to the compiler: waits and steps of buffers.

    Raises CompilationError, at the user's line, for what is wrong in the kernel.
    """
    module = frontend_module(kernel, specs)
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
    return compile_module(frontend_module(kernel, specs), options, on_stage=on_stage)


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
    for each in ttl_pipeline(**chosen.passes):
        if each.name == EMITC:
            verify_module(module)
            ready, facts = module.clone(), manifest(module)
            if chosen.capacity is not None:
                facts["options"]["dst_capacity"] = chosen.capacity
        each.apply(context, module)
        if on_stage is not None:
            on_stage(each.name, print_module(module))
    assert ready is not None, "the pipeline ends in C++"
    sources = print_cpp(module, lines=chosen.lines)
    return CompiledKernel(facts["kernel"], ready, sources, facts)
