"""`tlx map FILE.py:KERNEL` or `tlx map FILE.mlir`: which memory every buffer of a kernel has."""

from __future__ import annotations

import argparse
from pathlib import Path

from tlx_xdsl.errors import CompilationError, SourceLocation

from ..launch_line.kernel_options import add_kernel_arguments
from ..output import write_text

FORMATS = ("text", "json", "svg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "kernel", metavar="FILE", help="FILE.py:KERNEL, or IR at any stage in FILE.mlir, .ttir or .ttgir"
    )
    parser.add_argument("--format", choices=FORMATS, help="what to write (text; svg or json by the name of -o)")
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write to, instead of standard output")
    parser.add_argument(
        "--width", type=int, default=1100, metavar="PIXELS", help="of a picture (1100); below 700 as phones show it"
    )
    parser.add_argument("--strict", action="store_true", help="lay out as storage-alias lowering does with strict")
    add_kernel_arguments(parser)


def run(args: argparse.Namespace) -> None:
    """Carry the command out.

    Raises CompilationError for a fault in the kernel, and, when the map is written, for one that can't fit its target.
    """
    # They take a second, and `--help` does without.
    from tlx_xdsl.analysis.storage_budget import check_budget
    from tlx_xdsl.analysis.storage_map_reader import storage_maps
    from tlx_xdsl.targets import target_named

    from ..launch_line.modules import MLIR_SUFFIXES, frontend_of, load_ir
    from ..launch_line.request import read
    from .storage_map_text import rendered

    if Path(args.kernel).suffix in MLIR_SUFFIXES:
        module, target = load_ir(args.kernel), args.target
    else:
        module, specialization = frontend_of(read(args))
        target = specialization.target
    maps = storage_maps(module, None if target is None else target_named(target).capability, strict=args.strict)
    if not maps:
        raise CompilationError("nothing here allocates shared or tensor memory", SourceLocation(args.kernel, 0))
    suffix = Path(args.output or "").suffix.removeprefix(".")
    format_ = args.format or (suffix if suffix in FORMATS else FORMATS[0])
    write_text(rendered(maps, format_, max(args.width, 300)) + "\n", args.output)
    for each in maps:
        check_budget(each)
