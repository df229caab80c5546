"""Compilation of a kernel's source to TTGIR text, stage by stage. No Triton and no GPU are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.passes import ModulePass

from tlx_xdsl.analysis.launch_budget import check_launch
from tlx_xdsl.analysis.module_attrs import MAX_REGISTERS_PER_THREAD, set_cluster
from tlx_xdsl.backend.options import installed_triton_version
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.targets import Target, target_named
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import Profile, nearest_profile, profile_for, version_name
from tlx_xdsl.text.verify import Verifier
from tlx_xdsl.transforms.pipelines import first_beyond_plain, plain_pipeline, run_pipeline, ttgir_pipeline
from tlx_xdsl.transforms.placed import with_placed

from .phases import Clock, phase
from .specialization import CONVERSIONS, Conversion, Specialization

StageCallback: TypeAlias = Callable[[str, str], None]
"""Called with the name of a stage and the text of the module after it."""


@dataclass(frozen=True)
class CompiledText:
    """The text stages of a kernel."""

    name: str
    ttir: str
    """The module of the frontend, in the version-neutral spelling."""
    ttgir: str
    """The input of stock Triton, in the spelling of its version; of a plain Triton kernel this is the TTIR."""
    times_ms: dict[str, float]
    """Milliseconds per stage: `frontend`, each pass by its name, `verify`, `print`."""
    plain: bool = False
    """Whether it is plain Triton, which stock Triton's own passes give layouts."""

    def _repr_html_(self) -> str:
        from ..show.pages import compiled_page

        return compiled_page(self.name, self.times_ms, {"TTGIR": self.ttgir, "TTIR": self.ttir})


def compile_text(
    source: KernelSource,
    specialization: Specialization,
    *,
    triton_version: str | None = None,
    conversion: Conversion = "auto",
    verify: bool = True,
    verify_each: bool | None = None,
    keep_ttir: bool = True,
    lowers: bool = True,
    check_budget: bool = True,
    as_stock: bool = False,
    on_stage: StageCallback | None = None,
    on_pass: Callable[[str], None] | None = None,
) -> CompiledText:
    """Compile a kernel to TTGIR text for a Triton version (our own spelling, that of 3.9, by default).

    `verify` checks the module after the frontend and after the last pass; with `verify_each`, which is so by default
    where `on_stage` looks, after every pass. `on_stage` receives the text after the frontend and each pass, which
    `tlx-opt` reads, and `on_pass` their names alone.
    Without `keep_ttir` the result's `ttir` is empty; without `lowers` no pass runs, and its `ttgir` is empty; without
    `check_budget` a kernel that needs more than its target has is no error. With `as_stock` the version gets plain
    Triton as its own frontend makes it, and so gets wrong what it gets wrong by itself.

    `conversion` says who gives tensors their layouts. With `own`, the loops of a plain kernel are not pipelined: its
    loads are waited for where they stand.

    Raises CompilationError, located in the kernel's source, for every fault in it, and when `stock` is asked to
    convert what is not plain Triton; ValueError for a target, a Triton version or a conversion that is not known.
    """
    if conversion not in CONVERSIONS:
        raise InputError(f"conversion: expected one of {', '.join(CONVERSIONS)}, found '{conversion}'")
    profile = None if triton_version is None else profile_for(triton_version)
    if profile is not None:
        _check_version(target_named(specialization.target), profile)
    each = on_stage is not None if verify_each is None else verify_each
    clock, verifier = Clock(), Verifier()
    with phase("frontend", source.name):
        module = frontend_module(source, specialization, profile)
    clock.lap("frontend")
    if check_budget:
        check_launch(module)

    def finish(stage: str, module: ModuleOp, *, is_end: bool) -> None:
        clock.lap(stage)
        if on_pass is not None:
            on_pass(stage)
        if verify and (is_end or each):
            verifier.verify(module)
            clock.lap("verify")
        if on_stage is not None:
            on_stage(stage, print_module(module))
            clock.skip()

    finish("frontend", module, is_end=True)
    ttir = print_module(module) if keep_ttir else ""
    clock.lap("print")
    if not lowers:
        return CompiledText(specialization.symbol or source.symbol, ttir, "", clock.times)
    plain = _goes_to_stock(module, conversion)
    asked = (*source.passes, *specialization.passes)
    passes = passes_for(profile, plain=plain, check_budget=check_budget, as_stock=as_stock, asked=asked)
    with phase("passes", source.name):
        run_pipeline(
            module, passes, make_context(), lambda done, module: finish(done.name, module, is_end=done is passes[-1])
        )
    ttgir = text_for_triton(module, profile, plain=plain)
    clock.lap("print")
    return CompiledText(specialization.symbol or source.symbol, ttir, ttgir, clock.times, plain)


