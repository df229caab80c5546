"""The work of `tlx check`: a kernel in many orders on arrays made up here, and what is wrong in any."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.check import any_values, arrays_of
from tlx_xdsl.runtime.check_explore import Limits, explore
from tlx_xdsl.runtime.check_proof import with_proofs
from tlx_xdsl.runtime.check_sizes import Launchable, Scope, Sizes, combinations, small_values
from tlx_xdsl.runtime.interpret import Interpretation, interpret_source, module_of
from tlx_xdsl.runtime.interpret_options import Options
from tlx_xdsl.tools.check_formats import FORMATS
from tlx_xdsl.tools.launches import read_launch
from tlx_xdsl.tools.loading import assignments, load_kernel
from tlx_xdsl.tools.size_values import size_ranges


def run(args: argparse.Namespace) -> int:
    """Carry the command out; returns 1 where something was found.

    Raises CompilationError for a kernel that does not compile, and for a command line that does not fit it.
    """
    stages = [each.strip() for each in args.stages.split(",") if each.strip()]
    if not stages:
        raise CompilationError("--stages: expected the names of stages with commas between them, found none")
    kernel, defaults = load_kernel(args.kernel)
    settings = Options(jobs=1)

    def launchable(sizes: Sizes) -> Launchable:
        found = read_launch(args, kernel, defaults, sizes)
        launch: dict[str, Any] = {**found.launch, "jobs": 1}

        def once(order: Mapping[str, Any]) -> Interpretation:
            return interpret_source(found.source, found.grid, found.arguments, Options(**launch, **order), found.types)

        return Launchable(once, arrays_of(found.arguments))

    def rings(sizes: Sizes) -> tuple[int, ...]:
        found = read_launch(args, kernel, defaults, sizes)
        return small_values(module_of(found.source, found.arguments, Options(**found.launch), found.types)[0])

    texts = assignments(args.size, "--size")

    def scope(at: Sizes) -> Scope:
        return Scope(at, lambda: launchable(at))

    def module(at: Sizes) -> ModuleOp:
        found = read_launch(args, kernel, defaults, at)
        return any_values(found.source, found.arguments, Options(**found.launch))

    scopes = [*map(scope, combinations(size_ranges(texts, rings), sweep=args.sweep))]
    limits = Limits(args.seconds, stages, args.launches)
    report = explore(scopes, settings, limits)
    if args.prove:
        report = with_proofs(report, scopes, settings, limits, module, scope)
    print(FORMATS[args.format](report, args.kernel))
    return 0 if report else 1
