"""Our errors with the face that Triton's users and autotuners look for: both are one exception."""

# Triton's runtime has no types: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportMissingTypeStubs=false
# pyright: reportAttributeAccessIssue=false, reportUntypedBaseClass=false, reportPrivateUsage=false

from __future__ import annotations

import functools
from typing import Any

from triton.compiler.errors import CompilationError as StockCompilationError
from triton.runtime.errors import InterpreterError, OutOfResources

from tlx_xdsl.backend.errors import BackendError
from tlx_xdsl.errors import CompilationError, OverBudgetError


class TritonCompilationError(CompilationError, StockCompilationError):
    """A fault in a kernel, found while Triton's runtime compiles it."""

    kind: type[CompilationError] | None = None
    """The class of an error of the interpreter without Triton's face."""

    def __init__(self, error: CompilationError):
        CompilationError.__init__(self, error.message, error.location, source_line=error.source_line, notes=error.notes)
        self.src = None
        self.node = None
        self.error_message = error.message
        self.log = error.log if isinstance(error, BackendError) else ""

    __str__ = CompilationError.__str__

    def __reduce__(self) -> Any:
        return _rebuilt_as, (self.kind, _plain(self))


class DoesNotFitError(OverBudgetError, OutOfResources):
    """The kernel needs more shared memory, tensor memory, threads or registers than a CTA can have.

    Triton's autotuners skip the configuration.
    """

    def __init__(self, error: OverBudgetError):
        CompilationError.__init__(self, error.message, error.location, source_line=error.source_line, notes=error.notes)
        self.log = error.log if isinstance(error, BackendError) else ""
        self.resource = self.name = error.resource
        self.required = error.required
        self.limit = error.limit

    __str__ = CompilationError.__str__

    def __reduce__(self) -> Any:
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
    if isinstance(error, OverBudgetError):
        return DoesNotFitError(error)
    return TritonCompilationError(error)


def with_interpreter_face(error: CompilationError) -> CompilationError:
    """An error of a run on the CPU as one that Triton's users can catch, also as that of its interpreter."""
    return DoesNotFitError(error) if isinstance(error, OverBudgetError) else _interpreted(type(error))(error)


@functools.cache
def _interpreted(kind: type[CompilationError]) -> type[TritonCompilationError]:
    """The class of errors of a kind that are Triton's, too: what a run finds remains a `Fault`."""
    kinds = () if kind is CompilationError or issubclass(kind, BackendError) else (kind,)
    return type(kind.__name__, (TritonCompilationError, *kinds, InterpreterError), {"kind": kind})


def _rebuilt_as(kind: type[CompilationError] | None, state: dict[str, object]) -> CompilationError:
    return _rebuilt(TritonCompilationError if kind is None else _interpreted(kind), state)