def _check_version(target: Target, profile: Profile) -> None:
    """Raise CompilationError where this Triton's ptxas does not know the target."""
    if profile.version < target.first_triton:
        needs = version_name(target.first_triton)
        raise CompilationError(f"target {target.name} needs Triton {needs} or later, found Triton {profile.name}")


def _goes_to_stock(module: ModuleOp, conversion: Conversion) -> bool:
    """Return whether stock Triton gets the module as TTIR, and gives it layouts itself."""
    if conversion == "own":
        return False
    # Stock's own frontend makes barriers of the thread block, too; by default a kernel with one has our layouts.
    beyond = first_beyond_plain(module, barriers=conversion == "stock")
    if conversion == "stock" and beyond is not None:
        raise error_at(
            beyond,
            f"stock Triton's conversion was asked for, which does not know '{beyond.name}'",
            ["it takes plain Triton only; leave the conversion to 'auto' or 'own'"],
        )
    return beyond is None


def passes_for(
    profile: Profile | None = None,
    *,
    plain: bool,
    check_budget: bool = True,
    as_stock: bool = False,
    asked: Sequence[str] = (),
) -> tuple[ModulePass, ...]:
    """The passes that a module of the frontend goes through on its way to a Triton version (none in particular).

    `plain` says whether the module is plain Triton, which stock Triton's own passes give layouts. `check_budget`
    and `as_stock` are as for `compile_text`. `asked` are passes of other packages, as `after:NAME=PASS`; those that
    wings place come, too.

    Raises CompilationError for a pass that is asked for and can't be placed.
    """
    ours = plain_pipeline(profile, as_stock=as_stock) if plain else ttgir_pipeline(profile, check_budget=check_budget)
    return with_placed(ours, asked)


def text_for_triton(module: ModuleOp, profile: Profile | None = None, *, plain: bool) -> str:
    """Return what stock Triton gets of a module after its passes, in the spelling of `profile` (our own without one).

    `plain` says whether the frontend's module was plain Triton, which has Triton's own passes before it.

    Raises CompilationError when the version can't express the module.
    """
    if plain:
        _drop_launch_attributes(module)
    return print_module(module, profile=profile)


def _drop_launch_attributes(module: ModuleOp) -> None:
    """Take the `ttg` attributes from a module for stock Triton's own passes, which set them when they are due.

    Its TTIR passes make an approximate division of `x / 3.0` where they see a target.
    """
    for name in [name for name in module.attributes if name.startswith("ttg.")]:
        del module.attributes[name]


def frontend_module(source: KernelSource, specialization: Specialization, profile: Profile | None = None) -> ModuleOp:
    """Return what the frontend makes of a kernel; no pass runs and nothing is verified.

    The language is that of the newest Triton, but for what `profile` says of an older one.

    Raises CompilationError, located in the kernel's source, for every fault in it; ValueError for an unknown target.
    """
    module = build_module(
        source,
        specialization.signature,
        specialization.constexprs,
        num_warps=specialization.num_warps,
        num_ctas=specialization.num_ctas,
        clustered=prod(specialization.cluster) > 1,
        capability=target_named(specialization.target).capability,
        debug=specialization.debug,
        sums_bfloat16=profile is None or profile.sums_bfloat16,
        symbol=specialization.symbol,
    )
    set_cluster(module, specialization.cluster)
    if specialization.maxnreg is not None:
        module.attributes[MAX_REGISTERS_PER_THREAD] = IntegerAttr(specialization.maxnreg, i32)
    return module


def installed_profile() -> Profile | None:
    """The profile of the installed Triton, or the nearest older one; None without Triton."""
    version = installed_triton_version()
    return None if version is None else nearest_profile(version)
