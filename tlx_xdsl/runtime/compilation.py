"""From a kernel's source to TTGIR text, stage by stage. No Triton and no GPU are needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.frontend.arguments import Signature
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.frontend.source import KernelSource
from tlx_xdsl.runtime.targets import capability_of
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.pipelines import is_plain, plain_pipeline, run_pipeline, ttgir_pipeline

StageCallback: TypeAlias = Callable[[str, str], None]
"""Called with the name of a stage and the text of the module behind it."""


@dataclass(frozen=True)
class Specialization:
    """What a kernel is compiled for."""

    signature: Mapping[str, Signature]
    """Type of each runtime argument in Triton's spelling."""
    constexprs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Value of each compile-time argument."""
    target: str = "sm_90a"
    num_warps: int = 4
    """Warps of the kernel outside of warp-specialised partitions."""
    num_ctas: int = 1
    debug: bool = False
    """Whether `tl.device_assert` has an effect."""


@dataclass(frozen=True)
class CompiledText:
    """The text stages of a kernel."""

    name: str
    ttir: str
    """What the frontend made, in the version-neutral spelling."""
    ttgir: str
    """What stock Triton gets, in the spelling of its version; of a plain Triton kernel this is the TTIR."""
    times_ms: dict[str, float]
    """Milliseconds per stage: `frontend`, each pass by its name, `verify`, `print`."""


def compile_text(
    source: KernelSource,
    specialization: Specialization,
    *,
    triton_version: str | None = None,
    verify: bool = True,
    on_stage: StageCallback | None = None,
) -> CompiledText:
    """Compile a kernel to TTGIR text for a Triton version (our own spelling, that of 3.9, by default).

    `verify` checks the module behind the frontend and behind every pass. `on_stage` receives the text behind each
    of them, which `tlx-opt` reads.

    Raises CompilationError, located in the kernel's source, for every fault in it; ValueError for a target or a
    Triton version that is not known.
    """
    profile = None if triton_version is None else profile_for(triton_version)
    clock = _Clock()
    module = frontend_module(source, specialization)
    clock.lap("frontend")

    def finish(stage: str, module: ModuleOp) -> None:
        clock.lap(stage)
        if verify:
            verify_module(module)
            clock.lap("verify")
        if on_stage is not None:
            on_stage(stage, print_module(module))
            clock.skip()

    finish("frontend", module)
    ttir = print_module(module)
    clock.lap("print")
    plain = is_plain(module)
    whole_views = profile is not None and profile.views_fill_allocations
    passes = plain_pipeline() if plain else ttgir_pipeline(whole_views=whole_views)
    run_pipeline(module, passes, make_context(), lambda done, module: finish(done.name, module))
    if plain:
        _drop_launch_attributes(module)
    ttgir = print_module(module, profile=profile)
    clock.lap("print")
    return CompiledText(source.name, ttir, ttgir, clock.times)


def _drop_launch_attributes(module: ModuleOp) -> None:
    """Take the `ttg` attributes from a module for stock Triton's own passes, which set them when they are due.

    Its TTIR passes make an approximate division of `x / 3.0` where they see a target.
    """
    for name in [name for name in module.attributes if name.startswith("ttg.")]:
        del module.attributes[name]


def frontend_text(source: KernelSource, specialization: Specialization, *, verify: bool = True) -> str:
    """What the frontend makes of a kernel, in the version-neutral spelling; no pass runs.

    Raises CompilationError, located in the kernel's source, for every fault in it; ValueError for an unknown target.
    """
    module = frontend_module(source, specialization)
    if verify:
        verify_module(module)
    return print_module(module)


def frontend_module(source: KernelSource, specialization: Specialization) -> ModuleOp:
    """What the frontend makes of a kernel; no pass runs and nothing is verified.

    Raises CompilationError, located in the kernel's source, for every fault in it; ValueError for an unknown target.
    """
    return build_module(
        source,
        specialization.signature,
        specialization.constexprs,
        num_warps=specialization.num_warps,
        num_ctas=specialization.num_ctas,
        capability=capability_of(specialization.target),
        debug=specialization.debug,
    )


class _Clock:
    """Adds up milliseconds by name."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Book the time since the last call under `name`."""
        now = time.perf_counter()
        self.times[name] = self.times.get(name, 0.0) + (now - self._last) * 1e3
        self._last = now

    def skip(self) -> None:
        """Book the time since the last call nowhere."""
        self._last = time.perf_counter()
