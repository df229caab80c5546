"""Our errors with the face that Triton's users and autotuners look for: both are one exception."""

from __future__ import annotations

from triton.compiler.errors import CompilationError as StockCompilationError
from triton.runtime.errors import OutOfResources

from tlx_xdsl.backend.errors import BackendError, OutOfResourcesError
from tlx_xdsl.errors import CompilationError


class TritonCompilationError(CompilationError, StockCompilationError):
    """A fault in a kernel, found while Triton's runtime compiles it."""

    def __init__(self, error: CompilationError):
        CompilationError.__init__(self, error.message, error.location, source_line=error.source_line, notes=error.notes)
        self.src = None
        self.node = None
        self.error_message = error.message
        self.log = error.log if isinstance(error, BackendError) else ""

    __str__ = CompilationError.__str__

    def __reduce__(self):
        return _rebuilt, (TritonCompilationError, _plain(self))


class DoesNotFitError(OutOfResourcesError, OutOfResources):
    """The kernel needs more shared memory, tensor memory, threads or registers than a CTA can have.

    Triton's autotuners skip the configuration.
    """

    def __init__(self, error: OutOfResourcesError):
        CompilationError.__init__(self, error.message, error.location, source_line=error.source_line, notes=error.notes)
        self.stage, self.log, self.death = error.stage, error.log, error.death
        self.resource = self.name = error.resource
        self.required = error.required
        self.limit = error.limit

    __str__ = CompilationError.__str__

    def __reduce__(self):
        return _rebuilt, (DoesNotFitError, _plain(self))


def _plain(error: CompilationError) -> dict[str, object]:
    return dict(vars(error))


def _rebuilt(cls: type[CompilationError], state: dict[str, object]) -> CompilationError:
    error = cls.__new__(cls)
    Exception.__init__(error, state["message"])
    vars(error).update(state)
    return error


def with_triton_face(error: CompilationError) -> CompilationError:
    """The same error as one that Triton's users can catch as theirs."""
    if isinstance(error, OutOfResourcesError):
        return DoesNotFitError(error)
    return TritonCompilationError(error)
