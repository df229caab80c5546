"""The work of `tlx check`, a kernel in many orders on arrays made up here, and of `tlx minimize-sync`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.check.minimize import minimize
from tlx_xdsl.runtime.check.report import Finding, Launchable, Sizes, Subject, combinations, small_values
from tlx_xdsl.runtime.check.run import any_values, arrays_of, checked, other_sizes
from tlx_xdsl.runtime.simulate.interpret import Change, Interpretation, interpret_source, module_of
from tlx_xdsl.runtime.simulate.options import SMALL, Options

from ..launch_line.launches import launch_at
from ..launch_line.request import read
from .check_formats import FORMATS


def run(args: argparse.Namespace) -> int:
    """Carry the command out; returns 1 where something was found, or not run that was asked for.

    Raises CompilationError for a command line that does not fit the kernel.
    """
    stages = None if args.stages is None else stages_of(args)
    report = checked(
        subject_of(args), args.seconds, stages, args.launches, prove=args.prove, all_orders=args.all_orders
    )  # fmt: skip
    print(FORMATS[args.format](report, args.kernel))
    return 0 if report else 1


def run_minimize(args: argparse.Namespace) -> None:
    """Carry out `tlx minimize-sync`.

    Raises CompilationError for a kernel that does not compile, and for a command line that does not fit it.
    """
    print(minimize(subject_of(args), stages_of(args), args.seconds))


def stages_of(args: argparse.Namespace) -> list[str]:
    """The stages of the pipeline that are asked for. Raises CompilationError for none."""
    stages = [each.strip() for each in args.stages.split(",") if each.strip()]
    if not stages:
        raise CompilationError("--stages: expected the names of stages with commas between them, found none")
    return stages


def subject_of(args: argparse.Namespace) -> Subject:
    """Return the launch that the command line asks for. Raises CompilationError where it does not fit the kernel."""
    request = read(args)

    def launchable(sizes: Sizes, change: Change | None) -> Launchable:
        found = launch_at(request, sizes)
        launch: dict[str, Any] = {**found.options, "jobs": 1}

        def once(order: Mapping[str, Any]) -> Interpretation:
            options = Options(**launch, **order)
            return interpret_source(found.source, found.grid, found.arguments, options, found.types, change)

        return Launchable(once, arrays_of(found.arguments))

    def rings(sizes: Sizes) -> tuple[int, ...]:
        found = launch_at(request, sizes)
        return small_values(module_of(found.source, found.arguments, Options(**found.options), found.types)[0])

    def module(at: Sizes) -> ModuleOp:
        found = launch_at(request, at)
        return any_values(found.source, found.arguments, Options(**found.options))

    sizes = combinations(request.size_ranges(rings), sweep=args.sweep)

    def others() -> Iterable[Finding]:
        found = launch_at(request, {})
        return other_sizes(found.source, found.grid, found.arguments, Options(**found.options))

    is_asked = SMALL not in request.lists["size"].values()
    settings = Options(jobs=1, target=request.options["target"], enable_fp_fusion=request.options["enable_fp_fusion"])
    return Subject(sizes, settings, launchable, module, others, is_asked)
