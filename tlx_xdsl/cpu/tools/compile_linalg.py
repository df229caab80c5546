"""`tlx compile --target linalg`: a kernel of the plain language in dialects of upstream MLIR.

`tlx explain --target linalg` prints what becomes of each access.
"""

from __future__ import annotations

import argparse
from itertools import count
from pathlib import Path
from typing import Any

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.printer import locations_first
from tlx_xdsl.tools.documents import document, show_texts
from tlx_xdsl.tools.launch_line.kernel_options import LINALG
from tlx_xdsl.tools.launch_line.request import read
from tlx_xdsl.tools.launch_line.specialization import specialization_of
from tlx_xdsl.tools.output import print_document, write_file

from ..linalg.access_report import accesses
from ..runtime.linalg import linalg_text, plain_module


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
    paths: list[Path] = []

    def on_stage(stage: str, text: str) -> None:
        if output is not None:
            path = output / f"{request.source.name}.{next(numbers):02d}-{stage}.mlir"
            write_file(path, locations_first(text))
            paths.append(path)
            print(path)

    on_each = on_stage if args.print_after_all and output is not None else None
    text = linalg_text(request.source, specialization_of(request), mlir_version=args.mlir_version, on_stage=on_each)
    facts: dict[str, Any] = {"kernel": request.source.name, "target": LINALG, "warnings": []}
    if output is None:
        show_texts(facts, {LINALG: locations_first(text)}, args.format)
        return
    path = output / f"{request.source.name}.{LINALG}.mlir"
    write_file(path, locations_first(text))
    if args.format == "json":
        print_document(document("tlx compile", {**facts, "files": [*map(str, (*paths, path))]}))
    elif not args.quiet:
        print(path)


def explain(args: argparse.Namespace) -> None:
    """Print what becomes of each access in linalg.

    Raises CompilationError for a fault in the kernel.
    """
    # As `tlx compile` does.
    args.target = None
    request = read(args)
    print(accesses(plain_module(request.source, specialization_of(request))))
