"""The errors of the backend: one helpful line, with the whole captured log after it."""

from __future__ import annotations

from tlx_xdsl.errors import CompilationError, OverBudgetError, SourceLocation


class BackendError(CompilationError):
    """Stock Triton refused the module, or died over it.

    `stage` is where: `start` (of the worker), `parse`, `passes`, `llir`, `ptx` or `cubin`. `log` is all that
    Triton, LLVM and ptxas printed, which may hold the whole PTX: show it on request, never by default. `death`
    says how the process ended if it did.
    """

    def __init__(
        self,
        message: str,
        location: SourceLocation | None = None,
        *,
        source_line: str | None = None,
        notes: tuple[str, ...] = (),
        stage: str = "",
        log: str = "",
        death: str = "",
    ):
        super().__init__(message, location, source_line=source_line, notes=notes)
        self.stage = stage
        self.log = log
        self.death = death


class BackendTimeoutError(BackendError):
    """The compile ran past its time limit; its worker was killed."""


class OutOfResourcesError(BackendError, OverBudgetError):
    """The kernel needs more of a resource than a CTA can have on the target, as stock Triton counts it."""

    # The defaults let the base class's pickling rebuild the error from its message; the state follows.
    def __init__(self, message: str, *, resource: str = "", required: int = 0, limit: int = 0, stage: str = ""):
        super().__init__(message, stage=stage)
        self.resource = resource
        self.required = required
        self.limit = limit
