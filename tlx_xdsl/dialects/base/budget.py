"""The error that a verifier raises when an operation alone requires more of a resource than there is."""

from __future__ import annotations

from xdsl.utils.exceptions import VerifyException


class OverBudgetException(VerifyException):
    """More is wanted than a thread block can have; see `tlx_xdsl.errors.OverBudgetError`, which it becomes."""

    def __init__(self, message: str, *, resource: str, required: int, limit: int):
        super().__init__(message)
        self.resource = resource
        self.required = required
        self.limit = limit
