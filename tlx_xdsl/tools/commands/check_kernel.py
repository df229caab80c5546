"""The work of `tlx check`, a kernel in many orders on generated arrays, and of `tlx minimize-sync`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.check.across_ranks.launch import proved_launch
from tlx_xdsl.runtime.check.across_ranks.prove import RanksProof
from tlx_xdsl.runtime.check.minimize import minimize
from tlx_xdsl.runtime.check.report import Finding, Launchable, Sizes, Subject, combinations, small_values
from tlx_xdsl.runtime.check.run import RANKS, any_values, arrays_of, checked, other_sizes
from tlx_xdsl.runtime.ranks.arguments import launches_of, ranks_of
from tlx_xdsl.runtime.simulate.interpret import Change, Interpretation, interpret_source, module_of
from tlx_xdsl.runtime.simulate.options import SMALL, Options

from ..launch_line.launches import Launch, launch_at
from ..launch_line.request import read, size_values
from ..output import print_document
from .check_formats import FORMATS, minimized_as_json


def run(args: argparse.Namespace) -> int:
    """Carry the command out; returns 1 where something was found, or not run that was asked for.

    Raises CompilationError for a command line that does not fit the kernel.
    """
    stages = None if args.stages is None else stages_of(args)
    report = checked(
        subject_of(args), args.seconds, stages, args.launches, prove=args.prove, all_orders=args.all_orders
    )  # fmt: skip
    report = replace(report, allows_unrun=args.allow_unrun)
    print_document(FORMATS[args.format](report, args.kernel))
    return 0 if report else 1


def run_minimize(args: argparse.Namespace) -> None:
    """Carry out `tlx minimize-sync`.

    Raises CompilationError for a kernel that does not compile, and for a command line that does not fit it.
    """
    found = minimize(subject_of(args), stages_of(args), args.seconds)
    print_document(minimized_as_json(found, args.kernel) if args.format == "json" else str(found))


def stages_of(args: argparse.Namespace) -> list[str]:
    """The stages of the pipeline that are asked for. Raises CompilationError for none."""
    stages = [each.strip() for each in args.stages.split(",") if each.strip()]
    if not stages:
        raise CompilationError("--stages: expected the names of stages with commas between them, found none")
    return stages


def _ranks(args: argparse.Namespace) -> dict[str, tuple[int, ...]]:
    """The numbers of GPUs, as values of a size; empty for one alone. Raises CompilationError for another text."""
    if (text := getattr(args, RANKS, None)) is None:
        return {}
    found = size_values(RANKS, text, "--ranks")
    if 0 in found:
        raise CompilationError("--ranks: expected numbers of GPUs of at least 1, found 0")
    return {RANKS: found}


def subject_of(args: argparse.Namespace) -> Subject:
    """Return the launch that the command line asks for. Raises CompilationError where it does not fit the kernel."""
    request = read(args)

    on_ranks = _ranks(args)

    def launch_of(sizes: Sizes) -> Launch:
        if not on_ranks:
            return launch_at(request, sizes)
        return launch_at(request, {name: size for name, size in sizes.items() if name != RANKS}, ranks=sizes[RANKS])

    def options_at(found: Launch, sizes: Sizes) -> dict[str, Any]:
        return {**found.options, **({RANKS: sizes[RANKS]} if on_ranks else {})}

    def launchable(sizes: Sizes, change: Change | None) -> Launchable:
        found = launch_of(sizes)
        launch: dict[str, Any] = {**options_at(found, sizes), "jobs": 1}

        def once(order: Mapping[str, Any]) -> Interpretation:
            options = Options(**{**launch, **order})
            return interpret_source(found.source, found.grid, found.arguments, options, found.types, change)

        def proved(launches: int | None) -> RanksProof:
            made, options = module(sizes), Options(**launch)
            return proved_launch(found.source, found.grid, found.arguments, options, made, launches, found.types)

        ranks = ranks_of(found.arguments, launch.get(RANKS, 0))
        return Launchable(once, arrays_of(found.arguments), ranks, launches_of(found.arguments), proved)

    def rings(sizes: Sizes) -> tuple[int, ...]:
        if on_ranks:
            raise CompilationError(f"--size: '{SMALL}' is for kernels on one GPU, give numbers with --ranks")
        found = launch_of(sizes)
        return small_values(module_of(found.source, found.arguments, Options(**found.options), found.types)[0])

    def module(at: Sizes) -> ModuleOp:
        found = launch_of(at)
        return any_values(found.source, found.arguments, Options(**options_at(found, at)))

    sizes = combinations({**request.size_ranges(rings), **on_ranks}, sweep=args.sweep)

    def others() -> Iterable[Finding]:
        found = launch_at(request, {})
        return other_sizes(found.source, found.grid, found.arguments, Options(**found.options))

    is_asked = SMALL not in request.lists["size"].values()
    settings = Options(jobs=1, target=request.options["target"], enable_fp_fusion=request.options["enable_fp_fusion"])
    return Subject(sizes, settings, launchable, module, others, is_asked)
