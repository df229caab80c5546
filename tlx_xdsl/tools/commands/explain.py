"""`tlx explain FILE.py:KERNEL`: the passes that a kernel goes through, what each of them did, and what layouts cost."""

from __future__ import annotations

import argparse

from ..launch_line.kernel_options import KERNEL, add_conversion_argument, add_kernel_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("kernel", **KERNEL)
    parser.add_argument("--diff", metavar="PASS", help="show what this pass changed, as a unified diff")
    parser.add_argument("--all", action="store_true", help="list passes that changed nothing, too")
    parser.add_argument(
        "--why",
        metavar="VALUE",
        help="why a value has its layout: %%acc_1 as printed after the last pass, or the name of a Python variable",
    )
    parser.add_argument(
        "--triton-version", metavar="VERSION", help="Triton to compile for (the installed one, else 3.9)"
    )
    add_conversion_argument(parser)
    add_kernel_arguments(parser)


def run(args: argparse.Namespace) -> None:
    """Carry the command out; raises as `explain_passes.run` does."""
    from .explain_passes import run

    run(args)
