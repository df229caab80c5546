"""The work of `tlx reverse`: IR at any stage as the Python of a kernel."""

from __future__ import annotations

import argparse
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.decompile.print_ttgir_to_tlx import python_of
from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.runtime.steps import step_after_frontend

from ..documents import document
from ..launch_line.modules import MLIR_SUFFIXES, load_ir
from ..launch_line.request import read
from ..launch_line.specialization import specialization_of
from ..output import print_document, write_file, write_text


def run(args: argparse.Namespace) -> int:
    """Carry the command out; returns 0, or with `--format json` 1 where operations could not be expressed.

    Raises CompilationError for a fault in the kernel, and, when the text is written, for operations that it lacks.
    """
    text, refused = python_of(_module(args))
    lacking = sorted({op.name for op in refused})
    if args.format == "json":
        if args.output is not None:
            write_file(Path(args.output), text)
        print_document(document("tlx reverse", {"source": text, "refused": lacking}, ok=not refused))
        return 1 if refused else 0
    write_text(text, args.output)
    if refused:
        raise CompilationError(f"{len(refused)} operations could not be expressed: {', '.join(lacking)}")
    return 0


def _module(args: argparse.Namespace) -> ModuleOp:
    if Path(args.kernel).suffix in MLIR_SUFFIXES:
        if args.stage is not None:
            raise CompilationError(
                "--stage is for kernels, IR in a file is at a stage already", SourceLocation(args.kernel, 0)
            )
        return load_ir(args.kernel)
    request = read(args)
    step = step_after_frontend(request.kernel, specialization_of(request))
    return (step.finish() if args.stage is None else step.to(args.stage)).module()
