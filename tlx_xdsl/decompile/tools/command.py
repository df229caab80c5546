"""`tlx reverse FILE.mlir` or `tlx reverse FILE.py:KERNEL`: IR at any stage as the Python of a kernel."""

from __future__ import annotations

import argparse

from tlx_xdsl.tools.launch_line.kernel_options import add_kernel_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "kernel", metavar="FILE", help="FILE.py:KERNEL, or IR at any stage in FILE.mlir, .ttir or .ttgir"
    )
    parser.add_argument("-o", "--output", metavar="FILE.py", help="file to write to, instead of standard output")
    parser.add_argument(
        "--stage", metavar="PASS", help="the pass of a kernel's pipeline after which to look (the last one)"
    )
    add_kernel_arguments(parser)


def run(args: argparse.Namespace) -> None:
    """Carry the command out; raises as `reverse_ir.run` does."""
    from .reverse import run

    run(args)
