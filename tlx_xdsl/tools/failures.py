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
    """The error to print for an exception, at the operation that was worked on where the exception names no place.

    What is not declared as an error of the input is an internal error.
    """
    match error:
        case CompilationError():
            found = error
        case ParseError():
            found = parse_error(error)
        case FileNotFoundError() if error.filename is not None:
            found = CompilationError("no such file", SourceLocation(str(error.filename), 0))
        case PassFailedException() | DiagnosticException():
            # The message comes last, after a dump of the operation.
            lines = str(error).strip().splitlines()
            found = CompilationError(lines[-1] if lines else type(error).__name__)
        case InputError() | InputTypeError() | InputOverflowError() | OSError():
            found = CompilationError(" ".join(str(error).split()) or type(error).__name__)
        case _:
            found = internal_error(error)
    return with_place(found, error)
