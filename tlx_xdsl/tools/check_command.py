"""`tlx check FILE.py:KERNEL`: run a kernel in all orders that matter, on arrays made up here; report what is wrong."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.check import SECONDS, STAGES, any_values, arrays_of
from tlx_xdsl.runtime.check_explore import Limits, explore
from tlx_xdsl.runtime.check_proof import with_proofs
from tlx_xdsl.runtime.check_sizes import Launchable, Sizes, Subject, combinations, small_values
from tlx_xdsl.runtime.interpret import Change, Interpretation, interpret_source, module_of
from tlx_xdsl.runtime.interpret_options import Options
from tlx_xdsl.tools.check_formats import FORMATS
from tlx_xdsl.tools.launch_arguments import SIZE_HELP, VALUES, add_launch_arguments, read_launch
from tlx_xdsl.tools.loading import assignments, load_kernel
from tlx_xdsl.tools.size_values import size_ranges


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{VALUES}\nThe exit status is 1 where something was found.\n"
    parser.add_argument("kernel", metavar="FILE", help="FILE.py:KERNEL")
    add_launch_arguments(parser, f"{SIZE_HELP}; several as in 0..3,7 or small, of which all combinations are run")
    parser.add_argument(
        "--sweep", action=argparse.BooleanOptionalAction, default=True,
        help="run all values of --size, or with --no-sweep the first ones alone",
    )  # fmt: skip
    parser.add_argument(
        "--prove", action="store_true",
        help="prove the synchronisation of the tasks for all trip counts, too, or say which line stops the proof",
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"time for all sizes and orders ({SECONDS:g})")
    parser.add_argument("--stages", default=",".join(STAGES), help=f"stages of the pipeline ({','.join(STAGES)})")
    parser.add_argument(
        "--launches", type=int, metavar="N",
        help="launches in a row on the same arrays (2 where there are atomics or while loops, as a remark; else 1)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of random numbers (0)")
    parser.add_argument("--format", choices=sorted(FORMATS), default="text", help="of the report (text)")


def run(args: argparse.Namespace) -> int:
    """Carry the command out; returns 1 where something was found.

    Raises CompilationError for a kernel that does not compile, and for a command line that does not fit it.
    """
    stages = stages_of(args)
    subject = subject_of(args)
    limits = Limits(args.seconds, stages, args.launches)
    scopes = subject.scopes()
    report = explore(scopes, subject.settings, limits)
    if args.prove:
        report = with_proofs(report, scopes, subject.settings, limits, subject.module, subject.scope)
    print(FORMATS[args.format](report, args.kernel))
    return 0 if report else 1


def stages_of(args: argparse.Namespace) -> list[str]:
    """The stages of the pipeline that are asked for. Raises CompilationError for none."""
    stages = [each.strip() for each in args.stages.split(",") if each.strip()]
    if not stages:
        raise CompilationError("--stages: expected the names of stages with commas between them, found none")
    return stages


def subject_of(args: argparse.Namespace) -> Subject:
    """What is launched, as the command line says. Raises CompilationError for one that does not fit the kernel."""
    kernel, defaults = load_kernel(args.kernel)

    def launchable(sizes: Sizes, change: Change | None) -> Launchable:
        found = read_launch(args, kernel, defaults, sizes)
        launch: dict[str, Any] = {**found.launch, "jobs": 1}

        def once(order: Mapping[str, Any]) -> Interpretation:
            options = Options(**launch, **order)
            return interpret_source(found.source, found.grid, found.arguments, options, found.types, change)

        return Launchable(once, arrays_of(found.arguments))

    def rings(sizes: Sizes) -> tuple[int, ...]:
        found = read_launch(args, kernel, defaults, sizes)
        return small_values(module_of(found.source, found.arguments, Options(**found.launch), found.types)[0])

    def module(at: Sizes) -> ModuleOp:
        found = read_launch(args, kernel, defaults, at)
        return any_values(found.source, found.arguments, Options(**found.launch))

    sizes = combinations(size_ranges(assignments(args.size, "--size"), rings), sweep=args.sweep)
    return Subject(sizes, Options(jobs=1), launchable, module)
