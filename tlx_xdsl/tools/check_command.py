"""`tlx check FILE.py:KERNEL`: run a kernel in many orders on arrays made up here, and report what is wrong in any."""

from __future__ import annotations

import argparse
from typing import Any

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.check import SECONDS, STAGES, arrays_of, explore
from tlx_xdsl.runtime.interpret import interpret_source
from tlx_xdsl.runtime.interpret_options import Options
from tlx_xdsl.tools.check_formats import FORMATS
from tlx_xdsl.tools.launch_arguments import VALUES, add_launch_arguments, read_kernel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{VALUES}\nThe exit status is 1 where something was found.\n"
    parser.add_argument("kernel", metavar="FILE", help="FILE.py:KERNEL")
    add_launch_arguments(parser)
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"time for all orders ({SECONDS:g})")
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
    kernel = read_kernel(args)
    launch: dict[str, Any] = {**kernel.launch, "jobs": 1}

    def once(order: Any) -> Any:
        return interpret_source(kernel.source, kernel.grid, kernel.arguments, Options(**launch, **order), kernel.types)

    stages = [each.strip() for each in args.stages.split(",") if each.strip()]
    if not stages:
        raise CompilationError("--stages: expected the names of stages with commas between them, found none")
    report = explore(once, arrays_of(kernel.arguments), Options(**launch), args.seconds, stages, args.launches)
    print(FORMATS[args.format](report))
    return 0 if report else 1
