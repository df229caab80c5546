"""`tlx check FILE.py:KERNEL`: run a kernel in all orders that matter, on arrays made up here; report what is wrong."""

from __future__ import annotations

import argparse

from tlx_xdsl.runtime.simulate.options import SECONDS, STAGES

from ..launch_line.kernel_options import SIZE_HELP, VALUES, add_launch_arguments

FORMATS = ("github", "junit", "sarif", "text")
"""What `check_formats` writes."""


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
    parser.add_argument("--format", choices=FORMATS, default="text", help="of the report (text)")


def run(args: argparse.Namespace) -> int:
    """Carry the command out; returns and raises as `check_kernel.run` does."""
    from .check_kernel import run

    return run(args)
