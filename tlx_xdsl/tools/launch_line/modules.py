"""The IR that a command line names: of a file, or what the frontend makes of a kernel."""

from __future__ import annotations

import argparse
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.runtime.driver.compilation import frontend_module
from tlx_xdsl.runtime.driver.specialization import Specialization
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.tools.launch_line.kernel_options import load

MLIR_SUFFIXES = (".mlir", ".ttir", ".ttgir")
"""Suffixes of files of IR."""


def load_ir(path: str) -> ModuleOp:
    """The verified module in a file of IR.

    Raises CompilationError when the file can't be read, and, located in it, when it holds no valid module.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CompilationError("no such file", SourceLocation(path, 0)) from error
    except UnicodeDecodeError as error:
        raise CompilationError(f"the file holds no text: {error}", SourceLocation(path, 0)) from error
    module = parse_module(text, filename=path)
    verify_module(module)
    return module


def frontend_of(args: argparse.Namespace) -> tuple[ModuleOp, Specialization]:
    """The verified module that the frontend makes of the kernel that a command line names.

    Raises CompilationError for a kernel that can't be loaded, for arguments that don't fit it, and for faults in it.
    """
    kernel, _, specialization = load(args)
    module = frontend_module(kernel.source, specialization)
    verify_module(module)
    return module, specialization
