"""Any exception of a run in the one form that command lines print."""

from __future__ import annotations

from xdsl.utils.exceptions import DiagnosticException, ParseError, PassFailedException

from tlx_xdsl.errors import (
    CompilationError,
    InputError,
    InputOverflowError,
    InputTypeError,
    SourceLocation,
    internal_error,
)
from tlx_xdsl.text.diagnostics import parse_error, with_place


def as_compilation_error(error: Exception) -> CompilationError:
    """The error to print for an exception.

    What is not declared as an error of the input is an internal error. That, and what a pass says, is at the operation
    that was worked on where the exception names no place; a wrong argument of a command line is not about any.
    """
    match error:
        case CompilationError():
            return error
        case ParseError():
            return parse_error(error)
        case FileNotFoundError() if error.filename is not None:
            return CompilationError("no such file", SourceLocation(str(error.filename), 0))
        case InputError() | InputTypeError() | InputOverflowError() | OSError():
            return CompilationError(" ".join(str(error).split()) or type(error).__name__)
        case PassFailedException() | DiagnosticException():
            # The message comes last, after a dump of the operation.
            lines = str(error).strip().splitlines()
            return with_place(CompilationError(lines[-1] if lines else type(error).__name__), error)
        case _:
            return with_place(internal_error(error), error)
