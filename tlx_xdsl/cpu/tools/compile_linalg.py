"""`tlx compile --target linalg`: a kernel of the plain language in dialects of upstream MLIR."""

from __future__ import annotations

import argparse
from itertools import count
from pathlib import Path

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.printer import locations_first
from tlx_xdsl.tools.launch_line.kernel_options import LINALG
from tlx_xdsl.tools.launch_line.request import read
from tlx_xdsl.tools.launch_line.specialization import specialization_of
from tlx_xdsl.tools.output import write_file

from ..runtime.linalg import linalg_text
from .explain import explain_linalg as explain

__all__ = ["compile", "explain"]


def compile(args: argparse.Namespace) -> None:
    """Carry the command out.

    Raises CompilationError for a fault in the kernel or in what the command line says about it.
    """
    for option in ("emit", "bundle", "triton_version"):
        if getattr(args, option) is not None:
            raise CompilationError(f"--{option.replace('_', '-')}: with --target {LINALG} there is text for MLIR alone")
    # What a kernel may say is that of the GPU which its file names, or of the usual one.
    args.target = None
    request = read(args)
    output = None if args.output == "-" else Path(args.output or "build")
    numbers = count()

    def on_stage(stage: str, text: str) -> None:
        if output is not None:
            path = output / f"{request.source.name}.{next(numbers):02d}-{stage}.mlir"
            write_file(path, locations_first(text))
            print(path)

    on_each = on_stage if args.print_after_all and output is not None else None
    text = linalg_text(request.source, specialization_of(request), mlir_version=args.mlir_version, on_stage=on_each)
    if output is None:
        print(locations_first(text), end="")
        return
    path = output / f"{request.source.name}.{LINALG}.mlir"
    write_file(path, locations_first(text))
    if not args.quiet:
        print(path)
