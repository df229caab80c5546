"""`tlx map FILE.py:KERNEL` or `tlx map FILE.mlir`: which memory every buffer of a kernel has."""

from __future__ import annotations

import argparse
from pathlib import Path

from tlx_xdsl.tools.launch_line.kernel_options import add_kernel_arguments

FORMATS = ("text", "json", "svg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "kernel", metavar="FILE", help="FILE.py:KERNEL, or IR at any stage in FILE.mlir, .ttir or .ttgir"
    )
    parser.add_argument("--format", choices=FORMATS, help="what to write (text; svg or json by the name of -o)")
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write to, instead of standard output")
    parser.add_argument("--strict", action="store_true", help="lay out as storage-alias lowering does with strict")
    add_kernel_arguments(parser)


def run(args: argparse.Namespace) -> None:
    """Carry the command out; raises as `map_storage.run` does."""
    from tlx_xdsl.tools.commands.map_storage import run

    if args.format is None:
        suffix = Path(args.output or "").suffix.removeprefix(".")
        args.format = suffix if suffix in FORMATS else FORMATS[0]
    run(args)
