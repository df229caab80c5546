"""The IR that a command line names: of a file, or what the frontend makes of a kernel; types of its arguments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from tlx_xdsl.dialects.memref import element_of, is_memref
from tlx_xdsl.dialects.tt.types import PointerType, TensorDescType
from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.runtime.driver.compilation import frontend_module
from tlx_xdsl.runtime.driver.specialization import Specialization
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.verify import verify_module

from .request import Request
from .specialization import specialization_of

if TYPE_CHECKING:
    from .launches import Hint

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


def frontend_of(request: Request) -> tuple[ModuleOp, Specialization]:
    """The verified module that the frontend makes of a kernel, and what it is compiled for.

    Raises CompilationError for arguments that don't fit the kernel, and for faults in it.
    """
    specialization = specialization_of(request)
    module = frontend_module(request.source, specialization)
    verify_module(module)
    return module, specialization


def hint_of_type(type_: Attribute) -> Hint:
    """Return what the type of a function's argument says."""
    # They import numpy, which a command without values does without.
    from tlx_xdsl.interpreter.numbers import dtype_of

    from .launches import Hint

    if isinstance(type_, TensorDescType):
        return Hint(dtype_of(type_.element_type), type_.shape)
    if isinstance(type_, PointerType):
        return Hint(dtype_of(type_.pointee))
    if is_memref(type_):
        return Hint(dtype_of(element_of(type_)))
    return Hint(dtype_of(type_), (), is_number=True)
